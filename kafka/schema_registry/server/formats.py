"""The three formats of schemas as the registry sees them: is a text valid, is it known already, does it fit."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from kafka.schema_registry.avro import AvroError, parse_avro
from kafka.schema_registry.registry import SchemaRegistryError
from kafka.schema_registry.server.avro_compatibility import avro_differences
from kafka.schema_registry.server.json_compatibility import json_differences
from kafka.schema_registry.server.protobuf_compatibility import protobuf_differences

__all__ = ["KINDS", "InvalidSchema", "Parsed", "parse_schema"]

#: In the order in which Confluent's registry names them.
KINDS: Final = ("JSON", "PROTOBUF", "AVRO")


class InvalidSchema(ValueError):  # noqa: N818 - the name of the answer
    """The text is not a schema of its format."""


class Parsed(NamedTuple):
    """A schema that was understood."""

    kind: str
    text: str
    """As the registry returns it."""
    identity: str
    """Equal for texts that differ only in how they are written."""
    content: Any
    used: tuple[tuple[str, Any], ...]
    """The schemas that it uses, with the names by which it does, as they are compared."""

    def differences(self, older: Parsed) -> list[str]:
        """Return what keeps this schema from reading what was written with an older one."""
        if self.kind != older.kind:
            return [f"the type {older.kind} became {self.kind}"]
        if self.kind == "AVRO":
            return avro_differences(self.content, older.content)
        if self.kind == "JSON":
            return json_differences(self.content, dict(self.used), older.content, dict(older.used))
        ours, theirs = ([file for _, file in one.used] for one in (self, older))
        return protobuf_differences(self.content, ours, older.content, theirs)

    def serialized(self) -> str:
        """Return a Protobuf schema as a descriptor in base64, as ``format=serialized`` asks for it."""
        return b64encode(self.content.SerializeToString()).decode() if self.kind == "PROTOBUF" else self.text


def parse_schema(kind: str, text: str, used: Sequence[tuple[str, str]]) -> Parsed:
    """Return a schema of a kind; `used` has the names and texts of the schemas it uses, each behind its own.

    >>> parse_schema("AVRO", ' "string" ', []).text
    '"string"'
    """
    if kind == "PROTOBUF":
        return _parse_protobuf(text, used)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidSchema(f"the schema is not JSON: {error}") from None
    compact = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    identity = json.dumps(content, sort_keys=True)
    if kind == "AVRO":
        try:
            return Parsed(kind, compact, identity, parse_avro(text, [one for _, one in used]), ())
        except AvroError as error:
            raise InvalidSchema(str(error)) from None
    if not isinstance(content, (dict, bool)):
        raise InvalidSchema("a JSON Schema is an object, true or false")
    problem = next(_json_problems(content, "#"), None)
    if problem is not None:
        raise InvalidSchema(problem)
    return Parsed(kind, compact, identity, content, tuple((name, json.loads(one)) for name, one in used))


_JSON_TYPES: Final = {"array", "boolean", "integer", "null", "number", "object", "string"}
_SCHEMAS: Final = ("additionalProperties", "additionalItems", "not", "contains", "propertyNames", "if", "then", "else")
_LISTS: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED: Final = ("properties", "patternProperties", "definitions", "$defs", "dependentSchemas")


def _json_problems(schema: Any, path: str) -> Iterator[str]:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        yield f"{path}: a schema is an object, true or false"
        return
    types = schema.get("type", [])
    for one in types if isinstance(types, list) else [types]:
        if not isinstance(one, str) or one not in _JSON_TYPES:
            yield f"{path}/type: {one!r} is not a type of JSON"
    if not isinstance(schema.get("required", []), (list, bool)):
        yield f"{path}/required: it must be a list of names"
    for word, kind in (*((one, list) for one in _LISTS), *((one, dict) for one in _NAMED)):
        if not isinstance(schema.get(word, kind()), kind):
            yield f"{path}/{word}: it must be {'a list' if kind is list else 'an object'}"
            return
    for place, one in _inner(schema):
        yield from _json_problems(one, f"{path}/{place}")


def _inner(schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the schemas in a schema, with their places."""
    for word in _SCHEMAS:
        if word in schema:
            yield word, schema[word]
    for word in _LISTS:
        for number, one in enumerate(schema.get(word, ())):
            yield f"{word}/{number}", one
    items = schema.get("items", True)
    for number, one in enumerate(items if isinstance(items, list) else [items]):
        yield f"items/{number}", one
    for word in _NAMED:
        for name, one in schema.get(word, {}).items():
            yield f"{word}/{name}", one


def _parse_protobuf(text: str, used: Sequence[tuple[str, str]]) -> Parsed:
    from kafka.schema_registry.protobuf import file_descriptor, protobuf_pool

    try:
        files = [(name, file_descriptor(one)) for name, one in used]
        content = file_descriptor(text)
        protobuf_pool([*files, ("schema.proto", content)])
    except SchemaRegistryError:  # the package is missing
        raise
    except Exception as error:  # the package protobuf has several classes without a common one
        raise InvalidSchema(f"the schema is not a .proto file: {error}") from None
    plain = type(content).FromString(content.SerializeToString())
    for name in ("name", "source_code_info"):
        plain.ClearField(name)
    _resolve_nothing(plain)
    return Parsed("PROTOBUF", text, plain.SerializeToString(deterministic=True).hex(), content, tuple(files))


def _resolve_nothing(file: Any) -> None:
    """Make types look alike that a .proto file names and a descriptor of protoc resolves."""
    package = f".{file.package}." if file.package else "."

    def visit(message: Any) -> None:
        for field in (*message.field, *message.extension):
            if field.type_name:
                field.ClearField("type")
                field.type_name = field.type_name.removeprefix(package).lstrip(".").rpartition(".")[2]
            field.ClearField("json_name")
        for nested in message.nested_type:
            visit(nested)

    for message in file.message_type:
        visit(message)
    for field in file.extension:
        field.ClearField("json_name")
