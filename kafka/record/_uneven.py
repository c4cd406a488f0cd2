"""Runs of records of different sizes: stepped through in a short loop, compared and decoded column by column after.

Neighbours mostly have numbers of equal width in front of the value, a key of one size, and headers of one size
behind. Then it is known where in a record the value is as soon as its length is known; one loop steps from length to
length, and the rest is slices. What was only supposed is then compared for all of them: the bytes in front of the
values, joined, are a matrix whose columns are read as in :mod:`kafka.record._runs`, and they must say the sizes that
the slices have. Where sizes of keys or headers differ too, a longer loop reads them.

0.75 µs per record for everything but the making of the tuple, with headers 1.2, against 1.0 and 3.4 µs in the loop of
:mod:`kafka.record._decode` (November 2026).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import repeat
from typing import Final, NamedTuple

from kafka.errors import CorruptRecordError
from kafka.record._headers import decode_headers
from kafka.record._runs import (
    FIRST_AT,
    SHORTEST,
    Header,
    HeaderColumns,
    Run,
    cut_fields,
    equal_headers,
    numbers,
    steps,
    varint_columns,
)
from kafka.record._varint import decode_varint

#: How many records are cut up before anything is known of them; where heads change their width it was for nothing.
_PIECE: Final = 512
#: The first number that takes three bytes.
_TWO_BYTES_END: Final = 8192


class _Kind(NamedTuple):
    """What all records of a run must have in common."""

    stamp_width: int
    offset_width: int
    key_width: int
    """Bytes of the key's length."""
    key_size: int
    tail: int
    """Bytes of the headers and their number."""
    most: int
    """How many can be of this kind: behind them, offset deltas take a byte more."""


class _Cut(NamedTuple):
    """The pieces of records in a row."""

    count: int  # type: ignore[assignment] # hides tuple.count, which nobody needs here
    ends: list[int]
    heads: bytes
    """What stands in front of the key, or, where there is none, of the value; there may be more of it."""
    width: int
    """Bytes of each head."""
    keys: list[bytes]
    values: list[bytes]
    tails: list[bytes]
    """The headers, their number first, if there are any."""


def find_uneven(buf: bytes, pos: int, limit: int, most: int) -> Run | None:
    r"""Return the run of records that begins at ``pos``, or None where there is none worth it.

    >>> record = b"\x0e\0\0\0\1\2x\0"
    >>> find_uneven(record, 0, 8, 1) is None
    True
    """
    try:
        kind, second = _kind_at(buf, pos)
        alike = kind[:-1] == _kind_at(buf, second)[0][:-1]
        cut = (_cut_alike if alike else _cut_up)(buf, pos, limit, min(most, kind.most, _PIECE), kind)
    except CorruptRecordError:
        return None
    return _run(cut, kind)


_NOTHING: Final = _Cut(0, [], b"", 1, [], [], [])


def _run(cut: _Cut, kind: _Kind) -> Run | None:
    """Make a run of what was cut up, as far as it is right."""
    count = cut.count
    if count < SHORTEST:
        return None
    heads, width = cut.heads, cut.width
    has_key = kind.key_size >= 0
    offset_at = 1 + kind.stamp_width
    key_at = offset_at + kind.offset_width
    if not has_key:
        nulls = heads[key_at : count * width : width]
        count -= len(nulls.lstrip(b"\1"))
    stamps = varint_columns(heads, 0, width, 1, offset_at, count)
    offsets = numbers(varint_columns(heads, 0, width, offset_at, key_at, len(stamps[0])))
    count = len(offsets)
    if count < SHORTEST or (not isinstance(offsets, range) and min(offsets) < 0):
        return None
    headers: HeaderColumns | list[list[Header]] = ()
    header_size: int | list[int] = -1
    if kind.tail > 1:
        found = equal_headers(cut.tails[:count]) or _headers(cut.tails[:count])
        if found is None:
            return None
        headers, header_size = found
    keys, values = cut.keys[:count], cut.values[:count]
    return Run(
        count,
        cut.ends[:count],
        steps([column[:count] for column in stamps]),
        offsets,
        keys if has_key else None,
        values,
        list(map(len, keys)) if has_key else -1,
        list(map(len, values)),
        headers,
        header_size,
    )


def _kind_at(buf: bytes, pos: int) -> tuple[_Kind, int]:
    """Return the kind of the record at ``pos``, and the position after it."""
    length, start = decode_varint(buf, pos)
    _, offset_at = decode_varint(buf, start + 1)
    offset, key_at = decode_varint(buf, offset_at)
    key_size, at = decode_varint(buf, key_at)
    key_width = at - key_at
    if key_size > 0:
        at += key_size
    value_size, at = decode_varint(buf, at)
    end = start + length
    if length < 0 or offset < 0 or key_size < -1 or value_size < 0 or at + value_size >= end:
        raise CorruptRecordError
    offset_width = key_at - offset_at
    most = (1 << 7 * offset_width - 1) - offset
    return _Kind(offset_at - start - 1, offset_width, key_width, key_size, end - at - value_size, most), end


