"""How each library makes, encodes and decodes the messages of the protocol benchmark.

An adapter knows three things of its library: how to make a message of plain values (protocol_content.py), how to encode
a made message and decode bytes the way that the library's own client does it, and how to turn a message back into plain
values. Only the second is ever timed, and it holds nothing but the library's own calls.
"""

from __future__ import annotations

import importlib
import io
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from protocol_content import NONE_KNOWN, Message

Plain = Any


@dataclass(frozen=True)
class Codec:
    """One library's way with one message. ``encode`` and ``decode`` are what is timed."""

    make: Callable[[Plain], Any]
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]
    plain: Callable[[Any], Plain]


def codec(impl: str, message: Message) -> Codec:
    """The adapter for that library and message; imports the library."""
    return _ADAPTERS[impl](message)


# purekafka...

_OUR_MODULES = {"produce": "produce", "fetch": "fetch", "metadata": "metadata", "join_group": "group"}


def _purekafka(message: Message) -> Codec:
    module = importlib.import_module(f"kafka.protocol.{_OUR_MODULES[message.family]}")
    cls = getattr(module, message.cls)[message.version]

    def make(content: Plain) -> Any:
        # Through the wire once, so that what is encoded holds structs all the way down, as messages in use do.
        return cls.decode(cls(*content).encode())

    def plain(value: Any) -> Plain:
        if isinstance(value, list):
            return [plain(item) for item in value]
        if isinstance(value, memoryview | bytearray):
            return bytes(value)
        if isinstance(value, str | bytes | int | uuid.UUID | None):
            return value
        # A struct unpacks in wire order with the tagged fields last; the content has none of those.
        made_of = type(value)
        untagged = [name for name in made_of._wire_names() if made_of._fields[name].tag is None]
        return tuple(plain(item) for item in islice(value, len(untagged)))

    return Codec(make, lambda made: made.encode(), cls.decode, plain)


# kafka-python...

_KAFKA_PYTHON_MODULES = {
    "produce": "kafka.protocol.producer",
    "fetch": "kafka.protocol.consumer.fetch",
    "metadata": "kafka.protocol.metadata",
    "join_group": "kafka.protocol.consumer.group",
}


def _kafka_python(message: Message) -> Codec:
    cls = getattr(importlib.import_module(_KAFKA_PYTHON_MODULES[message.family]), message.cls)
    version = message.version
    return Codec(
        make=lambda content: _kafka_python_make(cls, cls._struct, content, version),
        encode=lambda made: made.encode(),
        decode=cls[version].decode,
        plain=lambda made: _kafka_python_plain(cls._struct, made, version),
    )


def _kafka_python_make(made_of: Any, struct: Any, values: Plain, version: int) -> Any:
    own = zip(struct.untagged_fields(version), values, strict=True)
    return made_of(version=version, **{field.name: _kafka_python_value(field, value, version) for field, value in own})


def _kafka_python_value(field: Any, value: Plain, version: int) -> Any:
    from kafka.protocol.schemas.fields.codecs import BitField

    if field.is_struct_array() and value is not None:
        return [_kafka_python_make(field.data_class, field, item, version) for item in value]
    if getattr(field, "_type", None) is BitField:
        return None if value == NONE_KNOWN else BitField.from_32_bit_field(value)
    return value


def _kafka_python_plain(struct: Any, made: Any, version: int) -> Plain:
    return tuple(
        _kafka_python_plain_value(field, getattr(made, field.name), version)
        for field in struct.untagged_fields(version)
    )


def _kafka_python_plain_value(field: Any, value: Any, version: int) -> Plain:
    from kafka.protocol.schemas.fields.codecs import UUID, BitField

    if field.is_struct_array() and value is not None:
        return [_kafka_python_plain(field, item, version) for item in value]
    if getattr(field, "_type", None) is BitField:
        return NONE_KNOWN if value is None else BitField.to_32_bit_field(value)
    if getattr(field, "_type", None) is UUID and value is None:
        return UUID.ZERO_UUID
    return bytes(value) if isinstance(value, memoryview | bytearray) else value


# kio...


def _kio(message: Message) -> Codec:
    from kio.serial import entity_reader, entity_writer

    kind = "request" if message.cls.endswith("Request") else "response"
    module = importlib.import_module(f"kio.schema.{message.family}.v{message.version}.{kind}")
    cls = getattr(module, message.cls)
    write, read = entity_writer(cls), entity_reader(cls)

    def encode(made: Any) -> bytes:
        with io.BytesIO() as out:
            write(out, made)
            return out.getvalue()

    return Codec(
        make=lambda content: _kio_entity(cls, content),
        encode=encode,
        decode=lambda data: read(data, 0)[0],
        plain=_kio_plain,
    )


def _kio_entity(cls: Any, values: Plain) -> Any:
    import dataclasses
    import typing

    hints = typing.get_type_hints(cls)
    own = [f for f in dataclasses.fields(cls) if "tag" not in f.metadata]
    return cls(
        **{f.name: _kio_value(f.metadata.get("kafka_type"), hints[f.name], v) for f, v in zip(own, values, strict=True)}
    )


def _kio_value(kafka_type: str | None, hint: Any, value: Plain) -> Any:
    import datetime

    from kio.schema.errors import ErrorCode

    if isinstance(value, list):
        item = _kio_item(hint)
        return tuple(_kio_entity(item, one) if isinstance(one, tuple) else one for one in value)
    match kafka_type:
        case "timedelta_i32" | "timedelta_i64":
            return datetime.timedelta(milliseconds=value)
        case "datetime_i64":
            return None if value == -1 else datetime.datetime.fromtimestamp(value / 1000, datetime.timezone.utc)
        case "error_code":
            return ErrorCode(value)
        case "uuid":
            return value if value.int else None
    return value


def _kio_item(hint: Any) -> Any:
    """X out of ``tuple[X, ...]`` and of ``tuple[X, ...] | None``."""
    import typing

    for part in (hint, *typing.get_args(hint)):
        if typing.get_origin(part) is tuple:
            return typing.get_args(part)[0]
    raise TypeError(f"no array: {hint}")


def _kio_plain(entity: Any) -> Plain:
    import dataclasses

    own = [f for f in dataclasses.fields(entity) if "tag" not in f.metadata]
    return tuple(_kio_plain_value(f.metadata.get("kafka_type"), getattr(entity, f.name)) for f in own)


def _kio_plain_value(kafka_type: str | None, value: Any) -> Plain:
    if isinstance(value, tuple):
        return [_kio_plain(one) if hasattr(one, "__dataclass_fields__") else one for one in value]
    match kafka_type:
        case "timedelta_i32" | "timedelta_i64":
            return round(value.total_seconds() * 1000)
        case "datetime_i64":
            return -1 if value is None else round(value.timestamp() * 1000)
        case "error_code":
            return value.value
        case "uuid":
            return uuid.UUID(int=0) if value is None else value
    return value


_ADAPTERS: dict[str, Callable[[Message], Codec]] = {"purekafka": _purekafka, "kafka-python": _kafka_python, "kio": _kio}
