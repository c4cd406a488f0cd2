"""A buffer of batches and the building of one, under the names of kafka-python. New code: ``reader``, ``builder``."""

from __future__ import annotations

from collections.abc import Iterator

from kafka.codec import codec_id
from kafka.errors import IllegalStateError
from kafka.legacy.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder, DefaultRecordMetadata
from kafka.legacy.legacy_records import LegacyRecordBatch, LegacyRecordBatchBuilder, LegacyRecordMetadata
from kafka.record.batch_builder import Headers
from kafka.record.header import Buffer, read_header, scan

__all__ = ["MemoryRecords", "MemoryRecordsBuilder"]


class MemoryRecords:
    """The batches in a fetched buffer, of whichever formats; one that is cut off at the end is left out.

    >>> builder = MemoryRecordsBuilder(2, 0, 1000)
    >>> _ = builder.append(1700000000000, None, b"v")
    >>> builder.close()
    >>> records = MemoryRecords(builder.buffer())
    >>> while records.has_next():
    ...     print([record.value for record in records.next_batch()])
    [b'v']
    """

    def __init__(self, bytes_data: Buffer) -> None:
        self._buffer = bytes_data
        self._position = 0

    def size_in_bytes(self) -> int:
        """Bytes of the buffer."""
        return len(self._buffer)

    def valid_bytes(self) -> int:
        """Bytes of the complete batches."""
        return max((header.end for header in scan(self._buffer)), default=0)

    def has_next(self) -> bool:
        """Whether there is another complete batch."""
        return read_header(self._buffer, self._position) is not None

    def next_batch(self) -> DefaultRecordBatch | LegacyRecordBatch | None:
        """Return the next batch, or None at the end."""
        header = read_header(self._buffer, self._position)
        if header is None:
            return None
        one = memoryview(self._buffer)[self._position : header.end]
        self._position = header.end
        return LegacyRecordBatch(one, header.magic) if header.magic < 2 else DefaultRecordBatch(one)

    def __iter__(self) -> Iterator[DefaultRecordBatch | LegacyRecordBatch]:
        while (batch := self.next_batch()) is not None:
            yield batch


class MemoryRecordsBuilder:
    """One batch to be filled, in whichever format.

    >>> builder = MemoryRecordsBuilder(magic=1, compression_type=0, batch_size=40)
    >>> builder.append(1700000000000, None, b"v").offset, builder.append(1700000000000, None, b"v")
    (0, None)
    >>> builder.is_full()
    True
    """

    def __init__(
        self,
        magic: int,
        compression_type: int | str | None,
        batch_size: int,
        offset: int = 0,
        transactional: bool = False,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
    ) -> None:
        codec = codec_id(compression_type)
        self._builder: DefaultRecordBatchBuilder | LegacyRecordBatchBuilder
        if magic >= 2:
            self._builder = DefaultRecordBatchBuilder(
                magic, codec, transactional, producer_id, producer_epoch, base_sequence, batch_size
            )
        elif transactional or producer_id != -1:
            raise ValueError(f"format v{magic} has no producer ids and no transactions")
        else:
            self._builder = LegacyRecordBatchBuilder(magic, codec, batch_size)
        self._base_offset = offset
        # The records of v2, and the messages in a wrapper of v1, have offsets from 0 on.
        self._first = 0 if magic >= 2 or (magic == 1 and codec) else offset
        self._batch_size = batch_size
        self._count = 0
        self._full = False
        self._uncompressed = 0
        self._buffer: bytearray | None = None

    def append(
        self, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers | None = None
    ) -> DefaultRecordMetadata | LegacyRecordMetadata | None:
        """Add a record; None if it does not fit."""
        if self._buffer is not None:
            return None
        added = self._builder.append(self._first + self._count, timestamp, key, value, headers)
        if added is None:
            self._full = True
            return None
        self._count += 1
        return added._replace(offset=self.next_offset() - 1)

    def set_producer_state(
        self, producer_id: int, producer_epoch: int, base_sequence: int, is_transactional: bool
    ) -> None:
        """Say whose batch it is, before it is closed."""
        if self._buffer is not None:
            raise IllegalStateError("the batch is closed; a retry sends the same bytes")
        if isinstance(self._builder, LegacyRecordBatchBuilder):
            raise IllegalStateError("formats before v2 have no producer ids")
        self._builder.set_producer_state(producer_id, producer_epoch, base_sequence, is_transactional)

    def close(self) -> None:
        """Finish the batch; may be called twice."""
        if self._buffer is None:
            self._uncompressed = self._builder.size()
            buffer = self._builder.build() if self._count else bytearray()
            if buffer and self._first != self._base_offset:  # a wrapper has the offset of its last message
                is_wrapper = isinstance(self._builder, LegacyRecordBatchBuilder)
                buffer[:8] = (self.next_offset() - 1 if is_wrapper else self._base_offset).to_bytes(8, "big")
            self._buffer = buffer

    def size_in_bytes(self) -> int:
        """Bytes so far, or of the finished batch."""
        return len(self._buffer) if self._buffer is not None else self._builder.size()

    def compression_rate(self) -> float:
        """Bytes of the finished batch by those before compression."""
        if self._buffer is None:
            raise IllegalStateError("close the batch first")
        return len(self._buffer) / self._uncompressed if self._uncompressed else 1.0

    def is_full(self) -> bool:
        """Whether it takes no more records."""
        return self._full or self._buffer is not None or self._builder.size() >= self._batch_size

    def next_offset(self) -> int:
        """Return the offset of the next record."""
        return self._base_offset + self._count

    def buffer(self) -> bytearray:
        """Return the bytes of the finished batch."""
        if self._buffer is None:
            raise IllegalStateError("close the batch first")
        return self._buffer

    def records(self) -> MemoryRecords:
        """Return the finished batch for reading."""
        self.close()
        return MemoryRecords(bytes(self.buffer()))
