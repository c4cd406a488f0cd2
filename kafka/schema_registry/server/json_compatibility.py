"""Whether values of one JSON Schema are valid by another one, by the rules of Confluent's registry.

A schema is first brought into one of few forms (`_Form`): a schema with several parts, such as a type and an enum, is
all of them. A property that only the newer schema has is a question of the older one: if that let anything stand
there, the newer one is narrower.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

__all__ = ["json_differences"]

_OBJECT: Final = (
    "properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties",
    "dependencies", "dependentRequired", "dependentSchemas", "propertyNames",
)  # fmt: skip
_ARRAY: Final = ("items", "additionalItems", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains")
_STRING: Final = ("minLength", "maxLength", "pattern")
_NUMBER: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_COMBINED: Final = {"allOf": "all of", "anyOf": "any of", "oneOf": "one of"}
_TYPED: Final = {"object": _OBJECT, "array": _ARRAY, "string": _STRING, "number": _NUMBER}
#: Limits: (keyword, whether a greater number takes more values).
_LIMITS: Final = {
    "object": (("maxProperties", True), ("minProperties", False)),
    "array": (("maxItems", True), ("minItems", False)),
    "string": (("maxLength", True), ("minLength", False)),
    "number": (("maximum", True), ("minimum", False), ("exclusiveMaximum", True), ("exclusiveMinimum", False)),
}


class _Form(NamedTuple):
    """One form of a schema: its kind, the schema's own keywords, and the schemas that it combines."""

    kind: str
    schema: Mapping[str, Any]
    parts: tuple[Any, ...] = ()


class _Side:
    """A schema with the schemas that it refers to."""

    def __init__(self, root: Any, used: Mapping[str, Any]) -> None:
        self._documents: dict[str, Any] = {**used, "": root}
        self._base = str(root.get("$id") or root.get("id") or "") if isinstance(root, dict) else ""
        for document in used.values():
            if isinstance(document, dict) and isinstance(document.get("$id"), str):
                self._documents.setdefault(document["$id"], document)

    def form(self, schema: Any) -> _Form:
        schema = self._resolved(schema)
        if schema is False:
            return _Form("nothing", {})
        if schema is True or not isinstance(schema, dict):
            return _Form("anything", {})
        parts = [_Form(_COMBINED[word], schema, tuple(schema[word])) for word in _COMBINED if word in schema]
        types = schema.get("type")
        if isinstance(types, list):
            parts.append(_Form("any of", {}, tuple({**_without(schema), "type": one} for one in types)))
        elif isinstance(types, str):
            kind = "number" if types == "integer" else types
            if not ("enum" in schema and not any(word in schema for word in _TYPED.get(kind, ()))):
                parts.append(_Form(kind, schema))
        else:
            parts += [_Form(kind, schema) for kind, words in _TYPED.items() if any(word in schema for word in words)]
        parts += [_Form(word, schema) for word in ("enum", "const", "not") if word in schema]
        if not parts:
            return _Form("anything", schema)
        return parts[0] if len(parts) == 1 else _Form("all of", schema, tuple(parts))

    def _resolved(self, schema: Any) -> Any:
        seen: set[str] = set()
        while isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
            reference = schema["$ref"]
            if reference in seen:
                return True
            seen.add(reference)
            place, fragment = urldefrag(reference)
            document = self._documents.get(place)
            if document is None:
                document = self._documents.get(urljoin(self._base, place), True)
            schema = _at(document, fragment)
        return schema


def _at(document: Any, fragment: str) -> Any:
    for word in filter(None, unquote(fragment).split("/")):
        key = word.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict) and key in document:
            document = document[key]
        elif isinstance(document, list) and key.isdigit() and int(key) < len(document):
            document = document[int(key)]
        else:
            return True
    return document


def _without(schema: Mapping[str, Any]) -> dict[str, Any]:
    dropped = {"type", "enum", "const", "not", *_COMBINED}
    return {name: value for name, value in schema.items() if name not in dropped}


def json_differences(new: Any, new_uses: Mapping[str, Any], old: Any, old_uses: Mapping[str, Any]) -> list[str]:
    """Return what keeps values of the old schema from being valid by the new one.

    >>> json_differences({"type": "integer"}, {}, {"type": "number"}, {})
    ['#: number became integer']
    """
    return _Comparison(_Side(new, new_uses), _Side(old, old_uses)).compare(new, old, "#")


