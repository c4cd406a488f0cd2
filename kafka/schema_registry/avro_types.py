"""Avro schemas as trees of types: parsed and checked once, for compatibility, resolution and columns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = [
    "NO_DEFAULT",
    "PRIMITIVES",
    "PROMOTIONS",
    "AvroError",
    "AvroField",
    "AvroType",
    "check_taken",
    "matched_fields",
    "matches_by_name",
    "parse_types",
    "possible_branches",
    "writer_field",
]

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: The type of a reader -> the types of a writer that it takes besides its own.
PROMOTIONS: Final[dict[str, tuple[str, ...]]] = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "bytes": ("string",),
    "string": ("bytes",),
}
#: A default may be null, so its absence is something else.
NO_DEFAULT: Final = object()


class AvroError(ValueError):
    """A schema is wrong, bytes are not of the schema, or a value does not fit into it."""


@dataclass(eq=False)
class AvroType:
    """One type: `kind` is a primitive, record, enum, array, map, fixed or union; the rest depends on it."""

    kind: str
    name: str = ""
    aliases: tuple[str, ...] = ()
    fields: list[AvroField] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    default_symbol: str | None = None
    branches: list[AvroType] = field(default_factory=list)
    items: AvroType | None = None
    """The items of an array, or the values of a map."""
    size: int = 0
    logical: str | None = None
    precision: int = 0
    scale: int = 0

    def __repr__(self) -> str:
        return f"<AvroType {self.name or self.kind}>"

    @property
    def item(self) -> AvroType:
        """The items of an array, or the values of a map."""
        assert self.items is not None
        return self.items


@dataclass(eq=False)
class AvroField:
    """A field of a record."""

    name: str
    type: AvroType
    default: Any = NO_DEFAULT
    aliases: tuple[str, ...] = ()

    @property
    def has_default(self) -> bool:
        """Whether a record may lack the field."""
        return self.default is not NO_DEFAULT


def parse_types(text: str, references: Iterable[str] = ()) -> AvroType:
    """Return the type of a schema's text; `references` are the texts of schemas that it uses, in their order.

    >>> parse_types('{"type": "record", "name": "User", "namespace": "shop", "fields": []}').name
    'shop.User'
    """
    parser = _Parser()
    try:
        for one in references:
            parser.parse(json.loads(one), "")
        return parser.parse(json.loads(text), "")
    except AvroError:
        raise
    except RecursionError:
        raise AvroError("the Avro schema is nested too deeply") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise AvroError(f"the Avro schema is wrong: {type(error).__name__}: {error}") from None


# Resolution: values of a writer's schema are read as the types of a reader's.


def check_taken(writer: AvroType, reader: AvroType) -> None:
    """Raise unless values of a writer's type can be read as a reader's; neither is a union."""
    if writer.kind != reader.kind:
        if writer.kind not in PROMOTIONS.get(reader.kind, ()):
            raise AvroError(f"the reader's type {reader.kind} does not read {writer.name or writer.kind}")
    elif reader.name and not matches_by_name(reader, writer):
        raise AvroError(f"the reader's type {reader.name} does not read {writer.name}")
    elif reader.size != writer.size:
        raise AvroError(f"the reader's type {reader.name} has {reader.size} bytes, and the writer's {writer.size}")


def possible_branches(writer: AvroType, reader: AvroType) -> list[AvroType]:
    """Return the branches of a reader's union in the order in which they are tried for a writer's type."""
    exact = [one for one in reader.branches if one.kind == writer.kind and one.logical == writer.logical]
    return [*exact, *reader.branches]


def matched_fields(
    writer: AvroType, reader: AvroType
) -> tuple[list[tuple[AvroField, AvroField | None]], list[AvroField]]:
    """Return the fields of a writer's record, each with the reader's for it, and the reader's other ones."""
    ours = {id(theirs): one for one in reader.fields if (theirs := writer_field(writer, one)) is not None}
    pairs = [(theirs, ours.get(id(theirs))) for theirs in writer.fields]
    there = {one.name for one in ours.values()}
    missing = [one for one in reader.fields if one.name not in there]
    for one in missing:
        if not one.has_default:
            raise AvroError(f"the field {one.name!r} of {reader.name} has no default, and was not written")
    return pairs, missing


def matches_by_name(reader: AvroType, writer: AvroType) -> bool:
    """Return whether a named type of a reader is the writer's: of the same name, or under an alias."""
    return reader.name == writer.name or writer.name in reader.aliases


