"""Values with schema ids to Arrow columns: each is read by the schema it was written with, into a reader's types."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka.schema_registry.avro import AvroError, resolve_avro
from kafka.schema_registry.registry import Schema, SchemaRegistry
from kafka.schema_registry.serializers import (
    ID_HEADER,
    SchemaMismatchError,
    avro_type,
    header_id,
    used_by,
    writer_schema,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Errors = dict[int, str]
    #: Rows by the id of their schema, and by how many bytes stand before their values.
    Groups = dict[tuple[int | str, int], NDArray[np.int64]]

__all__ = ["SchemaColumns"]

_FRAME: Final = 5


class _Columns(Protocol):
    """Reads values of one writer's schema; the errors say why rows have no value."""

    type: Any

    def read(self, values: Any, skip: int) -> tuple[Any, Errors]:
        """Return the column of a binary array, without nulls in it, and why rows of it have no value."""


class _AvroColumns:
    def __init__(self, registry: SchemaRegistry, writer: Schema, reader: Schema) -> None:
        from kafka.schema_registry.avro_columns import AvroColumns

        types = avro_type(registry, writer), avro_type(registry, reader)
        self._columns = AvroColumns(*types)
        self._codec = resolve_avro(*types)
        self.type = self._columns.type

    def read(self, values: Any, skip: int) -> tuple[Any, Errors]:
        found, bad = self._columns.decode(values, skip)
        return found, {int(at): self._why(values[int(at)].as_py(), skip) for at in np.flatnonzero(bad)}

    def _why(self, data: bytes, skip: int) -> str:
        """Return what is wrong with a value: the codec of single values says where."""
        try:
            self._codec.decode(data, skip)
        except AvroError as error:
            return str(error)
        return "the value does not fit into the reader's schema"


class _RowColumns:
    """Columns whose values are read one after the other."""

    def __init__(self, rows: Any) -> None:
        self._rows = rows
        self.type = rows.type

    def read(self, values: Any, skip: int) -> tuple[Any, Errors]:
        errors: Errors = {}
        found = []
        for at, data in enumerate(values.to_pylist()):
            row, error = self._row(data, skip)
            found.append(row)
            if error is not None:
                errors[at] = error
        return pa.array(found, self.type), errors

    def _row(self, data: bytes, skip: int) -> tuple[Any, str | None]:
        try:
            return self._rows.decode(data, skip), None
        except ValueError as error:
            return None, str(error)
        except RecursionError:
            return None, "the value is nested too deeply"


def _columns_of(registry: SchemaRegistry, writer: Schema, reader: Schema, message: str | None) -> _Columns:
    if writer.kind != reader.kind:
        raise SchemaMismatchError(f"schema id {writer.id} is of type {writer.kind}, and the reader's is {reader.kind}")
    try:
        if reader.kind == "AVRO":
            return _AvroColumns(registry, writer, reader)
        if reader.kind == "PROTOBUF":
            from kafka.schema_registry.protobuf import protobuf_codec
            from kafka.schema_registry.protobuf_columns import ProtobufColumns

            codecs = [protobuf_codec(registry, one, None) for one in (writer, reader)]
            return _RowColumns(ProtobufColumns(codecs[0], codecs[1], message))
        from kafka.schema_registry.json_columns import JsonColumns

        used = {one.name: json.loads(one.schema.text) for one in used_by(registry, reader)}
        return _RowColumns(JsonColumns(json.loads(reader.text), used))
    except SchemaMismatchError:
        raise
    except ValueError as error:
        raise SchemaMismatchError(f"schema id {writer.id}: {error}") from None