class _Comparison:
    def __init__(self, new: _Side, old: _Side) -> None:
        self._new = new
        self._old = old
        self._running: set[tuple[int, int]] = set()
        self._by_kind: dict[str, Callable[[_Form, _Form, str], list[str]]] = {
            "object": self._objects,
            "array": self._arrays,
            "string": self._strings,
            "number": self._numbers,
            "enum": self._enums,
            "const": self._constants,
            "not": lambda new, old, path: self._reverse(new.schema["not"], old.schema["not"], f"{path}/not"),
        }

    def compare(self, new: Any, old: Any, path: str) -> list[str]:
        key = (id(new), id(old))
        if key in self._running:  # a schema that contains itself is compatible unless something else is wrong
            return []
        self._running.add(key)
        try:
            ours = new if isinstance(new, _Form) else self._new.form(new)
            theirs = old if isinstance(old, _Form) else self._old.form(old)
            return self._forms(ours, theirs, path)
        finally:
            self._running.discard(key)

    def _forms(self, new: _Form, old: _Form, path: str) -> list[str]:
        if new.kind == "anything" or old.kind == "nothing":
            return []
        if new.parts and not old.parts and (new.kind != "all of" or len(new.parts) == 1):
            if any(not self.compare(part, old, path) for part in new.parts):
                return []
        elif old.parts and not new.parts and len(old.parts) == 1 and not self.compare(new, old.parts[0], path):
            return []
        if new.parts and old.parts:
            return self._combined(new, old, path)
        if new.kind != old.kind:
            return [f"{path}: {_shown(old)} became {_shown(new)}"]
        by_kind = self._by_kind.get(new.kind)
        limits = [
            f"{path}/{word}: {_limit(old, word)} became {_limit(new, word)}"
            for word, greater in _LIMITS.get(new.kind, ())
            if _is_narrower(new.schema.get(word), old.schema.get(word), greater=greater)
        ]
        return [*(by_kind(new, old, path) if by_kind else ()), *limits]

    def _combined(self, new: _Form, old: _Form, path: str) -> list[str]:
        if new.kind not in {old.kind, "any of"}:
            return [f"{path}: {_shown(old)} became {_shown(new)}"]
        if new.kind == "all of" and len(new.parts) > len(old.parts):
            return [f"{path}: there are more schemas that a value must have all of"]
        if new.kind != "all of" and len(new.parts) < len(old.parts):
            return [f"{path}: there are fewer schemas that a value may have"]
        taken: dict[int, int] = {}

        def place(number: int, tried: set[int]) -> bool:
            """Find a part of the new schema for a part of the old one, moving others if need be."""
            for ours, part in enumerate(new.parts):
                if ours not in tried and not self.compare(part, old.parts[number], path):
                    tried.add(ours)
                    if ours not in taken or place(taken[ours], tried):
                        taken[ours] = number
                        return True
            return False

        matched = sum(place(number, set()) for number in range(len(old.parts)))
        if matched < min(len(new.parts), len(old.parts)):
            return [f"{path}: the schemas of {_shown(new)} are others than before"]
        return []

    def _objects(self, new: _Form, old: _Form, path: str) -> list[str]:
        found = []
        ours, theirs = new.schema.get("properties") or {}, old.schema.get("properties") or {}
        needed, needed_before = set(new.schema.get("required") or ()), set(old.schema.get("required") or ())
        for name in sorted({*ours, *theirs}):
            place = f"{path}/properties/{name}"
            lacks_default = name in needed and not _has_default(ours.get(name))
            if name not in ours:
                found += self._removed(new.schema, theirs[name], name, place)
            elif name not in theirs:
                found += self._added(old.schema, ours[name], name, place)
                if lacks_default and not _is_open(old.schema):
                    found.append(f"{place}: a required property without a default was added")
            else:
                if lacks_default and name not in needed_before:
                    found.append(f"{place}: it became required, and has no default")
                found += self.compare(ours[name], theirs[name], place)
        return [*found, *self._others(new, old, path), *self._dependencies(new, old, path)]

    def _removed(self, schema: Mapping[str, Any], theirs: Any, name: str, place: str) -> list[str]:
        if _is_open(schema):
            return []
        covering = _covering(schema, name)
        if covering is not None:
            return self.compare(covering, theirs, place)
        return [] if theirs is False else [f"{place}: it was removed, and the new schema takes no other properties"]

    def _added(self, schema: Mapping[str, Any], ours: Any, name: str, place: str) -> list[str]:
        if _is_open(schema):
            if self._new.form(ours).kind == "anything":
                return []
            return [f"{place}: it was added, and the old schema took any value there"]
        covering = _covering(schema, name)
        return [] if covering is None else self.compare(ours, covering, place)

    def _others(self, new: _Form, old: _Form, path: str) -> list[str]:
        place = f"{path}/additionalProperties"
        ours, theirs = new.schema.get("additionalProperties", True), old.schema.get("additionalProperties", True)
        if ours is False:
            return [] if theirs is False else [f"{place}: other properties are not taken any more"]
        if theirs is False or not isinstance(ours, dict):
            return []
        if not isinstance(theirs, dict):
            return [f"{place}: other properties have a schema now"]
        return self.compare(ours, theirs, place)

    def _dependencies(self, new: _Form, old: _Form, path: str) -> list[str]:
        found = []
        words = ("dependencies", "dependentRequired", "dependentSchemas")
        ours = {name: value for word in words for name, value in (new.schema.get(word) or {}).items()}
        theirs = {name: value for word in words for name, value in (old.schema.get(word) or {}).items()}
        for name, needs in ours.items():
            place = f"{path}/dependencies/{name}"
            if name not in theirs:
                found.append(f"{place}: a dependency was added")
            elif isinstance(needs, list) and isinstance(theirs[name], list):
                if not set(needs) <= set(theirs[name]):
                    found.append(f"{place}: it needs more properties")
            else:
                found += self.compare(needs, theirs[name], place)
        return found

    def _arrays(self, new: _Form, old: _Form, path: str) -> list[str]:
        found = []
        if new.schema.get("uniqueItems") and not old.schema.get("uniqueItems"):
            found.append(f"{path}/uniqueItems: items must be unique now")
        ours, our_rest = _items(new.schema)
        theirs, their_rest = _items(old.schema)
        for number in range(max(len(ours), len(theirs))):
            place = f"{path}/items/{number}"
            new_item = ours[number] if number < len(ours) else our_rest
            old_item = theirs[number] if number < len(theirs) else their_rest
            found += self.compare(new_item, old_item, place)
        if our_rest is not True:
            found += self.compare(our_rest, their_rest, f"{path}/items")
        return found

    def _strings(self, new: _Form, old: _Form, path: str) -> list[str]:
        pattern = new.schema.get("pattern")
        if pattern is None or pattern == old.schema.get("pattern"):
            return []
        return [f"{path}/pattern: the pattern was {'changed' if 'pattern' in old.schema else 'added'}"]

    def _numbers(self, new: _Form, old: _Form, path: str) -> list[str]:
        found = []
        if new.schema.get("type") == "integer" and old.schema.get("type") != "integer":
            found.append(f"{path}: number became integer")
        ours, theirs = new.schema.get("multipleOf"), old.schema.get("multipleOf")
        if ours is not None and (theirs is None or theirs % ours):
            found.append(f"{path}/multipleOf: {theirs} became {ours}")
        return found

    def _enums(self, new: _Form, old: _Form, path: str) -> list[str]:
        missing = [one for one in old.schema["enum"] if one not in new.schema["enum"]]
        return [f"{path}/enum: the value {missing[0]!r} is missing"] if missing else []

    def _constants(self, new: _Form, old: _Form, path: str) -> list[str]:
        return [] if new.schema["const"] == old.schema["const"] else [f"{path}/const: the constant was changed"]

    def _reverse(self, new: Any, old: Any, path: str) -> list[str]:
        return _Comparison(self._old, self._new).compare(old, new, path)


