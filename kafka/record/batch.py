"""One batch of a buffer as a whole: verify its checksum, unpack it, decode it, split it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from kafka.codec import DEFAULT_LIMIT, compressor, decompressor
from kafka.errors import CorruptRecordError
from kafka.record.batch_builder import FULL, BatchBuilder, SealedBatch
from kafka.record.consumer_record import ConsumerRecord
from kafka.record.crc32c import crc32c
from kafka.record.header import (
    CODEC_MASK,
    DELETE_HORIZON,
    LOG_OVERHEAD,
    V2_ATTRIBUTES_AT,
    V2_CHECKED,
    V2_HEADER_SIZE,
    BatchHeader,
    Buffer,
    corrupt,
    read_header,
)
from kafka.record.message_v0_v1 import LegacyBuilder, SealedMessages, read_messages, to_rows
from kafka.record.record_decoder import SMALLEST_RECORD, decode_rows, record_ends
from kafka.record.varint import decode_varint, encode_varint

#: The header up to what the checksum covers: base offset, length, leader epoch, magic, CRC.
_UNCHECKED: Final = struct.Struct(">qiiBI")
_CONTROL_KEY: Final = struct.Struct(">hh")

_new = tuple.__new__


class RecordsPayload(NamedTuple):
    """The uncompressed records of a batch: ``data[start:end]``."""

    data: bytes
    start: int
    end: int


def check_batch(buffer: Buffer, header: BatchHeader) -> None:
    """Raise unless the batch's CRC-32C is right."""
    crc = crc32c(memoryview(buffer)[header.position + V2_ATTRIBUTES_AT : header.end])
    if crc != header.crc:
        raise corrupt(f"checksum {crc:#010x} where the batch says {header.crc:#010x}", header.base_offset)


def open_batch(
    buffer: Buffer, header: BatchHeader, *, check_crc: bool = True, limit: int = DEFAULT_LIMIT
) -> RecordsPayload:
    """Return the records of the batch, unpacked; at most ``limit`` bytes of them.

    Raises :class:`~kafka.errors.CorruptRecordError` for a wrong checksum, data that does not unpack or unpacks to
    more, and a number of records that cannot be in there.
    """
    if check_crc:
        check_batch(buffer, header)
    position, base_offset, length, _, _, _, attributes, _, _, _, _, _, _, count = header
    start, end = position + V2_HEADER_SIZE, position + length + LOG_OVERHEAD
    if codec := attributes & CODEC_MASK:
        unpack = decompressor(codec)
        try:
            data = unpack(memoryview(buffer)[start:end], limit)
        except CorruptRecordError as err:
            err.offset = base_offset
            raise
        start, end = 0, len(data)
    elif isinstance(buffer, bytes):
        data = buffer
    else:
        # Slices of bytes are the keys and values themselves; slices of anything else would be copied twice.
        data = bytes(memoryview(buffer)[start:end])
        start, end = 0, len(data)
    size = end - start
    if count * SMALLEST_RECORD > size or (size and not count):
        raise corrupt(f"{count} records in {size} bytes", base_offset)
    body: RecordsPayload = _new(RecordsPayload, (data, start, end))
    return body


def control_type(body: RecordsPayload, header: BatchHeader) -> int:
    """Return the type of the marker in a control batch: 0 aborts, 1 commits, others are not for consumers; -1: none.

    Its key is a version and the type, 16 bits each, with room for more in versions to come.
    """
    if not header.count:
        return -1  # compaction has removed the marker and left the empty batch
    data, pos, end = body
    try:
        _, pos = decode_varint(data, pos)
        _, pos = decode_varint(data, pos + 1)
        _, pos = decode_varint(data, pos)
        size, pos = decode_varint(data, pos)
    except CorruptRecordError as err:
        err.offset = header.base_offset
        raise
    if size < _CONTROL_KEY.size or pos + size > end:
        raise corrupt(f"a control record with a key of {size} bytes", header.base_offset)
    kind: int = _CONTROL_KEY.unpack_from(data, pos)[1]
    return kind


def crc_matches(buffer: Buffer, header: BatchHeader) -> bool:
    """Whether the batch's CRC-32C is right."""
    try:
        check_batch(buffer, header)
    except CorruptRecordError:
        return False
    return True


