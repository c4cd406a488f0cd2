"""Encodes and decodes by walking the definition: slow, plain, and exact in its complaints.

The compiled codecs do the work. This interpreter is what they are held equal to in the tests, and it
runs when one of them fails: it repeats the work to find the field at fault, or, for values that are
right but unusual (a tuple where a struct is expected, bytes for text), to do it after all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from kafka.errors import KafkaProtocolError
from kafka.protocol import types
from kafka.protocol.codec.layout import Layout, WireField, element_as_field, element_min_size, layout_of, null_marker
from kafka.protocol.fields import Buffer
from kafka.protocol.struct import Struct, StructMeta, check_encodable, describe

T = TypeVar("T")
W = TypeVar("W")


class Reader:
    """A cursor over received bytes that never goes beyond their end."""

    __slots__ = ("_view", "position")

    def __init__(self, data: Buffer, start: int = 0) -> None:
        self._view = memoryview(data).toreadonly()
        self.position = start

    @property
    def left(self) -> int:
        """How many bytes are left."""
        return len(self._view) - self.position

    def read(self, size: int, /) -> bytes:
        """Return the next ``size`` bytes, fewer at the end."""
        return bytes(self.view(size))

    def view(self, size: int) -> memoryview:
        """Return the next ``size`` bytes without a copy, fewer at the end."""
        start = self.position
        self.position = min(start + size, len(self._view))
        return self._view[start : self.position]


def decode(cls: StructMeta, data: Buffer, start: int = 0) -> Any:
    """Decode one message of a bound class; all bytes from ``start`` on must be used."""
    reader = Reader(data, start)
    message = _decode_struct(layout_of(cls), reader, describe(cls))
    if reader.left:
        raise _misfit(describe(cls), f": {reader.left} bytes are left after the last field")
    return message


def decode_prefix(cls: StructMeta, data: Buffer, start: int = 0) -> tuple[Any, int]:
    """Decode a message that more bytes may follow; return it and the position of its end."""
    reader = Reader(data, start)
    return _decode_struct(layout_of(cls), reader, describe(cls)), reader.position


def _decode_struct(layout: Layout, reader: Reader, where: str) -> Struct:
    new: Any = object.__new__
    struct: Struct = new(layout.cls)
    for wire in layout.plain:
        setattr(struct, wire.name, _at(_decode_field, wire, reader, f"{where}.{wire.name}"))
    if layout.flexible:
        struct._tagged = None
        tags: dict[Any, bytes] = _at(
            lambda _w, r, _p: types.TaggedFields.decode(r), None, reader, f"{where}.tagged_fields"
        )
        for wire in layout.tagged:
            raw = tags.pop(wire.field.tag, None)
            if raw is not None:
                setattr(struct, wire.name, _decode_tagged(wire, raw, f"{where}.{wire.name}"))
        if tags:
            struct.unknown_tags = tags
    return struct


def _decode_tagged(wire: WireField, raw: bytes, where: str) -> object:
    reader = Reader(raw)
    value = _at(_decode_field, wire, reader, where)
    if reader.left:
        raise _misfit(where, f": {reader.left} bytes are left at the end of the tagged field")
    return value


def _at(decoder: Callable[[W, Reader, str], T], wire: W, reader: Reader, where: str) -> T:
    """Run a decoder; its error gets the place, once."""
    try:
        return decoder(wire, reader, where)
    except KafkaProtocolError as error:
        if error.message_name:
            raise
        raise _misfit(where, f" at byte {reader.position}: {error}") from None


def _misfit(where: str, what: str) -> KafkaProtocolError:
    """Return an error that names the message, its version and the field, in words and as facts."""
    message, _, field = where.partition(".")
    name, _, version = message.rstrip("]").partition("[")
    return KafkaProtocolError(where + what, message_name=name, field=field or None, version=int(version))


def _decode_field(wire: WireField, reader: Reader, where: str) -> object:
    if wire.is_array:
        return _decode_array(wire, reader, where)
    if wire.is_struct:
        if wire.nullable and types.Int8.decode(reader) <= null_marker(wire):
            return None
        return _decode_struct(layout_of(wire.element), reader, where)
    if wire.element is types.Records:
        length = _sized(wire)._decode_length(reader)
        if length is None:
            return None
        if length > reader.left:
            raise KafkaProtocolError(f"needs {length} bytes, only {reader.left} are left")
        return reader.view(length)
    return _wire_type(wire).decode(reader)


def _decode_array(wire: WireField, reader: Reader, where: str) -> list[object] | None:
    count = _sized(wire)._decode_length(reader)
    if count is None:
        return None
    needed = count * element_min_size(wire)
    if needed > reader.left:
        raise KafkaProtocolError(f"has {count} elements of at least {needed} bytes, only {reader.left} are left")
    element = element_as_field(wire)
    return [_at(_decode_field, element, reader, f"{where}[{index}]") for index in range(count)]


def _sized(wire: WireField) -> types._Sized:
    if wire.is_array:
        return types.Array(types.Int8, compact=wire.compact, nullable=wire.nullable)
    sized: types._Sized = wire.element(compact=wire.compact, nullable=wire.nullable)
    return sized


def _wire_type(wire: WireField) -> types.AbstractType:
    if wire.element in (types.String, types.Bytes, types.Records):
        return _sized(wire)
    return wire.element()  # type: ignore[no-any-return]


def encode(cls: StructMeta, message: object) -> bytes:
    """Encode a message as the version of the bound class."""
    return _encode_struct(layout_of(cls), message, describe(cls))


def _encode_struct(layout: Layout, given: object, where: str) -> bytes:
    struct: Struct = as_struct(layout.cls, given, where)
    check_encodable(struct, layout.cls)
    if struct.unknown_tags and not layout.flexible:
        raise _misfit(where, " has no tagged fields: it is not a flexible version")
    parts = [_encode_named(wire, struct, where) for wire in layout.plain]
    if layout.flexible:
        tags: dict[Any, bytes] = struct.unknown_tags
        for wire in layout.tagged:
            if not wire.field.is_default(getattr(struct, wire.name)):
                tags[wire.field.tag] = _encode_named(wire, struct, where)
        parts.append(_tagged(tags, where))
    return b"".join(parts)


def _tagged(tags: dict[int, bytes], where: str) -> bytes:
    try:
        return types.TaggedFields.encode(tags)
    except KafkaProtocolError as error:
        raise _misfit(f"{where}.tagged_fields", f" {error}") from None


def _encode_named(wire: WireField, struct: object, where: str) -> bytes:
    where = f"{where}.{wire.name}"
    try:
        return _encode_field(wire, getattr(struct, wire.name), where)
    except KafkaProtocolError as error:
        if error.message_name:
            raise
        raise _misfit(where, " holds what it cannot (not shown)" if wire.field.secret else f" {error}") from None


def _encode_field(wire: WireField, value: object, where: str) -> bytes:
    if wire.is_array:
        return _encode_array(wire, value, where)
    if wire.is_struct:
        if not wire.nullable:
            return _encode_struct(layout_of(wire.element), value, where)
        if value is None:
            return types.Int8.encode(null_marker(wire))
        return b"\x01" + _encode_struct(layout_of(wire.element), value, where)
    return _wire_type(wire).encode(value)


def _encode_array(wire: WireField, items: object, where: str) -> bytes:
    sized = _sized(wire)
    if items is None:
        return sized._encode_length(None)
    items = types.as_sequence(items)
    element = element_as_field(wire)
    parts = [sized._encode_length(len(items))]
    for index, item in enumerate(items):
        at = f"{where}[{index}]"
        try:
            parts.append(_encode_field(element, item, at))
        except KafkaProtocolError as error:
            if error.message_name:
                raise
            raise _misfit(at, f" {error}") from None
    return b"".join(parts)


def as_struct(cls: StructMeta, value: object, where: str) -> Any:
    """Return ``value`` as a struct: tuples are in wire order, mappings by name, a lone value is the only field."""
    if isinstance(value, Struct):
        if type(value)._unbound is not cls._unbound:
            raise KafkaProtocolError(f"{where} takes a {cls.__name__}, not a {describe(type(value))}")
        return value
    try:
        if isinstance(value, (tuple, list)):
            return _from_tuple(cls, value)
        if isinstance(value, Mapping):
            return cls(**value)
        if value is not None and len(cls._wire_names()) == 1:
            return cls(value)
    except TypeError as error:
        raise KafkaProtocolError(f"{where}: {error}") from None
    raise KafkaProtocolError(f"{where} takes a {cls.__name__}, not {types.shown(value)}")


def _from_tuple(cls: StructMeta, value: Sequence[Any]) -> Any:
    if cls._version is None:
        raise KafkaProtocolError(
            f"{cls._label} cannot take {types.shown(value)}: the order of a tuple depends on the version, so use "
            f"{cls._message.__name__}[n] or give the fields' names"
        )
    try:
        return cls(*value)
    except TypeError:  # the tag buffer once came last in a tuple
        if len(value) != len(cls._wire_names()) + 1 or cls._version not in cls._unbound._flexible:
            raise
    return cls(*value[:-1], unknown_tags=value[-1])
