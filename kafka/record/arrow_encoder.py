"""Batches out of Arrow columns: keys, values, timestamps and headers encoded with no Python object per record.

Rows become pieces (see Gathering), some megabytes of them at a time. The buffers that these are laid into are cut where
batches end. Rows may be taken in another order than they have, which is how records that go to several partitions are
encoded at once, with no column divided before. A batch keeps memory for itself alone: it may wait for a leader long
after its neighbours have left. Needs numpy and pyarrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka.errors import IllegalArgumentError, RecordTooLargeError
from kafka.record.batch_builder import BatchBuilder, Data
from kafka.record.header import V2_HEADER_SIZE
from kafka.record.varint import encode_varint, varint_size

__all__ = ["binary_column", "encode_arrow", "encode_divided", "larger_chunks"]

Array = Any  # neither package is typed well enough to say more

# Bytes that are encoded at a time: few enough for caches, and short-lived; enough for a few calls not to count.
_AT_ONCE: Final = 8 << 20
# Bytes in one buffer: a batch or, of small ones, some.
_IN_ONE_BUFFER: Final = 256 << 10
# Of how many times its own size a batch may keep a buffer.
_MOST_KEPT: Final = 4
_MOST: Final = (1 << 31) - (1 << 10)
# Chunks with fewer rows than the first number cost more than their rows; they are put together up to the second.
_SMALL_CHUNK: Final = 512
_LARGER_CHUNK: Final = 4096


def encode_arrow(
    values: Array,
    keys: Array | None = None,
    *,
    timestamps: Array | int,
    headers: Array | None = None,
    limit: int = 1 << 20,
    codec: int | str | None = None,
    level: int | None = None,
) -> Iterator[BatchBuilder]:
    """Yield full, unsealed batches of the records, each of at most ``limit`` bytes before compression.

    ``values`` and ``keys`` are arrays (or chunked arrays) of binary or string; ``timestamps`` one number for all, or an
    array of int64 milliseconds or of timestamps; ``headers`` an array of lists of structs of key and value. A record
    that alone exceeds the limit gets a batch to itself, as with `BatchBuilder.append`.

    >>> values = pa.array([b"a", None, b"c"])
    >>> [batch.count for batch in encode_arrow(values, timestamps=1700000000000)]
    [3]
    """
    columns = _columns(values, keys, headers, timestamps, limit)
    totals = np.cumsum(columns.bounds, dtype=np.int64)
    # Each portion ends where a batch does, so that all batches are full.
    for window in _portions(_cuts(totals, [columns.length], limit - V2_HEADER_SIZE), totals, _AT_ONCE):
        some = columns.slice(window[0].start, window[-1].stop)
        for _, batch in _encode(some, None, [some.length], limit, codec, level):
            yield batch


def encode_divided(
    values: Array,
    keys: Array | None = None,
    *,
    timestamps: Array | int,
    groups: Array,
    headers: Array | None = None,
    limit: int = 1 << 20,
    codec: int | str | None = None,
    level: int | None = None,
) -> Iterator[tuple[int, BatchBuilder]]:
    """Yield batches as `encode_arrow` does, each with the number of the group that its records belong to.

    ``groups`` has a number from 0 on for each record. In each group records keep their order. A batch is as full
    as the records of its group in one portion allow.

    >>> batches = encode_divided(pa.array([b"a", b"b", b"c"]), timestamps=1700000000000, groups=np.array([1, 0, 1]))
    >>> [(group, batch.count) for group, batch in batches]
    [(0, 1), (1, 2)]
    """
    columns = _columns(values, keys, headers, timestamps, limit)
    _same_length(groups, columns.length, "groups")
    for _, start, stop in _cuts(np.cumsum(columns.bounds, dtype=np.int64), [columns.length], _AT_ONCE):
        some = groups[start:stop]
        ends = np.cumsum(np.bincount(some)).tolist()
        # Small integers are sorted digit by digit, several times as fast.
        order = np.argsort(some.astype(np.int16) if len(ends) < 1 << 15 else some, kind="stable").astype(np.int32)
        yield from _encode(columns.slice(start, stop), order, ends, limit, codec, level)


class _Columns(NamedTuple):
    """Columns of equal length: arrays in pieces of binary, sizes with -1 for null."""

    length: int
    values: Array
    value_sizes: Array
    keys: Array | None
    key_sizes: Array | None
    tails: Array | None
    """Encoded headers."""
    tail_sizes: Array | None
    stamps: Array | int
    bounds: Array
    """An upper bound of the bytes of each record."""

    def slice(self, start: int, stop: int) -> _Columns:
        """Return some of the rows."""
        if (start, stop) == (0, self.length):
            return self
        some = slice(start, stop)
        count = stop - start
        return _Columns(
            count,
            self.values.slice(start, count),
            self.value_sizes[some],
            None if self.keys is None else self.keys.slice(start, count),
            None if self.key_sizes is None else self.key_sizes[some],
            None if self.tails is None else self.tails.slice(start, count),
            None if self.tail_sizes is None else self.tail_sizes[some],
            self.stamps if isinstance(self.stamps, int) else self.stamps[some],
            self.bounds[some],
        )


class _Cut(NamedTuple):
    """As many rows as go together, a batch to be: the group they belong to, and their place in the order."""

    group: int
    start: int
    stop: int


def _encode(
    columns: _Columns, order: Array | None, ends: list[int], limit: int, codec: int | str | None, level: int | None
) -> Iterator[tuple[int, BatchBuilder]]:
    """Yield the batches of the groups that end at these places of the order."""
    totals = np.cumsum(columns.bounds if order is None else columns.bounds[order], dtype=np.int64)
    cuts = list(_cuts(totals, ends, limit - V2_HEADER_SIZE))
    stamps = columns.stamps if isinstance(columns.stamps, int) or order is None else columns.stamps[order]
    rows = _records(columns, order, cuts, stamps)
    for portion in _portions(cuts, totals, _IN_ONE_BUFFER):
        begin = portion[0].start
        taken = rows.take(begin, portion[-1].stop)
        for group, start, stop in portion:
            first, last = (int(taken.ends[(at - begin) * rows.width]) for at in (start, stop))
            body: Data = taken.data[first:last]
            if _MOST_KEPT * len(body) < len(taken.data):
                body = bytes(body)
            base = greatest = stamps
            if not isinstance(stamps, int):
                base, greatest = int(stamps[start]), int(stamps[start:stop].max())
            yield group, BatchBuilder.of_records(body, stop - start, base, greatest, limit, codec, level)


def _cuts(totals: Array, ends: list[int], room: int) -> Iterator[_Cut]:
    """Yield cuts that are as full as may be, given the running total of the rows' upper bounds."""
    start = 0
    for group, end in enumerate(ends):
        while start < end:
            before = int(totals[start - 1]) if start else 0
            stop = start + int(np.searchsorted(totals[start:end], before + room, side="right"))
            stop = max(start + 1, stop)
            yield _Cut(group, start, stop)
            start = stop