def decode_batch(
    buffer: Buffer,
    header: BatchHeader,
    topic: str = "",
    partition: int = -1,
    *,
    check_crc: bool = True,
    limit: int = DEFAULT_LIMIT,
) -> list[ConsumerRecord]:
    """Return all records of one batch, of control batches too.

    Raises :class:`~kafka.errors.CorruptRecordError` if anything in the batch is not as it must be.

    >>> from kafka.record.batch_builder import BatchBuilder
    >>> from kafka.record.header import scan
    >>> builder = BatchBuilder(limit=1000)
    >>> builder.append(1700000000000, b"k", b"v")
    0
    >>> data = builder.seal().data
    >>> [record.value for header in scan(data) for record in decode_batch(data, header)]
    [b'v']
    """
    if header.magic < 2:
        return to_rows(read_messages(buffer, header, check_crcs=check_crc, limit=limit), topic, partition)
    body = open_batch(buffer, header, check_crc=check_crc, limit=limit)
    rows: list[ConsumerRecord] = []
    try:
        end = decode_rows(body.data, body.start, body.end, header.count, header, topic, partition, rows)
    except CorruptRecordError as err:
        if err.offset is None:
            err.offset = header.base_offset
        raise
    if end != body.end:
        raise corrupt(f"{body.end - end} bytes after the last record", header.base_offset)
    return rows


def split_batch(
    sealed: SealedBatch | SealedMessages, limit: int, codec: int | str | None = None, level: int | None = None
) -> list[BatchBuilder | LegacyBuilder]:
    """Return the same records, in order, in unsealed batches of at most ``limit`` bytes before compression.

    A batch of one record cannot be split: it comes back as one. The caller seals them with sequence numbers that follow
    each other, and knows from each one's ``count`` whose futures are whose.

    >>> whole = BatchBuilder(limit=10_000)
    >>> whole.extend([b"0123456789" * 10] * 10, 1700000000000)
    10
    >>> [part.count for part in split_batch(whole.seal(), limit=500)]
    [4, 4, 2]
    """
    data = sealed.data
    parts: list[BatchBuilder | LegacyBuilder] = []
    position = 0
    while (header := read_header(data, position)) is not None:
        position = header.end
        for row in decode_batch(data, header, check_crc=False):
            timestamp = -1 if row.timestamp is None else row.timestamp
            if not parts or parts[-1].append(timestamp, row.key, row.value, row.headers) == FULL:
                parts.append(
                    BatchBuilder(limit, codec, level)
                    if header.magic > 1
                    else LegacyBuilder(header.magic, limit, codec, level)
                )
                parts[-1].append(timestamp, row.key, row.value, row.headers)
    return parts


def rebuild_batch(
    buffer: Buffer, header: BatchHeader, keep: Sequence[bool], delete_horizon_ms: int | None = None
) -> bytes:
    """Return the batch without the records that are not to be kept, as log compaction writes it.

    The records that stay are not touched, and neither are the offsets that the batch spans. A ``delete_horizon_ms``,
    for a batch that has none yet, becomes the base of their timestamps, which stay as they are (KIP-534).

    >>> from kafka.record.header import scan
    >>> builder = BatchBuilder(limit=1000)
    >>> builder.extend([b"a", b"b", b"c"], 1700000000000)
    3
    >>> data = builder.seal().data
    >>> rebuilt = rebuild_batch(data, next(scan(data)), [False, True, False], 1700000086400)
    >>> [(row.offset, row.value) for row in decode_batch(rebuilt, next(scan(rebuilt)))], next(scan(rebuilt)).last_offset
    ([(1, b'b')], 2)
    >>> next(scan(rebuilt)).delete_horizon_ms, decode_batch(rebuilt, next(scan(rebuilt)))[0].timestamp
    (1700000086400, 1700000000000)
    """
    data, start, end = open_batch(buffer, header, check_crc=False)
    ends = record_ends(data, start, end, header.count, header.base_offset)
    parts = [data[begin:stop] for begin, stop, kept in zip([start, *ends], ends, keep, strict=False) if kept]
    attributes, base = header.attributes, header.base_timestamp
    if delete_horizon_ms is not None:
        parts = [_with_base(part, base - delete_horizon_ms) for part in parts]
        attributes, base = attributes | DELETE_HORIZON, delete_horizon_ms
    records = b"".join(parts)
    if header.codec:
        records = compressor(header.codec)(records)
    checked = V2_CHECKED.pack(
        attributes,
        header.last_offset_delta,
        base,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        len(parts),
    )
    crc = crc32c(records, crc32c(checked))
    length = V2_HEADER_SIZE - LOG_OVERHEAD + len(records)
    return _UNCHECKED.pack(header.base_offset, length, header.leader_epoch, header.magic, crc) + checked + records


def _with_base(record: Buffer, moved_by: int) -> bytes:
    """Return an encoded record with the timestamp delta that it has to another base."""
    _, at = decode_varint(record)
    delta, rest = decode_varint(record, at + 1)  # behind the attributes
    body = b"".join((record[at : at + 1], encode_varint(delta + moved_by), record[rest:]))
    return encode_varint(len(body)) + body
