"""Encoding of runs of records in format v2, with C calls instead of a loop.

Where all keys and values of a run have the same sizes, its records differ in their timestamp and offset deltas only.
One ``join`` puts the values between equal bytes then, and the deltas are written over them, a byte of all records in
one slice assignment with a step.

Elsewhere the pieces of one kind are put into a list at every n-th place by a slice assignment; one ``join`` of that
list (by the caller) is the whole encoding. The pieces come out of tables by ``map``: the length of a value is a
function of its size alone, and so is the record's length once the *fixed* part is known (attributes, timestamp and
offset deltas, headers), hence the tables, one for each fixed size that occurs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import repeat
from operator import add
from typing import Final, NamedTuple

from kafka.record._varint import (
    FIRST_OF_TWO,
    ONE_BYTE,
    SECOND_OF_TWO,
    VARINT,
    VARINT_END,
    encode_varint,
    varint_size,
)

Headers = Sequence[tuple[str, bytes | None]]


class Stretch(NamedTuple):
    """Records in a row with one timestamp, and offset deltas of one width. It reaches to the next one."""

    begin: int
    """Its first index."""
    stamp: bytes
    """The encoded attributes and timestamp delta."""
    width: int
    """Bytes of each offset delta."""
    timestamp: int


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


def largest_record(fixed: int, longest: int, *, keyed: bool) -> int:
    """Return what a record takes at most whose key and value have no more than so many bytes together.

    >>> largest_record(4, 100, keyed=False), largest_record(4, 100, keyed=True)
    (109, 110)
    """
    width = 1 if longest < 64 else 2
    body = fixed + width + (width if keyed else 1) + longest
    return body + (1 if body < 64 else 2)


def run_size(fixed: int, value_sizes: list[int], keys: list[bytes]) -> int:
    """Return what records take together, all with keys, or, if there are none, all without.

    >>> run_size(4, [100, 20], [])
    136
    """
    if keys:
        key_sizes = list(map(len, keys))
        if not _all_equal(key_sizes):
            fields = FIELD_SIZES
            bodies = [fields[key] + fields[value] + fixed for key, value in zip(key_sizes, value_sizes, strict=True)]
            return sum([body + (1 if body < 64 else 2) for body in bodies])
        fixed += FIELD_SIZES[key_sizes[0]] - 1
    if _all_equal(value_sizes):
        return plain_sizes(fixed)[value_sizes[0]] * len(value_sizes)
    return sum(map(plain_sizes(fixed).__getitem__, value_sizes))


@lru_cache(maxsize=64)
def _plain_lengths(fixed: int, before: bytes) -> list[bytes]:
    """Return, by size of the value, the length of a record without a key, behind the end of the record before."""
    return [before + VARINT[size + fixed + 1] for size in FIELD_SIZES]


def offset_deltas(first: int, stop: int) -> list[bytes]:
    """Return the encoded offset deltas of these indexes.

    >>> offset_deltas(62, 65)
    [b'|', b'~', b'\\x80\\x01']
    """
    if stop <= VARINT_END:
        return VARINT[first:stop]
    return list(map(encode_varint, range(first, stop)))


def encode_run(
    first: int,
    values: list[bytes],
    keys: list[bytes],
    stretches: list[Stretch],
    tail: bytes = NO_HEADERS,
    value_sizes: list[int] | None = None,
) -> Data:
    """Return records from index ``first`` on: all with keys, or, if there are none, all without.

    ``tail`` is the headers that all of them have, encoded. The values' sizes are for who has them already.

    >>> bytes(encode_run(0, [b"hello"], [], [Stretch(0, b"\\0\\0", 1, 1700000000000)]))
    b'\\x16\\x00\\x00\\x00\\x01\\nhello\\x00'
    """
    stop = first + len(values)
    key_sizes = list(map(len, keys))
    if value_sizes is None:
        value_sizes = list(map(len, values))
    even = _all_equal(value_sizes) and _all_equal(key_sizes)
    pieces: list[Data] = []
    low = 0
    for stamps, width in _alike(first, stop, stretches):
        high = low + sum([times for _, times in stamps])
        part = first + low, values[low:high], keys[low:high], stamps, width, tail
        if even:
            # What is in front goes into the larger piece behind it, so that the many bytes are not copied once more.
            front = pieces.pop() if pieces and 2 * (high - low) > high else b""
            pieces.append(_even(*part, front))
        else:
            pieces += _uneven(*part, key_sizes[low:high], value_sizes[low:high])
        low = high
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


Data = bytes | memoryview
Stamps = list[tuple[bytes, int]]


def _alike(first: int, stop: int, stretches: list[Stretch]) -> Iterator[tuple[Stamps, int]]:
    """Yield the stamps of these indexes, as long as they and the deltas are of one width; and the deltas' width."""
    stamps: Stamps = []
    size = width = 0
    end = stop
    # From the last one back, as each reaches to the next.
    found: list[tuple[Stamps, int]] = []
    for begin, stamp, deltas, _ in reversed(stretches):
        times = end - max(first, begin)
        if times <= 0:
            continue
        end -= times
        if deltas != width or len(stamp) != size:
            size, width = len(stamp), deltas
            stamps = []
            found.append((stamps, width))
        stamps.append((stamp, times))
    for stamps, width in reversed(found):
        stamps.reverse()
        yield stamps, width


