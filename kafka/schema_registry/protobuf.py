"""Protobuf with a schema registry: messages of descriptors that are known at run time only."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from kafka.schema_registry.avro_primitives import read_long, write_long
from kafka.schema_registry.proto_text import parse_proto
from kafka.schema_registry.registry import Reference, Schema, SchemaRegistry, SchemaRegistryError
from kafka.schema_registry.serializers import SchemaMismatchError, missing_extra, used_by

__all__ = ["ProtobufCodec", "file_descriptor", "is_repeated", "message_schema", "protobuf_codec", "protobuf_pool"]

#: Messages are nested a few levels deep; bytes that are no schema's may announce any number of indexes.
_DEEPEST: Final = 100
#: Files of Google's whose messages may stand in an Any without being imported.
_STANDARD: Final = ("any", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers")


def message_schema(message: type, references: Sequence[Reference] = ()) -> Schema:
    """Return the schema of a class that protoc generated: the descriptor of its file, in base64.

    ``references`` are the subjects of the files that it imports, other than Google's, under the names of the imports.

    >>> from google.protobuf.timestamp_pb2 import Timestamp
    >>> message_schema(Timestamp).kind
    'PROTOBUF'
    """
    file: Any = message.DESCRIPTOR.file  # type: ignore[attr-defined]
    return Schema(b64encode(file.serialized_pb).decode(), "PROTOBUF", tuple(references))


def protobuf_codec(registry: SchemaRegistry, schema: Schema, message: str | type | None) -> ProtobufCodec:
    """Return the codec of a schema; `message` names the type of messages that are written, or is a class of it."""
    used = list(used_by(registry, schema))
    name = ""
    try:
        files = []
        for name, text in (*((one.name, one.schema.text) for one in used), ("", schema.text)):
            files.append((name or f"schema-{schema.id}.proto", file_descriptor(text)))
        pool = protobuf_pool(files)
    except SchemaRegistryError:
        raise
    except Exception as error:  # of the package, which has several classes without a common one
        where = f", which uses {name}" if name else ""
        raise SchemaRegistryError(
            f"the Protobuf schema id {schema.id}{where} cannot be used: {type(error).__name__}: {error}"
        ) from None
    return ProtobufCodec(pool.FindFileByName(files[-1][0]), message, pool)


def protobuf_pool(files: Sequence[tuple[str, Any]]) -> Any:
    """Return a pool with files under the names by which later files import them, and the standard files of Google."""
    try:
        from google.protobuf import descriptor_pool
    except ImportError:
        raise missing_extra("Protobuf needs the package protobuf") from None
    pool = descriptor_pool.DescriptorPool()
    known: set[str] = set()
    for name, file in files:
        named = type(file).FromString(file.SerializeToString())
        named.name = name
        for needed in named.dependency:
            _add_standard(pool, needed, known)
        _forget_missing(named, known)
        known.add(name)
        pool.Add(named)
        pool.FindFileByName(name)  # which finds types that are missing
    for standard in _STANDARD:
        _add_standard(pool, f"google/protobuf/{standard}.proto", known)
    return pool


def file_descriptor(text: str) -> Any:
    """Return the descriptor of a schema, which registries have as a .proto file or as a descriptor in base64."""
    try:
        from google.protobuf import descriptor_pb2
        from google.protobuf.message import DecodeError
    except ImportError:
        raise missing_extra("Protobuf needs the package protobuf") from None

    try:
        return descriptor_pb2.FileDescriptorProto.FromString(b64decode(text, validate=True))
    except (ValueError, DecodeError):  # a .proto file has characters that base64 has not
        return parse_proto(text)


def _add_standard(pool: Any, name: str, known: set[str]) -> None:
    """Add a file of Google's, such as google/protobuf/timestamp.proto, to a pool."""
    from importlib import import_module

    from google.protobuf import descriptor_pb2

    if name in known or not name.startswith("google/"):
        return
    try:
        module = import_module(f"{name.removesuffix('.proto').replace('/', '.')}_pb2")
    except ImportError:  # google/type and others are in packages that may be missing
        return
    file = descriptor_pb2.FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(file)
    for needed in file.dependency:
        _add_standard(pool, needed, known)
    known.add(name)
    pool.Add(file)


