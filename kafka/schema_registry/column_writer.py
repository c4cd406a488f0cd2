"""Arrow columns to values with schema ids: the way back of `SchemaColumns`, one value after the other."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from kafka.schema_registry.avro_types import AvroType
from kafka.schema_registry.registry import Schema, SchemaRegistry
from kafka.schema_registry.serializers import SchemaMismatchError, SchemaSerializer, avro_type

__all__ = ["ColumnWriter"]

_FRAME: Final = 5

_Convert = Callable[[Any], Any]


class ColumnWriter:
    """Writes columns by a schema that has its id; ``framed`` puts that before each value."""

    def __init__(
        self, registry: SchemaRegistry, schema: Schema, *, message: str | None = None, framed: bool = True
    ) -> None:
        self._serializer = SchemaSerializer(registry, schema, subject=schema.subject, message=message)
        self._skip = 0 if framed else _FRAME
        self._convert: _Convert = _json_value
        if schema.kind == "AVRO":
            self._convert = _avro_value(avro_type(registry, schema))
        elif schema.kind == "PROTOBUF":
            self._convert = _protobuf_value

    def encode(self, column: Any) -> Any:
        """Return the values of a column as a binary array; SchemaMismatchError names the row that does not fit."""
        found = []
        for at, value in enumerate(_plain(column)):
            try:
                data = None if value is None else self._serializer.encode("", self._convert(value))
            except SchemaMismatchError as error:
                raise SchemaMismatchError(f"row {at} of the column: {error}") from None
            found.append(None if data is None else data[self._skip :])
        return pa.array(found, pa.binary())


def _plain(column: Any) -> list[Any]:
    """Return the values of a column; maps are dicts."""
    return [_with_dicts(one, column.type) for one in column.to_pylist()]


def _with_dicts(value: Any, kind: Any) -> Any:
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {name: _with_dicts(one, kind.item_type) for name, one in value}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_with_dicts(one, kind.value_type) for one in value]
    if pa.types.is_struct(kind):
        return {field.name: _with_dicts(value[field.name], field.type) for field in kind}
    return value


def _avro_value(schema: AvroType) -> _Convert:
    """Return what makes a value of Avro from one of a column, in which unions are structs of their members."""
    if schema.kind == "record":
        parts = {one.name: _avro_value(one.type) for one in schema.fields}

        def record(value: dict[str, Any]) -> dict[str, Any]:
            return {name: parts[name](one) if name in parts else one for name, one in value.items()}

        return record
    if schema.kind == "array":
        item = _avro_value(schema.item)
        return lambda value: [item(one) for one in value]
    if schema.kind == "map":
        item = _avro_value(schema.item)
        return lambda value: {name: item(one) for name, one in value.items()}
    if schema.kind == "union":
        members = [(f"member{at}", _avro_value(one)) for at, one in enumerate(_valued(schema))]

        def union(value: Any) -> Any:
            if value is None:
                return None
            if len(members) == 1:
                return members[0][1](value)
            if isinstance(value, dict) and "member0" in value:
                return next((convert(value[name]) for name, convert in members if value.get(name) is not None), None)
            return value

        return union
    return lambda value: value


def _valued(schema: AvroType) -> list[AvroType]:
    return [one for one in schema.branches if one.kind != "null"]


def _protobuf_value(value: Any) -> Any:
    """Return a value in the JSON of Protobuf: fields without a value are left out, and keys of maps are text."""
    if isinstance(value, dict):
        return {
            str(name).lower() if isinstance(name, bool) else name: _protobuf_value(one)
            for name, one in value.items()
            if one is not None
        }
    if isinstance(value, list):
        return [_protobuf_value(one) for one in value]
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return int(value) if isinstance(value, Decimal) else value


def _json_value(value: Any) -> Any:
    """Return a value for JSON: properties without a value are left out."""
    if isinstance(value, dict):
        return {name: _json_value(one) for name, one in value.items() if one is not None}
    return [_json_value(one) for one in value] if isinstance(value, list) else value
