"""From a batch of format v2 in a buffer to the bytes of its records: checksum, decompression, plausibility."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from kafka.codec import DEFAULT_LIMIT, decompressor
from kafka.errors import CorruptRecordError
from kafka.record._crc32c import crc32c
from kafka.record._decode import SMALLEST_RECORD
from kafka.record._errors import corrupt
from kafka.record._varint import decode_varint
from kafka.record.header import V2_ATTRIBUTES_AT, V2_HEADER_SIZE, BatchHeader, Buffer, scan

_CONTROL_KEY: Final = struct.Struct(">hh")


class Body(NamedTuple):
    """The uncompressed records of a batch: ``data[start:end]``."""

    data: bytes
    start: int
    end: int


def check_batch(buffer: Buffer, header: BatchHeader) -> None:
    """Raise unless the batch's CRC-32C is right."""
    crc = crc32c(memoryview(buffer)[header.position + V2_ATTRIBUTES_AT : header.end])
    if crc != header.crc:
        raise corrupt(f"checksum {crc:#010x} where the batch says {header.crc:#010x}", header.base_offset)


def open_batch(buffer: Buffer, header: BatchHeader, *, check_crc: bool = True, limit: int = DEFAULT_LIMIT) -> Body:
    """Return the records of the batch, unpacked; at most ``limit`` bytes of them.

    Raises :class:`~kafka.errors.CorruptRecordError` for a wrong checksum, data that does not unpack or unpacks to
    more, and a number of records that cannot be in there.
    """
    if check_crc:
        check_batch(buffer, header)
    start, end = header.position + V2_HEADER_SIZE, header.end
    if header.codec:
        unpack = decompressor(header.codec)
        try:
            data = unpack(memoryview(buffer)[start:end], limit)
        except CorruptRecordError as err:
            err.offset = header.base_offset
            raise
        body = Body(data, 0, len(data))
    elif isinstance(buffer, bytes):
        body = Body(buffer, start, end)
    else:
        # Slices of bytes are the keys and values themselves; slices of anything else would be copied twice.
        data = bytes(memoryview(buffer)[start:end])
        body = Body(data, 0, len(data))
    size = body.end - body.start
    if header.count * SMALLEST_RECORD > size or (size and not header.count):
        raise corrupt(f"{header.count} records in {size} bytes", header.base_offset)
    return body


def control_type(body: Body, header: BatchHeader) -> int:
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


class Ahead(NamedTuple):
    """What is known of a buffer once its batches have been checked."""

    offset: int
    """Behind the last batch that is wanted."""
    leader_epoch: int
    """The last wanted batch's, -1 without one."""
    sound_to: int
    """The position up to which no checksum is wrong."""


def check_ahead(buffer: Buffer, position: int, offset: int, sound_to: int, *, check_crcs: bool) -> Ahead:
    """Go through the batches from ``position`` on; those that end before ``offset`` are not wanted.

    Raises :class:`~kafka.errors.CorruptRecordError` where it cannot be seen how far a batch goes.

    >>> check_ahead(b"", 0, 7, 0, check_crcs=True)
    Ahead(offset=7, leader_epoch=-1, sound_to=0)
    """
    epoch = -1
    for header in scan(buffer, position):
        if check_crcs and header.position >= sound_to:
            check_crcs = header.magic < 2 or is_sound(buffer, header)
            if check_crcs:
                sound_to = header.end
        last = header.last_offset
        if last >= offset:
            offset, epoch = last + 1, header.leader_epoch
    return Ahead(offset, epoch, sound_to)


def is_sound(buffer: Buffer, header: BatchHeader) -> bool:
    """Whether the batch's CRC-32C is right."""
    try:
        check_batch(buffer, header)
    except CorruptRecordError:
        return False
    return True
