"""What a broker does to the batches that it is sent: check them, and give them their place in the log.

Base offset and leader epoch stand in front of what the checksum covers, so that a broker sets them without touching
the rest (KIP-98). Only LOG_APPEND_TIME changes what is covered; then the checksum is computed anew, but nothing is
unpacked or encoded again.
"""

from __future__ import annotations

import struct
from typing import Final

from kafka.codec import CODEC_NAMES, CODEC_ZSTD, DEFAULT_LIMIT
from kafka.errors import InvalidRecordError
from kafka.record._crc32c import crc32c
from kafka.record._errors import corrupt
from kafka.record._open import check_batch
from kafka.record.header import (
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    V2_ATTRIBUTES_AT,
    V2_CRC_AT,
    BatchHeader,
    Buffer,
    read_header,
)
from kafka.record.rows import decode_batch

_OFFSET: Final = struct.Struct(">q")
_EPOCH: Final = struct.Struct(">i")
_CRC: Final = struct.Struct(">I")
_ATTRIBUTES: Final = struct.Struct(">h")
_EPOCH_AT: Final = 12
_MAX_TIMESTAMP_AT: Final = 35
_INT32_MAX: Final = 2**31 - 1


def place_batch(
    batch: bytearray | memoryview, base_offset: int, leader_epoch: int, append_time: int | None = None
) -> None:
    """Give a batch of format v2 its base offset and leader epoch, in place, and the broker's time if that counts.

    >>> from kafka.record.builder import BatchBuilder
    >>> builder = BatchBuilder(limit=1000)
    >>> builder.append(1700000000000, None, b"v")
    0
    >>> batch = bytearray(builder.seal().data)
    >>> from kafka.record.header import scan
    >>> place_batch(batch, 1000, leader_epoch=5)
    >>> [(header.base_offset, header.leader_epoch) for header in scan(batch)]
    [(1000, 5)]
    """
    _OFFSET.pack_into(batch, 0, base_offset)
    _EPOCH.pack_into(batch, _EPOCH_AT, leader_epoch)
    if append_time is None:
        return
    attributes = _ATTRIBUTES.unpack_from(batch, V2_ATTRIBUTES_AT)[0] | LOG_APPEND_TIME
    _ATTRIBUTES.pack_into(batch, V2_ATTRIBUTES_AT, attributes)
    _OFFSET.pack_into(batch, _MAX_TIMESTAMP_AT, append_time)
    size = LOG_OVERHEAD + _EPOCH.unpack_from(batch, 8)[0]
    _CRC.pack_into(batch, V2_CRC_AT, crc32c(memoryview(batch)[V2_ATTRIBUTES_AT:size]))


def check_produced(
    buffer: Buffer, *, read_records: bool = True, zstd: bool = True, limit: int = DEFAULT_LIMIT
) -> BatchHeader:
    """Check what a producer sent for a partition in format v2, and return its header.

    It must be exactly one batch with a right checksum, offsets that count from 0 without gaps, a known codec (zstd
    only from produce request v7 on, KIP-110), and either no producer id or one with epoch and sequence. With
    ``read_records`` the records are unpacked and parsed as well.

    Raises :class:`~kafka.errors.CorruptRecordError` for damage and
    :class:`~kafka.errors.InvalidRecordError` for what is whole but not allowed.

    >>> from kafka.record.builder import BatchBuilder
    >>> builder = BatchBuilder(limit=1000)
    >>> builder.append(1700000000000, None, b"v")
    0
    >>> check_produced(builder.seal().data).count
    1
    """
    header = read_header(buffer)
    if header is None:
        raise corrupt("the batch is cut off")
    if header.magic != 2:
        raise InvalidRecordError(f"a batch of format v{header.magic} where v2 is due")
    if header.end != len(buffer):
        raise InvalidRecordError("a producer sends one batch for a partition, not several")
    if header.codec not in CODEC_NAMES or (header.codec == CODEC_ZSTD and not zstd):
        raise InvalidRecordError(f"codec {header.codec} is not allowed here")
    _check_fields(header)
    if not read_records:
        check_batch(buffer, header)
        return header
    rows = decode_batch(buffer, header, limit=limit)
    for index, row in enumerate(rows):
        if row.offset != header.base_offset + index:
            raise InvalidRecordError(f"offset delta {row.offset - header.base_offset} where {index} is due")
    return header


def _check_fields(header: BatchHeader) -> None:
    if header.count < 1 or header.last_offset_delta != header.count - 1:
        raise InvalidRecordError(f"{header.count} records with a last offset delta of {header.last_offset_delta}")
    if header.is_control:
        raise InvalidRecordError("producers do not write control batches")
    if header.timestamp_type:
        raise InvalidRecordError("producers do not set LOG_APPEND_TIME")
    if header.producer_id >= 0:
        if header.producer_epoch < 0 or header.base_sequence < 0:
            raise InvalidRecordError(
                f"producer {header.producer_id} with epoch {header.producer_epoch}, sequence {header.base_sequence}"
            )
    elif header.is_transactional:
        raise InvalidRecordError("a transactional batch without a producer id")


def next_sequence(sequence: int, count: int) -> int:
    """Return the sequence number ``count`` records on; after 2**31 - 1 comes 0.

    >>> next_sequence(2**31 - 1, 2)
    1
    """
    return (sequence + count) & _INT32_MAX
