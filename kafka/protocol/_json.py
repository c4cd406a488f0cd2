"""Messages to plain data and back, in the JSON form that Kafka's own tools use.

Names are Kafka's (``errorCode``), bytes are base64, UUIDs are URL-safe base64 without padding.
"""

from __future__ import annotations

import uuid
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from typing import Any

from kafka.errors import KafkaProtocolError
from kafka.protocol import types
from kafka.protocol.codec.interpreter import as_struct
from kafka.protocol.codec.layout import WireField, element_as_field, layout_of
from kafka.protocol.struct import Struct, StructMeta, describe


def to_json(message: Struct, version: int) -> dict[str, Any]:
    """Return a message, or a part of one, as plain data."""
    return _struct_to_json(type(message)._unbound._of_version(version), message)


def _struct_to_json(cls: StructMeta, struct: object) -> dict[str, Any]:
    struct = as_struct(cls, struct, describe(cls))
    layout = layout_of(cls)
    out = {wire.field.json_name: _to_json(wire, getattr(struct, wire.name)) for wire in layout.plain}
    for wire in layout.tagged:
        value = getattr(struct, wire.name)
        if not wire.field.is_default(value):
            out[wire.field.json_name] = _to_json(wire, value)
    return out


def _to_json(wire: WireField, value: Any) -> Any:
    if value is None:
        return None
    if wire.is_array:
        element = element_as_field(wire)
        return [_to_json(element, item) for item in value]
    if wire.is_struct:
        return _struct_to_json(wire.element, value)
    if wire.element in (types.Bytes, types.Records):
        return b64encode(bytes(value)).decode()
    if wire.element is types.Uuid:
        return uuid_to_text(value)
    return value


def from_json(cls: StructMeta, data: object, where: str = "") -> Any:
    """Build a message of a bound class; a name that it does not have is an error."""
    if not isinstance(data, Mapping):
        raise KafkaProtocolError(f"{where or describe(cls)} is made of an object, not of {data!r}")
    layout = layout_of(cls)
    known = {wire.field.json_name: wire for wire in (*layout.plain, *layout.tagged)}
    known.update({wire.name: wire for wire in known.values()})
    known.update({old: known[new] for old, new in cls._aliases.items() if new in known})
    values = {}
    for name, value in data.items():
        wire = known.get(name)
        if wire is None:
            names = ", ".join(w.field.json_name for w in (*layout.plain, *layout.tagged))
            raise KafkaProtocolError(f"{describe(cls)} has no field {name!r}; it has {names}")
        values[wire.name] = _from_json(wire, value, f"{describe(cls)}.{wire.name}")
    return cls(**values)


def _from_json(wire: WireField, value: object, where: str) -> Any:
    if value is None:
        return None
    if wire.is_array:
        element = element_as_field(wire)
        if isinstance(value, (str, Mapping)) or not isinstance(value, Iterable):
            raise KafkaProtocolError(f"{where} takes a list, not {value!r}")
        return [_from_json(element, item, f"{where}[{i}]") for i, item in enumerate(value)]
    if wire.is_struct:
        return from_json(wire.element, value, where)
    try:
        if wire.element in (types.Bytes, types.Records) and isinstance(value, str):
            return b64decode(value, validate=True)
        if wire.element is types.Uuid and isinstance(value, str):
            return uuid_from_text(value)
    except ValueError as error:
        raise KafkaProtocolError(f"{where} is no {wire.element.__name__}: {error}") from None
    return value


def uuid_to_text(value: uuid.UUID) -> str:
    """Show a UUID as Kafka does: 22 characters of URL-safe base64."""
    return urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def uuid_from_text(text: str) -> uuid.UUID:
    """Read a UUID in Kafka's form or in the usual hexadecimal one."""
    if len(text) in (32, 36):
        return uuid.UUID(text)
    return uuid.UUID(bytes=urlsafe_b64decode(text + "=" * (-len(text) % 4)))
