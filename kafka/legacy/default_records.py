"""Batches of format v2 under the names of kafka-python. New code: ``builder``, ``reader``, ``rows``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from kafka.errors import CorruptRecordError
from kafka.record import control
from kafka.record.batch import crc_matches, decode_batch
from kafka.record.batch_builder import FULL, BatchBuilder, Headers, record_size
from kafka.record.consumer_record import ConsumerRecord
from kafka.record.header import V2_HEADER_SIZE, BatchHeader, Buffer, read_header

__all__ = [
    "FULL",
    "V2_HEADER_SIZE",
    "ControlRecord",
    "DefaultRecord",
    "DefaultRecordBase",
    "DefaultRecordBatch",
    "DefaultRecordBatchBuilder",
    "DefaultRecordMetadata",
    "RowView",
    "control",
]

# Length (5), attributes, timestamp and offset deltas (10, 5), key and value lengths and number of headers (5 each).
_MOST_OVERHEAD = 36


class DefaultRecordBase:
    """The constants of the format."""

    CODEC_NONE: ClassVar[int] = 0x00
    CODEC_MASK: ClassVar[int] = 0x07
    CODEC_GZIP: ClassVar[int] = 0x01
    CODEC_SNAPPY: ClassVar[int] = 0x02
    CODEC_LZ4: ClassVar[int] = 0x03
    CODEC_ZSTD: ClassVar[int] = 0x04
    TIMESTAMP_TYPE_MASK: ClassVar[int] = 0x08
    TRANSACTIONAL_MASK: ClassVar[int] = 0x10
    CONTROL_MASK: ClassVar[int] = 0x20
    LOG_APPEND_TIME: ClassVar[int] = 1
    CREATE_TIME: ClassVar[int] = 0
    NO_PRODUCER_ID: ClassVar[int] = -1
    NO_SEQUENCE: ClassVar[int] = -1


class RowView:
    """A decoded record.

    >>> RowView(ConsumerRecord("events", 0, 5, 0, 0, None, b"v", None, -1, 1, [], -1, -1)).value
    b'v'
    """

    __slots__ = ("_row",)

    def __init__(self, row: ConsumerRecord) -> None:
        self._row = row

    offset = property(lambda self: self._row.offset)
    timestamp = property(lambda self: self._row.timestamp)
    timestamp_type = property(lambda self: self._row.timestamp_type)
    key = property(lambda self: self._row.key)
    value = property(lambda self: self._row.value)
    headers = property(lambda self: self._row.headers)
    checksum = property(lambda self: self._row.checksum)

    def validate_crc(self) -> bool:
        """Whether the checksum is right: what it is wrong for is not decoded."""
        return True


class DefaultRecord(RowView):
    """A record of a batch.

    >>> builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1000)
    >>> builder.append(0, 1700000000000, b"k", b"v", [])
    DefaultRecordMetadata(offset=0, size=9, timestamp=1700000000000)
    >>> record, = DefaultRecordBatch(builder.build())
    >>> record.key, record.value, record.headers
    (b'k', b'v', [])
    """

    __slots__ = ()

    @property
    def size_in_bytes(self) -> int:
        """Bytes in a batch, up to a few for the distances to its first record."""
        return record_size(self.key, self.value, self.headers)

    def __repr__(self) -> str:
        row = self._row
        return (
            f"{type(self).__name__}(offset={row.offset}, timestamp={row.timestamp}, "
            f"timestamp_type={row.timestamp_type}, key={row.key!r}, value={row.value!r}, headers={row.headers!r})"
        )


class ControlRecord(DefaultRecord):
    """The marker in a control batch."""

    @property
    def version(self) -> int:
        """The version of the marker's layout."""
        return int.from_bytes(self.key[:2], "big", signed=True)

    @property
    def type(self) -> int:
        """0 aborts, 1 commits."""
        return int.from_bytes(self.key[2:4], "big", signed=True)

    @property
    def abort(self) -> bool:
        """Whether the transaction was aborted."""
        return self.type == control.ABORT

    @property
    def commit(self) -> bool:
        """Whether the transaction was committed."""
        return self.type == control.COMMIT