def _all_equal(sizes: list[int]) -> bool:
    return not sizes or sizes.count(sizes[0]) == len(sizes)


# All of one size.


def _even(
    first: int, values: list[bytes], keys: list[bytes], stamps: Stamps, width: int, tail: bytes, front: Data
) -> Data:
    """Return records with timestamp and offset deltas of one width each, with these bytes in front of them.

    The list of values is used up.
    """
    count = len(values)
    stamp = stamps[0][0]
    value_size = VARINT[len(values[0])]
    key_size = VARINT[len(keys[0])] if keys else NULL
    body = len(stamp) + width + len(key_size) + (len(keys[0]) if keys else 0) + len(value_size) + len(values[0])
    length = VARINT[body + len(tail)]
    # What comes between two records; deltas are still to come.
    head = b"".join((length, stamp, bytes(width), key_size))
    between = tail + head
    if keys:
        pieces = [between, b"", value_size, b""] * count
        pieces[1::4] = keys
        pieces[3::4] = values
        pieces[0] = b"".join((front, head))
        pieces.append(tail)
        run = bytearray().join(pieces)
    else:
        values[0] = b"".join((front, head, value_size, values[0]))
        values[-1] = b"".join((values[-1], tail))
        run = bytearray(between + value_size).join(values)
    start = len(front)
    step = (len(run) - start) // count
    at = start + len(length)
    if len(stamps) > 1:
        for place in range(1, len(stamp)):
            run[at + place :: step] = b"".join([one[place : place + 1] * times for one, times in stamps])
    at += len(stamp)
    for place, column in enumerate(delta_columns(first, first + count, width)):
        run[at + place :: step] = column
    return memoryview(run).toreadonly()


def delta_columns(first: int, stop: int, width: int) -> list[bytes]:
    """Return the encoded offset deltas of these indexes, which are of that width: all first bytes, all second ones, ...

    >>> delta_columns(64, 66, 2)
    [b'\\x80\\x82', b'\\x01\\x01']
    """
    if width == 1:
        return [ONE_BYTE[first:stop]]
    if width == 2:
        return [FIRST_OF_TWO[first - 64 : stop - 64], SECOND_OF_TWO[first - 64 : stop - 64]]
    joined = b"".join(map(encode_varint, range(first, stop)))
    return [joined[place::width] for place in range(width)]


# Of different sizes.


def _uneven(
    first: int,
    values: list[bytes],
    keys: list[bytes],
    stamps: Stamps,
    width: int,
    tail: bytes,
    key_sizes: list[int],
    value_sizes: list[int],
) -> list[Data]:
    count = len(values)
    fixed = len(stamps[0][0]) + width + len(tail)
    plain = tail == NO_HEADERS
    # The end of a record stands in front of the next one's length, as one piece with it where it is always the same.
    before = NO_HEADERS if plain else b""
    columns: list[list[bytes]] = [
        _lengths(fixed, key_sizes, value_sizes, before),
        _repeated(stamps),
    ]
    if not keys:
        columns += (offset_deltas(first, first + count), list(map(_MIDDLE.__getitem__, value_sizes)))
    else:
        if _all_equal(key_sizes):
            columns.append(_deltas_before(VARINT[key_sizes[0]], first, first + count))
        else:
            columns += (offset_deltas(first, first + count), list(map(VARINT.__getitem__, key_sizes)))
        columns += (keys, list(map(VARINT.__getitem__, value_sizes)))
    columns.append(values)
    if not plain:
        columns.append([tail] * count)
    pieces: list[Data] = [b""] * (len(columns) * count)
    for at, column in enumerate(columns):
        pieces[at :: len(columns)] = column
    if plain:
        pieces[0] = pieces[0][1:]  # no record before the first one
        pieces.append(NO_HEADERS)
    return pieces


