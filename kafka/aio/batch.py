"""`BatchBuilder`: a batch that the application fills, for `AIOKafkaProducer.send_batch`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kafka.errors import IllegalStateError
from kafka.producer.arguments import as_bytes, checked_headers, checked_timestamp
from kafka.record.batch_builder import FULL
from kafka.record.batch_builder import BatchBuilder as RecordBatchBuilder

__all__ = ["BatchBuilder", "BatchedRecord"]


class BatchedRecord(NamedTuple):
    """A record within its batch."""

    offset: int
    """Its index in the batch."""
    size: int
    """Bytes that it takes there."""
    timestamp: int
    """Milliseconds since 1970."""


class BatchBuilder:
    """Records for one partition, which the producer sends as they are. `AIOKafkaProducer.create_batch` makes one."""

    def __init__(
        self, builder: RecordBatchBuilder, serialize: Callable[[Any, Any], tuple[bytes | None, bytes | None]]
    ) -> None:
        self._builder = builder
        self._serialize = serialize
        self._closed = False
        self._facts: tuple[int, int, int, int] | None = None

    def append(
        self, *, timestamp: int | None, key: object, value: object, headers: Sequence[tuple[str, bytes | None]] = ()
    ) -> BatchedRecord | None:
        """Add a record; None if it does not fit any more, or the batch is closed.

        The first record may be larger than the batch should be. With `timestamp` None it is the time now.
        """
        if self._closed:
            return None
        key, value = self._serialize(key, value)
        key_bytes, value_bytes = as_bytes(key, "key"), as_bytes(value, "value")
        pairs = checked_headers(headers) if headers else None
        timestamp = int(time.time() * 1000) if timestamp is None else checked_timestamp(timestamp)
        before = self._builder.size
        index = self._builder.append(timestamp, key_bytes, value_bytes, pairs)
        if index == FULL:
            return None
        if self._facts is None:
            self._facts = (
                timestamp,
                -1 if key_bytes is None else len(key_bytes),
                -1 if value_bytes is None else len(value_bytes),
                sum(len(name.encode()) + len(data or b"") for name, data in pairs) if pairs else -1,
            )
        return BatchedRecord(index, self._builder.size - before, timestamp)

    def close(self) -> None:
        """Take no more records."""
        self._closed = True

    def closed(self) -> bool:
        """Whether it takes no more records."""
        return self._closed

    def size(self) -> int:
        """Return how many bytes it has, before compression."""
        return self._builder.size

    def record_count(self) -> int:
        """Return how many records it has."""
        return self._builder.count

    def _hand_over(self) -> tuple[RecordBatchBuilder, tuple[int, int, int, int]]:
        """Return the records, and the facts of the first one: a batch is sent once."""
        if self._facts is None:
            raise IllegalStateError(
                "the batch has no records" if not self._closed else "the batch is empty, or was sent before"
            )
        facts, self._facts, self._closed = self._facts, None, True
        return self._builder, facts
