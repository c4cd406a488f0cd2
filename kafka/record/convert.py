"""Converting between formats, as brokers do for clients older or newer than their log.

Down: a fetch request before v4 cannot carry format v2, one before v2 not even v1. Headers and control batches are
lost, and so are transactions; the offsets stay, gaps included. Up: what an old producer sends becomes a v2 batch.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafka.codec import CODEC_ZSTD, DEFAULT_LIMIT
from kafka.errors import InvalidRecordError, UnsupportedCompressionTypeError
from kafka.record._legacy import read_messages
from kafka.record.append import place_batch
from kafka.record.builder import BatchBuilder
from kafka.record.consumer_record import ConsumerRecord
from kafka.record.header import LOG_APPEND_TIME, NO_TIMESTAMP, BatchHeader, Buffer, scan
from kafka.record.legacy_builder import LegacyBuilder, encode_message
from kafka.record.rows import decode_batch

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

    Its offsets are given anew, as a broker does on append. ``codec`` is that of the set unless given.

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
    place_batch(batch, base_offset, leader_epoch)
    return bytes(batch)


def _messages(
    buffer: Buffer, headers: list[BatchHeader], limit: int
) -> Iterable[tuple[int, bytes | None, bytes | None]]:
    for header in headers:
        for _, timestamp, _, _, key, value in read_messages(buffer, header, check_crcs=True, limit=limit):
            yield NO_TIMESTAMP if timestamp is None else timestamp, key, value
