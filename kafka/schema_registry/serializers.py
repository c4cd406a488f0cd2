"""Serializers with a schema registry: a zero byte, the id of the schema in four bytes, then the value.

In Protobuf the indexes of the message in its file stand between the id and the value. The schema decides the encoding,
so one deserializer reads topics with several of them.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from kafka.errors import IllegalArgumentError
from kafka.schema_registry.avro import FORMS, AvroError, compile_type, parse_avro, resolve_avro
from kafka.schema_registry.registry import Reference, Schema, SchemaRegistry, SchemaRegistryError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator

    from kafka.schema_registry.avro_types import AvroType

__all__ = ["KINDS", "SchemaDeserializer", "SchemaMismatchError", "SchemaSerializer", "missing_extra", "schema_id"]

#: The types of schemas, as registries name them.
KINDS: Final = ("AVRO", "JSON", "PROTOBUF")
_HEADER: Final = struct.Struct(">bI")
#: The header of a record that has the id of the schema of its key or value, if that does not stand before it.
ID_HEADER: Final = {"key": "__key_schema_id", "value": "__value_schema_id"}
_GUID_BYTES: Final = 17
_NOT_FOUND: Final = 404


class SchemaMismatchError(IllegalArgumentError):
    """Bytes are not of the schema that they name, or a value does not fit into the schema of its subject."""

    def __str__(self) -> str:
        return str(self.args[0])


class Codec(Protocol):
    """Reads and writes the bytes behind the id of a schema; ValueError says what does not fit."""

    def decode(self, data: bytes, at: int) -> Any:
        """Return the value in the bytes from `at` on."""

    def encode(self, value: object, prefix: bytes) -> bytes:
        """Return the bytes of a value behind a prefix."""


def missing_extra(what: str) -> SchemaRegistryError:
    """Return the error of a feature whose package is not installed."""
    return SchemaRegistryError(f"{what}: pip install 'purekafka[registry]'")


def schema_id(data: bytes | None) -> int | None:
    """Return the id of the schema that bytes begin with; None if they do not begin with one.

    >>> schema_id(bytes.fromhex("00 0000002a 02")), schema_id(b"plain text")
    (42, None)
    """
    if data is None or len(data) < _HEADER.size or data[0]:
        return None
    return int(_HEADER.unpack_from(data)[1])


def header_id(data: bytes | None) -> int | str:
    """Return the id of a schema in the bytes of a header: a number behind 00, a GUID behind 01.

    >>> header_id(bytes.fromhex("00 0000002a")), header_id(bytes([1]) + bytes(16))
    (42, '00000000-0000-0000-0000-000000000000')
    """
    if data is not None and len(data) == _HEADER.size and not data[0]:
        return int(_HEADER.unpack(data)[1])
    if data is not None and len(data) == _GUID_BYTES and data[0] == 1:
        from uuid import UUID

        return str(UUID(bytes=bytes(data[1:])))
    raise SchemaMismatchError(f"{data!r} is not 00 and the id of a schema, nor 01 and the GUID of one")


class SchemaDeserializer:
    """A deserializer for a client, of all records that were written with a schema registry.

    ``kind`` (``AVRO``, ``JSON``, ``PROTOBUF``) refuses schemas of the other types. ``form`` is for Avro: ``native`` has
    the values of Python, ``json`` what JSON can carry, ``tagged`` Avro's own JSON, ``short_tagged`` the same with the
    names of types without namespaces. A message of Protobuf is a dict with the names of its fields, whose values are as
    in the JSON of Protobuf, except that integers of 64 bits are numbers. It has all fields that are not optional, the
    fields that are 0, empty or false among them; with ``message``, a class that protoc generated, it is one of that
    class. The id of the schema stands before the value, or in the header ``__value_schema_id``, with ``key`` in
    ``__key_schema_id``.

    ``schema`` is a reader's schema of Avro: values that other versions wrote have its fields, with its defaults for
    missing ones. Without it each value is as its writer's schema has it.

    A schema is looked up once, by the thread that reads records. In a program with `kafka.aio` that would block the
    event loop: leave the option ``value_deserializer`` out there, and await `deserialize_async`.

    >>> from kafka.schema_registry import SchemaDeserializer, SchemaRegistry
    >>> deserializer = SchemaDeserializer(SchemaRegistry("http://localhost:8081"))
    >>> deserializer.deserialize("events", [], None) is None
    True
    """

    def __init__(
        self,
        registry: SchemaRegistry,
        *,
        kind: str | None = None,
        form: str = "native",
        key: bool = False,
        schema: Schema | None = None,
        message: type | None = None,
    ) -> None:
        self._registry = registry
        self._kind = _kind(kind)
        self._form = _form(form)
        self._codecs: dict[int | str, Codec] = {}
        self._header = ID_HEADER["key" if key else "value"]
        if schema is not None and schema.kind != "AVRO":
            raise IllegalArgumentError(f"a reader's schema must be of Avro, not {schema.kind}")
        self._reader = schema
        self._message = message
        self._lookups = _Lookups()

    def deserialize(self, topic: str, headers: Any, data: bytes | None) -> Any:  # noqa: ARG002 - the form of 3.x
        """Return the value of the bytes; None stays None. A header may have the id of their schema."""
        return None if data is None else self._decode(*self._named(headers, data))

    async def deserialize_async(self, topic: str, headers: Any, data: bytes | None) -> Any:  # noqa: ARG002
        """Return the value of the bytes; a thread looks up a schema that is not known yet, while other tasks continue.

        ::

            async for record in consumer:
                value = await deserializer.deserialize_async(record.topic, record.headers, record.value)
        """
        if data is None:
            return None
        identifier, data, at = self._named(headers, data)
        if identifier not in self._codecs:
            await self._lookups.run(identifier, lambda: self._codecs.update({identifier: self._codec(identifier)}))
        return self._decode(identifier, data, at)

    def decode(self, data: bytes) -> Any:
        """Return the value of the bytes; SchemaMismatchError if they are not of the schema that they name."""
        return self._decode(*self._named((), data))

    def _named(self, headers: Any, data: bytes) -> tuple[int | str, bytes, int]:
        """Return the id of the schema of bytes, and where their value begins."""
        for name, value in headers or ():
            if name == self._header:
                return header_id(value), data, 0
        identifier = schema_id(data)
        if identifier is None:
            begin = bytes(data[:5]).hex()
            raise SchemaMismatchError(f"the bytes begin with {begin or 'nothing'}, not with 00 and the id of a schema")
        return identifier, data, _HEADER.size

    def _decode(self, identifier: int | str, data: bytes, at: int) -> Any:
        codec = self._codecs.get(identifier)
        if codec is None:
            codec = self._codec(identifier)
            self._codecs[identifier] = codec
        try:
            return codec.decode(data, at)
        except ValueError as error:
            raise SchemaMismatchError(f"schema id {identifier}: {error}") from None
        except RecursionError:
            raise SchemaMismatchError(f"schema id {identifier}: the value is nested too deeply") from None

    def _codec(self, identifier: int | str) -> Codec:
        schema = writer_schema(self._registry, identifier)
        if self._kind not in {None, schema.kind}:
            raise SchemaMismatchError(f"schema id {identifier} is of type {schema.kind}, not {self._kind}")
        return _codec_of(self._registry, schema, self._form, self._message, self._reader)


class SchemaSerializer:
    """A serializer for a client: values are written with the schema of a subject.

    ``subject`` is ``TOPIC-value``, or ``TOPIC-key`` with ``key=True``, unless it is given. The schema is the newest one
    of the subject when the first record is sent; with ``schema`` the given one is registered under the subject. A value
    of Avro is what `SchemaDeserializer` returns in the same form; a value of Protobuf is a message of a class that
    protoc generated, or a dict, and then ``message`` names its type if the file has several. JSON values are checked by
    their schema. `message_schema` returns the schema of a generated class.

    The thread that sends looks up the schema, once for each subject. In a program with `kafka.aio` await
    `serialize_async` instead of giving the serializer to the producer, or once for each topic before.

    >>> from kafka.schema_registry import Schema, SchemaRegistry, SchemaSerializer
    >>> serializer = SchemaSerializer(SchemaRegistry("http://localhost:8081"), Schema('"long"'), key=True)
    >>> serializer.subject("events")
    'events-key'
    """

    def __init__(
        self,
        registry: SchemaRegistry,
        schema: Schema | None = None,
        *,
        subject: str | None = None,
        key: bool = False,
        kind: str | None = None,
        form: str = "native",
        message: str | type | None = None,
    ) -> None:
        self._registry = registry
        self._schema = schema
        self._subject = subject
        self._part = "key" if key else "value"
        self._kind = _kind(kind)
        self._form = _form(form)
        self._message = message
        self._writers: dict[str, tuple[bytes, Codec]] = {}
        self._lookups = _Lookups()

    def subject(self, topic: str) -> str:
        """Return the subject whose schema the records of a topic have."""
        return self._subject or f"{topic}-{self._part}"

    def serialize(self, topic: str, headers: object, data: object) -> bytes | None:  # noqa: ARG002 - the form of 3.x
        """Return the bytes of a value; None stays a null."""
        return None if data is None else self.encode(topic, data)

    async def serialize_async(self, topic: str, headers: object, data: object) -> bytes | None:  # noqa: ARG002
        """Return the bytes of a value; a thread looks up a schema that is not known yet, while other tasks continue."""
        if data is None:
            return None
        subject = self.subject(topic)
        if subject not in self._writers:
            await self._lookups.run(subject, lambda: self._writers.update({subject: self._writer(subject)}))
        return self.encode(topic, data)

    def encode(self, topic: str, value: object) -> bytes:
        """Return the bytes of a value; SchemaMismatchError if it does not fit into the schema."""
        subject = self.subject(topic)
        writer = self._writers.get(subject)
        if writer is None:
            writer = self._writers[subject] = self._writer(subject)
        prefix, codec = writer
        try:
            return codec.encode(value, prefix)
        except ValueError as error:
            raise SchemaMismatchError(f"subject {subject!r}: {error}") from None
        except RecursionError:
            raise SchemaMismatchError(f"subject {subject!r}: the value is nested too deeply") from None

    def _writer(self, subject: str) -> tuple[bytes, Codec]:
        schema = self._schema
        if schema is None:
            schema = self._registry.latest(subject)
        elif schema.id < 0:
            schema = schema._replace(id=self._registry.register(subject, schema))
        if self._kind not in {None, schema.kind}:
            raise SchemaMismatchError(f"the schema of subject {subject!r} is of type {schema.kind}, not {self._kind}")
        codec = _codec_of(self._registry, schema, self._form, self._message)
        return _HEADER.pack(0, schema.id), codec


def _kind(given: str | None) -> str | None:
    if given is not None and given not in KINDS:
        raise IllegalArgumentError(f"kind must be one of {', '.join(KINDS)}, not {given!r}")
    return given


def _form(given: str) -> str:
    if given not in FORMS:
        raise IllegalArgumentError(f"form must be one of {', '.join(FORMS)}, not {given!r}")
    return given


class _Lookups:
    """Lookups of a registry by threads, for tasks of asyncio, which share the lookup of the same schema."""

    def __init__(self) -> None:
        self._running: dict[tuple[object, int | str], asyncio.Future[None]] = {}

    async def run(self, what: int | str, look: Callable[[], None]) -> None:
        """Wait until a lookup is done; a task that is cancelled meanwhile leaves it to the others."""
        import asyncio

        loop = asyncio.get_running_loop()
        key = (loop, what)
        running = self._running.get(key)
        if running is None:
            running = self._running[key] = loop.run_in_executor(None, look)
            running.add_done_callback(lambda done: (self._running.pop(key), done.cancelled() or done.exception()))
        await asyncio.shield(running)


def _codec_of(
    registry: SchemaRegistry,
    schema: Schema,
    form: str,
    message: str | type | None = None,
    reader: Schema | None = None,
) -> Codec:
    if reader is not None and schema.kind != "AVRO":
        raise SchemaMismatchError(f"schema id {schema.id} is of type {schema.kind}, and the reader's is of Avro")
    if schema.kind == "JSON":
        return _JsonCodec(registry, schema)
    if schema.kind == "PROTOBUF":
        from kafka.schema_registry.protobuf import protobuf_codec

        return protobuf_codec(registry, schema, message)
    if schema.kind != "AVRO":
        raise SchemaMismatchError(f"schema id {schema.id} is of the unknown type {schema.kind}")
    try:
        writer = avro_type(registry, schema)
        return compile_type(writer, form) if reader is None else resolve_avro(writer, avro_type(registry, reader), form)
    except AvroError as error:
        raise SchemaMismatchError(f"schema id {schema.id}: {error}") from None


def avro_type(registry: SchemaRegistry, schema: Schema) -> AvroType:
    """Return the type of a schema of Avro, with the ones that it refers to."""
    return parse_avro(schema.text, [one.schema.text for one in used_by(registry, schema)])


def writer_schema(registry: SchemaRegistry, identifier: int | str) -> Schema:
    """Return the schema that a record names; SchemaMismatchError if the registry does not have it."""
    try:
        return registry.schema_named(identifier)
    except SchemaRegistryError as error:
        if error.status != _NOT_FOUND:
            raise
        raise SchemaMismatchError(str(error)) from None


class Used(NamedTuple):
    """A schema that another one refers to, under a name."""

    name: str
    schema: Schema


def used_by(registry: SchemaRegistry, schema: Schema) -> Iterator[Used]:
    """Yield the schemas that a schema refers to, each behind the ones that it refers to itself."""
    seen: set[Reference] = set()

    def visit(one: Schema) -> Iterator[Used]:
        for reference in one.references:
            if reference not in seen:
                seen.add(reference)
                found = registry.version(reference.subject, reference.version)
                yield from visit(found)
                yield Used(reference.name, found)

    return visit(schema)


class _JsonCodec:
    """JSON Schema: the value is JSON. It is checked when it is written; a reader takes what was written."""

    def __init__(self, registry: SchemaRegistry, schema: Schema) -> None:
        self._registry = registry
        self._schema = schema
        self._validator: Any = None

    def decode(self, data: bytes, at: int) -> Any:
        return json.loads(data[at:])

    def encode(self, value: object, prefix: bytes) -> bytes:
        if self._validator is None:
            self._validator = self._make_validator()
        found = next(self._validator.iter_errors(value), None)
        if found is not None:
            place = found.json_path.removeprefix("$").lstrip(".")
            raise ValueError(f"{place}: {found.message}" if place else found.message)
        return prefix + json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

    def _make_validator(self) -> Any:
        try:
            from jsonschema.validators import validator_for
            from referencing import Registry, Resource
            from referencing.jsonschema import DRAFT7
        except ImportError:
            raise missing_extra("values of a JSON Schema are checked with the package jsonschema") from None
        text = json.loads(self._schema.text)
        resources = [
            (one.name, Resource.from_contents(json.loads(one.schema.text), default_specification=DRAFT7))
            for one in used_by(self._registry, self._schema)
        ]
        kind = validator_for(text)
        return kind(text, registry=Registry().with_resources(resources))
