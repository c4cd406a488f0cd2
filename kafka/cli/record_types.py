"""The types of keys, values and headers: the meaning of bytes by name, and the bytes of a text."""

from __future__ import annotations

import struct
from argparse import Namespace
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from kafka.cli.arguments import UsageError, from_json, text_of

if TYPE_CHECKING:
    from kafka.cli.connection import Connection
    from kafka.record import ConsumerRecord
    from kafka.schema_registry import Schema, SchemaSerializer

Decode = Callable[[bytes], object]
Header = tuple[str, "bytes | None"]


class Undecodable(ValueError):  # noqa: N818 - a record's bytes, not a fault of the program
    """The bytes of a record are not of the type that the command line names."""


NUMBERS: Final = {
    "byte": ">b",
    "short": ">h",
    "int": ">i",
    "integer": ">i",
    "long": ">q",
    "float": ">f",
    "double": ">d",
}
_SIMPLE: Final = ("bytes", "str", "hex", "base64", "json", "uuid", *NUMBERS)
#: Types with a schema registry -> its name for them.
REGISTRY: Final = {"avro": "AVRO", "protobuf": "PROTOBUF", "jsonschema": "JSON"}
#: Types of the records of internal topics -> the numbers that their keys begin with, and a key of the kind.
INTERNAL: Final = {
    "offsets": ({0, 1}, bytes.fromhex("0001 0001 67 0001 74 00000000")),
    "group-metadata": ({2}, bytes.fromhex("0002 0001 67")),
    "transaction-log": ({0}, bytes.fromhex("0000 0001 74")),
}
#: All names that --key-type and --value-type take, besides pack:FORMAT and protobuf:MESSAGE.
TYPES: Final = (*_SIMPLE, *REGISTRY, *INTERNAL)
#: For the help of commands that take types.
HELP: Final = (
    f"A TYPE is {', '.join(TYPES)}, pack:FORMAT, or protobuf:MESSAGE. "
    "avro, protobuf and jsonschema need a schema registry: --registry URL, or the options schema.registry.url, "
    "schema.registry.basic.auth.user.info and so on of -X, a context or a file. "
    "offsets, group-metadata and transaction-log are for the records of Kafka's internal topics."
)


def _unknown(name: str) -> UsageError:
    from kafka.cli.grammar import nearest

    known = ", ".join((*TYPES, "pack:FORMAT"))
    return UsageError(f"type {name!r} does not exist{nearest(name, TYPES)}; types are {known}")


# Reading…


def decoder(name: str, connection: Connection | None = None) -> Decode | None:
    """Return the function that turns bytes into a value of a type; None for bytes as they are.

    >>> decoder("long")(b"\\0\\0\\0\\0\\0\\0\\0\\7"), decoder("hex")(b"\\xff"), decoder("pack:>hb")(b"\\0\\1\\2")
    (7, 'ff', [1, 2])
    """
    if name in {"bytes", "str"}:
        return None if name == "bytes" else _text
    if name.startswith("pack:"):
        return unpacker(name.removeprefix("pack:"))
    if name in NUMBERS:
        return _number(name)
    if name.partition(":")[0] in REGISTRY and connection is not None:
        return _with_registry(name, connection)
    if name in INTERNAL:
        return _internal_value(name)
    functions: dict[str, Decode] = {
        "hex": lambda data: data.hex(),
        "base64": lambda data: b64encode(data).decode(),
        "json": _json,
        "uuid": _uuid,
    }
    if name not in functions:
        raise _unknown(name)
    return functions[name]


def _number(name: str) -> Decode:
    layout = struct.Struct(NUMBERS[name])

    def number(data: bytes) -> object:
        if len(data) != layout.size:
            raise Undecodable(f"{name} needs {layout.size} bytes, not {len(data)}")
        return layout.unpack(data)[0]

    return number


def _guarded(decode: Decode, *errors: type[Exception]) -> Decode:
    """Return a function whose errors about the bytes are `Undecodable`."""

    def guarded(data: bytes) -> object:
        try:
            return decode(data)
        except errors as error:
            raise Undecodable(str(error)) from None

    return guarded


def _with_registry(name: str, connection: Connection) -> Decode:
    from kafka.schema_registry import SchemaDeserializer, SchemaMismatchError

    kind = REGISTRY[name.partition(":")[0]]
    return _guarded(SchemaDeserializer(connection.registry(name), kind=kind, form="json").decode, SchemaMismatchError)


def _decode_internal(name: str) -> Callable[[Any, Any], Any]:
    from kafka.protocol.versioned import decode_group_log, decode_transaction_log

    return decode_transaction_log if name == "transaction-log" else decode_group_log


def _internal_value(name: str) -> Decode:
    """Return the function for values of an internal topic. Their key has their type, so one of this type serves."""
    from kafka.errors import KafkaProtocolError

    decode, key = _decode_internal(name), INTERNAL[name][1]
    return _guarded(lambda data: decode(key, data).value.to_json(), KafkaProtocolError)


