"""The user data of a sticky member: the partitions that it owned, encoded as by Java's assignor (KIP-54). Sans-IO."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from kafka.coordinator.assignors.sticky.balance import Claim
from kafka.coordinator.protocol import by_topic
from kafka.errors import KafkaProtocolError
from kafka.structs import TopicPartition

__all__ = ["read_claim", "read_generation", "write_claim", "write_generation"]

_INT32: Final = struct.Struct(">i")
_INT16: Final = struct.Struct(">h")


def write_claim(partitions: Iterable[TopicPartition], generation: int) -> bytes:
    """Return user data of version 1: topics with partitions, and the generation.

    >>> read_claim(write_claim([TopicPartition("events", 3)], 7))
    Claim(partitions=[TopicPartition(topic='events', partition=3)], generation=7)
    """
    topics = by_topic(partitions)
    out = [_INT32.pack(len(topics))]
    for topic, numbers in topics:
        name = topic.encode()
        out += [_INT16.pack(len(name)), name, _INT32.pack(len(numbers)), *map(_INT32.pack, numbers)]
    out.append(_INT32.pack(generation))
    return b"".join(out)


def read_claim(data: bytes | None) -> Claim:
    """Decode user data of either version; version 0 has no generation. No bytes claim nothing."""
    if not data:
        return Claim([])
    reader = _Reader(bytes(data))
    partitions = []
    for _ in range(reader.count()):
        topic = reader.text()
        partitions += [TopicPartition(topic, reader.int32()) for _ in range(reader.count())]
    return Claim(partitions, reader.int32() if reader.left >= _INT32.size else -1)


def write_generation(generation: int) -> bytes:
    """Return the user data of the cooperative assignor: the generation alone."""
    return _INT32.pack(generation)


def read_generation(data: bytes | None) -> int:
    """Decode it; -1 without one."""
    return int(_INT32.unpack_from(data)[0]) if data and len(data) >= _INT32.size else -1


class _Reader:
    """Reads the bytes of another member: lengths are checked against the bytes that are left."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def int32(self) -> int:
        return int(_INT32.unpack(self._take(_INT32.size))[0])

    def count(self) -> int:
        count = self.int32()
        # Each entry takes at least four bytes.
        if not 0 <= count <= self.left // _INT32.size:
            raise KafkaProtocolError(f"a member's sticky user data claims {count} entries in {self.left} bytes")
        return count

    def text(self) -> str:
        try:
            return self._take(int(_INT16.unpack(self._take(_INT16.size))[0])).decode()
        except UnicodeDecodeError as error:
            raise KafkaProtocolError("a member's sticky user data names a topic that is not UTF-8") from error

    def _take(self, count: int) -> bytes:
        if not 0 <= count <= self.left:
            raise KafkaProtocolError(f"a member's sticky user data ends {count - self.left} bytes too early")
        self._at += count
        return self._data[self._at - count : self._at]
