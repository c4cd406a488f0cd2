"""Decoding records of format v2 into ConsumerRecords: one loop, no call per record.

The loop checks less on the way than at the end of each record: a slice of bytes does not fail when it is too short, but
then the record does not end where its length says. ``test/unit/record/reference.py`` has a slow,
plain decoder; property tests hold the two equal, in what they decode and in what they refuse.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any, Final

from kafka.errors import CorruptRecordError
from kafka.record.consumer_record import NO_HEADERS, ConsumerRecord
from kafka.record.header import LAST_OFFSET, LOG_APPEND_TIME, BatchHeader, corrupt
from kafka.record.varint import decode_varint

#: Length, attributes, timestamp delta, offset delta, key length, value length, number of headers: a byte each.
SMALLEST_RECORD: Final = 7
#: The offsets of a batch fit 31 bits, counted from its base.
LAST_DELTA: Final = 2**31 - 1

_SMALLEST_HEADER: Final = 2

_new = tuple.__new__


# Numbers by their encoding: of one byte in a list, of two bytes in a list of lists by the first and the second byte.
# None is for what the number must not be, so that an addition raises TypeError.


def _two_byte_table(even: Sequence[int], odd: Sequence[int] | None) -> list[list[Any]]:
    none: list[Any] = [None] * 128
    rows: list[list[Any]] = [none] * 128
    for first in range(128, 256):
        low = first >> 1 & 63
        numbers = odd if first & 1 else even
        rows.append(none if numbers is None else list(numbers[low::64]))
    return rows


_SIGNED_1: Final = [-1 - (byte >> 1) if byte & 1 else byte >> 1 for byte in range(128)]
_UNSIGNED_1: Final[list[Any]] = [None if byte & 1 else byte >> 1 for byte in range(128)]
_SIGNED_2: Final = _two_byte_table(range(8192), range(-1, -8193, -1))
_UNSIGNED_2: Final = _two_byte_table(range(8192), None)
# Sizes of values, negative for null: as far as null takes bytes, so that the loop does not take it for a value.
_SIZES_1: Final = [0, -1, *_UNSIGNED_1[2:]]
_SIZES_2: Final = _UNSIGNED_2.copy()
_SIZES_2[129] = [-2, *[None] * 127]


def decode_rows(  # noqa: C901, PLR0912, PLR0915 - hot: calls and shared branches would cost more than they tidy
    buf: bytes,
    pos: int,
    limit: int,
    take: int,
    header: BatchHeader,
    topic: str,
    partition: int,
    rows: list[ConsumerRecord],
    record_type: type[ConsumerRecord] = ConsumerRecord,
) -> int:
    """Append ``take`` records from ``pos`` on to ``rows``; return the position after them.

    Raises CorruptRecordError; the caller removes the rows that were appended before.

    >>> rows = []
    >>> header = BatchHeader(0, 17, 57, -1, 2, 0, 0, 0, 1700000000000, 1700000000000, -1, -1, -1, 1)
    >>> decode_rows(b"\\x0e\\0\\0\\0\\1\\2v\\0", 0, 8, 1, header, "events", 0, rows)
    8
    >>> rows[0].offset, rows[0].key, rows[0].value
    (17, None, b'v')
    """
    _, base_offset, _, leader_epoch, _, _, attributes, _, base_timestamp, max_timestamp, _, _, _, _ = header
    # The broker's timestamp, if it stands in place of the records' own.
    timestamp_type = 1 if attributes & LOG_APPEND_TIME else 0
    append_time = max_timestamp if timestamp_type else None
    new, no_headers, append = _new, NO_HEADERS, rows.append
    signed_1, signed_2, unsigned_1, unsigned_2 = _SIGNED_1, _SIGNED_2, _UNSIGNED_1, _UNSIGNED_2
    sizes_1, sizes_2, varint = _SIZES_1, _SIZES_2, decode_varint
    headers: list[tuple[str, bytes | None]]
    before = len(rows)
    try:
        for _ in range(take):
            first = buf[pos]
            if first < 128:
                at = pos + 2  # behind the attributes, of which none is defined
                end = pos + 1 + unsigned_1[first]
            else:
                second = buf[pos + 1]
                if second < 128:
                    at = pos + 3
                    end = pos + 2 + unsigned_2[first][second]
                else:
                    end, at = varint(buf, pos)
                    end += at
                    at += 1
            first = buf[at]
            at += 1
            if first < 128:
                timestamp = base_timestamp + signed_1[first]
            else:
                second = buf[at]
                if second < 128:
                    at += 1
                    timestamp = base_timestamp + signed_2[first][second]
                else:
                    timestamp, at = varint(buf, at - 1)
                    timestamp += base_timestamp
            first = buf[at]
            at += 1
            if first < 128:
                offset = base_offset + unsigned_1[first]
            else:
                second = buf[at]
                if second < 128:
                    at += 1
                    offset = base_offset + unsigned_2[first][second]
                else:
                    offset, at = varint(buf, at - 1)
                    if not 0 <= offset <= LAST_DELTA:
                        raise corrupt(f"an offset delta of {offset}", base_offset)
                    offset += base_offset
            first = buf[at]
            at += 1
            if first == 1:
                key = None
                key_size = -1
            else:
                if first < 128:
                    key_size = unsigned_1[first]
                else:
                    key_size, at = varint(buf, at - 1)
                    if key_size < -1:
                        raise corrupt(f"a key of length {key_size}", base_offset)
                if key_size < 0:
                    key = None
                else:
                    start = at
                    at += key_size
                    key = buf[start:at]
            first = buf[at]
            at += 1
            if first < 128:
                size = sizes_1[first]
            else:
                second = buf[at]
                if second < 128:
                    at += 1
                    size = sizes_2[first][second]
                else:
                    size, at = varint(buf, at - 1)
                    if size < 0:
                        if size < -1:
                            raise corrupt(f"a value of length {size}", base_offset)
                        size = -3
            stop = at + size
            if stop + 1 == end and not buf[stop]:
                value: bytes | None = buf[at:stop]
                headers = no_headers
                header_size = -1
                pos = end
            else:
                if size < 0:
                    size = -1
                    stop = at
                    value = None
                else:
                    value = buf[at:stop]
                headers, header_size, pos = decode_headers(buf, stop, limit)
                if pos != end:
                    raise corrupt("the record does not end where its length says", base_offset)
            append(
                new(
                    record_type,
                    (
                        topic,
                        partition,
                        offset,
                        timestamp if append_time is None else append_time,
                        timestamp_type,
                        key,
                        value,
                        None,
                        key_size,
                        size,
                        headers,
                        leader_epoch,
                        header_size,
                    ),
                )
            )
    except IndexError:
        raise corrupt("the records are cut off", base_offset) from None
    except TypeError:
        raise corrupt("a length or an offset delta is negative", base_offset) from None
    if pos > limit:
        raise corrupt("the records continue after the end of the batch", base_offset)
    if base_offset > LAST_OFFSET - LAST_DELTA and any(row.offset > LAST_OFFSET for row in rows[before:]):
        raise corrupt("an offset beyond 64 bits", base_offset)
    return pos


# The names of headers repeat: str objects by the bytes that they were made of.
_names: dict[bytes, str] = {}
_MOST_NAMES: Final = 1024


def decode_headers(buf: bytes, pos: int, limit: int) -> tuple[list[tuple[str, bytes | None]], int, int]:
    """Return the headers at ``pos``, how many bytes of keys and values they have, and the position after them.

    Raises IndexError and TypeError as well, where the buffer ends early or a length is negative.

    >>> decode_headers(b"\\x02\\x02a\\x021", 0, 5)
    ([('a', b'1')], 2, 5)
    """
    # Hot where records have headers.
    count, pos = decode_varint(buf, pos)
    if not 0 <= count <= (limit - pos) // _SMALLEST_HEADER:
        raise corrupt(f"{count} headers in {limit - pos} bytes")
    headers: list[tuple[str, bytes | None]] = []
    names, sizes = _names, _SIZES_1
    total = 0
    for _ in range(count):
        size = buf[pos]
        pos += 1
        if size < 128:
            size = _UNSIGNED_1[size]
        else:
            size, pos = decode_varint(buf, pos - 1)
            if size < 0:
                raise corrupt(f"a header key of length {size}")
        end = pos + size
        raw = buf[pos:end]
        total += size
        key = names.get(raw)
        if key is None:
            key = _name(raw)
        size = buf[end]
        pos = end + 1
        if size < 128:
            size = sizes[size]
        else:
            size, pos = decode_varint(buf, end)
            if size < -1:
                raise corrupt(f"a header value of length {size}")
        end = pos + size
        if size < 0:
            headers.append((key, None))
        else:
            headers.append((key, buf[pos:end]))
            total += size
            pos = end
    if pos > limit:
        raise corrupt("headers that continue after the end")
    return headers, total if headers else -1, pos


def _name(raw: bytes) -> str:
    # No broker checks that a key is UTF-8, as it should be; in the Java client too a sign stands for what is not. To
    # refuse it would be to stop at this record for good.
    name = raw.decode(errors="replace")
    if len(_names) >= _MOST_NAMES:
        _names.clear()
    if len(raw) <= 100:
        _names[raw] = name
    return name


def record_ends(buf: bytes, start: int, end: int, count: int, base_offset: int) -> list[int]:
    """Return the positions after each record of a batch, stepping from one to the next by their lengths.

    Raises CorruptRecordError unless exactly ``count`` records fill the bytes up to ``end``.

    >>> record_ends(b"\\x0c\\0\\0\\0\\1\\1\\0" * 2, 0, 14, 2, 0)
    [7, 14]
    """
    sizes = record_sizes()
    pos = start
    try:
        # Hot. A length of three bytes leads far beyond the end.
        ends = [pos := pos + sizes[buf[pos]][buf[pos + 1]] for _ in repeat(None, count)]
        if ends[-1] == end:
            return ends
    except IndexError:
        pass
    pos = start
    ends = []
    try:
        while len(ends) < count:
            length, pos = decode_varint(buf, pos)
            pos += length
            ends.append(pos)
            if length < 0:
                break
    except CorruptRecordError:
        pos = -1
    if pos != end or len(ends) != count:
        raise corrupt(f"the content does not amount to {count} records", base_offset)
    return ends


#: The end to which a length of three bytes or more, or a negative one, leads: beyond every batch.
_FAR: Final = 1 << 40


@lru_cache(maxsize=1)
def record_sizes() -> list[list[int]]:
    """Return, by the first and second byte of a record, how many it has; made in a few ms, 0.3 MB."""
    numbers = list(range(8192 + 2))
    far = [_FAR] * 256
    rows: list[list[int]] = []
    for first in range(256):
        if first & 1:
            rows.append(far)
        elif first < 128:
            rows.append([numbers[(first >> 1) + 1]] * 256)
        else:
            low = (first >> 1 & 63) + 2
            rows.append(numbers[low : low + 128 * 64 : 64] + [_FAR] * 128)
    return rows


def skip_rows(buf: bytes, pos: int, limit: int, count: int, wanted: int) -> tuple[int, int]:
    """Return how many records precede the first with an offset delta of at least ``wanted``, and where that begins.

    >>> skip_rows(b"\\x0c\\0\\0\\0\\1\\1\\0" * 2, 0, 14, 2, 5)
    (2, 14)
    """
    for index in range(count):
        length, start = decode_varint(buf, pos)
        _, at = decode_varint(buf, start + 1)
        delta, _ = decode_varint(buf, at)
        if delta >= wanted:
            return index, pos
        pos = start + length
        if length < SMALLEST_RECORD - 1 or pos > limit:
            raise corrupt(f"a record of length {length}")
    return count, pos
