"""Runs of records of equal shape, decoded column by column with nothing but slices of bytes.

Records of one topic often have keys and values of one size. Their encodings then are equally long and each field is
at a fixed distance from the last record's: ``buf[at:end:step]`` is that byte of all records, in one C call. What
must be equal throughout (lengths, number of headers) is counted, timestamps and offsets are looked up in tables, and
``struct`` cuts out keys and values. Nothing is believed that has not been compared: a run ends before the first
record that differs.

0.1 µs per record for everything but the making of the tuple, against 0.4 µs in the loop of :mod:`kafka.record._decode`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from struct import Struct
from typing import Final, NamedTuple

from kafka.errors import CorruptRecordError
from kafka.record._varint import VARINT, VARINT_END, decode_varint

#: Shorter runs are not worth the set-up.
SHORTEST: Final = 12

_LOW_BYTES: Final = bytes(range(128))
_HIGH: Final = bytes(range(128, 256))
# First and second bytes of the offset deltas 0, 1, 2, ...
_DELTAS_FROM_64: Final = b"".join(VARINT[64:VARINT_END])
_ONE_BYTE: Final = bytes(range(0, 128, 2))
_FIRST_OF_TWO: Final = _DELTAS_FROM_64[0::2]
_SECOND_OF_TWO: Final = _DELTAS_FROM_64[1::2]


class Run(NamedTuple):
    """Consecutive records that share the sizes of their keys and values and have no headers."""

    count: int  # type: ignore[assignment] # hides tuple.count, which nobody needs here
    end: int
    """The position after the last of them."""
    timestamp_deltas: Sequence[int]
    offset_deltas: Sequence[int]
    keys: list[bytes] | None
    """None where all keys are null."""
    values: list[bytes] | None
    key_size: int
    value_size: int


class _Shape(NamedTuple):
    """How one record is laid out, as distances from its first byte."""

    step: int
    delta_at: int
    """Where the timestamp delta is, with the offset delta behind it."""
    offset_at: int
    key_length_at: int
    key_at: int
    value_length_at: int
    value_at: int
    key_size: int
    value_size: int


def find_run(buf: bytes, pos: int, limit: int, most: int) -> Run | None:
    """Return the run of records that begins at ``pos``, or None where there is none worth it.

    >>> find_run(b"\\x0e\\0\\0\\0\\1\\2x\\0\\x0e\\0\\0\\2\\1\\2x\\0", 0, 16, 2) is None
    True
    """
    shape = _shape_at(buf, pos, limit)
    if shape is None:
        return None
    step = shape.step
    count = min(most, (limit - pos) // step)
    # The last byte is the number of headers.
    constant = (*range(shape.delta_at - 1), *range(shape.key_length_at, shape.key_at))
    constant = (*constant, *range(shape.value_length_at, shape.value_at), step - 1)
    for at in constant:
        if count < SHORTEST:
            return None
        column = buf[pos + at : pos + count * step : step]
        count -= len(column.lstrip(column[:1]))
    timestamps = _varints(buf, pos, step, shape.delta_at, shape.offset_at, count)
    if timestamps is None:
        return None
    offsets = _varints(buf, pos, step, shape.offset_at, shape.key_length_at, len(timestamps))
    if offsets is None:
        return None
    count = len(offsets)
    end = pos + count * step
    flat = list(chain.from_iterable(_cutter(shape).iter_unpack(memoryview(buf)[pos:end])))
    keys = values = None
    if shape.key_size >= 0:
        keys = flat[0::2] if shape.value_size >= 0 else flat
    if shape.value_size >= 0:
        values = flat[1::2] if shape.key_size >= 0 else flat
    return Run(count, end, timestamps[:count], offsets, keys, values, shape.key_size, shape.value_size)


def _shape_at(buf: bytes, pos: int, limit: int) -> _Shape | None:
    """Return the layout of the record at ``pos``; None if it is no candidate. Whatever is wrong, the loop will say."""
    try:
        length, start = decode_varint(buf, pos)
        delta_at = start + 1
        _, offset_at = decode_varint(buf, delta_at)
        _, key_length_at = decode_varint(buf, offset_at)
        key_size, key_at = decode_varint(buf, key_length_at)
        value_length_at = key_at + max(key_size, 0)
        value_size, value_at = decode_varint(buf, value_length_at)
    except CorruptRecordError:
        return None
    end = start + length
    # No headers: one zero byte after the value, and that is the end.
    if key_size < -1 or value_size < -1 or value_at + max(value_size, 0) + 1 != end or end > limit or buf[end - 1]:
        return None
    return _Shape(
        end - pos,
        delta_at - pos,
        offset_at - pos,
        key_length_at - pos,
        key_at - pos,
        value_length_at - pos,
        value_at - pos,
        key_size,
        value_size,
    )


@lru_cache(maxsize=256)
def _cutter(shape: _Shape) -> Struct:
    """Return what cuts the key and value out of each record, where there are."""
    key = f"{shape.key_size}s" if shape.key_size >= 0 else ""
    value = f"{shape.value_size}s" if shape.value_size >= 0 else ""
    between = shape.value_at - shape.value_length_at
    return Struct(f"={shape.key_at}x{key}{between}x{value}x")


def _varints(buf: bytes, pos: int, step: int, at: int, behind: int, count: int) -> Sequence[int] | None:
    """Return the varint at distance ``at`` of each record as long as it is ``behind - at`` bytes wide; None if short."""
    columns = [buf[pos + place : pos + count * step : step] for place in range(at, behind)]
    last = columns[-1]
    if not last.isascii():
        count = len(last) - len(last.lstrip(_LOW_BYTES))
    for column in columns[:-1]:
        if column.translate(None, _HIGH):
            count = min(count, len(column) - len(column.lstrip(_HIGH)))
    if count < SHORTEST:
        return None
    if count < len(last):
        columns = [column[:count] for column in columns]
    first = columns[0][0]
    if len(columns) == 1:
        return _one_byte(columns[0], first >> 1)
    if len(columns) == 2:
        return _two_bytes(columns[0], columns[1], first >> 1 & 0x3F | columns[1][0] << 6)
    return [decode_varint(bytes(parts))[0] for parts in zip(*columns, strict=True)]


def _one_byte(column: bytes, first: int) -> Sequence[int]:
    count = len(column)
    if column == _ONE_BYTE[first : first + count]:
        return range(first, first + count)
    return list(map(_NUMBERS.__getitem__, column))


def _two_bytes(low: bytes, high: bytes, first: int) -> Sequence[int]:
    count = len(low)
    begin = first - 64
    if begin >= 0 and low == _FIRST_OF_TWO[begin : begin + count] and high == _SECOND_OF_TWO[begin : begin + count]:
        return range(first, first + count)
    zigzag = map(int.__or__, map(_LOW.__getitem__, low), map(_SHIFTED.__getitem__, high))
    return [number >> 1 ^ -(number & 1) for number in zigzag]


# Of one byte: the number it stands for; of the first of two: its bits; of the second of two: its bits in place.
_NUMBERS: Final = [byte >> 1 ^ -(byte & 1) for byte in range(128)]
_LOW: Final = [byte & 0x7F for byte in range(256)]
_SHIFTED: Final = [byte << 7 for byte in range(128)]