def internal_key(name: str) -> Decode:
    """Return the function for keys of an internal topic.

    >>> internal_key("group-metadata")(bytes.fromhex("0002 0007") + b"billing")
    {'group': 'billing'}
    """
    from kafka.errors import KafkaProtocolError

    decode = _decode_internal(name)
    return _guarded(lambda data: decode(data, None).key.to_json(), KafkaProtocolError)


def key_decoder(name: str, connection: Connection | None = None) -> Decode | None:
    """Return `decoder`, for a key."""
    return internal_key(name) if name in INTERNAL else decoder(name, connection)


def is_of_internal_type(name: str) -> Callable[[ConsumerRecord], bool]:
    """Return the function that chooses the records of an internal topic that are of a type; its key says so."""
    numbers = INTERNAL[name][0]
    return lambda r: r[5] is not None and len(r[5]) > 1 and int.from_bytes(r[5][:2], "big") in numbers


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Undecodable(f"not text in UTF-8: {error.reason} at byte {error.start}") from None


def _json(data: bytes) -> object:
    try:
        return from_json(data)
    except ValueError as error:
        raise Undecodable(f"not JSON: {error}") from None


def _uuid(data: bytes) -> str:
    from uuid import UUID

    if len(data) == 16:
        return str(UUID(bytes=data))
    try:
        return str(UUID(_text(data)))
    except ValueError:
        raise Undecodable(f"not a UUID: {len(data)} bytes") from None


_PACK: Final = frozenset("bBhHiIqQc")


def unpacker(layout: str) -> Decode:
    """Return the function of a pack string of kcat: <, > and spaces, bBhHiIqQ, c a character, s the rest, $ the end."""
    for char in layout:
        if char not in "<> s$" and char not in _PACK:
            raise UsageError(f"pack:{layout}: {char!r} is not one of < > b B h H i I q Q c s $")

    def unpack(data: bytes) -> list[object]:
        order, at = ">", 0
        found: list[object] = []
        for char in layout:
            if char in "<>":
                order = char
            elif char == "s":
                found.append(data[at:].decode(errors="replace"))
                at = len(data)
            elif char == "$" and at != len(data):
                raise Undecodable(f"pack:{layout}: {len(data) - at} bytes are left")
            elif char in _PACK:
                found.append(_number_at(data, at, order + char, layout))
                at += struct.calcsize(order + char)
        return found

    return unpack


def _number_at(data: bytes, at: int, code: str, layout: str) -> object:
    size = struct.calcsize(code)
    if len(data) - at < size:
        raise Undecodable(f"pack:{layout}: {code[1]} needs {size} bytes, and {len(data) - at} are left")
    (value,) = struct.unpack_from(code, data, at)
    return value.decode("latin-1") if isinstance(value, bytes) else value


# Writing…


def encoder(name: str) -> Callable[[bytes], bytes]:
    """Return the function that turns text into bytes of a type, which needs no registry.

    >>> encoder("long")(b"7"), encoder("hex")(b"ff00")
    (b'\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x07', b'\\xff\\x00')
    """
    if name in NUMBERS:
        return _number_encoder(name)
    functions: dict[str, Callable[[bytes], bytes]] = {
        "str": lambda text: text,
        "bytes": lambda text: text,
        "hex": lambda text: bytes.fromhex(text.decode()),
        "base64": lambda text: b64decode(text, validate=True),
        "json": _checked_json,
        "uuid": lambda text: text,
    }
    if name not in functions:
        if name in INTERNAL:
            raise UsageError(f"records of the type {name} are written by brokers only")
        raise _unknown(name)
    return functions[name]


def _number_encoder(name: str) -> Callable[[bytes], bytes]:
    def number(text: bytes) -> bytes:
        try:
            return struct.pack(NUMBERS[name], float(text) if name in {"float", "double"} else int(text))
        except (struct.error, OverflowError) as error:
            raise ValueError(f"{text.decode(errors='replace')!r} is not a {name}: {error}") from None

    return number


def _checked_json(text: bytes) -> bytes:
    from_json(text)
    return text


def schema_serializer(arguments: Namespace, part: str, connection: Connection) -> SchemaSerializer | None:
    """Return what writes a part of a record, ``key`` or ``value``, by a schema; None for types without a registry."""
    name = getattr(arguments, f"{part}_type")
    word: str | None = getattr(arguments, f"{part}_schema")
    kind, _, message = name.partition(":")
    if kind not in REGISTRY or (message and kind != "protobuf"):
        if word is not None:
            raise UsageError(f"--{part}-schema needs --{part}-type avro, protobuf or jsonschema")
        return None
    from kafka.schema_registry import Schema, SchemaSerializer

    registry = connection.registry(kind)
    schema: Schema | None = None
    if word is not None:
        own = not word.isdecimal()
        schema = Schema(text_of(word, f"--{part}-schema"), REGISTRY[kind]) if own else registry.schema(int(word))
    return SchemaSerializer(
        registry, schema, key=part == "key", kind=REGISTRY[kind], form="json", message=message or None
    )
