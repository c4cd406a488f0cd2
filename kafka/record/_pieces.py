"""Putting many small pieces of bytes one after the other with one call: what encodes Arrow columns into records.

A record is a row of *pieces*, and a piece is a value of an Arrow array: a key, a value, or one of the few different
lengths, deltas and constants that stand between them. All arrays are laid next to each other once (a copy of a few
nanoseconds a record), and ``take`` picks from that: it is four times as fast as joining element by element, and a table
with the encodings of the numbers that occur spares encoding them row by row. Needs numpy and pyarrow.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka.record._varint import encode_varint, varint_size

__all__ = ["Piece", "Pieces", "Rows", "varint_sizes"]

Array = Any  # neither package is typed well enough to say more

# Numbers that lie closer together than this come from a table, if there are about as many rows.
_TABLE: Final = 8192
# The table of offset deltas begins with 0 always, so the one used last serves for the next batches.
_DELTAS: Final = 16_384
_WORTH_A_TABLE: Final = 1024


class Piece(NamedTuple):
    """What each row has at one place."""

    at: Array | int
    """Which value of all arrays."""
    sizes: Array | int
    """How many bytes that is."""


class Taken(NamedTuple):
    """Rows of pieces in one buffer."""

    data: memoryview
    ends: Array
    """Where each piece begins, and after the last where it ends."""


class Rows:
    """Rows of pieces, to be laid into buffers, any number of them at a time."""

    def __init__(self, every: Array, which: Array) -> None:
        self._every = every
        self._which = which

    @property
    def width(self) -> int:
        """Of how many pieces a row is made."""
        return int(self._which.shape[1])

    def take(self, start: int, stop: int) -> Taken:
        """Return the pieces of some rows, one after the other."""
        taken = pc.take(self._every, pa.array(self._which[start:stop].ravel()), boundscheck=False)
        _, bounds, data = taken.buffers()
        ends = np.frombuffer(bounds or bytes(4), np.int32)[taken.offset : taken.offset + len(taken) + 1]
        return Taken(memoryview(data or b"").cast("B").toreadonly(), ends)


class Pieces:
    """The arrays that rows of pieces are taken from.

    >>> pieces = Pieces(2)
    >>> value = pieces.add([pa.array([b"a", b"bc"])])
    >>> row = [pieces.constant(b"<"), Piece(value + np.arange(2), np.array([1, 2])), pieces.numbers(np.array([5, 6]))]
    >>> bytes(pieces.rows(row).take(0, 2).data)
    b'<a\\n<bc\\x0c'
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._arrays: list[Array] = [pa.array([b""], pa.binary())]
        self._values = 1

    #: Where an empty value is.
    EMPTY: Final = 0

    def add(self, arrays: list[Array]) -> int:
        """Add binary arrays that belong together; return where their first value is."""
        at = self._values
        self._arrays += arrays
        self._values += sum(map(len, arrays))
        return at

    def constant(self, data: bytes) -> Piece:
        """Return a piece that is the same in all rows."""
        return Piece(self.add([pa.array([data], pa.binary())]), len(data))

    def numbers(self, numbers: Array, behind: bytes = b"") -> Piece:
        """Return the encodings of a number for each row, each with the same bytes behind it."""
        low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
        if low == high:
            return self.constant(encode_varint(low) + behind)
        span = high - low + 1
        if span > _TABLE or span > 4 * len(numbers):
            array, sizes = _encoded(numbers, behind)
            return Piece(self.add([array]) + np.arange(len(numbers), dtype=np.int32), sizes)
        array, sizes = _encoded(np.arange(low, high + 1, dtype=np.int64), behind)
        which = (numbers - low).astype(np.int32)
        return Piece(which + self.add([array]), sizes[which])

    def deltas(self, numbers: Array, behind: bytes = b"") -> Piece:
        """Return the encodings of offset deltas, which begin with 0 in each batch."""
        count = int(numbers.max()) + 1 if len(numbers) else 0
        if _WORTH_A_TABLE < count <= _DELTAS:
            array, sizes = _deltas(behind)
        else:
            array, sizes = _encoded(np.arange(max(count, 1), dtype=np.int64), behind)
        return Piece(numbers + self.add([array.slice(0, count)]), sizes[numbers])

    def rows(self, row: list[Piece]) -> Rows:
        """Return the rows that are made of these pieces."""
        which = np.empty((self._rows, len(row)), np.int32)
        for place, piece in enumerate(row):
            which[:, place] = piece.at
        return Rows(pa.concat_arrays(self._arrays), which)


def varint_sizes(numbers: Array) -> Array:
    """Return how many bytes the encoding of each number takes; none is negative.

    >>> varint_sizes(np.array([0, 63, 64, 8191, 8192])).tolist()
    [1, 1, 2, 2, 3]
    """
    greatest = int(numbers.max()) if len(numbers) else 0
    least = int(numbers.min()) if len(numbers) else 0
    sizes = np.full(len(numbers), varint_size(least), np.int32)
    for size in range(varint_size(least), varint_size(greatest)):
        sizes += numbers >= 1 << (7 * size - 1)
    return sizes


@lru_cache(maxsize=4)
def _deltas(behind: bytes) -> tuple[Array, Array]:
    return _encoded(np.arange(_DELTAS, dtype=np.int64), behind)


def _encoded(numbers: Array, behind: bytes) -> tuple[Array, Array]:
    """Return an array of the encodings with some bytes behind each, and their sizes."""
    count = len(numbers)
    numbers = numbers.astype(np.int64, copy=False)
    zigzag = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    width = varint_size(int(zigzag.max()) >> 1)
    matrix = np.empty((count, width + len(behind)), np.uint8)
    counts = np.ones(matrix.shape, np.bool_)
    for place in range(width):
        if place:
            counts[:, place] = zigzag > 0
        matrix[:, place] = zigzag & np.uint64(0x7F)
        zigzag = zigzag >> np.uint64(7)
        if place < width - 1:
            matrix[:, place] |= (zigzag > 0).astype(np.uint8) << 7
    matrix[:, width:] = np.frombuffer(behind, np.uint8)
    sizes = counts.sum(axis=1, dtype=np.int32)
    bounds = np.zeros(count + 1, np.int32)
    np.cumsum(sizes, out=bounds[1:])
    data = matrix[counts]
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(bounds), pa.py_buffer(data)]), sizes
