"""Every varint of many records at once, with numpy: where their keys and values are, their offsets and timestamps.

First the positions where records begin are found. Where consecutive records have equal lengths that is arithmetic,
checked by comparing the length bytes at those positions; elsewhere it is a loop of 0.1 µs per record, the
only one here. Then each field of all records is decoded together: bytes at an array of positions, and again those
that go on.

What comes out has been checked to the last byte; only headers are left to be parsed.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import repeat
from typing import Any, Final, NamedTuple

import numpy as np

from kafka.errors import CorruptRecordError
from kafka.record._errors import corrupt
from kafka.record._headers import decode_headers
from kafka.record._varint import decode_varint
from kafka.record._walk import walk

Array = Any  # numpy's generic types say less than they cost

_SHORT_RUN: Final = 16
_PIECE: Final = 4096


class Fields(NamedTuple):
    """Arrays of one entry per record; positions are in the buffer, sizes -1 for null."""

    timestamp_deltas: Array
    offset_deltas: Array
    key_at: Array
    key_sizes: Array
    value_at: Array
    value_sizes: Array
    header_counts: Array
    headers_at: Array
    """Behind the number of headers."""
    ends: Array


# Where records begin.


def find_starts(data: Any, pos: int, end: int, count: int, base_offset: int) -> Array:
    """Return the positions of the records' first bytes; that they fill the bytes up to ``end`` is checked.

    >>> find_starts(b"\\x0c\\0\\0\\0\\1\\1\\0" * 2, 0, 14, 2, 0)
    array([0, 7])
    """
    every = np.frombuffer(data, np.uint8)
    parts: list[Array] = []
    left = count
    try:
        while left:
            run, step = _equal_lengths(data, every, pos, end, left)
            if run >= _SHORT_RUN:
                parts.append(np.arange(pos, pos + run * step, step, dtype=np.int64))
            else:
                # Lengths that differ mostly go on differing.
                run = min(left, _PIECE)
                positions, after = _walk(data, pos, run)
                parts.append(positions)
                step, run_end = 0, after
            pos = pos + run * step if step else run_end
            left -= run
    except (IndexError, CorruptRecordError):
        pos = -1
    if pos != end:
        raise corrupt(f"the content does not amount to {count} records", base_offset)
    return np.concatenate(parts)


def _equal_lengths(data: Any, every: Array, pos: int, end: int, most: int) -> tuple[int, int]:
    """Return how many records from ``pos`` on have the first one's length, and how far apart they are."""
    length, at = decode_varint(data, pos)
    step = at - pos + length
    if length < 0:
        raise IndexError
    count = min(most, (end - pos) // step)
    for place in range(pos, at):
        if count < _SHORT_RUN:
            return 0, step
        differs = every[place : place + (count - 1) * step + 1 : step] != data[place]
        first = int(differs.argmax())
        if differs[first]:
            count = first
    return count, step


def _walk(data: Any, pos: int, count: int) -> tuple[Array, int]:
    """Go from record to record by their lengths; return the positions of the first bytes, and the one after all."""
    try:
        after = walk(data, pos, count)
    except IndexError:
        return _walk_any(data, pos, count)
    if after[-1] > len(data):
        return _walk_any(data, pos, count)
    positions = np.empty(count, np.int64)
    positions[0] = pos
    positions[1:] = np.fromiter(after, np.int64, count - 1)
    return positions, after[-1]


def _walk_any(data: Any, pos: int, count: int) -> tuple[Array, int]:
    positions: list[int] = []
    append = positions.append
    for _ in repeat(None, count):
        append(pos)
        length, pos = decode_varint(data, pos)
        if length < 0:
            raise IndexError
        pos += length
    return np.array(positions, np.int64), pos


# The fields.


def varints(every: Array, at: Array) -> tuple[Array, Array]:
    r"""Return the varints at these positions, and the positions after them.

    >>> varints(np.frombuffer(b"\x02\x80\x01", np.uint8), np.array([0, 1]))
    (array([ 1, 64]), array([1, 3]))
    """
    byte = every[at]
    value = (byte & 0x7F).astype(np.int64)
    after = at + 1
    going_on = np.flatnonzero(byte > 0x7F)
    shift = 7
    while len(going_on):
        whole = len(going_on) == len(at)
        byte = every[after] if whole else every[after[going_on]]
        if shift == 63 and (byte > 1).any():
            raise CorruptRecordError(reason="a varint has more than 64 bits")
        bits = (byte & 0x7F).astype(np.int64) << shift
        if whole:
            value |= bits
            after += 1
            going_on = np.flatnonzero(byte > 0x7F)
        else:
            value[going_on] |= bits
            after[going_on] += 1
            going_on = going_on[byte > 0x7F]
        shift += 7
    return (value.view(np.uint64) >> np.uint64(1)).view(np.int64) ^ -(value & 1), after


def decode_fields(data: Any, starts: Array, ends: Array, base_offset: int) -> Fields:
    """Decode the records that begin and end there; the offset is for the error, if there is one.

    >>> fields = decode_fields(b"\\x0e\\0\\0\\0\\1\\2v\\0", np.array([0]), np.array([8]), 0)
    >>> int(fields.value_at[0]), int(fields.value_sizes[0]), int(fields.key_sizes[0])
    (6, 1, -1)
    """
    return _decode_short(data, starts, ends) or _decode_any(data, starts, ends, base_offset)


# Most records have all that stands in front of the key in 8 bytes, and no number there of more than two. Then one
# look-up fetches these bytes of a record, as a number, and few operations take the fields out of it.

_8: Final = np.uint64(8)
_LONGEST_SHORT: Final = 8192


def _decode_short(data: Any, starts: Array, ends: Array) -> Fields | None:
    """Decode records of which no number takes more than two bytes; None if these are not such, or damaged.

    ``starts`` and ``ends`` agree with the records' lengths.
    """
    # Not so near the end that 8 bytes could go beyond it, and lengths of two bytes at most.
    if not len(starts) or int(starts[-1]) + 16 > len(data) or np.count_nonzero(ends - starts > _LONGEST_SHORT):
        return None
    every = np.frombuffer(data, np.uint8)
    words = np.ndarray((len(data) - 7,), "<u8", data, strides=(1,))
    lengths = every.take(starts)
    if np.count_nonzero(lengths & 1):
        return None
    body = starts + (lengths >> 7) + 1
    try:
        stamps, word, stamp_width = _short(words[body] >> _8)
        offsets, word, offset_width = _short(word)
        key_at = body + stamp_width + offset_width + 2
        key_sizes, at, word = _short_keys(words, word, key_at)
        value_sizes, _, value_width = _short(word)
    except _NotShortError:
        return None
    if np.count_nonzero((offsets | value_sizes) & 1):
        return None
    value_at = at + value_width
    value_sizes = value_sizes >> 1
    at = value_at + value_sizes
    if np.count_nonzero(at >= ends):
        return None
    header_counts = every.take(at)
    at += 1
    right = np.where(header_counts, header_counts & 0x81 == 0, at == ends)
    if np.count_nonzero(right) != len(starts):
        return None
    return Fields(_signed(stamps), offsets >> 1, key_at, key_sizes, value_at, value_sizes, header_counts >> 1, at, ends)


class _NotShortError(Exception):
    """Of some record there is a number of three bytes or more, or a null where others have none."""


def _short_keys(words: Array, word: Array, key_at: Array) -> tuple[Array, Array, Array]:
    """Return the sizes of keys, where they end, and the bytes from there on; where keys are moves by their length."""
    if np.count_nonzero(word & np.uint64(0xFF) == 1) == len(word):
        return np.full(len(word), -1, np.int64), key_at, word >> _8  # of which two bytes at least are left
    sizes, _, width = _short(word)
    if np.count_nonzero(sizes & 1):
        raise _NotShortError
    key_at += width - 1
    sizes = sizes >> 1
    at = key_at + sizes
    if int(at.max()) >= len(words):
        raise _NotShortError
    return sizes, at, words[at]


def _short(words: Array) -> tuple[Array, Array, Array | int]:
    """Take a varint of one or two bytes, still in zigzag, from the low end: it, the rest, and how many bytes it had."""
    two = words & np.uint64(0x80)
    count = np.count_nonzero(two)
    if not count:
        return (words & np.uint64(0x7F)).view(np.int64), words >> _8, 1
    numbers = _short_numbers().take((words & np.uint64(0xFFFF)).view(np.int64))
    if np.count_nonzero(numbers < 0):
        raise _NotShortError
    if count == len(words):
        return numbers, words >> np.uint64(16), 2
    bits = (two >> np.uint64(4)) + _8
    return numbers, words >> bits, (bits >> np.uint64(3)).view(np.int64)


@lru_cache(maxsize=1)
def _short_numbers() -> Array:
    """Return what two bytes in a row, or the first of them alone, stand for: in zigzag; -1 where that goes on."""
    pairs = np.arange(1 << 16)
    low, high = pairs & 0xFF, pairs >> 8
    return np.where(low < 128, low, np.where(high < 128, low & 0x7F | high << 7, -1))


def _signed(zigzag: Array) -> Array:
    return zigzag >> 1 ^ -(zigzag & 1)


def _decode_any(data: Any, starts: Array, ends: Array, base_offset: int) -> Fields:
    every = np.frombuffer(data, np.uint8)
    try:
        length, at = varints(every, starts)
        right = at + length == ends
        timestamps, at = varints(every, at + 1)
        offsets, at = varints(every, at)
        right &= offsets >= 0
        key_sizes, key_at = varints(every, at)
        at, right = _past(key_at, key_sizes, ends, right)
        value_sizes, value_at = varints(every, at)
        at, right = _past(value_at, value_sizes, ends, right)
        header_counts, at = varints(every, at)
        right &= (header_counts > 0) | ((at == ends) & (header_counts == 0))
    except (IndexError, CorruptRecordError) as err:
        raise corrupt(getattr(err, "reason", None) or "the records are cut off", base_offset) from None
    if not right.all():
        raise corrupt("a record does not end where its length says", base_offset)
    return Fields(timestamps, offsets, key_at, key_sizes, value_at, value_sizes, header_counts, at, ends)


def _past(at: Array, sizes: Array, ends: Array, right: Array) -> tuple[Array, Array]:
    """Return the positions after fields of these sizes, held within the record; and which records are right so far."""
    right &= (sizes >= -1) & (sizes < ends - at)
    return np.where(right, at + np.maximum(sizes, 0), 0), right


def headers_of(data: bytes, fields: Fields, index: int) -> tuple[list[tuple[str, bytes | None]], int]:
    """Parse the headers of one record that has some; return them and how many bytes of keys and values they have.

    >>> data = b"\\x14\\0\\0\\0\\1\\1\\2\\2a\\x02b"
    >>> headers_of(data, decode_fields(data, np.array([0]), np.array([11]), 0), 0)
    ([('a', b'b')], 2)
    """
    end = int(fields.ends[index])
    count, after = int(fields.header_counts[index]), int(fields.headers_at[index])
    try:
        headers, size, behind = decode_headers(data, _number_at(data, after, count), end)
    except (IndexError, CorruptRecordError) as err:
        raise corrupt(getattr(err, "reason", None) or "headers that are cut off") from None
    if behind != end:
        raise corrupt("a record does not end where its length says")
    return headers, size


def _number_at(data: bytes, after: int, count: int) -> int:
    """Return where the varint of this value that ends at ``after`` begins."""
    for width in range(1, 11):
        try:
            if decode_varint(data, after - width) == (count, after):
                return after - width
        except CorruptRecordError:  # noqa: PERF203 - nearly always the first width is right
            continue
    raise CorruptRecordError(reason=f"{count} headers")
