"""Asking a broker in raw requests and writing down what it says, so that two brokers' words can be compared."""

from __future__ import annotations

import fnmatch
import itertools
import re
import socket
import struct
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from kafka.errors import KafkaError
from kafka.protocol.admin import CreateTopicsRequest, DeleteTopicsRequest
from kafka.protocol.api import Request
from kafka.protocol.broker_release import apis_of
from kafka.protocol.fields import ZERO_UUID
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.offset import ListOffsetsRequest
from kafka.protocol.registry import api_named

TIMEOUT = 20.0
RELEASE = (4, 3)
CLOSED = "closed the connection"
SILENT = "did not answer"


_BARRIER = "barrier"
#: Requests that the controller carries out; the broker answers others by what it has learnt from the metadata log.
_CHANGES = {
    "AlterClientQuotasRequest",
    "AlterConfigsRequest",
    "AlterUserScramCredentialsRequest",
    "CreatePartitionsRequest",
    "CreateTopicsRequest",
    "DeleteTopicsRequest",
    "IncrementalAlterConfigsRequest",
    "UpdateFeaturesRequest",
}


def versions(api: str) -> range:
    """The versions of an API that Kafka 4.3 serves."""
    low, high = apis_of(RELEASE)[api_named(api).key]
    return range(low, high + 1)