def _forget_missing(file: Any, known: set[str]) -> None:
    """Drop the imports of files that are not known: they declare options, which are not needed to read records.

    If they declare types that are used, the error of the pool names these.
    """
    kept = [name for name in file.dependency if name in known]
    public = {file.dependency[index] for index in file.public_dependency}
    del file.dependency[:], file.public_dependency[:], file.weak_dependency[:]
    file.dependency.extend(kept)
    file.public_dependency.extend(index for index, name in enumerate(kept) if name in public)


class ProtobufCodec:
    """Reads and writes the messages of one file, as dicts in the JSON of Protobuf with the names of the file.

    With a generated class messages are of that class; messages of generated classes are written in any case.
    """

    def __init__(self, file: Any, message: str | type | None, pool: Any) -> None:
        self._file = file
        self._classes: dict[tuple[int, ...], Any] = {}
        self._generated: Any = message if isinstance(message, type) else None
        self._message = message.DESCRIPTOR.full_name if isinstance(message, type) else message  # type: ignore[attr-defined]
        self._indexes: dict[str, tuple[int, ...]] = {}
        self._pool = pool
        self._to_dict = _to_dict(pool)
        self._integers = _Integers()

    def message_class(self, name: str | None = None) -> Any:
        """Return the class of the message with a name, of the first one if there is none."""
        return self._class((0,) if name is None else self._indexes_of(name))

    def json_of(self, message: Any) -> str:
        """Return the JSON of a message as text; ValueError if it has none."""
        return json.dumps(self._dict_of(message), ensure_ascii=False, separators=(",", ":"))

    def _dict_of(self, message: Any) -> Any:
        from google.protobuf import json_format
        from google.protobuf.message import DecodeError

        try:
            return self._to_dict(message)
        # An Any of a type that the schema does not have, or with other bytes; a time beyond the year 9999.
        except (TypeError, DecodeError, json_format.Error) as error:
            raise ValueError(f"a message {message.DESCRIPTOR.full_name} cannot be read: {error}") from None

    def written_class(self, data: bytes, at: int) -> tuple[Any, int]:
        """Return the class of the message that bytes are of, and where it begins."""
        try:
            indexes, at = _indexes(data, at)
        except IndexError:
            raise ValueError("the value ends within the indexes of its message") from None
        return self._class(indexes), at

    def decode(self, data: bytes, at: int) -> Any:
        """Return the message in the bytes from `at` on, as a dict."""
        from google.protobuf.message import DecodeError

        kind, at = self.written_class(data, at)
        if self._generated is not None:
            name = kind.DESCRIPTOR.full_name
            if name != self._message:
                raise ValueError(f"the message is a {name}, not a {self._message}")
            kind = self._generated
        found = kind()
        try:
            found.ParseFromString(data[at:])
        except DecodeError as error:
            raise ValueError(f"the bytes are not a message {found.DESCRIPTOR.full_name}: {error}") from None
        if self._generated is not None:
            return found
        return self._integers.in_message(found.DESCRIPTOR, self._dict_of(found))

    def encode(self, value: Any, prefix: bytes) -> bytes:
        """Return the bytes of a dict, or of a message of a generated class, behind a prefix."""
        from google.protobuf import json_format
        from google.protobuf.message import EncodeError, Message

        if isinstance(value, Message):
            found: Any = value
            indexes = self._indexes_of(found.DESCRIPTOR.full_name)
        else:
            indexes = (0,) if self._message is None else self._indexes_of(self._message)
            found = self._class(indexes)()
            try:
                json_format.ParseDict(value, found, descriptor_pool=self._pool)
            except (json_format.ParseError, AttributeError, TypeError) as error:
                raise ValueError(f"the value does not fit into {found.DESCRIPTOR.full_name}: {error}") from None
        out = bytearray(prefix)
        if indexes == (0,):  # the first message of the file has a short form
            out.append(0)
        else:
            write_long(len(indexes), out)
            for index in indexes:
                write_long(index, out)
        try:
            return bytes(out) + bytes(found.SerializeToString())
        except EncodeError as error:  # a required field is missing
            raise ValueError(str(error)) from None

    def _class(self, indexes: tuple[int, ...]) -> Any:
        found = self._classes.get(indexes)
        if found is None:
            from google.protobuf.message_factory import GetMessageClass

            messages = list(self._file.message_types_by_name.values())
            descriptor: Any = None
            for index in indexes:
                if not 0 <= index < len(messages):
                    raise ValueError(f"the schema has no message with the indexes {list(indexes)}")
                descriptor = messages[index]
                messages = descriptor.nested_types
            found = self._classes[indexes] = GetMessageClass(descriptor)
        return found

    def _indexes_of(self, name: str) -> tuple[int, ...]:
        known = self._indexes

        def visit(messages: Any, before: tuple[int, ...]) -> None:
            for index, one in enumerate(messages):
                known[one.full_name] = known[one.name] = (*before, index)
                visit(one.nested_types, (*before, index))

        if not known:
            visit(self._file.message_types_by_name.values(), ())
        if name not in known:
            raise SchemaMismatchError(f"the schema has no message {name!r}; it has {', '.join(sorted(known))}")
        return known[name]


