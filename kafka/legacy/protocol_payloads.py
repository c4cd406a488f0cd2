"""What ``SimpleClient`` and its producers and consumers spoke: messages by function, requests by payload.

>>> from kafka.structs import ProduceRequestPayload
>>> request = KafkaProtocol.encode_produce_request([ProduceRequestPayload("events", 0, [create_message("hello")])])
>>> request
ProduceRequest[0](acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name='events', partition_data=[...])])

Payloads are the tuples of ``kafka.structs``; requests and responses are the current classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

from kafka.codec import CODEC_GZIP, CODEC_NONE, CODEC_SNAPPY, gzip_encode, snappy_encode
from kafka.errors import KafkaProtocolError, UnsupportedCodecError
from kafka.legacy import message_set as message
from kafka.protocol.commit import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from kafka.protocol.fetch import FetchRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.offset import ListOffsetsRequest
from kafka.protocol.produce import ProduceRequest
from kafka.structs import (
    ConsumerMetadataResponse,
    FetchResponsePayload,
    ListOffsetResponsePayload,
    Message,
    OffsetAndMessage,
    OffsetCommitResponsePayload,
    OffsetFetchResponsePayload,
    OffsetResponsePayload,
    ProduceResponsePayload,
)

__all__ = [
    "ALL_CODECS",
    "ATTRIBUTE_CODEC_MASK",
    "CODEC_GZIP",
    "CODEC_NONE",
    "CODEC_SNAPPY",
    "KafkaProtocol",
    "create_gzip_message",
    "create_message",
    "create_message_set",
    "create_snappy_message",
]

ATTRIBUTE_CODEC_MASK: Final = 0x03
ALL_CODECS: Final = (CODEC_NONE, CODEC_GZIP, CODEC_SNAPPY)

_T = TypeVar("_T")

Content = str | bytes | None
Pairs = Iterable[tuple[Content, Content]]
"""Values and keys."""


# Messages


def create_message(payload: Content, key: Content = None) -> Message:
    """Make a message of a value and a key; text becomes UTF-8.

    >>> create_message("hello", b"key")
    Message(magic=0, attributes=0, key=b'key', value=b'hello')
    """
    return Message(0, 0, _as_bytes(key), _as_bytes(payload))


def create_gzip_message(payloads: Pairs, key: Content = None, compresslevel: int | None = None) -> Message:
    """Make a message that holds others, compressed with gzip; ``payloads`` are pairs of value and key.

    >>> create_gzip_message([(b"one", None), (b"two", None)]).attributes
    1
    """
    return Message(0, CODEC_GZIP, _as_bytes(key), gzip_encode(_encode_set(payloads), compresslevel))


def create_snappy_message(payloads: Pairs, key: Content = None) -> Message:
    """Make a message that holds others, compressed with Snappy; ``payloads`` are pairs of value and key."""
    return Message(0, CODEC_SNAPPY, _as_bytes(key), snappy_encode(_encode_set(payloads)))


def create_message_set(
    messages: Pairs, codec: int = CODEC_NONE, key: Content = None, compresslevel: int | None = None
) -> list[Message]:
    """Make messages of pairs of value and key: one each or, with a codec, one that holds them all.

    >>> [message.value for message in create_message_set([(b"one", None), (b"two", None)])]
    [b'one', b'two']
    """
    if codec == CODEC_NONE:
        return [create_message(*pair) for pair in messages]
    if codec == CODEC_GZIP:
        return [create_gzip_message(messages, key, compresslevel)]
    if codec == CODEC_SNAPPY:
        return [create_snappy_message(messages, key)]
    raise UnsupportedCodecError(f"codec {codec!r} is not one of {ALL_CODECS}: none, gzip, Snappy")


def _as_bytes(content: Content) -> bytes | None:
    return content.encode() if isinstance(content, str) else content


def _encode_set(payloads: Pairs) -> bytes:
    messages = [(0, _encode(create_message(*pair))) for pair in payloads]
    return message.MessageSet.encode(messages, prepend_size=False)


def _encode(given: Message) -> bytes:
    return message.Message(given.value, given.key, given.magic, given.attributes).encode()


# Requests and responses


class KafkaProtocol:
    """Payloads to requests, and responses to payloads, in the versions that 0.8 brokers have."""

    PRODUCE_KEY = 0
    FETCH_KEY = 1
    OFFSET_KEY = 2
    METADATA_KEY = 3
    OFFSET_COMMIT_KEY = 8
    OFFSET_FETCH_KEY = 9
    CONSUMER_METADATA_KEY = 10

    @classmethod
    def encode_produce_request(
        cls, payloads: Iterable[object] = (), acks: int = 1, timeout: int = 1000
    ) -> ProduceRequest:
        """Make a request of ``ProduceRequestPayload``."""
        if acks not in (1, 0, -1):
            raise ValueError(f"acks is 1, 0 or -1, not {acks!r}")
        topics = by_topic(payloads, lambda p: (p.partition, [(0, _encode(m)) for m in p.messages]))
        return ProduceRequest[0](acks, timeout, topics)

    @classmethod
    def decode_produce_response(cls, response: Any) -> list[ProduceResponsePayload]:
        """Return a payload for each partition."""
        return [
            ProduceResponsePayload(topic, partition, error, offset)
            for topic, (partition, error, offset, *_) in _partitions(response.topics)
        ]

    @classmethod
    def encode_fetch_request(
        cls, payloads: Iterable[object] = (), max_wait_time: int = 100, min_bytes: int = 4096
    ) -> FetchRequest:
        """Make a request of ``FetchRequestPayload``."""
        topics = by_topic(payloads, lambda p: (p.partition, p.offset, p.max_bytes))
        return FetchRequest[0](-1, max_wait_time, min_bytes, topics)

    @classmethod
    def decode_fetch_response(cls, response: Any) -> list[FetchResponsePayload]:
        """Return a payload for each partition; one message may stand at its end that was cut off."""
        return [
            FetchResponsePayload(topic, partition, error, highwater, list(cls.decode_message_set(records)))
            for topic, (partition, error, highwater, records) in _partitions(response.topics)
        ]

    @classmethod
    def decode_message_set(cls, raw_data: Any) -> Iterator[OffsetAndMessage]:
        """Yield the messages of a set, decoded or not, and those within compressed ones."""
        if raw_data is None:
            return
        messages = raw_data
        if not isinstance(raw_data, (list, tuple)):
            messages = message.MessageSet.decode(raw_data, bytes_to_read=len(raw_data))
        for offset, _, found in messages:
            if isinstance(found, message.Message) and found.is_compressed():
                yield from (OffsetAndMessage(at, within) for at, _, within in found.decompress())  # type: ignore[arg-type]
            else:
                yield OffsetAndMessage(offset, found)

    @classmethod
    def encode_offset_request(cls, payloads: Iterable[object] = ()) -> ListOffsetsRequest:
        """Make a request of ``OffsetRequestPayload``."""
        topics = by_topic(payloads, lambda p: (p.partition, p.time, p.max_offsets))
        return ListOffsetsRequest[0](-1, topics)

    @classmethod
    def decode_offset_response(cls, response: Any) -> list[OffsetResponsePayload]:
        """Return a payload for each partition."""
        return [OffsetResponsePayload(topic, *values) for topic, values in _partitions(response.topics)]

    @classmethod
    def encode_list_offset_request(cls, payloads: Iterable[object] = ()) -> ListOffsetsRequest:
        """Make a request of ``ListOffsetRequestPayload``."""
        topics = by_topic(payloads, lambda p: (p.partition, p.time))
        return ListOffsetsRequest[1](-1, topics)

    @classmethod
    def decode_list_offset_response(cls, response: Any) -> list[ListOffsetResponsePayload]:
        """Return a payload for each partition."""
        return [ListOffsetResponsePayload(topic, *values) for topic, values in _partitions(response.topics)]

    @classmethod
    def encode_metadata_request(
        cls, topics: Sequence[str] = (), payloads: Sequence[str] | None = None
    ) -> MetadataRequest:
        """Make a request for these topics, or for all."""
        return MetadataRequest[0](list(topics if payloads is None else payloads))

    @classmethod
    def decode_metadata_response(cls, response: object) -> object:
        """Return the response."""
        return response

    @classmethod
    def encode_consumer_metadata_request(cls, client_id: str | None, correlation_id: int, payloads: str) -> bytes:
        """Make the framed request for the coordinator of a group."""
        return FindCoordinatorRequest[0](payloads).frame(correlation_id, client_id)

    @classmethod
    def decode_consumer_metadata_response(cls, data: bytes) -> ConsumerMetadataResponse:
        """Read a response from its frame, without its size."""
        return ConsumerMetadataResponse(*FindCoordinatorResponse[0].unframe(data)[1])

    @classmethod
    def encode_offset_commit_request(cls, group: str, payloads: Iterable[object]) -> OffsetCommitRequest:
        """Make a request of ``OffsetCommitRequestPayload``."""
        topics = by_topic(payloads, lambda p: (p.partition, p.offset, p.metadata))
        return OffsetCommitRequest[0](group, topics)

    @classmethod
    def decode_offset_commit_response(cls, response: Any) -> list[OffsetCommitResponsePayload]:
        """Return a payload for each partition."""
        return [OffsetCommitResponsePayload(topic, *values) for topic, values in _partitions(response.topics)]

    @classmethod
    def encode_offset_fetch_request(
        cls, group: str, payloads: Iterable[object], from_kafka: bool = False
    ) -> OffsetFetchRequest:
        """Make a request of ``OffsetFetchRequestPayload``; the offsets are in Kafka or in ZooKeeper."""
        return OffsetFetchRequest[int(from_kafka)](group, by_topic(payloads, lambda p: p.partition))

    @classmethod
    def decode_offset_fetch_response(cls, response: Any) -> list[OffsetFetchResponsePayload]:
        """Return a payload for each partition."""
        return [OffsetFetchResponsePayload(topic, *values) for topic, values in _partitions(response.topics)]


def by_topic(payloads: Iterable[Any], entry: Callable[[Any], _T]) -> list[tuple[str, list[_T]]]:
    """Group payloads as requests are: by topic, then one entry for each partition."""
    topics: dict[str, dict[int, _T]] = {}
    for payload in payloads:
        partitions = topics.setdefault(payload.topic, {})
        if payload.partition in partitions:
            raise KafkaProtocolError(f"two payloads for {payload.topic}, partition {payload.partition}")
        partitions[payload.partition] = entry(payload)
    return [(topic, list(partitions.values())) for topic, partitions in topics.items()]


def _partitions(topics: Iterable[tuple[str, Iterable[_T]]]) -> Iterator[tuple[str, _T]]:
    return ((topic, partition) for topic, partitions in topics for partition in partitions)
