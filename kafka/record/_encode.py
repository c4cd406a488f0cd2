"""Encoding of runs of records in format v2, with C calls instead of a loop.

The bytes of a record are: length, attributes and timestamp delta (the *stamp*), offset delta, key, value, number of
headers. In a run of records the pieces of one kind are put into a list at every n-th place by a slice assignment;
one ``b"".join`` of that list (by the caller) then is the whole encoding. The pieces come out of tables by ``map``.

The length of a value is a function of its size alone, and so is the record's length once the *fixed* part is known
(stamp, offset delta, number of headers): hence the tables, one for each fixed size that occurs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import repeat
from operator import add
from typing import Final

from kafka.record._varint import VARINT, VARINT_END, encode_varint, varint_size

Headers = Sequence[tuple[str, bytes | None]]

#: Where a stretch begins (an index), its stamp, and the size of the fixed part. It reaches to the next one.
Stretch = tuple[int, bytes, int]

#: Keys and values below this size come out of the tables.
SMALL: Final = 4000
NULL: Final = VARINT[-1]
NO_HEADERS: Final = VARINT[0]

_INT32_MAX: Final = 2**31 - 1

# Length and value size, for values without a key.
_MIDDLE: Final = [NULL + VARINT[size] for size in range(SMALL)]
#: What a key or value takes together with its length.
FIELD_SIZES: Final = [size + (1 if size < 64 else 2) for size in range(SMALL)]


def delta_width(index: int) -> tuple[int, int]:
    """Return how many bytes this offset delta takes, and from which index on there is one more.

    >>> delta_width(63), delta_width(64)
    ((1, 64), (2, 8192))
    """
    width = varint_size(index)
    return width, min(1 << (7 * width - 1), _INT32_MAX)


@lru_cache(maxsize=64)
def plain_sizes(fixed: int) -> list[int]:
    """Return, by size of the value, the size of a record without key and headers.

    >>> plain_sizes(4)[100]
    109
    """
    bodies = map(add, FIELD_SIZES, repeat(fixed + 1))
    return [body + (1 if body < 64 else 2) for body in bodies]


@lru_cache(maxsize=64)
def _plain_lengths(fixed: int) -> list[bytes]:
    """Return, by size of the value, the end of the record before and the length of one without a key."""
    return [NO_HEADERS + VARINT[size + fixed + 1] for size in FIELD_SIZES]


def offset_deltas(first: int, stop: int) -> list[bytes]:
    """Return the encoded offset deltas of these indexes.

    >>> offset_deltas(62, 65)
    [b'|', b'~', b'\\x80\\x01']
    """
    if stop <= VARINT_END:
        return VARINT[first:stop]
    return list(map(encode_varint, range(first, stop)))


def encode_run(first: int, values: list[bytes], keys: list[bytes], stretches: list[Stretch]) -> list[bytes]:
    """Return the pieces of records from index ``first`` on: all with keys, or, if there are none, all without.

    >>> b"".join(encode_run(0, [b"hello"], [], [(0, b"\\0\\0", 4)]))
    b'\\x16\\x00\\x00\\x00\\x01\\nhello\\x00'
    """
    stop = first + len(values)
    key_sizes = list(map(len, keys))
    value_sizes = list(map(len, values))
    uniform = _all_equal(value_sizes) and _all_equal(key_sizes)
    columns: list[list[bytes]] = [[], []]
    heads, stamps = columns
    ends = [begin for begin, _, _ in stretches[1:]]
    for (begin, stamp, fixed), end in zip(stretches, (*ends, stop), strict=True):
        low, high = max(begin, first) - first, min(end, stop) - first
        if low >= high:
            continue
        if uniform:
            (head,) = _lengths(fixed, key_sizes[:1], value_sizes[:1])
            heads += [head + stamp] * (high - low)
        else:
            heads += _lengths(fixed, key_sizes[low:high], value_sizes[low:high])
            stamps += [stamp] * (high - low)
    heads[0] = heads[0][1:]  # no record before the first one
    if uniform:
        columns.pop()
    if keys:
        columns += (offset_deltas(first, stop), _sizes(key_sizes, uniform), keys, _sizes(value_sizes, uniform))
    elif uniform:
        columns.append(_deltas_before(_MIDDLE[value_sizes[0]], first, stop))
    else:
        columns += (offset_deltas(first, stop), list(map(_MIDDLE.__getitem__, value_sizes)))
    columns.append(values)
    pieces = [b""] * (len(columns) * len(values) + 1)
    for at, column in enumerate(columns):
        pieces[at : -1 : len(columns)] = column
    pieces[-1] = NO_HEADERS
    return pieces


def _all_equal(sizes: list[int]) -> bool:
    return not sizes or sizes.count(sizes[0]) == len(sizes)


def _deltas_before(middle: bytes, first: int, stop: int) -> list[bytes]:
    """Return the encoded offset deltas of these indexes, each with ``middle`` behind it."""
    if stop <= _TABLED:
        return _tabled_deltas(middle)[first:stop]
    return [delta + middle for delta in offset_deltas(first, stop)]


#: How far the tables of the next function go: 0.2 MB each.
_TABLED: Final = 4096


@lru_cache(maxsize=4)
def _tabled_deltas(middle: bytes) -> list[bytes]:
    return [delta + middle for delta in VARINT[:_TABLED]]


def _lengths(fixed: int, key_sizes: list[int], value_sizes: list[int]) -> list[bytes]:
    """Return the end of the record before and the length of each record."""
    if not key_sizes:
        return list(map(_plain_lengths(fixed).__getitem__, value_sizes))
    fields = FIELD_SIZES
    bodies = [fields[key] + fields[value] + fixed for key, value in zip(key_sizes, value_sizes, strict=True)]
    return [NO_HEADERS + VARINT[body] for body in bodies]


def _sizes(sizes: list[int], uniform: bool) -> list[bytes]:
    if uniform:
        return [VARINT[sizes[0]]] * len(sizes)
    return list(map(VARINT.__getitem__, sizes))


# Names of headers repeat: their encodings, length first.
_names: dict[str, bytes] = {}
_MOST_NAMES: Final = 1024


def encode_headers(headers: Headers) -> bytes:
    r"""Encode a record's headers, their number first.

    >>> encode_headers([("a", b"1"), ("b", None)])
    b'\x04\x02a\x021\x02b\x01'
    """
    # Hot, if there are headers: 0.4 µs each.
    varint, names = VARINT, _names
    count = len(headers)
    parts = [varint[count] if count < VARINT_END else encode_varint(count)]
    for name, value in headers:
        head = names.get(name)
        if head is None:
            head = _name(name)
        if value is None:
            parts += (head, NULL)
        else:
            size = len(value)
            parts += (head, varint[size] if size < VARINT_END else encode_varint(size), value)
    return b"".join(parts)


def _name(name: str) -> bytes:
    encoded = name.encode()
    head = encode_varint(len(encoded)) + encoded
    if len(_names) >= _MOST_NAMES:
        _names.clear()
    if len(encoded) <= 100:
        _names[name] = head
    return head
