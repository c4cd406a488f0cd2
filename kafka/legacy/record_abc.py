"""The interfaces of `kafka.record` in kafka-python: for ``isinstance``, and as bases of a program's own classes.

>>> from kafka.legacy.default_records import DefaultRecordBatchBuilder
>>> issubclass(DefaultRecordBatchBuilder, ABCRecordBatchBuilder)
True
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from kafka.legacy.default_records import DefaultRecord, DefaultRecordBatch, DefaultRecordBatchBuilder
from kafka.legacy.legacy_records import LegacyRecord, LegacyRecordBatch, LegacyRecordBatchBuilder
from kafka.legacy.memory_records import MemoryRecords

__all__ = ["ABCRecord", "ABCRecordBatch", "ABCRecordBatchBuilder", "ABCRecords"]


class ABCRecord(ABC):
    """A record of a batch."""

    @property
    @abstractmethod
    def size_in_bytes(self) -> int:
        """Bytes in the batch."""

    @property
    @abstractmethod
    def offset(self) -> int:
        """The offset in the partition."""

    @property
    @abstractmethod
    def timestamp(self) -> int | None:
        """Milliseconds since 1970."""

    @property
    @abstractmethod
    def timestamp_type(self) -> int | None:
        """0: the producer's timestamp. 1: the broker's."""

    @property
    @abstractmethod
    def key(self) -> bytes | None:
        """The key's bytes."""

    @property
    @abstractmethod
    def value(self) -> bytes | None:
        """The value's bytes."""

    @property
    @abstractmethod
    def checksum(self) -> int | None:
        """The record's checksum, in the formats before 0.11."""

    @abstractmethod
    def validate_crc(self) -> bool:
        """Whether the checksum is correct."""

    @property
    @abstractmethod
    def headers(self) -> Any:
        """Pairs of a name and a value."""


class ABCRecordBatchBuilder(ABC):
    """Builds a batch."""

    @abstractmethod
    def append(self, offset: int, timestamp: int, key: Any, value: Any, headers: Any = None) -> Any:
        """Add a record; None if it does not fit."""

    @abstractmethod
    def size_in_bytes(self, offset: int, timestamp: int, key: Any, value: Any, headers: Any) -> int:
        """Return how many bytes a record would take."""

    @abstractmethod
    def build(self) -> Any:
        """Return the bytes of the batch."""


class ABCRecordBatch(ABC):
    """A batch, which yields its records."""

    @abstractmethod
    def __iter__(self) -> Iterator[Any]: ...

    @property
    @abstractmethod
    def base_offset(self) -> int:
        """The offset of the first record."""

    @property
    @abstractmethod
    def size_in_bytes(self) -> int:
        """Bytes of the batch."""

    @property
    @abstractmethod
    def magic(self) -> int:
        """The format: 0, 1 or 2."""


class ABCRecords(ABC):
    """The batches of a buffer."""

    @abstractmethod
    def __init__(self, buffer: Any) -> None: ...

    @abstractmethod
    def size_in_bytes(self) -> int:
        """Bytes of the buffer."""

    @abstractmethod
    def next_batch(self) -> Any:
        """Return the next batch, or None at the end."""

    @abstractmethod
    def has_next(self) -> bool:
        """Whether there is another complete batch."""


for record in (DefaultRecord, LegacyRecord):
    ABCRecord.register(record)
for batch in (DefaultRecordBatch, LegacyRecordBatch):
    ABCRecordBatch.register(batch)
for builder in (DefaultRecordBatchBuilder, LegacyRecordBatchBuilder):
    ABCRecordBatchBuilder.register(builder)
ABCRecords.register(MemoryRecords)