def _cut_alike(buf: bytes, pos: int, limit: int, most: int, kind: _Kind) -> _Cut:
    """Cut up records of which only the values differ in size; the first ones, as far as they are so."""
    stamp_width, offset_width, key_width, key_size, tail, _ = kind
    key_at = 1 + stamp_width + offset_width
    before = key_at + key_width + max(key_size, 0)
    # Where the value begins, with its size in one byte or two.
    short, long = before + 1, before + 2
    bodies, ends, values = _step(buf, pos, most, short, tail)
    count = len(ends)
    while count and ends[count - 1] > limit:
        count -= 1
    matrix = b"".join([buf[body : body + long] for body in bodies[:count]])
    sizes = list(map(len, values[:count]))
    if len(matrix) != count * long or not count or max(sizes) >= _TWO_BYTES_END - long - tail:
        return _NOTHING
    # The slices are right if the records say so: the size of the value, and before that the key's.
    pairs = bytearray(2 * count)
    pairs[FIRST_AT::2], pairs[1 - FIRST_AT :: 2] = matrix[before::long], matrix[before + 1 :: long]
    said = list(map(_sizes().__getitem__, memoryview(pairs).cast("H")))
    if said != sizes:
        count = next(at for at, size in enumerate(sizes) if size != said[at])
    if 0 in sizes:  # which a slice of nothing has as well where the record is too short
        least = short + tail
        count = min(count, next((at for at in range(count) if ends[at] - bodies[at] < least), count))
    for at in range(key_at, key_at + key_width):
        column = matrix[at : count * long : long]
        count -= len(column.lstrip(column[:1]))
    keys = cut_fields(matrix, long, ((key_at + key_width, key_size),))[0] if key_size >= 0 else []
    tails = [buf[end - tail : end] for end in ends[:count]] if tail > 1 else []
    return _Cut(count, ends, matrix, long, keys, values, tails)


def _step(buf: bytes, pos: int, most: int, short: int, tail: int) -> tuple[list[int], list[int], list[bytes]]:
    """Step through records; return where they begin behind their length, where they end, and the supposed values."""
    bodies: list[int] = []
    ends: list[int] = []
    values: list[bytes] = []
    add_body, add_end, add_value = bodies.append, ends.append, values.append
    long = short + 1
    # What is shorter has a value of less than 64 bytes, and its size in one.
    turn = short + 64 + tail
    plain = tail == 1
    try:
        for _ in repeat(None, most):
            length = buf[pos]
            if length < 128:
                body = pos + 1
                pos = body + (length >> 1)
                add_value(buf[body + (short if pos - body < turn else long) : pos - tail])
            else:
                body = pos + 2
                pos = body + (length >> 1 & 63) + (buf[pos + 1] << 6)
                add_value(buf[body + (short if pos - body < turn else long) : pos - tail])
            if length & 1 or (plain and buf[pos - 1]):
                break
            add_body(body)
            add_end(pos)
    except IndexError:
        pass
    return bodies, ends, values


@lru_cache(maxsize=1)
def _sizes() -> list[int]:
    """Return the size that two bytes in a row stand for, or the first of them alone; made in a few ms."""
    alone = [first >> 1 if not first & 1 else -1 for first in range(128)]
    table = alone * 512  # by the second byte first
    for second in range(128):
        for first in range(128, 256):
            table[second << 8 | first] = (second << 7 | first & 127) >> 1 if not first & 1 else -1
    for second in range(128, 256):
        table[second << 8 | 128 : (second << 8) + 256] = [-1] * 128
    return table


def _cut_up(  # noqa: C901, PLR0912 - hot: calls would cost more than they tidy
    buf: bytes, pos: int, limit: int, most: int, kind: _Kind
) -> _Cut:
    """Cut up records of which keys, values and headers differ in size; the first ones, as far as they are so."""
    has_key, has_headers = kind.key_size >= 0, kind.tail > 1
    head = 1 + kind.stamp_width + kind.offset_width + (not has_key)
    ends: list[int] = []
    heads: list[bytes] = []
    keys: list[bytes] = []
    values: list[bytes] = []
    tails: list[bytes] = []
    key = b""
    try:
        for _ in repeat(None, most):
            length = buf[pos]
            if length < 128:
                start = pos + 1
            else:
                high = buf[pos + 1]
                if high > 127:
                    break
                length = length & 127 | high << 7
                start = pos + 2
            at = start + head
            end = start + (length >> 1)
            if has_key:
                size = buf[at]
                at += 1
                if size > 127:
                    size = size & 127 | buf[at] << 7
                    at += 1
                if size & 1 or size > 16383:
                    break
                key_end = at + (size >> 1)
                key = buf[at:key_end]
                at = key_end
            size = buf[at]
            at += 1
            if size > 127:
                size = size & 127 | buf[at] << 7
                at += 1
            value_end = at + (size >> 1)
            if (size | length) & 1 or size > 16383 or value_end >= end or end > limit:
                break
            if has_headers:
                if not buf[value_end]:
                    break
                tails.append(buf[value_end:end])
            elif value_end + 1 != end or buf[value_end]:
                break
            if has_key:
                keys.append(key)
            heads.append(buf[start : start + head])
            values.append(buf[at:value_end])
            ends.append(end)
            pos = end
    except IndexError:
        pass
    return _Cut(len(ends), ends, b"".join(heads), head, keys, values, tails)


def _headers(tails: list[bytes]) -> tuple[list[list[Header]], list[int]] | None:
    """Read headers one by one; None where one is not right."""
    known: dict[bytes, tuple[list[Header], int]] = {}
    headers: list[list[Header]] = []
    sizes: list[int] = []
    try:
        for tail in tails:
            found = known.get(tail)
            if found is None:
                parsed, size, end = decode_headers(tail, 0, len(tail))
                if end != len(tail):
                    return None
                found = known[tail] = parsed, size
            headers.append(found[0].copy())
            sizes.append(found[1])
    except (IndexError, CorruptRecordError):
        return None
    return headers, sizes
