"""Dataclasses as JSON data and back, by the types of their fields: the form of groups in a data directory.

Kafka keeps the same in ``__consumer_offsets``. A classic group is kept as it was when its assignment was last handed
out; the others after each change of an epoch or of what a member has.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints
from uuid import UUID

T = TypeVar("T")


def to_json(value: Any) -> Any:
    """Return a value as JSON data; fields of dataclasses with the metadata ``{"saved": False}`` are left out.

    Members of groups keep their data until one of their fields has another value: most have not changed.

    >>> to_json({UUID(int=1): frozenset({2, 1})})
    {'00000000-0000-0000-0000-000000000001': [1, 2]}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return _fields_to_json(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Mapping):
        if all(isinstance(key, (str, UUID)) for key in value):
            return {str(key): to_json(each) for key, each in value.items()}
        return [[to_json(key), to_json(each)] for key, each in value.items()]
    if isinstance(value, (set, frozenset)):
        return [to_json(each) for each in sorted(value)]
    if isinstance(value, (list, tuple)):
        return [to_json(each) for each in value]
    return value


def _fields_to_json(value: Any) -> dict[str, Any]:
    kind: Any = type(value)
    names = _saved(kind)
    values = [getattr(value, name) for name in names]
    before = getattr(value, "saved", None)
    if before is not None and before[0] == values:
        data: dict[str, Any] = before[1]
        return data
    data = {name: to_json(each) for name, each in zip(names, values, strict=True)}
    if hasattr(value, "saved"):
        value.saved = values, data
    return data


def from_json(kind: type[T], data: Any) -> T:
    """Return the value of that type from what :func:`to_json` has made of it.

    >>> from_json(dict[UUID, frozenset[int]], {"00000000-0000-0000-0000-000000000001": [1, 2]})
    {UUID('00000000-0000-0000-0000-000000000001'): frozenset({1, 2})}
    """
    result: T = _read(kind, data)
    return result


def _read(kind: Any, data: Any) -> Any:
    origin, parts = get_origin(kind), get_args(kind)
    if NoneType in parts:
        return None if data is None else _read(next(part for part in parts if part is not NoneType), data)
    if isinstance(kind, type) and is_dataclass(kind):
        types = _types(kind)
        return kind(**{field: _read(types[field], data[field]) for field in _saved(kind)})
    if kind is bytes:
        return b64decode(data)
    if kind is UUID or (isinstance(kind, type) and issubclass(kind, Enum)):
        return kind(data)
    if origin is tuple and parts[-1] is not ...:
        return tuple(_read(part, each) for part, each in zip(parts, data, strict=True))
    if origin in {tuple, list, frozenset}:
        return origin(_read(parts[0], each) for each in data)
    if origin is Sequence:
        return [_read(parts[0], each) for each in data]
    if origin is not None and issubclass(origin, Mapping):
        pairs = data.items() if isinstance(data, Mapping) else data
        return {_read(parts[0], key): _read(parts[1], each) for key, each in pairs}
    return data


@cache
def _saved(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.metadata.get("saved", True))


@cache
def _types(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)
