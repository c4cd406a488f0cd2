"""Decoding batches into columns with numpy and pyarrow: no Python object per record.

Three steps. First the positions where records begin and end, by the two bytes that a length takes at most: the only
loop over records here, which takes a step in all batches at a time where they are many. Then each field of all records
is decoded together: bytes at an array of positions, and again for the values that continue. Last Arrow gathers keys and
values: an array of 2n slices of the buffer, every other one of which is a value and the rest the bytes between, and
``take`` of the odd ones.

The result has been checked to the last byte; only headers are left to be parsed, record by record.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from kafka.errors import CorruptRecordError
from kafka.record.columns import BatchRecords, BinaryColumn, Columns, HeaderColumn
from kafka.record.header import LAST_OFFSET, corrupt
from kafka.record.record_decoder import LAST_DELTA, SMALLEST_RECORD, decode_headers, record_ends, record_sizes

Array = Any  # numpy's generic types say less than they cost

_INT32_MAX: Final = 2**31 - 1


def from_batches(batches: Sequence[BatchRecords]) -> Columns:
    """Decode the records of several batches into columns.

    >>> len(from_batches([]))
    0
    """
    batches = _in_one_buffer(batches)
    data = batches[0].data if batches else b""
    starts, ends = record_boundaries(data, batches)
    base_offset = batches[0].header.base_offset if batches else 0
    fields = decode_fields(data, starts, ends, base_offset)
    try:
        headers = _headers(data, fields)
    except CorruptRecordError as err:
        err.offset = base_offset
        raise
    _check_ranges(fields, batches)
    timestamps, kinds = _absolute(fields.timestamp_deltas, fields.offset_deltas, batches)
    return Columns(
        _view(fields.offset_deltas, "q"),
        _view(timestamps, "q"),
        _view(kinds, "b"),
        _gather(data, fields.key_at, fields.key_sizes),
        _gather(data, fields.value_at, fields.value_sizes),
        headers,
    )


def _headers(data: Any, fields: Fields) -> HeaderColumn:
    counts = fields.header_counts
    which = np.flatnonzero(counts)
    if not len(which):
        return HeaderColumn.none(len(counts))
    rows: list[list[tuple[str, bytes | None]]] = [[] for _ in range(len(counts))]
    whole = bytes(data)
    for index in which.tolist():
        rows[index] = headers_of(whole, fields, index)
    return HeaderColumn.from_rows(rows)


def _in_one_buffer(batches: Sequence[BatchRecords]) -> Sequence[BatchRecords]:
    """Return the batches as they are if they lie in one fetched buffer, else in a common copy of theirs."""
    data = batches[0].data if batches else b""
    if all(records.data is data for records in batches):
        return batches
    joined = b"".join(memoryview(records.data)[records.start : records.end] for records in batches)
    pos = 0
    moved = []
    for records in batches:
        size = records.end - records.start
        moved.append(records._replace(data=joined, start=pos, end=pos + size))
        pos += size
    return moved


def _absolute(timestamps: Array, offsets: Array, batches: Sequence[BatchRecords]) -> tuple[Array, Array]:
    """Add each batch's base to its records' offsets, in place; return absolute timestamps and their types."""
    counts = [records.count for records in batches]
    headers = [records.header for records in batches]

    def each(values: list[int], kind: Any) -> Array:
        return np.repeat(np.array(values, kind), counts)

    offsets += each([header.base_offset for header in headers], np.int64)
    kinds = each([header.timestamp_type or 0 for header in headers], np.int8)
    timestamps = timestamps + each([header.base_timestamp for header in headers], np.int64)
    if kinds.any():
        timestamps = np.where(kinds, each([header.max_timestamp for header in headers], np.int64), timestamps)
    return timestamps, kinds


def _check_ranges(fields: Fields, batches: Sequence[BatchRecords]) -> None:
    """Raise where offsets or timestamps do not fit 64 bits when the batch's base is added."""
    deltas = fields.timestamp_deltas
    bases = [base for records in batches for base in (records.header.base_offset, records.header.base_timestamp)]
    if not len(deltas) or max(*map(abs, bases), -int(deltas.min()), int(deltas.max())) < _FAR_BASE:
        return
    first = 0
    for _, _, _, count, header in batches:
        some = slice(first, first + count)
        first += count
        last = header.base_offset + int(fields.offset_deltas[some].max())
        if last > LAST_OFFSET:
            raise corrupt(f"an offset of {last}", header.base_offset)
        timestamps = [header.base_timestamp + int(delta) for delta in (deltas[some].min(), deltas[some].max())]
        if not header.timestamp_type and not -(2**63) <= timestamps[0] <= timestamps[1] < 2**63:
            raise corrupt("a timestamp beyond 64 bits", header.base_offset)


#: Sums of smaller numbers fit 64 bits.
_FAR_BASE: Final = 2**62


def _view(numbers: Array, code: Literal["q", "b"]) -> memoryview[int]:
    """Return an array as a memoryview, so that what users get does not depend on numpy."""
    if not len(numbers):
        return memoryview(b"").cast(code)
    whole: Any = np.ascontiguousarray(numbers)
    view: memoryview[int] = memoryview(whole).cast("B").cast(code)
    return view