class DefaultRecordBatch(DefaultRecordBase):
    """One batch, at the beginning of a buffer.

    >>> builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1000)
    >>> _ = builder.append(0, 1700000000000, None, b"v", [])
    >>> batch = DefaultRecordBatch(builder.build())
    >>> batch.validate_crc(), batch.records_count, [record.value for record in batch]
    (True, 1, [b'v'])
    """

    def __init__(self, buffer: Buffer) -> None:
        header = read_header(buffer)
        if header is None:
            raise CorruptRecordError(reason="the batch is cut off")
        self._buffer = buffer
        self._header: BatchHeader = header
        self._rows: Iterator[DefaultRecord] | None = None

    base_offset = property(lambda self: self._header.base_offset)
    size_in_bytes = property(lambda self: self._header.size)
    leader_epoch = property(lambda self: self._header.leader_epoch)
    magic = property(lambda self: self._header.magic)
    crc = property(lambda self: self._header.crc)
    attributes = property(lambda self: self._header.attributes)
    last_offset_delta = property(lambda self: self._header.last_offset_delta)
    last_offset = property(lambda self: self._header.last_offset)
    next_offset = property(lambda self: self._header.last_offset + 1)
    compression_type = property(lambda self: self._header.codec)
    timestamp_type = property(lambda self: self._header.timestamp_type)
    is_transactional = property(lambda self: self._header.is_transactional)
    is_control_batch = property(lambda self: self._header.is_control)
    first_timestamp = property(lambda self: self._header.base_timestamp)
    max_timestamp = property(lambda self: self._header.max_timestamp)
    producer_id = property(lambda self: self._header.producer_id)
    producer_epoch = property(lambda self: self._header.producer_epoch)
    base_sequence = property(lambda self: self._header.base_sequence)
    last_sequence = property(lambda self: self._header.last_sequence)
    records_count = property(lambda self: self._header.count)

    def has_producer_id(self) -> bool:
        """Whether an idempotent or transactional producer wrote it."""
        return self._header.producer_id > self.NO_PRODUCER_ID

    def has_sequence(self) -> bool:
        """Whether it has sequence numbers."""
        return self._header.base_sequence > self.NO_SEQUENCE

    def validate_crc(self) -> bool:
        """Whether the checksum is right."""
        return crc_matches(self._buffer, self._header)

    def __iter__(self) -> Iterator[DefaultRecord]:
        kind = ControlRecord if self._header.is_control else DefaultRecord
        self._rows = map(kind, decode_batch(self._buffer, self._header, check_crc=False))
        return self._rows

    def __next__(self) -> DefaultRecord:
        return next(self._rows if self._rows is not None else iter(self))


class DefaultRecordMetadata(NamedTuple):
    """What ``append`` returns."""

    offset: int
    size: int
    timestamp: int

    @property
    def crc(self) -> None:
        """Single records of this format have no checksum."""


class DefaultRecordBatchBuilder(DefaultRecordBase):
    """A batch to be filled; offsets count from 0 without gaps.

    >>> builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, batch_size=70)
    >>> builder.append(0, 1700000000000, None, b"v" * 10, [])
    DefaultRecordMetadata(offset=0, size=17, timestamp=1700000000000)
    >>> builder.append(1, 1700000000000, None, b"v" * 10, []) is None
    True
    """

    MAX_RECORD_OVERHEAD: ClassVar[int] = 21

    def __init__(
        self,
        magic: int,
        compression_type: int,
        is_transactional: bool,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        batch_size: int,
    ) -> None:
        if magic != 2:
            raise ValueError(f"this builds format v2, not v{magic}")
        self._builder = BatchBuilder(batch_size, compression_type)
        self._built: bytearray | None = None
        self._producer = (producer_id, producer_epoch, base_sequence, bool(is_transactional))

    producer_id = property(lambda self: self._producer[0])
    producer_epoch = property(lambda self: self._producer[1])
    base_sequence = property(lambda self: self._producer[2])

    def set_producer_state(
        self, producer_id: int, producer_epoch: int, base_sequence: int, is_transactional: bool
    ) -> None:
        """Say whose batch it is, before it is built."""
        self._producer = (producer_id, producer_epoch, base_sequence, is_transactional)

    def append(
        self, offset: int, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers | None
    ) -> DefaultRecordMetadata | None:
        """Add a record; None if it does not fit."""
        if offset != self._builder.count:
            raise ValueError(f"offset {offset} where {self._builder.count} is due")
        before = self._builder.size
        if self._builder.append(timestamp, key, value, headers) == FULL:
            return None
        return DefaultRecordMetadata(offset, self._builder.size - before, timestamp)

    def build(self) -> bytearray:
        """Finish the batch and return its bytes."""
        if self._built is None:
            producer_id, producer_epoch, base_sequence, transactional = self._producer
            sealed = self._builder.seal(
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                base_sequence=base_sequence,
                transactional=transactional,
            )
            self._built = bytearray(sealed.data)
        return self._built

    def size(self) -> int:
        """Bytes so far."""
        return len(self._built) if self._built is not None else self._builder.size

    @classmethod
    def header_size_in_bytes(cls) -> int:
        """Bytes of a batch without records."""
        return V2_HEADER_SIZE

    def size_in_bytes(
        self, offset_delta: int, timestamp_delta: int, key: bytes | None, value: bytes | None, headers: Headers | None
    ) -> int:
        """Bytes that a record takes at this place."""
        return record_size(key, value, headers, index=offset_delta, timestamp_delta=timestamp_delta)

    @classmethod
    def size_of(cls, key: bytes | None, value: bytes | None, headers: Headers | None) -> int:
        """Bytes of key, value and headers with their lengths."""
        return record_size(key, value, headers) - 4

    @classmethod
    def estimate_size_in_bytes(cls, key: bytes | None, value: bytes | None, headers: Headers | None) -> int:
        """Bytes of a batch of this record alone, at most."""
        return V2_HEADER_SIZE + _MOST_OVERHEAD + cls.size_of(key, value, headers)
