"""The payloads of `SimpleClient` as requests of the versions that a broker has, and its responses as payloads.

A broker of 0.8.2 has version 0 of most requests and messages of format v0; Kafka 4 has none of both. So each function
takes the version, and the messages are converted to the format that the version carries. `KafkaProtocol`
(`kafka.protocol.legacy`) has the fixed versions of the manual.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafka import errors
from kafka.codec import CODEC_NONE
from kafka.errors import BrokerResponseError, FailedPayloadsError
from kafka.future import Future
from kafka.legacy.payloads import (
    FetchRequestPayload,
    FetchResponsePayload,
    Message,
    OffsetAndMessage,
    OffsetCommitRequestPayload,
    OffsetRequestPayload,
    OffsetResponsePayload,
    ProduceRequestPayload,
    ProduceResponsePayload,
)
from kafka.legacy.protocol_payloads import KafkaProtocol, by_topic, create_message_set
from kafka.protocol import message
from kafka.protocol.api import Request, Response
from kafka.protocol.commit import OffsetCommitRequest, OffsetFetchRequest
from kafka.protocol.fetch import FetchRequest, FetchResponse
from kafka.protocol.fields import Buffer
from kafka.protocol.offset import ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.produce import ProduceRequest, ProduceResponse
from kafka.record import MemoryRecords, MemoryRecordsBuilder

if TYPE_CHECKING:
    from kafka.legacy.payloads import OfPartition
    from kafka.legacy.simple_client import SimpleClient

# The newest version of each request that is used here: later ones have topic ids or several groups.
NEWEST: Final[Mapping[type[Request[Response]], int]] = {
    ProduceRequest: 9,
    FetchRequest: 11,
    ListOffsetsRequest: 1,
    OffsetCommitRequest: 2,
    OffsetFetchRequest: 1,
}
_FIRST_WITH_RECORD_BATCHES: Final = 3  # of ProduceRequest
_CODEC_MASK: Final = 0x07
_NO_LIMIT: Final = 2**31 - 1


# Produce


def produce_request(version: int, payloads: Iterable[ProduceRequestPayload], acks: int, timeout: int) -> ProduceRequest:
    """Make a request of a version; its messages are of the format that goes with the version."""
    if version < _FIRST_WITH_RECORD_BATCHES:
        wanted = [payload._replace(messages=_message_set(payload.messages)) for payload in payloads]
        request = KafkaProtocol.encode_produce_request(wanted, acks, timeout)
        return ProduceRequest[version](request.acks, request.timeout_ms, request.topic_data)
    topics = by_topic(payloads, lambda p: (p.partition, _record_batch(p.messages)))
    return ProduceRequest[version](None, acks, timeout, topics)


def _message_set(messages: Iterable[Message]) -> list[Message]:
    """Return messages for one request: brokers take several, or one that is compressed."""
    given = list(messages)
    if len(given) == 1 or not any(each.attributes & _CODEC_MASK for each in given):
        return given
    codec, pairs = _expanded(given)
    return create_message_set([(value, key) for key, value in pairs], codec)


def _record_batch(messages: Iterable[Message]) -> bytes:
    """Encode messages as one batch, which is what a partition of a request may hold since version 3."""
    codec, pairs = _expanded(messages)
    builder = MemoryRecordsBuilder(2, codec, _NO_LIMIT)
    now = int(time.time() * 1000)
    for key, value in pairs:
        builder.append(now, key, value)
    builder.close()
    return bytes(builder.buffer())


def _expanded(messages: Iterable[Message]) -> tuple[int, list[tuple[bytes | None, bytes | None]]]:
    """Return the codec of messages and their keys and values, with those within compressed ones."""
    codec = CODEC_NONE
    pairs: list[tuple[bytes | None, bytes | None]] = []
    for given in messages:
        pairs += _contents(given)
        codec = codec or given.attributes & _CODEC_MASK
    return codec, pairs


def _contents(given: Message) -> Iterator[tuple[bytes | None, bytes | None]]:
    if not given.attributes & _CODEC_MASK:
        yield given.key, given.value
        return
    wrapper = message.Message(given.value, given.key, given.magic, given.attributes)
    for _, _, found in wrapper.decompress():
        if isinstance(found, message.Message):
            yield found.key, found.value


def produce_responses(response: ProduceResponse) -> list[ProduceResponsePayload]:
    """Return a payload for each partition."""
    return [
        ProduceResponsePayload(topic.name, found.index, found.error_code, found.base_offset)
        for topic in response.responses
        for found in topic.partition_responses
    ]


# Fetch


def fetch_request(
    version: int, payloads: Iterable[FetchRequestPayload], max_wait_time: int, min_bytes: int
) -> FetchRequest:
    """Make a request of a version, which waits for ``max_wait_time`` ms for ``min_bytes``."""
    topics = [
        {
            "topic": topic,
            "partitions": [
                {"partition": p.partition, "fetch_offset": p.offset, "partition_max_bytes": p.max_bytes}
                for p in partitions
            ],
        }
        for topic, partitions in by_topic(payloads, lambda p: p)
    ]
    return FetchRequest[version](replica_id=-1, max_wait_ms=max_wait_time, min_bytes=min_bytes, topics=topics)


def fetch_responses(response: FetchResponse) -> list[FetchResponsePayload]:
    """Return a payload for each partition, with the messages within compressed ones.

    If the broker cut off the first message, a `PartialMessage` stands in its place.
    """
    return [
        FetchResponsePayload(
            topic.topic, found.partition_index, found.error_code, found.high_watermark, _messages(found.records)
        )
        for topic in response.responses
        for found in topic.partitions
    ]


def _messages(records: Buffer | None) -> list[OffsetAndMessage]:
    if not records:
        return []
    found = []
    batches = MemoryRecords(records)
    while (batch := batches.next_batch()) is not None:
        if not getattr(batch, "is_control_batch", False):
            magic = getattr(batch, "magic", 2)
            found += [OffsetAndMessage(each.offset, Message(magic, 0, each.key, each.value)) for each in batch]
    if not found and not batches.valid_bytes():
        return [OffsetAndMessage(-1, message.PartialMessage(records))]  # type: ignore[arg-type] # as it was
    return found


# Offsets


def offset_request(version: int, payloads: Iterable[OffsetRequestPayload]) -> ListOffsetsRequest:
    """Make a request for the offsets before a time; version 1 has one offset for each partition at most."""
    if version == 0:
        return KafkaProtocol.encode_offset_request(payloads)
    return ListOffsetsRequest[version](-1, by_topic(payloads, lambda p: (p.partition, p.time)))


def offset_responses(response: ListOffsetsResponse) -> list[OffsetResponsePayload]:
    """Return a payload for each partition."""
    return [
        OffsetResponsePayload(topic.name, found.partition_index, found.error_code, _offsets(found))
        for topic in response.topics
        for found in topic.partitions
    ]


def _offsets(found: object) -> list[int]:
    several = getattr(found, "old_style_offsets", None)
    if several:
        return list(several)
    single = getattr(found, "offset", -1)
    return [] if single < 0 else [single]


# Committed offsets


def commit_request(version: int, group: str, payloads: Iterable[OffsetCommitRequestPayload]) -> OffsetCommitRequest:
    """Make a request to commit positions, as a program that is not a member of the group."""
    topics = by_topic(payloads, lambda p: (p.partition, p.offset, _text(p.metadata)))
    if version == 0:
        return OffsetCommitRequest[0](group, topics)
    return OffsetCommitRequest[version](group, -1, "", -1, topics)


def _text(metadata: str | bytes | None) -> str:
    return metadata.decode() if isinstance(metadata, bytes) else metadata or ""


# Outcomes, and names


def check_error(response: Any) -> None:
    """Raise the error of a response; of a payload that was not sent the broker's error, if there is one."""
    if isinstance(response, FailedPayloadsError) and isinstance(response.__cause__, BrokerResponseError):
        raise response.__cause__
    errors.check_error(response)