def _repeated(stamps: Stamps) -> list[bytes]:
    column: list[bytes] = []
    for stamp, times in stamps:
        column += [stamp] * times
    return column


def _lengths(fixed: int, key_sizes: list[int], value_sizes: list[int], before: bytes) -> list[bytes]:
    """Return the length of each record, behind the end of the record before."""
    fields = FIELD_SIZES
    if not key_sizes:
        return list(map(_plain_lengths(fixed, before).__getitem__, value_sizes))
    if _all_equal(key_sizes):
        return list(map(_plain_lengths(fixed + fields[key_sizes[0]] - 1, before).__getitem__, value_sizes))
    bodies = [fields[key] + fields[value] + fixed for key, value in zip(key_sizes, value_sizes, strict=True)]
    return [before + VARINT[body] for body in bodies]


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


def encoded_size(field: bytes | None) -> bytes:
    """Return what stands in front of a key or value.

    >>> encoded_size(b"hello"), encoded_size(None)
    (b'\\n', b'\\x01')
    """
    if field is None:
        return NULL
    size = len(field)
    return VARINT[size] if size < VARINT_END else encode_varint(size)


def record_size(
    key: bytes | None, value: bytes | None, headers: Headers | None = None, *, index: int = 0, timestamp_delta: int = 0
) -> int:
    """Return how many bytes a record takes within a batch.

    >>> record_size(None, b"hello")
    12
    """
    body = 1 + varint_size(timestamp_delta) + varint_size(index)
    for field in (key, value):
        body += 1 if field is None else varint_size(len(field)) + len(field)
    body += len(encode_headers(headers)) if headers else 1
    return varint_size(body) + body


# Names of headers repeat: their encodings, length first.
_names: dict[str, bytes] = {}
_MOST_NAMES: Final = 1024


def encode_headers(headers: Headers) -> bytes:
    r"""Encode a record's headers, their number first.

    >>> encode_headers([("a", b"1"), ("b", None)])
    b'\x04\x02a\x021\x02b\x01'
    """
    count = len(headers)
    number = VARINT[count] if count < VARINT_END else encode_varint(count)
    return b"".join([number, *map(encode_header, headers)])


def encode_header(header: tuple[str, bytes | None]) -> bytes:
    r"""Encode one header.

    >>> encode_header(("a", None))
    b'\x02a\x01'
    """
    name, value = header
    head = _names.get(name)
    if head is None:
        head = _name(name)
    if value is None:
        return head + NULL
    size = len(value)
    return b"%b%b%b" % (head, VARINT[size] if size < VARINT_END else encode_varint(size), value)


class KnownHeaders(dict[tuple[str, "bytes | None"], bytes]):
    r"""Encodings of headers that the records of a batch have in common.

    >>> KnownHeaders().encode([("a", b"1"), ("b", None)])
    b'\x04\x02a\x021\x02b\x01'
    """

    __slots__ = ()

    def encode(self, headers: Headers) -> bytes:
        """The same as :func:`encode_headers`, at 0.1 µs for each header that was there before."""
        count = len(headers)
        try:
            parts = [self.get(header) or self._learn(header) for header in headers]
        except TypeError:  # one is not hashable: a list, or with a bytearray
            return encode_headers(headers)
        return (VARINT[count] if count < VARINT_END else encode_varint(count)) + b"".join(parts)

    def _learn(self, header: tuple[str, bytes | None]) -> bytes:
        encoded = encode_header(header)
        if len(self) < _MOST_KNOWN:
            self[header] = encoded
        return encoded


_MOST_KNOWN: Final = 64


def _name(name: str) -> bytes:
    encoded = name.encode()
    head = encode_varint(len(encoded)) + encoded
    if len(_names) >= _MOST_NAMES:
        _names.clear()
    if len(encoded) <= 100:
        _names[name] = head
    return head
