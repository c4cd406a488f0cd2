"""Messages of formats v0 and v1 under the names of kafka-python. New code: ``legacy_builder``, ``reader``, ``rows``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from kafka.errors import CorruptRecordError
from kafka.legacy.default_records import RowView
from kafka.record.batch import decode_batch
from kafka.record.batch_builder import FULL, Headers
from kafka.record.consumer_record import ConsumerRecord
from kafka.record.header import BatchHeader, Buffer, read_header
from kafka.record.message_v0_v1 import OVERHEADS, LegacyBuilder, check_message, message_size

__all__ = ["LegacyRecord", "LegacyRecordBase", "LegacyRecordBatch", "LegacyRecordBatchBuilder", "LegacyRecordMetadata"]


class LegacyRecordBase:
    """The constants of the formats."""

    CODEC_MASK: ClassVar[int] = 0x07
    CODEC_NONE: ClassVar[int] = 0x00
    CODEC_GZIP: ClassVar[int] = 0x01
    CODEC_SNAPPY: ClassVar[int] = 0x02
    CODEC_LZ4: ClassVar[int] = 0x03
    TIMESTAMP_TYPE_MASK: ClassVar[int] = 0x08
    LOG_APPEND_TIME: ClassVar[int] = 1
    CREATE_TIME: ClassVar[int] = 0
    NO_TIMESTAMP: ClassVar[int] = -1
    RECORD_OVERHEAD_V0: ClassVar[int] = OVERHEADS[0] - 12
    RECORD_OVERHEAD_V1: ClassVar[int] = OVERHEADS[1] - 12
    LOG_OVERHEAD: ClassVar[int] = 12


class LegacyRecord(RowView):
    """A message.

    >>> builder = LegacyRecordBatchBuilder(1, 0, 1000)
    >>> _ = builder.append(0, 1700000000000, None, b"v")
    >>> record, = LegacyRecordBatch(builder.build(), 1)
    >>> record.value, record.headers, record.validate_crc()
    (b'v', [], True)
    """

    __slots__ = ("magic",)

    def __init__(self, row: ConsumerRecord, magic: int) -> None:
        super().__init__(row)
        self.magic = magic

    @property
    def size_in_bytes(self) -> int:
        """Bytes of the message without offset and size."""
        return message_size(self.magic, self.key, self.value) - LegacyRecordBase.LOG_OVERHEAD

    def __repr__(self) -> str:
        row = self._row
        return (
            f"LegacyRecord(magic={self.magic}, offset={row.offset}, timestamp={row.timestamp}, "
            f"timestamp_type={row.timestamp_type}, key={row.key!r}, value={row.value!r}, crc={row.checksum})"
        )


class LegacyRecordBatch(LegacyRecordBase):
    """One message, or one wrapper with its messages.

    >>> builder = LegacyRecordBatchBuilder(0, 1, 10_000)
    >>> _ = [builder.append(at, -1, None, b"v" * 100) for at in range(9)]
    >>> len(list(LegacyRecordBatch(builder.build(), 0)))
    9
    """

    is_control_batch: ClassVar[bool] = False
    is_transactional: ClassVar[bool] = False
    producer_id: ClassVar[None] = None
    leader_epoch: ClassVar[int] = -1

    def __init__(self, buffer: Buffer, magic: int) -> None:
        header = read_header(buffer)
        if header is None or header.magic != magic:
            raise CorruptRecordError(reason=f"no whole message of format v{magic}")
        self._buffer = buffer
        self._header: BatchHeader = header

    base_offset = property(lambda self: self._header.base_offset)
    size_in_bytes = property(lambda self: self._header.size)
    timestamp_type = property(lambda self: self._header.timestamp_type)
    compression_type = property(lambda self: self._header.codec)
    magic = property(lambda self: self._header.magic)

    def validate_crc(self) -> bool:
        """Whether the message's checksum is right."""
        try:
            check_message(self._buffer, self._header)
        except CorruptRecordError:
            return False
        return True

    def __iter__(self) -> Iterator[LegacyRecord]:
        magic = self._header.magic
        return (LegacyRecord(row, magic) for row in decode_batch(self._buffer, self._header))


class LegacyRecordMetadata(NamedTuple):
    """What ``append`` returns."""

    offset: int
    crc: int
    size: int
    timestamp: int


class LegacyRecordBatchBuilder(LegacyRecordBase):
    """A message set to be filled.

    >>> builder = LegacyRecordBatchBuilder(1, 0, 50)
    >>> builder.append(0, 1700000000000, b"k", b"v").size
    36
    >>> builder.append(1, 1700000000000, b"k", b"v") is None
    True
    """

    def __init__(self, magic: int, compression_type: int, batch_size: int) -> None:
        self._magic = magic
        self._builder = LegacyBuilder(magic, batch_size, compression_type)
        self._built: bytearray | None = None

    def append(
        self, offset: int, timestamp: int | None, key: bytes | None, value: bytes | None, headers: Headers | None = None
    ) -> LegacyRecordMetadata | None:
        """Add a message; None if it does not fit."""
        if headers:
            raise ValueError(f"format v{self._magic} has no headers")
        timestamp = self.NO_TIMESTAMP if timestamp is None else timestamp
        if self._builder.append_at(offset, timestamp, key, value) == FULL:
            return None
        crc = self._builder.last_crc
        return LegacyRecordMetadata(offset, crc, message_size(self._magic, key, value), timestamp)

    def build(self) -> bytearray:
        """Finish the set and return its bytes."""
        if self._built is None:
            self._built = bytearray(self._builder.seal().data)
        return self._built

    def size(self) -> int:
        """Bytes so far."""
        return len(self._built) if self._built is not None else self._builder.size

    def size_in_bytes(
        self, offset: int, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers | None = None
    ) -> int:
        """Bytes that a message takes."""
        del offset, timestamp, headers  # they do not matter in these formats
        return message_size(self._magic, key, value)

    @classmethod
    def record_size(cls, magic: int, key: bytes | None, value: bytes | None) -> int:
        """Bytes of a message without offset and size."""
        return message_size(magic, key, value) - cls.LOG_OVERHEAD

    @classmethod
    def record_overhead(cls, magic: int) -> int:
        """Bytes of a message without offset, size, key and value."""
        return OVERHEADS[magic] - cls.LOG_OVERHEAD

    @classmethod
    def estimate_size_in_bytes(cls, magic: int, compression_type: int, key: bytes | None, value: bytes | None) -> int:
        """Bytes of a set of this message alone, at most."""
        wrapper = OVERHEADS[magic] if compression_type else 0
        return wrapper + message_size(magic, key, value)
