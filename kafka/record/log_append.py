"""A broker's work on the batches that it receives: check them, give them their place in the log, convert them.

Base offset and leader epoch stand in front of what the checksum covers, so that a broker sets them without touching
the rest (KIP-98). Only LOG_APPEND_TIME changes what is covered; then the checksum is computed again, but nothing is
unpacked or encoded again.

Conversion serves clients older or newer than the log. Down: a fetch request before v4 cannot carry format v2, one
before v2 not even v1. Headers and control batches are lost, and so are transactions; the offsets stay, gaps included.
Up: the messages of an old producer become a v2 batch.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from kafka.codec import CODEC_NAMES, CODEC_ZSTD, DEFAULT_LIMIT
from kafka.errors import InvalidRecordError, UnsupportedCompressionTypeError
from kafka.record.batch import check_batch, decode_batch
from kafka.record.batch_builder import BatchBuilder
from kafka.record.consumer_record import ConsumerRecord
from kafka.record.crc32c import crc32c
from kafka.record.header import (
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    V2_ATTRIBUTES_AT,
    V2_CRC_AT,
    BatchHeader,
    Buffer,
    corrupt,
    read_header,
    scan,
)
from kafka.record.message_v0_v1 import LegacyBuilder, encode_message, read_messages

_OFFSET: Final = struct.Struct(">q")
_EPOCH: Final = struct.Struct(">i")
_CRC: Final = struct.Struct(">I")
_ATTRIBUTES: Final = struct.Struct(">h")
_EPOCH_AT: Final = 12
_MAX_TIMESTAMP_AT: Final = 35
_INT32_MAX: Final = 2**31 - 1


def assign_offsets(
    batch: bytearray | memoryview, base_offset: int, leader_epoch: int, append_time: int | None = None
) -> None:
    """Give a batch of format v2 its base offset and leader epoch, in place, and the broker's time if that counts.

    >>> from kafka.record.batch_builder import BatchBuilder
    >>> builder = BatchBuilder(limit=1000)
    >>> builder.append(1700000000000, None, b"v")
    0
    >>> batch = bytearray(builder.seal().data)
    >>> from kafka.record.header import scan
    >>> assign_offsets(batch, 1000, leader_epoch=5)
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


def validate_produced_batch(
    buffer: Buffer, *, read_records: bool = True, zstd: bool = True, limit: int = DEFAULT_LIMIT
) -> BatchHeader:
    """Check what a producer sent for a partition in format v2, and return its header.

    It must be exactly one batch with a right checksum, offsets that count from 0 without gaps, a known codec (zstd
    only from produce request v7 on, KIP-110), and either no producer id or one with epoch and sequence. With
    ``read_records`` the records are unpacked and parsed as well.

    Raises :class:`~kafka.errors.CorruptRecordError` for damage and
    :class:`~kafka.errors.InvalidRecordError` for what is whole but not allowed.

    >>> from kafka.record.batch_builder import BatchBuilder
    >>> builder = BatchBuilder(limit=1000)
    >>> builder.append(1700000000000, None, b"v")
    0
    >>> validate_produced_batch(builder.seal().data).count
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


_NO_LIMIT = 2**31 - 1


def down_convert(buffer: Buffer, magic: int, *, limit: int = DEFAULT_LIMIT) -> bytes:
    """Return what is in the buffer in format v0 or v1 where it is in a newer one.

    Raises :class:`~kafka.errors.UnsupportedCompressionTypeError` for zstd, which old clients cannot read (KIP-110).

    >>> builder = BatchBuilder(limit=1000)
    >>> builder.append(1700000000000, None, b"v", [("lost", b"")])
    0
    >>> [header.magic for header in scan(down_convert(builder.seal().data, 1))]
    [1]
    """
    parts: list[bytes] = []
    for header in scan(buffer):
        if header.magic <= magic:
            parts.append(bytes(memoryview(buffer)[header.position : header.end]))
        elif not header.is_control and header.count:
            parts.append(_down(decode_batch(buffer, header, limit=limit), header, magic))
    return b"".join(parts)


def _down(rows: list[ConsumerRecord], header: BatchHeader, magic: int) -> bytes:
    if header.codec == CODEC_ZSTD:
        raise UnsupportedCompressionTypeError("the client's fetch request is too old for zstd; it needs v10")
    append_time = header.max_timestamp if header.timestamp_type == 1 else None
    attributes = LOG_APPEND_TIME if magic and append_time is not None else 0
    if not header.codec:
        return b"".join(encode_message(magic, row.offset, _stamp(row), row.key, row.value, attributes) for row in rows)
    builder = LegacyBuilder(magic, _NO_LIMIT, header.codec)
    # Within a v1 wrapper offsets count from the first; in v0 they are absolute.
    base = rows[0].offset if magic else 0
    for row in rows:
        builder.append_at(row.offset - base, _stamp(row), row.key, row.value, attributes)
    return builder.seal(wrapper_offset=rows[-1].offset, append_time=append_time if magic else None).data


def _stamp(row: ConsumerRecord) -> int:
    return NO_TIMESTAMP if row.timestamp is None else row.timestamp


def up_convert(
    buffer: Buffer,
    base_offset: int,
    leader_epoch: int,
    *,
    append_time: int | None = None,
    codec: int | None = None,
    limit: int = DEFAULT_LIMIT,
) -> bytes:
    """Return an old producer's message set as one batch of format v2 with this base offset.

    Its offsets are assigned again, as a broker does on append. ``codec`` is that of the set unless given.

    >>> messages = LegacyBuilder(magic=0, limit=1000)
    >>> messages.extend([b"a", b"b"], -1)
    2
    >>> batch = up_convert(messages.seal().data, 10, leader_epoch=1)
    >>> [(header.magic, header.base_offset, header.count) for header in scan(batch)]
    [(2, 10, 2)]
    """
    headers = list(scan(buffer))
    if not headers or headers[-1].end != len(buffer):
        raise InvalidRecordError("the message set is empty or cut off")
    if any(header.magic > 1 for header in headers):
        raise InvalidRecordError("a batch of format v2 in an old message set")
    builder = BatchBuilder(_NO_LIMIT, headers[0].codec if codec is None else codec)
    for timestamp, key, value in _messages(buffer, headers, limit):
        builder.append(timestamp, key, value)
    batch = bytearray(builder.seal(log_append_time=append_time).data)
    assign_offsets(batch, base_offset, leader_epoch)
    return bytes(batch)


def _messages(
    buffer: Buffer, headers: list[BatchHeader], limit: int
) -> Iterable[tuple[int, bytes | None, bytes | None]]:
    for header in headers:
        for _, timestamp, _, _, key, value in read_messages(buffer, header, check_crcs=True, limit=limit):
            yield NO_TIMESTAMP if timestamp is None else timestamp, key, value