class Transcript:
    """A conversation with one broker, label by label."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self.said: dict[str, Any] = {}
        self._socket: socket.socket | None = None
        self._numbers = itertools.count(1)
        self._changed = False

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _connection(self) -> socket.socket:
        if self._socket is None:
            self._socket = socket.create_connection(self.address, TIMEOUT)
        return self._socket

    def note(self, label: str, value: Any) -> None:
        assert label not in self.said, f"two replies are labelled {label}"
        self.said[label] = _scrub(value)

    def ask(self, label: str, request: Request) -> Any:
        """Ask, write the reply down, return it; None if there was none."""
        try:
            reply = self.quietly(request)
        except ConnectionError:
            self.note(label, CLOSED)
            self.close()
            return None
        self.note(label, reply.to_json())
        return reply

    def quietly(self, request: Request) -> Any:
        """Ask without writing it down; what the controller has changed before, the broker knows by then."""
        if type(request).__name__ in _CHANGES:
            self._changed = True
        elif self._changed:
            self._changed = False
            wait_for_changes([self])
        return self.exchange(request)

    def exchange(self, request: Request) -> Any:
        """Ask without writing it down and without waiting for earlier changes."""
        number = next(self._numbers)
        self._connection().sendall(request.frame(number, "differential"))
        answered, reply = type(request).RESPONSE_TYPE.unframe(self._frame())
        assert answered == number
        return reply

    def raw(self, label: str, data: bytes, *, wait: float = TIMEOUT) -> None:
        """Send bytes on a connection of their own, and write down what comes back.

        Only of bytes that neither broker answers the wait may be short.
        """
        with socket.create_connection(self.address, TIMEOUT) as sock:
            sock.settimeout(wait)
            try:
                sock.sendall(data)
                head = sock.recv(4)
                self.note(label, f"answered {struct.unpack('>i', head)[0]} bytes" if len(head) == 4 else CLOSED)
            except ConnectionError:
                self.note(label, CLOSED)
            except TimeoutError:
                self.note(label, SILENT)

    def _frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self._connection().recv(size - len(data))
            if not piece:
                raise ConnectionError("closed")
            data += piece
        return data

    def until(self, request: Request, is_so: Callable[[Any], bool]) -> None:
        """Ask until the reply is as it should be; a broker has no event to wait for from outside."""
        deadline = time.monotonic() + TIMEOUT
        while not is_so(reply := self.quietly(request)):
            assert time.monotonic() < deadline, reply
            time.sleep(0.02)

    # What many scripts need

    def make_topic(self, name: str, partitions: int = 1, **configs: str) -> UUID:
        """Create a topic and wait for its leaders; return its id."""
        # Kafka looks at retention 30 s after its start, and scripts write records of years ago.
        configs = {"retention_ms": "-1", **configs}
        made = self.quietly(
            CreateTopicsRequest[7](
                topics=[(name, partitions, 1, [], [(key.replace("_", "."), value) for key, value in configs.items()])],
                timeout_ms=10_000,
            )
        )
        assert made.topics[0].error_code == 0, made
        deadline = time.monotonic() + TIMEOUT
        while True:
            topic = self.quietly(MetadataRequest[12]([(made.topics[0].topic_id, name)], False)).topics[0]
            is_there = not topic.error_code and len(topic.partitions) == partitions
            if is_there and all(self._is_led(name, one.partition_index) for one in topic.partitions):
                return made.topics[0].topic_id  # type: ignore[no-any-return]
            assert time.monotonic() < deadline, topic
            time.sleep(0.02)  # a broker has no event to wait for from outside

    def _is_led(self, name: str, partition: int) -> bool:
        """Whether the leader has taken the partition over, which is later than metadata says."""
        reply = self.quietly(ListOffsetsRequest[5](replica_id=-1, topics=[(name, [(partition, -1, -1)])]))
        return not reply.topics[0].partitions[0].error_code


@dataclass(frozen=True)
class Difference:
    """A difference that is meant to be."""

    script: str
    label: str
    path: str
    reason: str

    def covers(self, script: str, label: str, path: str) -> bool:
        fits = fnmatch.fnmatchcase(script, self.script) and fnmatch.fnmatchcase(label, self.label)
        return fits and re.fullmatch(self.path, path) is not None


#: What is different each time, and what stands for it.
_CHANCE = {"topicId": "<id>", "clusterId": "<id>", "port": "<port>", "logDir": "<directory>"}
_CHANCE |= {"totalBytes": "<bytes>", "usableBytes": "<bytes>", "finalizedFeaturesEpoch": "<epoch>"}
_CHANCE |= {"logEndOffset": "<offset>", "highWatermark": "<offset>"}  # of the metadata's log
_CHANCE |= {"lastFetchTimestamp": "<time>", "lastCaughtUpTimestamp": "<time>"}
#: The same in the middle of messages.
_CHANCE_WORDS = r"(within \[|the cluster id \").*"
_NO_ID = "A" * 22
#: Lists in no particular order: Kafka takes them out of hash maps.
_UNORDERED = {
    "entries",
    "entity",
    "configResources",
    "replicaElectionResults",
    "supportedFeatures",
    "finalizedFeatures",
}


_INTERNAL = {"__consumer_offsets", "__share_group_state", "__transaction_state"}


def _scrub(value: Any, name: str = "") -> Any:
    """Replace what is up to chance; order what has no order."""
    if isinstance(value, dict):
        return {key: _scrub(one, key) for key, one in value.items()}
    if isinstance(value, list):
        scrubbed = [_scrub(one) for one in value if not _is_internal(one)]
        return sorted(scrubbed, key=repr) if name in _UNORDERED else scrubbed
    if name in _CHANCE and value not in (_NO_ID, 0):
        return _CHANCE[name]
    return re.sub(_CHANCE_WORDS, r"\1...", value) if isinstance(value, str) else value


def _is_internal(entry: Any) -> bool:
    """Whether an entry of a list is a topic that Kafka creates for itself, once a group or a transaction needs it.

    Which scripts ran before is up to chance, so lists of all topics may have it or not. The embedded broker has none.
    """
    return isinstance(entry, dict) and any(entry.get(key) in _INTERNAL for key in ("name", "topic", "resourceName"))


def differences(real: Any, ours: Any, path: str = "") -> Iterable[tuple[str, Any, Any]]:
    """Yield the path of each value in which two replies differ, with both values."""
    if isinstance(real, dict) and isinstance(ours, dict):
        for key in real.keys() | ours.keys():
            yield from differences(real.get(key, "<absent>"), ours.get(key, "<absent>"), f"{path}.{key}")
    elif isinstance(real, list) and isinstance(ours, list):
        for key, one, other in _pairs(real, ours):
            yield from differences(one, other, f"{path}[{key}]")
    elif real != ours:
        yield path, real, ours


def _pairs(real: list[Any], ours: list[Any]) -> Iterable[tuple[str, Any, Any]]:
    """Pair elements by what names them where something does, else by their place."""
    for name in ("apiKey", "name", "topicName"):
        here = [element.get(name) for element in (*real, *ours) if isinstance(element, dict)]
        if len(here) == len(real) + len(ours) and here and None not in here:
            left = {element[name]: element for element in real}
            right = {element[name]: element for element in ours}
            if len(left) == len(real) and len(right) == len(ours):
                for key in sorted(left.keys() | right.keys(), key=str):
                    yield str(key), left.get(key, "<absent>"), right.get(key, "<absent>")
                return
    for at, (one, other) in enumerate(itertools.zip_longest(real, ours, fillvalue="<absent>")):
        yield str(at), one, other


Script = Callable[[Transcript], None]


def run(script: Script, address: tuple[str, int]) -> dict[str, Any]:
    transcript = Transcript(address)
    try:
        script(transcript)
    except (KafkaError, ConnectionError, TimeoutError) as error:
        raise AssertionError(f"{script.__name__} after {list(transcript.said)[-1:]}: {error!r}") from error
    finally:
        transcript.close()
    return transcript.said


def wait_for_changes(nodes: list[Transcript]) -> None:
    """Wait until all nodes know of all changes: they learn of them in order, and of a topic made now the last."""
    first, look = nodes[0], MetadataRequest[12](topics=[(ZERO_UUID, _BARRIER)], allow_auto_topic_creation=False)
    first.exchange(CreateTopicsRequest[7](topics=[(_BARRIER, 1, 1, [], [])], timeout_ms=10_000))
    for node in nodes:
        node.until(look, lambda reply: not reply.topics[0].error_code)
    first.exchange(DeleteTopicsRequest[6](topics=[(_BARRIER, ZERO_UUID)], timeout_ms=10_000))
    for node in nodes:
        node.until(look, lambda reply: bool(reply.topics[0].error_code))
