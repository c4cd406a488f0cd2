"""Avro to Arrow columns: the values of many records are read field by field, each field of all records at once.

`AvroColumns` reads what one schema wrote into the types of a reader's schema, as Avro's resolution says. A value that
is damaged costs itself: it is marked, and read on from the zero bytes behind the data, where every value is empty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kafka.schema_registry.avro import compile_type
from kafka.schema_registry.avro_types import AvroError, AvroType, check_taken, matched_fields, possible_branches
from kafka.schema_registry.avro_values import Values

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

__all__ = ["AvroColumns", "arrow_type"]

#: Values without bytes, such as nulls: a few bytes could announce any number of them.
_MOST_EMPTY: Final = 1000
_SIMPLE: Final = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
_LOGICAL: Final = {
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("us", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
}


def arrow_type(schema: AvroType, within: tuple[AvroType, ...] = ()) -> Any:
    """Return the Arrow type of a schema, which is what Spark's own from_avro gives it.

    A union of null and a type is that type, a union of int and long is long, one of float and double is double, and any
    other a struct of `member0`, `member1` and so on, of which one has a value.
    """
    if schema in within:
        raise AvroError(f"the type {schema.name} contains itself, and columns have no such types")
    within = (*within, schema)
    if schema.kind == "record":
        return pa.struct([pa.field(one.name, arrow_type(one.type, within)) for one in schema.fields])
    if schema.kind == "array":
        return pa.list_(arrow_type(schema.item, within))
    if schema.kind == "map":
        return pa.map_(pa.string(), arrow_type(schema.item, within))
    if schema.kind == "union":
        members = _members(schema)
        if len(members) == 1:
            return arrow_type(members[0], within)
        widest = _widest(members)
        if widest is not None:
            return widest
        return pa.struct([pa.field(f"member{at}", arrow_type(one, within)) for at, one in enumerate(members)])
    if schema.logical == "decimal":
        return pa.decimal128(schema.precision, schema.scale)
    if schema.kind == "fixed":
        return pa.string() if schema.logical == "uuid" else pa.binary()
    return _LOGICAL.get(schema.logical or "", _SIMPLE[schema.kind])


def _members(union: AvroType) -> list[AvroType]:
    """Return the branches of a union that have values."""
    return [one for one in union.branches if one.kind != "null"] or union.branches[:1]


def _widest(members: list[AvroType]) -> Any:
    kinds = {one.kind for one in members}
    if any(one.logical for one in members):
        return None
    if kinds == {"int", "long"}:
        return pa.int64()
    return pa.float64() if kinds == {"float", "double"} else None


#: Reads a field of rows: takes the values, the rows and their places; returns a column and the places behind.
_Read = Callable[[Values, "Numbers", "Numbers"], tuple[Any, "Numbers"]]


class AvroColumns:
    """Reads values of a writer's schema into columns of a reader's.

    >>> from kafka.schema_registry.avro import parse_avro
    >>> columns = AvroColumns(parse_avro('"int"'), parse_avro('["null", "long"]'))
    >>> columns.decode(pa.array([b"\\x02", b"\\x80", b"\\x04"]))[0].to_pylist()
    [1, None, 2]
    """

    def __init__(self, writer: AvroType, reader: AvroType) -> None:
        self.type = arrow_type(reader)
        self._read = _reader(writer, reader)

    def decode(self, values: Any, skip: int = 0) -> tuple[Any, NDArray[np.bool_]]:
        """Return the column of a binary array, and which of its values are damaged.

        Nulls stay null; `skip` bytes of each value stand before what is read.
        """
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        missing = np.asarray(values.is_null().to_numpy(zero_copy_only=False))
        _, offsets, data = values.buffers()
        width = np.dtype(np.int64 if pa.types.is_large_binary(values.type) else np.int32)
        places = np.frombuffer(offsets, width, len(values) + 1, values.offset * width.itemsize).astype(np.int64)
        held = np.frombuffer(data, np.uint8)[: places[-1]] if data is not None else np.zeros(0, np.uint8)
        rows = np.flatnonzero(~missing & (np.diff(places) >= skip))
        state = Values(held, places[1:])
        state.bad[~missing & (np.diff(places) < skip)] = True
        found, at = self._read(state, rows, places[:-1][rows] + skip)
        state.damage(rows, at != places[1:][rows])
        index = np.full(len(values), -1, np.int64)
        index[rows] = np.arange(len(rows))
        return _taken(found, index, missing | state.bad), state.bad


def _taken(column: Any, index: Numbers, missing: NDArray[np.bool_]) -> Any:
    if not missing.any() and len(index) == len(column) and (index == np.arange(len(index))).all():
        return column
    return (
        column.take(pa.array(np.maximum(index, 0), mask=missing)) if len(column) else pa.nulls(len(index), column.type)
    )


def _reader(writer: AvroType, reader: AvroType) -> _Read:
    """Return what reads values of a writer's type as a reader's; AvroError if that can never be."""
    if writer.kind == "union":
        return _from_union(writer, reader)
    if reader.kind == "union":
        return _into_union(writer, reader)
    check_taken(writer, reader)
    if writer.kind != reader.kind:
        return _promoted(writer, reader)
    return _SAME_KIND[reader.kind](writer, reader)


def _reader_or_none(writer: AvroType, reader: AvroType) -> _Read | None:
    try:
        return _reader(writer, reader)
    except AvroError:
        return None


# Simple types…


def _null(_writer: AvroType, _reader_type: AvroType) -> _Read:
    return lambda _values, rows, at: (pa.nulls(len(rows)), at)


def _boolean(_writer: AvroType, _reader_type: AvroType) -> _Read:
    def read(values: Values, rows: Numbers, at: Numbers) -> tuple[Any, Numbers]:
        byte = values.data[at]
        values.damage(rows, byte > 1)
        return pa.array(byte == 1), values.bounded(rows, at + 1)

    return read


def _integer(_writer: AvroType, reader: AvroType) -> _Read:
    kind = arrow_type(reader)
    factor = 1000 if reader.logical in {"timestamp-millis", "local-timestamp-millis"} else 1

    def read(values: Values, rows: Numbers, at: Numbers) -> tuple[Any, Numbers]:
        number, at = values.longs(rows, at)
        if reader.kind == "int":
            values.damage(rows, (number < -(1 << 31)) | (number >= 1 << 31))
            number = number.astype(np.int32)
        return pa.array(number * factor if factor > 1 else number).view(kind), at

    return read


def _floating(writer: AvroType, _reader_type: AvroType) -> _Read:
    kind = np.dtype("<f4" if writer.kind == "float" else "<f8")
    width = np.arange(kind.itemsize)

    def read(values: Values, rows: Numbers, at: Numbers) -> tuple[Any, Numbers]:
        found = values.data[at[:, None] + width].reshape(-1).view(kind)
        return pa.array(found), values.bounded(rows, at + kind.itemsize)

    return read


def _sized(_writer: AvroType, reader: AvroType) -> _Read:
    if reader.logical == "decimal":
        return _decimal(reader, lambda values, rows, at: values.sized(rows, at))
    text = reader.kind == "string"

    def read(values: Values, rows: Numbers, at: Numbers) -> tuple[Any, Numbers]:
        begin, end, at = values.sized(rows, at)
        found = values.slices(begin, end)
        return (_as_text(values, rows, found) if text else found), at

    return read


def _as_text(values: Values, rows: Numbers, found: Any) -> Any:
    try:
        return found.cast(pa.string())
    except pa.ArrowInvalid:  # some value is not UTF-8: it is looked for, and costs itself
        texts: list[str] = []
        for row, one in zip(rows, found.to_pylist(), strict=True):
            text = one.decode(errors="replace")
            values.bad[row] |= text.encode(errors="replace") != one
            texts.append(text)
        return pa.array(texts, pa.string())


def _fixed(_writer: AvroType, reader: AvroType) -> _Read:
    def places(values: Values, rows: Numbers, at: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        end = values.bounded(rows, at + reader.size)
        begin = np.where(end == at + reader.size, at, end)
        return begin, end, end

    if reader.logical == "decimal":
        return _decimal(reader, places)

    def read(values: Values, rows: Numbers, at: Numbers) -> tuple[Any, Numbers]:
        begin, end, at = places(values, rows, at)
        found = values.slices(begin, end)
        if reader.logical == "uuid":
            from uuid import UUID

            found = pa.array([str(UUID(bytes=one)) if len(one) == 16 else None for one in found.to_pylist()])
        return found, at

    return read


def _decimal(reader: AvroType, places: Callable[..., tuple[Numbers, Numbers, Numbers]]) -> _Read:
    kind = arrow_type(reader)
    limit = 10**reader.precision

    def read(values: Values, rows: Numbers, at: Numbers) -> tuple[Any, Numbers]:
        begin, end, at = places(values, rows, at)
        size = end - begin
        values.damage(rows, (size > 16) | (size == 0))
        negative = np.where((values.data[begin] & 0x80) != 0, np.uint8(0xFF), np.uint8(0))
        little = np.empty((len(rows), 16), np.uint8)
        for byte in range(16):  # the bytes are in Arrow the other way round, and filled up with the sign
            little[:, byte] = np.where(byte < size, values.data[np.maximum(end - 1 - byte, 0)], negative)
        found = pa.Array.from_buffers(pa.decimal128(38, reader.scale), len(rows), [None, pa.py_buffer(little)])
        try:
            return found.cast(kind), at
        except pa.ArrowInvalid:
            for number, one in enumerate(found.to_pylist()):
                if abs(one.scaleb(reader.scale)) >= limit:
                    values.bad[rows[number]] = True
                    little[number] = 0
            return found.cast(kind), at

    return read


def _enum(writer: AvroType, reader: AvroType) -> _Read:
    known = {symbol: number for number, symbol in enumerate(reader.symbols)}
    default = known.get(reader.default_symbol or "", -1)
    numbers = np.array([known.get(symbol, default) for symbol in writer.symbols] or [-1], np.int64)
    symbols = pa.array(reader.symbols, pa.string())

    def read(values: Values, rows: Numbers, at: Numbers) -> tuple[Any, Numbers]:
        number, at = values.longs(rows, at)
        wrong = (number < 0) | (number >= len(writer.symbols))
        found = numbers[np.where(wrong, 0, number)]
        values.damage(rows, wrong | (found < 0))
        return symbols.take(pa.array(np.maximum(found, 0))), at

    return read


def _promoted(writer: AvroType, reader: AvroType) -> _Read:
    if reader.kind in {"string", "bytes"}:
        return _sized(writer, reader)
    plain, kind = _SAME_KIND[writer.kind](AvroType(writer.kind), AvroType(writer.kind)), arrow_type(reader)
    base = _SIMPLE[reader.kind]

    def read(values: Values, rows: Numbers, at: Numbers) -> tuple[Any, Numbers]:
        found, at = plain(values, rows, at)
        found = found.cast(base, safe=False)
        if reader.logical in {"timestamp-millis", "local-timestamp-millis"}:
            found = pa.array(found.to_numpy() * 1000)
        return found.view(kind), at

    return read


# Types that have others in them…


def _record(writer: AvroType, reader: AvroType) -> _Read:
    pairs, missing = matched_fields(writer, reader)
    parts = [
        (None, _reader(theirs.type, theirs.type)) if ours is None else (ours.name, _reader(theirs.type, ours.type))
        for theirs, ours in pairs
    ]
    defaults = {field.name: _default(field.type, field.default) for field in missing}
    names = [field.name for field in reader.fields]

    def read(values: Values, rows: Numbers, at: Numbers) -> tuple[Any, Numbers]:
        columns: dict[str, Any] = {}
        for name, one in parts:
            found, at = one(values, rows, at)
            if name is not None:
                columns[name] = found
        for name, default in defaults.items():
            columns[name] = default.take(pa.array(np.zeros(len(rows), np.int64)))
        if not names:
            return pa.array([{}] * len(rows), pa.struct([])), at
        return pa.StructArray.from_arrays([columns[name] for name in names], names), at

    return read


def _default(kind: AvroType, default: Any) -> Any:
    """Return an array with the default of a field, which is in JSON in a schema: written and read as any value."""
    written = kind.branches[0] if kind.kind == "union" else kind  # a default of a union is of its first branch
    data = compile_type(written, "json").encode(default)
    found, bad = AvroColumns(written, kind).decode(pa.array([data], pa.binary()))
    if bad[0]:
        raise AvroError(f"the default {default!r} does not fit into the type {kind.name or kind.kind}")
    return found


def _blocks(
    values: Values, rows: Numbers, at: Numbers, *, empty: bool, one: Callable[[Numbers, Numbers], Numbers]
) -> tuple[Numbers, Numbers]:
    """Read the blocks of arrays or maps: `one` reads the next item of some rows; return the counts of items."""
    counts = np.zeros(len(rows), np.int64)
    open_rows = np.arange(len(rows))
    at = at.copy()
    while open_rows.size:
        count, places = values.longs(rows[open_rows], at[open_rows])
        sized = np.flatnonzero(count < 0)
        if sized.size:  # the size of the block in bytes stands behind a negative count
            _, places[sized] = values.longs(rows[open_rows[sized]], places[sized])
            count[sized] = -count[sized]
        most = np.where(empty, _MOST_EMPTY, values.ends[rows[open_rows]] - places)
        wrong = (count < 0) | (count > most)
        values.damage(rows[open_rows], wrong)
        count[wrong] = 0
        at[open_rows] = np.where(wrong, values.size, places)
        left = count.copy()
        while True:
            active = np.flatnonzero(left > 0)
            if not active.size:
                break
            which = open_rows[active]
            at[which] = one(which, at[which])
            counts[which] += 1
            left[active] -= 1
            left[values.bad[rows[open_rows]]] = 0
        open_rows = open_rows[count > 0]
    return counts, at


def _ordered(chunks: list[Any], owners: list[Numbers], counts: Numbers, kind: Any) -> tuple[Any, Any]:
    """Return the items of all rows, row by row, and the offsets of the rows."""
    offsets = pa.array(np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]).astype(np.int32))
    if not chunks:
        return pa.array([], kind), offsets
    items = pa.concat_arrays(chunks)
    order = np.argsort(np.concatenate(owners), kind="stable")
    return items.take(pa.array(order)), offsets


def _array(writer: AvroType, reader: AvroType) -> _Read:
    item, kind = _reader(writer.item, reader.item), arrow_type(reader.item)
    empty = _is_empty(writer.item)

    def read(values: Values, rows: Numbers, at: Numbers) -> tuple[Any, Numbers]:
        chunks: list[Any] = []
        owners: list[Numbers] = []

        def one(which: Numbers, places: Numbers) -> Numbers:
            found, places = item(values, rows[which], places)
            chunks.append(found)
            owners.append(which)
            return places

        counts, at = _blocks(values, rows, at, empty=empty, one=one)
        items, offsets = _ordered(chunks, owners, counts, kind)
        return pa.ListArray.from_arrays(offsets, items), at

    return read


def _map(writer: AvroType, reader: AvroType) -> _Read:
    key = _sized(AvroType("string"), AvroType("string"))
    item, kind = _reader(writer.item, reader.item), arrow_type(reader.item)

    def read(values: Values, rows: Numbers, at: Numbers) -> tuple[Any, Numbers]:
        keys: list[Any] = []
        chunks: list[Any] = []
        owners: list[Numbers] = []

        def one(which: Numbers, places: Numbers) -> Numbers:
            name, places = key(values, rows[which], places)
            found, places = item(values, rows[which], places)
            keys.append(name.fill_null(""))
            chunks.append(found)
            owners.append(which)
            return places

        counts, at = _blocks(values, rows, at, empty=False, one=one)
        names, offsets = _ordered(keys, owners, counts, pa.string())
        items, _ = _ordered(chunks, owners, counts, kind)
        return pa.MapArray.from_arrays(offsets, names, items), at

    return read


def _is_empty(schema: AvroType) -> bool:
    """Return whether a value may take no byte."""
    if schema.kind == "record":
        return all(_is_empty(one.type) for one in schema.fields)
    return schema.kind == "null" or (schema.kind == "fixed" and not schema.size)


def _from_union(writer: AvroType, reader: AvroType) -> _Read:
    parts = [_reader_or_none(branch, reader) for branch in writer.branches]  # None: an error of the values that have it
    if not any(parts):
        raise AvroError(f"the reader's type {reader.name or reader.kind} does not read any branch of a union")
    kind = arrow_type(reader)

    def read(values: Values, rows: Numbers, at: Numbers) -> tuple[Any, Numbers]:
        number, at = values.longs(rows, at)
        at = at.copy()
        index = np.full(len(rows), -1, np.int64)
        chunks, size = [], 0
        known = np.zeros(len(rows), np.bool_)
        for branch, part in enumerate(parts):
            which = np.flatnonzero(number == branch)
            if part is None or not which.size:
                continue
            found, at[which] = part(values, rows[which], at[which])
            known[which] = True
            if not pa.types.is_null(found.type):
                chunks.append(found)
                index[which] = np.arange(size, size + which.size)
                size += which.size
        values.damage(rows, ~known)
        if not chunks:
            return pa.nulls(len(rows), kind), at
        found = chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
        return _taken(found, index, index < 0), at

    return read


def _into_union(writer: AvroType, reader: AvroType) -> _Read:
    """Return what reads values into the branch of a union that is of their type, or else into one that takes it."""
    for branch in possible_branches(writer, reader):
        part = _reader_or_none(writer, branch)
        if part is not None:
            break
    else:
        raise AvroError(f"the reader's union does not have the type {writer.name or writer.kind}")
    members, kind = _members(reader), arrow_type(reader)
    if branch.kind == "null":
        return lambda _values, rows, at: (pa.nulls(len(rows), kind), at)
    if len(members) == 1:
        return part
    number = members.index(branch)

    def read(values: Values, rows: Numbers, at: Numbers) -> tuple[Any, Numbers]:
        column, at = part(values, rows, at)
        if not pa.types.is_struct(kind):
            return column.cast(kind), at
        columns = [pa.nulls(len(rows), field.type) for field in kind]
        columns[number] = column
        return pa.StructArray.from_arrays(columns, fields=list(kind)), at

    return read


_SAME_KIND: Final[dict[str, Callable[[AvroType, AvroType], _Read]]] = {
    "null": _null,
    "boolean": _boolean,
    "int": _integer,
    "long": _integer,
    "float": _floating,
    "double": _floating,
    "bytes": _sized,
    "string": _sized,
    "fixed": _fixed,
    "enum": _enum,
    "record": _record,
    "array": _array,
    "map": _map,
    "union": _from_union,
}