def writer_field(writer: AvroType, wanted: AvroField) -> AvroField | None:
    """Return the field of a writer's record that a field of the reader's is read from, by its name or an alias."""
    for name in (wanted.name, *wanted.aliases):
        for one in writer.fields:
            if one.name == name:
                return one
    return None


class _Parser:
    def __init__(self) -> None:
        self._named: dict[str, AvroType] = {}

    def parse(self, schema: Any, namespace: str) -> AvroType:
        if isinstance(schema, list):
            return self._union(schema, namespace)
        if isinstance(schema, str):
            return self._by_name(schema, namespace)
        if not isinstance(schema, dict):
            raise AvroError(f"the Avro schema is wrong: {schema!r} is not a type")
        kind = schema["type"]
        if isinstance(kind, (dict, list)):
            return self.parse(kind, namespace)
        if kind in {"record", "error", "enum", "fixed"}:
            return self._declared(kind, schema, namespace)
        if kind in {"array", "map"}:
            return AvroType(kind, items=self.parse(schema["items" if kind == "array" else "values"], namespace))
        found = self._by_name(kind, namespace)
        if "logicalType" in schema and found.kind in PRIMITIVES:
            found = _with_logical(AvroType(found.kind), schema)
        return found

    def _by_name(self, name: str, namespace: str) -> AvroType:
        if name in PRIMITIVES:
            return AvroType(name)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        found = self._named.get(full) or self._named.get(name)
        if found is None:
            raise AvroError(f"the Avro schema uses the type {full!r}, which it does not declare")
        return found

    def _declared(self, kind: str, schema: dict[str, Any], namespace: str) -> AvroType:
        name = schema["name"]
        namespace = name.rpartition(".")[0] if "." in name else schema.get("namespace", namespace) or ""
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        for part in full.split("."):
            _check_name(part)
        if full in self._named:
            raise AvroError(f"the Avro schema declares the type {full!r} twice")
        aliases = tuple(
            one if "." in one or not namespace else f"{namespace}.{one}" for one in schema.get("aliases") or ()
        )
        found = AvroType("record" if kind == "error" else kind, full, aliases)
        self._named[full] = found
        if kind == "fixed":
            found.size = int(schema["size"])
            return _with_logical(found, schema)
        if kind == "enum":
            found.symbols = [str(one) for one in schema["symbols"]]
            for symbol in found.symbols:
                _check_name(symbol)
            if len(set(found.symbols)) < len(found.symbols):
                raise AvroError(f"the enum {full} has a symbol twice")
            found.default_symbol = schema.get("default")
            if found.default_symbol is not None and found.default_symbol not in found.symbols:
                raise AvroError(f"the default {found.default_symbol!r} of the enum {full} is not one of its symbols")
            return found
        for one in schema["fields"]:
            _check_name(one["name"])
            if any(known.name == one["name"] for known in found.fields):
                raise AvroError(f"the record {full} has the field {one['name']!r} twice")
            found.fields.append(
                AvroField(
                    one["name"],
                    self.parse(one["type"], namespace),
                    one.get("default", NO_DEFAULT),
                    tuple(one.get("aliases") or ()),
                )
            )
        return found

    def _union(self, schema: list[Any], namespace: str) -> AvroType:
        branches = [self.parse(one, namespace) for one in schema]
        names = [one.name or one.kind for one in branches]
        if "union" in names:
            raise AvroError("a union of the Avro schema has a union as a branch")
        if len(set(names)) < len(names):
            raise AvroError(f"a union of the Avro schema has a type twice: {', '.join(names)}")
        return AvroType("union", branches=branches)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise AvroError(f"the Avro schema has the name {name!r}: names have letters, digits and _")


#: (logical type) -> the kinds that may have it; elsewhere it is ignored, as Avro says.
_LOGICAL_KINDS: Final[dict[str, tuple[str, ...]]] = {
    "decimal": ("bytes", "fixed"),
    "uuid": ("string", "fixed"),
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "timestamp-nanos": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
    "local-timestamp-nanos": ("long",),
    "duration": ("fixed",),
}


def _with_logical(found: AvroType, schema: dict[str, Any]) -> AvroType:
    name = schema.get("logicalType")
    if isinstance(name, str) and found.kind in _LOGICAL_KINDS.get(name, ()):
        found.logical = name
        if name == "decimal":
            found.precision, found.scale = int(schema.get("precision", 0)), int(schema.get("scale", 0))
    return found