class SchemaColumns:
    """Reads values with schema ids into columns of the types of one schema, whatever version wrote them.

    The id stands before the value, or in a header of the record (``__value_schema_id``, ``__key_schema_id``).
    ``message`` names the message of Protobuf if the schema has several.
    """

    def __init__(
        self, registry: SchemaRegistry, reader: Schema, *, key: bool = False, message: str | None = None
    ) -> None:
        self._registry = registry
        self._reader = reader
        self._header = ID_HEADER["key" if key else "value"]
        self._message = message
        self._columns: dict[int | str, _Columns] = {}
        #: The type of the column.
        self.type = _columns_of(registry, reader, reader, message).type

    def decode(self, values: Any, headers: Any = None) -> tuple[Any, Errors]:
        """Return the column of a binary array, and why rows of it have no value; nulls stay null without an error.

        `headers` is an array of lists of key and value. SchemaRegistryError if the registry does not answer.
        """
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        values = values.cast(pa.binary())
        errors: Errors = {}
        groups = self._by_header(headers, errors)
        named = np.zeros(len(values), np.bool_)
        for rows in groups.values():
            named[rows] = True
        self._by_frame(values, named, groups, errors)
        index, chunks, size = np.full(len(values), -1, np.int64), [], 0
        groups.pop(("", 0), None)
        for (identifier, skip), rows in groups.items():
            try:
                columns = self._columns_of(identifier)
            except SchemaMismatchError as error:
                errors.update(dict.fromkeys(rows.tolist(), str(error)))
                continue
            part = values if len(rows) == len(values) else values.take(pa.array(rows))
            found, wrong = columns.read(part, skip)
            errors.update({int(rows[at]): f"schema id {identifier}: {why}" for at, why in wrong.items()})
            chunks.append(found)
            index[rows] = np.arange(size, size + len(rows))
            size += len(rows)
        if not chunks:
            return pa.nulls(len(values), self.type), errors
        found = chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
        if size == len(values) and len(chunks) == 1:
            return found, errors
        return found.take(pa.array(np.maximum(index, 0), mask=index < 0)), errors

    def _by_frame(self, values: Any, named: NDArray[np.bool_], groups: Groups, errors: Errors) -> None:
        """Sort the rows without an id in a header by the id before their values."""
        offsets = np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, values.offset * 4).astype(np.int64)
        data = values.buffers()[2]
        held = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
        there = ~np.asarray(values.is_null().to_numpy(zero_copy_only=False)) & ~named
        long_enough = there & (np.diff(offsets) >= _FRAME)
        rows = np.flatnonzero(long_enough)
        begin = offsets[rows]
        framed = held[begin] == 0
        for row in (*np.flatnonzero(there & ~long_enough), *rows[~framed]):
            shown = held[offsets[row] : min(offsets[row] + _FRAME, offsets[row + 1])].tobytes().hex() or "nothing"
            errors[int(row)] = f"the bytes begin with {shown}, not with 00 and the id of a schema"
        rows, begin = rows[framed], begin[framed]
        if not len(rows):
            return
        ids = np.ndarray((len(held) - 3,), ">u4", held, strides=(1,))[begin + 1]
        if (ids == ids[0]).all():
            groups[int(ids[0]), _FRAME] = rows
            return
        for number in np.unique(ids):
            groups[int(number), _FRAME] = rows[ids == number]

    def _by_header(self, headers: Any, errors: Errors) -> Groups:
        """Return the rows that have the id of their schema in a header, by id."""
        if headers is None:
            return {}
        if isinstance(headers, pa.ChunkedArray):
            headers = headers.combine_chunks()
        flat = headers.flatten()
        which = np.flatnonzero(
            pc.equal(flat.field("key"), self._header).fill_null(False).to_numpy(zero_copy_only=False)
        )
        if not which.size:
            return {}
        parents = pc.list_parent_indices(headers).to_numpy()[which]
        groups: dict[int | str, list[int]] = {}
        for row, data in zip(parents.tolist(), flat.field("value").take(pa.array(which)).to_pylist(), strict=True):
            identifier = _header_id_or_none(data)
            if identifier is None:
                errors[row] = f"the header {self._header} has no id of a schema: {data!r}"
            groups.setdefault("" if identifier is None else identifier, []).append(row)
        return {(identifier, 0): np.array(rows) for identifier, rows in groups.items()}

    def _columns_of(self, identifier: int | str) -> _Columns:
        columns = self._columns.get(identifier)
        if columns is None:
            writer = writer_schema(self._registry, identifier)
            columns = self._columns[identifier] = _columns_of(self._registry, writer, self._reader, self._message)
        return columns


def _header_id_or_none(data: bytes | None) -> int | str | None:
    try:
        return header_id(data)
    except SchemaMismatchError:
        return None
