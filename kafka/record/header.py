"""Headers of record batches, read without touching what is behind them.

A fetched buffer is a row of batches, the last of which may be cut off. :func:`scan` walks it by the lengths in the
headers: no checksum is computed, nothing is unpacked, no record is parsed. What it yields is enough to skip, to
filter, to know the next offset and to decide who decodes what.

The formats share their first 17 bytes up to the magic number, so one buffer may mix them. A message of format v0
or v1 counts as a batch of one record, or, when it wraps compressed ones, of an unknown number.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from kafka.errors import CorruptRecordError

Buffer = bytes | bytearray | memoryview

#: Base offset, length of the rest, leader epoch, magic, CRC-32C of what follows it, attributes, last offset delta,
#: base timestamp, greatest timestamp, producer id, producer epoch, base sequence, number of records.
V2_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
#: The part of the header that the checksum covers.
V2_CHECKED: Final = struct.Struct(">hiqqqhii")
V2_HEADER_SIZE: Final = V2_HEADER.size
V2_CRC_AT: Final = 17
V2_ATTRIBUTES_AT: Final = 21

#: Offset and size, which stand before each batch or message and are not counted in the size.
LOG_OVERHEAD: Final = 12
MAGIC_AT: Final = 16

#: Offset, size, CRC-32, magic, attributes; in v1 the timestamp.
V0_HEADER: Final = struct.Struct(">qiIbb")
V1_HEADER: Final = struct.Struct(">qiIbbq")
#: The least size of a message: the header after the size, and the lengths of key and value.
_V0_LEAST: Final = V0_HEADER.size - LOG_OVERHEAD + 8
_V1_LEAST: Final = V1_HEADER.size - LOG_OVERHEAD + 8
_V2_LEAST: Final = V2_HEADER_SIZE - LOG_OVERHEAD

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40

NO_TIMESTAMP: Final = -1
#: The last offset that a record may have: the position after it must fit 64 bits.
LAST_OFFSET: Final = 2**63 - 2

_OFFSET_AND_SIZE = struct.Struct(">qi")


def corrupt(reason: str, offset: int | None = None) -> CorruptRecordError:
    """Return the error for damage in the batch or record at this offset.

    >>> str(corrupt("wrong checksum", 17)).partition("(")[2]
    'offset=17, reason=wrong checksum)'
    """
    return CorruptRecordError(offset=offset, reason=reason)


class BatchHeader(NamedTuple):
    """What stands at the head of a batch, and where in the buffer it begins.

    >>> from kafka.record.batch_builder import BatchBuilder
    >>> builder = BatchBuilder(limit=1000)
    >>> builder.append(1700000000000, None, b"hello")
    0
    >>> header, = scan(builder.seal().data)
    >>> header.count, header.last_offset, header.codec, header.is_control
    (1, 0, 0, False)
    """

    position: int
    base_offset: int
    """The first offset that the batch stands for; in v0 and v1 the message's own, a wrapper has its last one's."""
    length: int
    """Bytes after the first 12."""
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    """The base of the records' timestamps, or, with :attr:`delete_horizon_ms`, that."""
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment] # hides tuple.count
    """Records in the batch; fewer than its offsets where compaction took some; -1 for a wrapper of v0 or v1."""

    @property
    def size(self) -> int:
        """Bytes of the batch in the buffer."""
        return self.length + LOG_OVERHEAD

    @property
    def end(self) -> int:
        """Where the next batch begins."""
        return self.position + self.length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        """The last offset that the batch stands for, whether or not a record with it is left."""
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """The last record's sequence number; it wraps around to 0 after 2**31 - 1. -1 without one."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    @property
    def codec(self) -> int:
        """The number of the compression codec; see :mod:`kafka.codec`."""
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> int | None:
        """0: the producer's timestamps. 1: the broker's. None in v0, which has none."""
        return self.attributes >> 3 & 1 if self.magic else None

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return self.magic > 1 and bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether it holds a marker of the broker instead of the producer's records."""
        return self.magic > 1 and bool(self.attributes & CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the log cleaner may drop tombstones and markers of this batch (KIP-534), if it has set that."""
        return self.base_timestamp if self.magic > 1 and self.attributes & DELETE_HORIZON else None


_new = tuple.__new__


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader | None:
    """Read the header of the batch at ``position``; None if the buffer ends before the batch does.

    Raises :class:`~kafka.errors.CorruptRecordError` if no batch can look like that.

    >>> read_header(b"") is None
    True
    """
    left = len(buffer) - position
    if left <= MAGIC_AT:
        if left >= LOG_OVERHEAD:
            offset, length = _OFFSET_AND_SIZE.unpack_from(buffer, position)
            _check_length(offset, length, _V0_LEAST)
        return None
    magic = buffer[position + MAGIC_AT]
    if magic != 2:
        return _read_legacy_header(buffer, position, magic)
    if left < V2_HEADER_SIZE:
        offset, length = _OFFSET_AND_SIZE.unpack_from(buffer, position)
        _check_length(offset, length, _V2_LEAST)
        return None
    fields = V2_HEADER.unpack_from(buffer, position)
    length = fields[1]
    if length < _V2_LEAST:
        _check_length(fields[0], length, _V2_LEAST)
    if left < length + LOG_OVERHEAD:
        return None
    # Once or twice per batch, so a batch of few records feels it: locals, not the fields and properties of the header.
    base_offset, last_delta, count = fields[0], fields[6], fields[12]
    # Offsets within a batch are distinct and count from its base, so there are never more records than offsets.
    if base_offset < 0 or count < 0 or last_delta < count - 1:
        raise corrupt(f"{count} records in offsets {base_offset} to {base_offset + last_delta}", base_offset)
    if base_offset + last_delta > LAST_OFFSET:
        raise corrupt(f"the last offset would be {base_offset + last_delta}, beyond 64 bits", base_offset)
    if not count and length != _V2_LEAST:
        raise corrupt(f"no records in {length - _V2_LEAST} bytes of them", base_offset)
    header: BatchHeader = _new(BatchHeader, (position, *fields))
    return header


def _read_legacy_header(buffer: Buffer, position: int, magic: int) -> BatchHeader | None:
    offset, length = _OFFSET_AND_SIZE.unpack_from(buffer, position)
    if magic > 2:
        raise corrupt(f"magic {magic} is not known", offset)
    _check_length(offset, length, _V1_LEAST if magic else _V0_LEAST)
    if len(buffer) - position < length + LOG_OVERHEAD:
        return None
    timestamp = NO_TIMESTAMP
    if magic:
        _, _, crc, _, attributes, timestamp = V1_HEADER.unpack_from(buffer, position)
    else:
        _, _, crc, _, attributes = V0_HEADER.unpack_from(buffer, position)
    if not 0 <= offset <= LAST_OFFSET:
        raise corrupt(f"an offset of {offset}", offset)
    count = -1 if attributes & CODEC_MASK else 1
    return BatchHeader(position, offset, length, -1, magic, crc, attributes, 0, timestamp, timestamp, -1, -1, -1, count)


def _check_length(offset: int, length: int, least: int) -> None:
    if length < least:
        raise corrupt(f"a length of {length} bytes where a batch has at least {least}", offset)


def scan(buffer: Buffer, position: int = 0) -> Iterator[BatchHeader]:
    """Yield the header of each complete batch from ``position`` on; stop at one that is cut off.

    >>> list(scan(b"cut off"))
    []
    """
    while (header := read_header(buffer, position)) is not None:
        yield header
        position = header.end


def is_cut_off(buffer: Buffer, position: int = 0) -> bool:
    """Whether the buffer ends within a batch.

    >>> is_cut_off(bytes(5)), is_cut_off(b"")
    (True, False)
    """
    try:
        for header in scan(buffer, position):
            position = header.end
    except CorruptRecordError:
        return False
    return position < len(buffer)