def name_of(topic: str | bytes) -> str:
    """Return the name of a topic or a group, which the manual's examples give as bytes too."""
    return topic.decode() if isinstance(topic, bytes) else topic


def with_names(payloads: Iterable[Any]) -> list[Any]:
    """Return payloads whose topics are text."""
    return [p._replace(topic=name_of(p.topic)) if isinstance(p.topic, bytes) else p for p in payloads]


def failed_payload(payload: OfPartition, cause: BaseException) -> FailedPayloadsError:
    """Return the error of a payload that could not be sent."""
    error = FailedPayloadsError(payload, f"{payload.topic} partition {payload.partition}: {cause}")
    error.__cause__ = cause
    return error


class HistoricConnection:
    """A connection as 1.x had it: `recv` returns responses with their futures, which the caller completes."""

    def __init__(self, client: SimpleClient, node_id: int) -> None:
        self._client = client
        self._node_id = node_id
        self._sent: list[tuple[Future[Any], Future[Any]]] = []

    def send(self, request: Request[Response], *_: object, **__: object) -> Future[Any]:
        """Send a request; the future is completed by who calls `recv`."""
        outcome: Future[Any] = Future()
        self._sent.append((self._client.client.submit(self._node_id, request, timeout=self._client.timeout), outcome))
        return outcome

    def recv(self) -> list[tuple[Any, Future[Any]]]:
        """Wait for the oldest response, and return what has arrived; an error completes its future."""
        if self._sent:
            self._client.client.poll(future=self._sent[0][0])
        arrived = [pair for pair in self._sent if pair[0].is_done]
        self._sent = [pair for pair in self._sent if not pair[0].is_done]
        for inner, outcome in arrived:
            if inner.exception is not None:
                outcome.failure(inner.exception)
        return [(inner.value, outcome) for inner, outcome in arrived if inner.succeeded()]