def _gather(data: Any, at: Array, sizes: Array) -> BinaryColumn:
    """Copy these slices of the buffer into one."""
    count = len(at)
    missing = sizes < 0
    any_missing = bool(missing.any())
    if any_missing and missing.all():
        return BinaryColumn.nulls(count)
    kind = np.int32 if len(data) <= _INT32_MAX else np.int64
    bounds = np.empty(2 * count + 1, kind)
    bounds[0] = 0
    bounds[1::2] = at
    bounds[2::2] = at + np.maximum(sizes, 0) if any_missing else at + sizes
    binary = pa.binary() if kind is np.int32 else pa.large_binary()
    slices = pa.Array.from_buffers(binary, 2 * count, [None, pa.py_buffer(bounds), pa.py_buffer(data)])
    odd = np.arange(1, 2 * count, 2, dtype=kind)
    wanted = pa.array(odd, mask=missing) if any_missing else pa.array(odd)
    return BinaryColumn.from_arrow(slices.take(wanted))


# Where records begin and end.


def record_boundaries(data: bytes, batches: Sequence[BatchRecords]) -> tuple[Array, Array]:
    r"""Return where the records of all batches begin and end, after checking that they fill their batches.

    >>> from kafka.record.header import BatchHeader
    >>> header = BatchHeader(0, 0, 0, 0, 2, 0, 0, 1, 0, 0, -1, -1, -1, 2)
    >>> record_boundaries(b"\x0c\0\0\0\1\1\0" * 2, [BatchRecords(b"", 0, 14, 2, header)])
    (array([0, 7]), array([ 7, 14]))
    """
    counts = np.array([records.count for records in batches], np.int64)
    firsts = np.array([records.start for records in batches], np.int64)
    lasts = np.array([records.end for records in batches], np.int64)
    found = _ends_side_by_side(data, counts, firsts, lasts)
    if found is None:
        found = []
        for _, start, end, count, header in batches:
            found += record_ends(data, start, end, count, header.base_offset)
    ends = np.array(found, np.int64)
    starts = np.empty_like(ends)
    starts[1:] = ends[:-1]
    starts[np.cumsum(counts) - counts] = firsts
    return starts, ends


#: A step in this many batches at a time costs less than as many steps in one after the other.
_SIDE_BY_SIDE: Final = 128


def _ends_side_by_side(data: bytes, counts: Array, firsts: Array, lasts: Array) -> Array | None:
    """Return the positions after all records, stepping through all batches at a time: a fifth of what columns cost.

    None where these are too few or too different, a record has a length of three bytes, or a batch is damaged.
    """
    if len(counts) < _SIDE_BY_SIDE or counts.max() * len(counts) > 2 * counts.sum():
        return None
    if counts.min() < 1 or (counts * SMALLEST_RECORD > lasts - firsts).any():  # a count that lies takes no memory
        return None
    order = np.argsort(-counts, kind="stable")  # batches with a further record stand in front
    back = np.argsort(order)
    busy = len(order) - np.searchsorted(counts[order][::-1], np.arange(counts.max()), side="right")
    pairs = np.ndarray((len(data) - 1,), ">u2", data, strides=(1,))
    sizes, at = _sizes(), firsts[order]
    found = np.empty((len(busy), len(order)), np.int64)
    try:
        for row, count in zip(found, busy.tolist(), strict=True):
            at = at[:count]
            at = at + sizes[pairs[at]]
            row[:count] = at
    except IndexError:
        return None
    if (found[counts - 1, back] != lasts).any():
        return None
    return found.T[back][np.arange(len(busy)) < counts[:, None]]


@functools.cache
def _sizes() -> Array:
    """Return how long a record is by its first two bytes as one number."""
    return np.array(record_sizes(), np.int64).ravel()


# The fields.


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
    """Where the number of headers is."""
    ends: Array


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
    every = np.frombuffer(data, np.uint8)
    try:
        length, at = varints(every, starts)
        right = at + length == ends
        timestamps, at = varints(every, at + 1)
        offsets, at = varints(every, at)
        right &= (offsets >= 0) & (offsets <= LAST_DELTA)
        key_sizes, key_at = varints(every, at)
        at, right = _past(key_at, key_sizes, ends, right)
        value_sizes, value_at = varints(every, at)
        at, right = _past(value_at, value_sizes, ends, right)
        header_counts, after = varints(every, at)
        right &= (header_counts > 0) | ((after == ends) & (header_counts == 0))
    except (IndexError, CorruptRecordError) as err:
        raise corrupt(getattr(err, "reason", None) or "the records are cut off", base_offset) from None
    if not right.all():
        raise corrupt("a record does not end where its length says", base_offset)
    return Fields(timestamps, offsets, key_at, key_sizes, value_at, value_sizes, header_counts, at, ends)


def _past(at: Array, sizes: Array, ends: Array, right: Array) -> tuple[Array, Array]:
    """Return the positions after fields of these sizes, held within the record; and which records are right so far."""
    right &= (sizes >= -1) & (sizes < ends - at)
    return np.where(right, at + np.maximum(sizes, 0), 0), right


def headers_of(data: bytes, fields: Fields, index: int) -> list[tuple[str, bytes | None]]:
    """Parse the headers of one record that has some.

    >>> data = b"\\x14\\0\\0\\0\\1\\1\\2\\2a\\x02b"
    >>> headers_of(data, decode_fields(data, np.array([0]), np.array([11]), 0), 0)
    [('a', b'b')]
    """
    end = int(fields.ends[index])
    try:
        headers, _, behind = decode_headers(data, int(fields.headers_at[index]), end)
    except (IndexError, TypeError, CorruptRecordError) as err:
        raise corrupt(getattr(err, "reason", None) or "headers that are cut off") from None
    if behind != end:
        raise corrupt("a record does not end where its length says")
    return headers