def _portions(cuts: Iterable[_Cut], totals: Array, size: int) -> Iterator[list[_Cut]]:
    """Yield batches in portions of at least ``size`` bytes."""
    some: list[_Cut] = []
    before: int | None = None
    for cut in cuts:
        if before is None:
            before = int(totals[cut.start - 1]) if cut.start else 0
        some.append(cut)
        if int(totals[cut.stop - 1]) - before >= size:
            yield some
            some, before = [], None
    if some:
        yield some


# Bringing the columns into form.


def _columns(values: Array, keys: Array | None, headers: Array | None, timestamps: Array | int, limit: int) -> _Columns:
    values = binary_column(values)
    count = len(values)
    keys = None if keys is None else _same_length(binary_column(keys), count, "keys")
    tails = None if headers is None else _same_length(_tails(headers), count, "headers")
    stamps = _timestamps(timestamps, count)
    value_sizes = _sizes(values)
    key_sizes = None if keys is None else _sizes(keys)
    tail_sizes = None if tails is None else _sizes(tails)
    # Attributes, timestamp delta, length of the key, and the value with its length. A record that is too large for any
    # broker may have more bytes than fit 32 bits.
    bodies = np.maximum(value_sizes, 0).astype(np.int64) + varint_sizes(np.maximum(value_sizes, 1))
    bodies += 1 + (1 if isinstance(stamps, int) else 10) + 1
    if key_sizes is not None:
        bodies += np.maximum(key_sizes, 0)
        bodies += varint_sizes(np.maximum(key_sizes, 1)) - 1
    bodies += 1 if tail_sizes is None else tail_sizes
    # The offset delta: of how many records can a batch be?
    bodies += varint_size(min(count, limit // int(bodies.min()))) if count else 0
    bodies += varint_sizes(bodies)
    if count and int(bodies.max()) > _MOST:
        raise RecordTooLargeError(f"a record of {int(bodies.max())} bytes does not fit a batch")
    return _Columns(count, values, value_sizes, keys, key_sizes, tails, tail_sizes, stamps, bodies)


def binary_column(column: Array) -> Array:
    """Return keys or values as a chunked array of type binary; raises IllegalArgumentError for other kinds.

    >>> binary_column(pa.array(["a", None])).to_pylist()
    [b'a', None]
    """
    if not isinstance(column, pa.ChunkedArray):
        column = pa.chunked_array([column])
    if pa.types.is_null(column.type):
        return pa.chunked_array([pa.nulls(len(column), pa.binary())])
    if column.type != pa.binary():
        try:
            column = column.cast(pa.binary())
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as err:
            raise IllegalArgumentError(f"a column of {column.type} cannot be keys or values: {err}") from err
    return column


def larger_chunks(column: Array) -> Array:
    """Return a chunked array with its chunks put together where they are many and small, else as it is.

    >>> larger_chunks(pa.chunked_array([[at] for at in range(1000)])).num_chunks
    1
    """
    count = len(column)
    if column.num_chunks * _SMALL_CHUNK <= count or column.num_chunks < 2:
        return column
    try:
        parts = [column.slice(start, _LARGER_CHUNK).combine_chunks() for start in range(0, count, _LARGER_CHUNK)]
    except pa.ArrowInvalid:  # values of some megabytes each, too many for one array
        return column
    return pa.chunked_array(parts, column.type)


def _same_length(column: Array, count: int, name: str) -> Array:
    if len(column) != count:
        raise IllegalArgumentError(f"{len(column)} {name} for {count} values")
    return column


def _timestamps(timestamps: Array | int, count: int) -> Array | int:
    if isinstance(timestamps, int | np.integer):
        timestamps = int(timestamps)
        if not -(2**63) <= timestamps < 2**63:
            raise IllegalArgumentError(f"timestamp {timestamps} does not fit 64 bits")
        return timestamps
    if isinstance(timestamps, pa.ChunkedArray):
        timestamps = timestamps.combine_chunks()
    if isinstance(timestamps, pa.Array):
        if timestamps.null_count:
            raise IllegalArgumentError("timestamps must not be null")
        if pa.types.is_timestamp(timestamps.type):
            timestamps = timestamps.cast(pa.timestamp("ms"), safe=False)
        timestamps = timestamps.cast(pa.int64()).to_numpy()
    stamps = _same_length(np.asarray(timestamps, np.int64), count, "timestamps")
    if count and int(stamps.max()) - int(stamps.min()) >= 2**63:
        raise IllegalArgumentError("timestamps are further apart than 64 bits can tell")
    return stamps


def _sizes(column: Array) -> Array:
    """Return the size of each value, -1 for null."""
    sizes = pc.binary_length(column)
    if sizes.null_count:
        sizes = sizes.fill_null(-1)
    return sizes.to_numpy()


# Encoding.


def _records(columns: _Columns, rows: Array | None, cuts: list[_Cut], stamps: Array | int) -> RecordRows:
    """Return the records, batch by batch."""
    total = columns.length
    pieces = GatherSource(total)
    starts = np.array([cut.start for cut in cuts], np.int32)
    first = np.repeat(starts, [cut.stop - cut.start for cut in cuts])
    behind_delta, middle = _keys_and_lengths(pieces, columns, rows)
    value = _content(pieces, columns.values, columns.value_sizes, rows)
    deltas = pieces.deltas(np.arange(total, dtype=np.int32) - first, behind_delta)
    parts = [deltas, *middle, value, _ending(pieces, columns, rows)]
    stamp = b"\0"
    if not isinstance(stamps, int):
        parts.insert(0, pieces.numbers(stamps - stamps[first]))
        stamp = b""
    bodies = np.zeros(total, np.int32)
    bodies += 1 + len(stamp)  # attributes, and the timestamp where all have the same
    for part in parts:
        bodies += part.sizes
    parts.insert(0, pieces.numbers(bodies, b"\0" + stamp))
    return pieces.rows(parts)


def _keys_and_lengths(pieces: GatherSource, columns: _Columns, rows: Array | None) -> tuple[bytes, list[GatherColumn]]:
    """Return what stands between offset delta and value.

    As far as it is the same for all it can stand behind the delta, in one piece with it.
    """
    behind, parts = b"", []
    if columns.key_sizes is None:
        behind = encode_varint(-1)
    else:
        size = _only(columns.key_sizes)
        if size is None:
            parts.append(pieces.numbers(_in_order(columns.key_sizes, rows)))
        else:
            behind = encode_varint(size)
        if size is None or size > 0:
            parts.append(_content(pieces, columns.keys, columns.key_sizes, rows))
    size = _only(columns.value_sizes)
    if size is not None and not parts:
        return behind + encode_varint(size), parts
    parts.append(pieces.numbers(_in_order(columns.value_sizes, rows)))
    return behind, parts


def _ending(pieces: GatherSource, columns: _Columns, rows: Array | None) -> GatherColumn:
    if columns.tail_sizes is None:
        return pieces.constant(b"\0")  # no headers
    return _content(pieces, columns.tails, columns.tail_sizes, rows)


def _content(pieces: GatherSource, column: Array, sizes: Array, rows: Array | None) -> GatherColumn:
    """Return the piece that is a column's value; nothing where there is none, whatever the array has there."""
    start = pieces.add(column.chunks)
    at = np.arange(start, start + len(column), dtype=np.int32) if rows is None else rows + np.int32(start)
    sizes = _in_order(sizes, rows)
    if column.null_count:
        at = np.where(sizes < 0, GatherSource.EMPTY, at)
        sizes = np.maximum(sizes, 0)
    return GatherColumn(at, sizes)


def _in_order(numbers: Array, rows: Array | None) -> Array:
    return numbers if rows is None else numbers[rows]


def _only(sizes: Array) -> int | None:
    """Return the size that all have; None if they differ."""
    if not len(sizes):
        return None
    low, high = int(sizes.min()), int(sizes.max())
    return low if low == high else None


def _tails(headers: Array) -> Array | None:
    """Return the encoded headers of each record, their number first."""
    if not isinstance(headers, pa.ChunkedArray):
        headers = pa.chunked_array([headers])
    kind = headers.type
    if pa.types.is_null(kind):
        return pa.chunked_array([pa.array([b"\0"] * len(headers), pa.binary())])
    if not hasattr(kind, "value_type") or not pa.types.is_struct(kind.value_type) or pa.types.is_map(kind):
        raise IllegalArgumentError(f"a column of {kind} cannot be headers: they are lists of structs of key and value")
    return pa.chunked_array([_encoded_headers(part) for part in larger_chunks(headers).chunks], pa.binary())


def _encoded_headers(headers: Array) -> Array:
    counts = headers.value_lengths().fill_null(0).to_numpy().astype(np.int32)
    flat = headers.flatten()
    names, contents = (binary_column(flat.field(name)) for name in ("key", "value"))
    if flat.null_count or names.null_count:
        raise IllegalArgumentError("a header without a key")
    pieces = GatherSource(len(flat))
    name_sizes, content_sizes = _sizes(names), _sizes(contents)
    row = [
        pieces.numbers(name_sizes),
        _content(pieces, names, name_sizes, None),
        pieces.numbers(content_sizes),
        _content(pieces, contents, content_sizes, None),
    ]
    taken = pieces.rows(row).take(0, len(flat))
    # The headers of one record are next to each other, so joining them is a matter of other bounds.
    firsts = np.concatenate([[0], np.cumsum(counts)]) * len(row)
    bounds = np.ascontiguousarray(taken.ends[firsts], np.int32)
    grouped = pa.Array.from_buffers(pa.binary(), len(counts), [None, pa.py_buffer(bounds), pa.py_buffer(taken.data)])
    pieces = GatherSource(len(counts))
    row = [pieces.numbers(counts), _content(pieces, pa.chunked_array([grouped]), np.diff(bounds), None)]
    both = pieces.rows(row).take(0, len(counts))
    bounds = np.ascontiguousarray(both.ends[::2], np.int32)
    return pa.Array.from_buffers(pa.binary(), len(counts), [None, pa.py_buffer(bounds), pa.py_buffer(both.data)])


# Gathering: putting many small pieces of bytes one after the other with one call.
#
# A record is a row of pieces, and a piece is a value of an Arrow array: a key, a value, or one of the few different
# lengths, deltas and constants that stand between them. All arrays are laid next to each other once (a copy of a few
# nanoseconds a record), and `take` picks from that: it is four times as fast as joining element by element, and a table
# with the encodings of the numbers that occur spares encoding them row by row.


# Numbers that lie closer together than this come from a table, if there are about as many rows.
_TABLE: Final = 8192


class GatherColumn(NamedTuple):
    """What each row has at one place."""

    at: Array | int
    """Which value of all arrays."""
    sizes: Array | int
    """How many bytes that is."""


class GatheredBytes(NamedTuple):
    """Rows of pieces in one buffer."""

    data: memoryview
    ends: Array
    """Where each piece begins, and after the last where it ends."""


class RecordRows:
    """Rows of pieces, to be laid into buffers, any number of them at a time."""

    def __init__(self, every: Array, which: Array) -> None:
        self._every = every
        self._which = which

    @property
    def width(self) -> int:
        """Of how many pieces a row is made."""
        return int(self._which.shape[1])

    def take(self, start: int, stop: int) -> GatheredBytes:
        """Return the pieces of some rows, one after the other."""
        taken = pc.take(self._every, pa.array(self._which[start:stop].ravel()), boundscheck=False)
        _, bounds, data = taken.buffers()
        ends = np.frombuffer(bounds or bytes(4), np.int32)[taken.offset : taken.offset + len(taken) + 1]
        return GatheredBytes(memoryview(data or b"").cast("B").toreadonly(), ends)


class GatherSource:
    """The arrays that rows of pieces are taken from.

    >>> pieces = GatherSource(2)
    >>> value = pieces.add([pa.array([b"a", b"bc"])])
    >>> values = GatherColumn(value + np.arange(2), np.array([1, 2]))
    >>> row = [pieces.constant(b"<"), values, pieces.numbers(np.array([5, 6]))]
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

    def constant(self, data: bytes) -> GatherColumn:
        """Return a piece that is the same in all rows."""
        return GatherColumn(self.add([pa.array([data], pa.binary())]), len(data))

    def numbers(self, numbers: Array, behind: bytes = b"") -> GatherColumn:
        """Return the encodings of a number for each row, each with the same bytes behind it."""
        low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
        if low == high:
            return self.constant(encode_varint(low) + behind)
        span = high - low + 1
        if span > _TABLE or span > 4 * len(numbers):
            array, sizes = _encoded(numbers, behind)
            return GatherColumn(self.add([array]) + np.arange(len(numbers), dtype=np.int32), sizes)
        array, sizes = _encoded(np.arange(low, high + 1, dtype=np.int64), behind)
        which = (numbers - low).astype(np.int32)
        return GatherColumn(which + self.add([array]), sizes[which])

    def deltas(self, numbers: Array, behind: bytes = b"") -> GatherColumn:
        """Return the encodings of offset deltas, which begin with 0 in each batch."""
        count = int(numbers.max()) + 1 if len(numbers) else 1
        array, sizes = _encoded(np.arange(count, dtype=np.int64), behind)
        return GatherColumn(numbers + self.add([array]), sizes[numbers])

    def rows(self, row: list[GatherColumn]) -> RecordRows:
        """Return the rows that are made of these pieces."""
        which = np.empty((self._rows, len(row)), np.int32)
        for place, piece in enumerate(row):
            which[:, place] = piece.at
        return RecordRows(pa.concat_arrays(self._arrays), which)


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
