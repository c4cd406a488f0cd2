"""Records as columns: for users who take them by the hundred thousand and need no object for each.

A :class:`Columns` has the offsets, timestamps, keys, values and headers of consecutive records as flat buffers. It
turns into Arrow without a copy. :meth:`kafka.record.batch_reader.RecordReader.columns` yields them.

They are filled by :mod:`kafka.record._columns_numpy` where numpy and pyarrow are installed (5 million records of 100
bytes a second and more) and by :mod:`kafka.record._columns_plain` elsewhere; the contents are equal.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain, pairwise, repeat
from typing import Any, Final

from kafka.record.header import Buffer


class BinaryColumn(Sequence["bytes | None"]):
    """Binary values in one buffer: value ``i`` is ``data[offsets[i]:offsets[i + 1]]``, or None where not valid.

    >>> column = BinaryColumn.from_values([b"ab", None, b"c"])
    >>> bytes(column.data), list(column.offsets), column[1], column[2]
    (b'abc', [0, 2, 2, 3], None, b'c')
    """

    __slots__ = ("_all_null", "_arrow", "data", "offsets", "valid")

    data: Buffer
    offsets: Sequence[int]
    """One more than there are values: an array or memoryview of 32 or 64 bits."""
    valid: Sequence[bool] | None
    """Which values are there; None where all are."""

    def __init__(
        self, data: Buffer, offsets: Sequence[int], valid: Sequence[bool] | None = None, arrow: Any = None
    ) -> None:
        self.data = data
        self.offsets = offsets
        self.valid = valid
        self._arrow = arrow
        self._all_null = False

    @classmethod
    def from_values(cls, values: Sequence[bytes | None]) -> BinaryColumn:
        """Gather values.

        >>> len(BinaryColumn.from_values([b"a"] * 3))
        3
        """
        sizes = [-1 if value is None else len(value) for value in values]
        return cls.from_sizes(b"".join(filter(None, values)), [sizes])

    @classmethod
    def from_sizes(cls, data: bytes, sizes: Sequence[list[int] | tuple[int, int]]) -> BinaryColumn:
        """Divide data into values: lists of their sizes (-1 for null), or a size with how many have it.

        >>> list(BinaryColumn.from_sizes(b"aabb", [(2, 1), [-1, 2]]))
        [b'aa', None, b'bb']
        """
        parts = [repeat(*part) if isinstance(part, tuple) else part for part in sizes]
        counts = [part[1] if isinstance(part, tuple) else len(part) for part in sizes]
        alike = {part[0] if isinstance(part, tuple) else None for part in sizes}
        size = alike.pop() if len(alike) == 1 else None
        if size == -1:
            return cls.nulls(sum(counts))
        code = "i" if len(data) < 2**31 else "q"
        if size is not None:
            return cls(data, _multiples(code, size, sum(counts)))
        valid = None
        flat = list(chain.from_iterable(parts))
        if -1 in flat:
            valid = [one >= 0 for one in flat]
            flat = [max(one, 0) for one in flat]
        return cls(data, packed(code, (0, *accumulate(flat))), valid)

    @classmethod
    def nulls(cls, count: int) -> BinaryColumn:
        """Return a column of nothing but nulls.

        >>> list(BinaryColumn.nulls(2))
        [None, None]
        """
        column = cls(b"", array("i", bytes(4 * (count + 1))), [False] * count)
        column._all_null = True
        return column

    @classmethod
    def from_arrow(cls, values: Any) -> BinaryColumn:
        """Wrap an Arrow array of type binary or large_binary, without an offset of its own; nothing is copied.

        >>> import pyarrow
        >>> list(BinaryColumn.from_arrow(pyarrow.array([b"a", None])))
        [b'a', None]
        """
        _, offsets, data = values.buffers()
        bounds = memoryview(offsets)
        return cls(
            memoryview(data) if data is not None else b"",
            (bounds.cast("i") if str(values.type) == "binary" else bounds.cast("q"))[: len(values) + 1],
            values.is_valid().to_pylist() if values.null_count else None,
            values,
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError("no such record")
        if self.valid is not None and not self.valid[index]:
            return None
        return bytes(self.data[self.offsets[index] : self.offsets[index + 1]])

    def __iter__(self) -> Iterator[bytes | None]:
        data = bytes(self.data)
        ends = list(self.offsets)
        for index, (start, end) in enumerate(pairwise(ends)):
            yield data[start:end] if self.valid is None or self.valid[index] else None

    def to_arrow(self) -> Any:
        """Return an Arrow array over the same buffers.

        >>> BinaryColumn.from_values([b"a", None]).to_arrow().to_pylist()
        [b'a', None]
        """
        if self._arrow is None:
            self._arrow = self._make_arrow()
        return self._arrow

    def _make_arrow(self) -> Any:
        import pyarrow as pa

        if self._all_null:
            return pa.nulls(len(self), pa.binary())
        wide = memoryview(self.offsets).itemsize == 8  # type: ignore[arg-type] # all are buffers
        kind = pa.large_binary() if wide else pa.binary()
        validity = None
        if self.valid is not None:
            validity = pa.array(list(self.valid), pa.bool_()).buffers()[1]
        buffers = [validity, pa.py_buffer(self.offsets), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(kind, len(self), buffers)


def packed(code: str, numbers: Sequence[int]) -> array[int]:
    """Return an array of numbers, faster than ``array`` makes it.

    >>> packed("q", range(3))
    array('q', [0, 1, 2])
    """
    made: array[int] = array(code)
    made.frombytes(struct.pack(f"={len(numbers)}{code}", *numbers))
    return made


def _multiples(code: str, size: int, count: int) -> array[int]:
    """Return the first multiples of a size, from 0 to ``count`` times."""
    if code == "i" and count < _KEPT and size * _KEPT < 2**31:
        return _kept_multiples(size)[: count + 1]
    return packed(code, range(0, size * count + 1, size) if size else (0,) * (count + 1))


_KEPT: Final = 1 << 17


@lru_cache(maxsize=2)  # 0.5 MB each
def _kept_multiples(size: int) -> array[int]:
    return packed("i", range(0, size * _KEPT, size) if size else (0,) * _KEPT)


@dataclass(frozen=True)
class HeaderColumn:
    """The headers of all records: those of record ``i`` are ``keys`` and ``values`` at ``starts[i]:starts[i + 1]``.

    >>> headers = HeaderColumn.from_rows([[("a", b"1")], []])
    >>> list(headers.starts), list(headers.keys), headers[0]
    ([0, 1, 1], [b'a'], [('a', b'1')])
    """

    starts: Sequence[int]
    keys: BinaryColumn
    values: BinaryColumn

    @classmethod
    def from_rows(cls, rows: Sequence[Sequence[tuple[str, bytes | None]]]) -> HeaderColumn:
        """Gather the headers of records.

        >>> len(HeaderColumn.from_rows([[], []]).keys)
        0
        """
        starts = packed("i", (0, *accumulate(map(len, rows))))
        flat = [header for row in rows for header in row]
        keys = BinaryColumn.from_values([key.encode() for key, _ in flat])
        return cls(starts, keys, BinaryColumn.from_values([value for _, value in flat]))

    @classmethod
    def none(cls, count: int) -> HeaderColumn:
        """Return the column of records without headers.

        >>> HeaderColumn.none(2)[1]
        []
        """
        empty = BinaryColumn(b"", array("i", [0]))
        return cls(array("i", bytes(4 * (count + 1))), empty, empty)

    def __getitem__(self, index: int) -> list[tuple[str, bytes | None]]:
        span = range(self.starts[index], self.starts[index + 1])
        return [(self.keys[at].decode(), self.values[at]) for at in span]

    def to_arrow(self) -> Any:
        """Return an Arrow array of lists of structs of key (string) and value (binary).

        >>> HeaderColumn.from_rows([[("a", b"1")]]).to_arrow().to_pylist()
        [[{'key': 'a', 'value': b'1'}]]
        """
        import pyarrow as pa

        pairs = pa.StructArray.from_arrays(
            [self.keys.to_arrow().cast(pa.string()), self.values.to_arrow()], ["key", "value"]
        )
        return pa.ListArray.from_arrays(
            pa.Array.from_buffers(pa.int32(), len(self.starts), [None, pa.py_buffer(self.starts)]), pairs
        )


@dataclass(frozen=True)
class Columns:
    """Consecutive records of one partition.

    >>> from kafka.record.batch_builder import BatchBuilder
    >>> from kafka.record.batch_reader import RecordReader
    >>> batch = BatchBuilder(limit=1000)
    >>> batch.extend([b"a", b"b", b"c"], 1700000000000)
    3
    >>> columns, = RecordReader(batch.seal().data, "events", 0, 0).columns()
    >>> len(columns), list(columns.offsets), list(columns.values)
    (3, [0, 1, 2], [b'a', b'b', b'c'])
    """

    offsets: Sequence[int]
    """64 bits each."""
    timestamps: Sequence[int]
    """Milliseconds, 64 bits each; -1 where there is none."""
    timestamp_types: Sequence[int]
    """8 bits each: 0 the producer's, 1 the broker's, -1 none (format v0)."""
    keys: BinaryColumn
    values: BinaryColumn
    headers: HeaderColumn

    def __len__(self) -> int:
        return len(self.offsets)

    def to_arrow(self) -> Any:
        """Return a ``pyarrow.RecordBatch``: offset, timestamp (ms, UTC), timestamp_type, key, value, headers.

        >>> from kafka.record._columns_plain import from_rows
        >>> from_rows([]).to_arrow().schema.names
        ['offset', 'timestamp', 'timestamp_type', 'key', 'value', 'headers']
        """
        import pyarrow as pa

        def fixed(kind: Any, column: Sequence[int]) -> Any:
            return pa.Array.from_buffers(kind, len(self), [None, pa.py_buffer(column)])

        return pa.RecordBatch.from_arrays(
            [
                fixed(pa.int64(), self.offsets),
                fixed(pa.timestamp("ms", tz="UTC"), self.timestamps),
                fixed(pa.int8(), self.timestamp_types),
                self.keys.to_arrow(),
                self.values.to_arrow(),
                self.headers.to_arrow(),
            ],
            names=["offset", "timestamp", "timestamp_type", "key", "value", "headers"],
        )
