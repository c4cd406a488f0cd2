"""Protobuf to Arrow columns: messages are read with the reader's class, whose fields are the columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafka.schema_registry.protobuf import is_repeated

if TYPE_CHECKING:
    from kafka.schema_registry.protobuf import ProtobufCodec

__all__ = ["ProtobufColumns"]

#: Numbers of types in descriptors -> types of columns; a number without a sign needs a wider type.
_SCALARS: Final = {
    1: pa.float64(), 2: pa.float32(), 3: pa.int64(), 4: pa.decimal128(20, 0), 5: pa.int32(), 6: pa.decimal128(20, 0),
    7: pa.int64(), 8: pa.bool_(), 9: pa.string(), 12: pa.binary(), 13: pa.int64(), 14: pa.string(), 15: pa.int32(),
    16: pa.int64(), 17: pa.int32(), 18: pa.int64(),
}  # fmt: skip
_UNSIGNED: Final = (4, 6)
_ENUM: Final = 14
_TIMESTAMP: Final = "google.protobuf.Timestamp"
#: Messages of Google's whose JSON is their value: they are columns of text.
_AS_JSON: Final = ("Any", "Duration", "Empty", "FieldMask", "Struct", "Value", "ListValue")

_Convert = Callable[[Any], Any]


class ProtobufColumns:
    """Reads messages of a writer's file into the columns of a message of a reader's."""

    def __init__(self, writer: ProtobufCodec, reader: ProtobufCodec, message: str | None) -> None:
        self._writer = writer
        self._class = reader.message_class(message)
        self._name = self._class.DESCRIPTOR.full_name
        self.type, self._convert = _message(self._class.DESCRIPTOR, (), reader.json_of)

    def decode(self, data: bytes, at: int) -> Any:
        """Return the row of a value; ValueError if it is not a message of the reader's."""
        from google.protobuf.message import DecodeError

        written, at = self._writer.written_class(data, at)
        if written.DESCRIPTOR.full_name != self._name:
            raise ValueError(f"the value is a message {written.DESCRIPTOR.full_name}, not {self._name}")
        found = self._class()
        try:
            found.ParseFromString(data[at:])
        except DecodeError as error:
            raise ValueError(f"the bytes are not a message {self._name}: {error}") from None
        return self._convert(found)


def _message(descriptor: Any, within: tuple[str, ...], as_json: _Convert) -> tuple[Any, _Convert]:
    name = descriptor.full_name
    if name in within:
        raise ValueError(f"the message {name} contains itself, and columns have no such types")
    fields, parts = [], []
    for field in descriptor.fields:
        kind, convert = _field(field, (*within, name), as_json)
        fields.append(pa.field(field.name, kind))
        parts.append((field.name, field.has_presence, convert))

    def row(message: Any) -> dict[str, Any]:
        return {
            one: convert(getattr(message, one)) if not presence or message.HasField(one) else None
            for one, presence, convert in parts
        }

    return pa.struct(fields), row


def _field(field: Any, within: tuple[str, ...], as_json: _Convert) -> tuple[Any, _Convert]:
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        key, convert_key = _one(inner.fields_by_name["key"], within, as_json)
        value, convert_value = _one(inner.fields_by_name["value"], within, as_json)
        return pa.map_(key, value), lambda found: [(convert_key(one), convert_value(found[one])) for one in found]
    kind, convert = _one(field, within, as_json)
    if is_repeated(field):
        return pa.list_(kind), lambda found: [convert(one) for one in found]
    return kind, convert


def _one(field: Any, within: tuple[str, ...], as_json: _Convert) -> tuple[Any, _Convert]:
    inner = field.message_type
    if inner is not None:
        package, _, short = inner.full_name.rpartition(".")
        if inner.full_name == _TIMESTAMP:
            return pa.timestamp("us", "UTC"), _micros
        if package == "google.protobuf" and short in _AS_JSON:
            return pa.string(), as_json
        if package == "google.protobuf" and short.endswith("Value"):  # Int64Value and so on: a value, or null
            kind, convert = _one(inner.fields_by_name["value"], within, as_json)
            return kind, lambda found: convert(found.value)
        return _message(inner, within, as_json)
    if field.type == _ENUM:
        names = {number: one.name for number, one in field.enum_type.values_by_number.items()}
        return pa.string(), lambda found: names.get(found, str(found))
    if field.type in _UNSIGNED:
        from decimal import Decimal

        return _SCALARS[field.type], Decimal
    return _SCALARS[field.type], _as_it_is


def _micros(found: Any) -> int:
    number: int = found.seconds * 1_000_000 + found.nanos // 1000
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError(f"a timestamp of {found.seconds} seconds is beyond 64 bits of microseconds")
    return number


def _as_it_is(value: Any) -> Any:
    return value