def _is_open(schema: Mapping[str, Any]) -> bool:
    return not schema.get("patternProperties") and schema.get("additionalProperties", True) is True


def _covering(schema: Mapping[str, Any], name: str) -> Any:
    """Return the schema of a property that the properties do not name; None if there is none."""
    for pattern, found in (schema.get("patternProperties") or {}).items():
        if re.search(pattern, name):
            return found
    others = schema.get("additionalProperties", True)
    return others if isinstance(others, dict) else None


def _items(schema: Mapping[str, Any]) -> tuple[list[Any], Any]:
    """Return the schemas of the first items, and of those behind them."""
    if "prefixItems" in schema:
        return list(schema["prefixItems"]), schema.get("items", True)
    items = schema.get("items", True)
    if isinstance(items, list):
        return items, schema.get("additionalItems", True)
    return [], items


def _has_default(schema: Any) -> bool:
    return isinstance(schema, dict) and "default" in schema


def _is_narrower(new: Any, old: Any, *, greater: bool) -> bool:
    if new is None or isinstance(new, bool) or isinstance(old, bool):  # booleans: as in the fourth draft
        return new is True and old is not True
    if old is None:
        return True
    return bool(new < old if greater else new > old)


def _limit(form: _Form, word: str) -> Any:
    return form.schema.get(word, "no limit")


def _shown(form: _Form) -> str:
    kind = form.schema.get("type")
    return kind if isinstance(kind, str) and not form.parts else form.kind
