"""JSON Schema to Arrow columns: properties of objects are columns, other parts are JSON as text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

__all__ = ["JsonColumns"]

_Convert = Callable[[Any], Any]


class JsonColumns:
    """Reads JSON into the columns of a reader's schema.

    >>> columns = JsonColumns({"type": "object", "properties": {"id": {"type": "integer"}, "any": {}}}, {})
    >>> str(columns.type), columns.decode(b'{"id": 1, "any": [2]}', 0)
    ('struct<id: int64, any: string>', {'id': 1, 'any': '[2]'})
    """

    def __init__(self, schema: Any, used: Mapping[str, Any]) -> None:
        self._documents = {**used, "": schema}
        self.type, self._convert = self._of(schema, ())

    def decode(self, data: bytes, at: int) -> Any:
        """Return the row of a value; ValueError if it is not JSON, or of another type."""
        return self._convert(json.loads(data[at:]))

    def _of(self, schema: Any, within: tuple[int, ...]) -> tuple[Any, _Convert]:
        schema = self._resolved(schema)
        if not isinstance(schema, dict) or id(schema) in within:
            return pa.string(), _text
        kind = self._type(schema)
        within = (*within, id(schema))
        if kind == "object" and schema.get("properties"):
            return self._object(schema["properties"], within)
        if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
            value, convert = self._of(schema["additionalProperties"], within)
            return pa.map_(pa.string(), value), _checked(
                dict, lambda found: [(name, convert(one)) for name, one in found.items()]
            )
        if kind == "array" and isinstance(schema.get("items"), dict):
            item, convert = self._of(schema["items"], within)
            return pa.list_(item), _checked(list, lambda found: [convert(one) for one in found])
        return _SIMPLE.get(kind or "", (pa.string(), _text))

    def _object(self, properties: dict[str, Any], within: tuple[int, ...]) -> tuple[Any, _Convert]:
        parts = {name: self._of(one, within) for name, one in properties.items()}
        converts = {name: convert for name, (_, convert) in parts.items()}

        def row(found: dict[str, Any]) -> dict[str, Any]:
            return {name: convert(found.get(name)) for name, convert in converts.items()}

        return pa.struct([pa.field(name, kind) for name, (kind, _) in parts.items()]), _checked(dict, row)

    def _type(self, schema: dict[str, Any]) -> str | None:
        """Return the type of a schema besides null; None if it has several."""
        types = schema.get("type")
        for word in ("anyOf", "oneOf"):
            if types is None and word in schema:
                others = [one for one in schema[word] if not (isinstance(one, dict) and one.get("type") == "null")]
                if len(others) == 1:
                    found = self._resolved(others[0])
                    schema.update({name: one for name, one in found.items() if name not in schema})
                    return self._type({**found})
        named = [one for one in (types if isinstance(types, list) else [types]) if one != "null"]
        if named == [None]:
            return "object" if "properties" in schema else None
        return named[0] if len(named) == 1 else None

    def _resolved(self, schema: Any) -> Any:
        for _ in range(100):  # references to references end somewhere
            if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
                break
            place, _, fragment = schema["$ref"].partition("#")
            schema = self._documents.get(place)
            for word in filter(None, fragment.split("/")):
                schema = schema.get(word.replace("~1", "/").replace("~0", "~")) if isinstance(schema, dict) else None
        return schema


def _text(found: Any) -> str | None:
    if found is None or isinstance(found, str):
        return found
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def _checked(kind: type | tuple[type, ...], convert: _Convert) -> _Convert:
    """Return a conversion of values of a type; null stays null, and other values are refused."""
    names = " or ".join(one.__name__ for one in (kind if isinstance(kind, tuple) else (kind,)))

    def checked(found: Any) -> Any:
        if found is None:
            return None
        if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
            raise ValueError(f"{json.dumps(found)[:60]} is not of the type {names}")
        return convert(found)

    return checked


def _integer(found: float) -> int:
    if found != int(found) or not -(1 << 63) <= found < 1 << 63:
        raise ValueError(f"{found} is not an integer of 64 bits")
    return int(found)


_SIMPLE: dict[str, tuple[Any, _Convert]] = {
    "integer": (pa.int64(), _checked((int, float), _integer)),
    "number": (pa.float64(), _checked((int, float), float)),
    "boolean": (pa.bool_(), _checked(bool, bool)),
    "string": (pa.string(), _checked(str, str)),
}
