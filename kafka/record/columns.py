"""Records as columns: for users who take them by the hundred thousand and need no object for each.

A :class:`Columns` has the offsets, timestamps, keys, values and headers of consecutive records as flat buffers. It
turns into Arrow without a copy. :meth:`kafka.record.batch_reader.RecordReader.columns` yields them.

They are filled by :mod:`kafka.record.numpy_decoder` where numpy and pyarrow are installed, and by way of rows
elsewhere; the contents are equal.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from kafka.record.consumer_record import ConsumerRecord
from kafka.record.header import BatchHeader, Buffer, corrupt
from kafka.record.record_decoder import decode_rows


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
        data = b"".join(filter(None, values))
        code = "i" if len(data) < 2**31 else "q"
        if None not in values:
            return cls(data, packed(code, (0, *accumulate(map(len, values)))))  # type: ignore[arg-type]
        valid = [value is not None for value in values]
        if not any(valid):
            return cls.nulls(len(values))
        return cls(data, packed(code, (0, *accumulate([len(value or b"") for value in values]))), valid)

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
        """Wrap an Arrow array of type binary or large_binary, that has no offset; nothing is copied.

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


@dataclass(frozen=True)
class HeaderColumn:
    """The headers of all records; the ones of record ``i`` are ``keys`` and ``values`` at ``starts[i]:starts[i + 1]``.

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


# Filling columns.


class BatchRecords(NamedTuple):
    """Records of one batch: ``count`` of them in ``data[start:end]``."""

    data: bytes
    start: int
    end: int
    count: int  # type: ignore[assignment] # hides tuple.count
    header: BatchHeader


def column_decoder(numpy: bool | None = None) -> Callable[[Sequence[BatchRecords]], Columns]:
    """Return the function that turns batches into columns: with numpy and pyarrow where both can be imported.

    ``numpy`` requires or rules out these packages.

    >>> column_decoder(numpy=False).__module__
    'kafka.record.columns'
    """
    if numpy is not False:
        try:
            from kafka.record import numpy_decoder
        except Exception:  # a package that is broken, as after half an upgrade, raises whatever it likes
            if numpy:
                raise
        else:
            return numpy_decoder.from_batches
    return from_batches


def from_batches(batches: Sequence[BatchRecords]) -> Columns:
    """Decode the records of several batches into columns, by way of rows.

    >>> len(from_batches([]))
    0
    """
    rows: list[ConsumerRecord] = []
    for data, start, end, count, header in batches:
        position = decode_rows(data, start, end, count, header, "", 0, rows)
        if position != end:
            raise corrupt(f"{end - position} bytes after the last record", header.base_offset)
    return from_rows(rows)


def from_rows(rows: Sequence[ConsumerRecord]) -> Columns:
    """Turn records into columns.

    >>> len(from_rows([]))
    0
    """
    if not rows:
        empty = BinaryColumn.from_values(())
        return Columns(array("q"), array("q"), array("b"), empty, empty, HeaderColumn.none(0))
    _, _, offsets, timestamps, types, keys, values, _, _, _, headers, _, _ = zip(*rows, strict=True)
    if None in types:  # format v0
        timestamps = tuple([-1 if timestamp is None else timestamp for timestamp in timestamps])
        types = tuple([-1 if kind is None else kind for kind in types])
    try:
        stamps = packed("q", timestamps)
    except struct.error:
        raise corrupt("a timestamp beyond 64 bits", rows[0].offset) from None
    return Columns(
        packed("q", offsets),
        stamps,
        packed("b", types),
        BinaryColumn.from_values(keys),
        BinaryColumn.from_values(values),
        HeaderColumn.from_rows(headers) if any(headers) else HeaderColumn.none(len(rows)),
    )
