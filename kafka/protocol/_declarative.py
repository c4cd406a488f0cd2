"""The historic declarative style: classes with a ``SCHEMA``, and the schemas of generated classes.

Schemas and plain objects made of generated messages use the names that fields had in those days.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from typing import Any

from kafka.errors import KafkaProtocolError
from kafka.protocol import types
from kafka.protocol.aliases import SCALAR_ARRAYS
from kafka.protocol.codec.layout import WireField, element_as_field, layout_of, null_marker
from kafka.protocol.struct import Struct, StructMeta, UnknownFieldError, describe
from kafka.protocol.types import Schema

# Classes that state a schema


def init_by_schema(struct: Struct, schema: Schema, args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
    """Set the fields of an instance; fields that are not given are None."""
    if len(args) > len(schema.names):
        raise UnknownFieldError(
            f"{describe(type(struct))} takes {len(schema.names)} values {schema.names}, not {len(args)}"
        )
    values = dict(zip(schema.names, args, strict=False))
    for name, value in kwargs.items():
        if name not in schema.names or name in values:
            raise UnknownFieldError(
                f"{describe(type(struct))} takes {schema.names}, {name!r} is unknown or given twice"
            )
        values[name] = value
    for name in schema.names:
        setattr(struct, name, values.get(name))


def decode_by_schema(schema: Schema, data: Any, label: str) -> tuple[Any, ...]:
    """Read the values of a schema from bytes or from a file; the file is left behind them."""
    try:
        return schema.decode(data if hasattr(data, "read") else BytesIO(data))
    except KafkaProtocolError as error:
        raise KafkaProtocolError(f"{label}: {error}") from None


# Generated classes as a schema


def schema_of(cls: StructMeta) -> Schema:
    """Return the wire format of a class, of the version that it is bound to, as a ``Schema``.

    >>> from kafka.protocol.metadata import MetadataRequest
    >>> schema_of(MetadataRequest[4])
    Schema(topics=Array(String), allow_auto_topic_creation=Boolean)
    """
    if cls._schema is not None:
        return cls._schema
    layout = layout_of(cls)
    names = _old_names(cls)
    fields = [(names.get(wire.name, wire.name), _wire_type(cls, wire)) for wire in layout.plain]
    return Schema(*fields, *([("tags", types.TaggedFields)] if layout.flexible else []))


def _wire_type(cls: StructMeta, wire: WireField) -> Any:
    if wire.is_array:
        array = types.Array(_wire_type(cls, element_as_field(wire)), compact=wire.compact, nullable=wire.nullable)
        if _plain_element(cls, wire.name) and not wire.compact:  # in flexible versions a tag buffer is there too
            (array.array_of,) = array.array_of.fields
        return array
    if wire.is_struct:
        schema = schema_of(wire.element)
        return _Nullable(schema, null_marker(wire)) if wire.nullable else schema
    if wire.element in (types.String, types.Bytes, types.Records):
        return wire.element(compact=wire.compact, nullable=wire.nullable)
    return wire.element()


class _Nullable(types.AbstractType):
    """A struct that a byte in front says to be there, or to be null."""

    def __init__(self, schema: Schema, marker: int) -> None:
        self._schema = schema
        self._marker = marker

    def encode(self, value: object) -> bytes:
        if value is None:
            return types.Int8.encode(self._marker)
        return b"\x01" + self._schema.encode(value)

    def decode(self, data: types.Readable) -> Any:
        return None if types.Int8.decode(data) <= self._marker else self._schema.decode(data)

    def __repr__(self) -> str:
        return f"{self._schema!r} or null"


def _old_names(cls: StructMeta) -> dict[str, str]:
    return {official: old for old, official in cls._aliases.items()}


def _plain_element(cls: StructMeta, name: str) -> str:
    """Return the one field of the structs in a list that held plain values once, or ``""``."""
    inner = SCALAR_ARRAYS.get(cls._label, {}).get(name, "")
    if not inner:
        return ""
    element: StructMeta = cls._fields[name].element
    bound = element if cls._version is None else element._of_version(cls._version)
    return inner if bound._wire_names() == (inner,) else ""


# Messages as plain objects


def to_object(message: Struct) -> dict[str, Any]:
    """Return a message as dictionaries and lists."""
    cls = type(message)
    if cls._schema is not None:
        return _by_name(cls._schema, message)
    return dict(_pairs(cls, message))


def _pairs(cls: StructMeta, message: Struct) -> Iterator[tuple[str, object]]:
    names = _old_names(cls)
    for name in cls._wire_names():
        value = getattr(message, name)
        plain = _plain_element(cls, name)
        if plain and value:
            value = [getattr(item, plain) for item in value]
        yield names.get(name, name), _plain(value)


def _plain(value: object) -> object:
    if isinstance(value, Struct):
        return to_object(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return bytes(value) if isinstance(value, memoryview) else value


def _by_name(schema: Schema, values: Iterable[Any]) -> dict[str, object]:
    named = zip(schema.names, schema.fields, values, strict=True)
    return {name: _from_schema(wire_type, value) for name, wire_type, value in named}


def _from_schema(wire_type: object, value: Any) -> object:
    if isinstance(wire_type, Schema):
        return _by_name(wire_type, value)
    if isinstance(wire_type, types.Array) and value is not None:
        return [_from_schema(wire_type.array_of, item) for item in value]
    return _plain(value)