def _to_dict(pool: Any) -> Callable[[Any], Any]:
    """Return the function that turns a message into a dict with all fields, also if they are 0, empty or false."""
    from inspect import signature

    from google.protobuf.json_format import MessageToDict

    zeros = "always_print_fields_with_no_presence"
    if zeros not in signature(MessageToDict).parameters:  # protobuf before 5.26
        zeros = "including_default_value_fields"
    return partial(MessageToDict, preserving_proto_field_name=True, descriptor_pool=pool, **{zeros: True})


class _Integers:
    """Makes numbers of the integers of 64 bits, which are text in the JSON of Protobuf for the sake of JavaScript."""

    def __init__(self) -> None:
        self._fields: dict[str, list[tuple[str, Callable[[Any], Any]]]] = {}

    def in_message(self, descriptor: Any, value: Any) -> Any:
        """Return the value of a message with numbers."""
        name = descriptor.full_name
        if name in {"google.protobuf.Int64Value", "google.protobuf.UInt64Value"}:
            return int(value)
        if name.startswith("google.protobuf."):  # each has another form
            return value
        fields = self._fields.get(name)
        if fields is None:
            fields = self._fields[name] = []  # known before they are complete: a message may contain itself
            for field in descriptor.fields:
                convert = self._of(field)
                if convert is not None:
                    fields.append((field.name, convert))
        for field_name, convert in fields:
            if field_name in value:
                value[field_name] = convert(value[field_name])
        return value

    def _of(self, field: Any) -> Callable[[Any], Any] | None:
        """Return what makes numbers of a field's value; None if it has none of these integers."""
        inner = field.message_type
        if inner is not None and inner.GetOptions().map_entry:
            of_value = self._of(inner.fields_by_name["value"])
            return None if of_value is None else partial(_in_values, of_value)
        one: Callable[[Any], Any] | None = None
        if inner is not None:
            one = partial(self.in_message, inner)
        elif field.cpp_type in {field.CPPTYPE_INT64, field.CPPTYPE_UINT64}:
            one = int
        return partial(_in_list, one) if one is not None and is_repeated(field) else one


def _in_values(one: Callable[[Any], Any], values: dict[str, Any]) -> dict[str, Any]:
    return {key: one(value) for key, value in values.items()}


def _in_list(one: Callable[[Any], Any], values: list[Any]) -> list[Any]:
    return [one(value) for value in values]


def is_repeated(field: Any) -> bool:
    """Return whether a field has a list of values."""
    found = getattr(field, "is_repeated", None)  # protobuf before 6.30 has labels
    return field.label == field.LABEL_REPEATED if found is None else bool(found)


def _indexes(data: bytes, at: int) -> tuple[tuple[int, ...], int]:
    count, at = read_long(data, at)
    if not 0 <= count <= _DEEPEST:
        raise ValueError(f"{count} is not a number of indexes of a message")
    found = []
    for _ in range(count):
        index, at = read_long(data, at)
        found.append(index)
    return tuple(found) or (0,), at
