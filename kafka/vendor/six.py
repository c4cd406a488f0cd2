"""The names of the ``six`` package that programs took from here; on Python 3 they are plain names of the language.

>>> PY3, string_types, list(iteritems({"a": 1}))
(True, (<class 'str'>,), [('a', 1)])
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, ItemsView, KeysView, Mapping, ValuesView
from io import BytesIO, StringIO
from typing import Any, TypeVar

__all__ = [
    "MAXSIZE",
    "PY2",
    "PY3",
    "BytesIO",
    "StringIO",
    "add_metaclass",
    "b",
    "binary_type",
    "class_types",
    "integer_types",
    "iteritems",
    "iterkeys",
    "itervalues",
    "raise_from",
    "string_types",
    "text_type",
    "u",
    "with_metaclass",
]

K = TypeVar("K")
V = TypeVar("V")

PY2 = False
PY3 = True
MAXSIZE = sys.maxsize
string_types = (str,)
integer_types = (int,)
class_types = (type,)
text_type = str
binary_type = bytes
next = builtins.next  # noqa: A001 - as it was


def b(text: str) -> bytes:
    """Return Latin-1 bytes of a text."""
    return text.encode("latin-1")


def u(text: str) -> str:
    """Return the text."""
    return text


def iterkeys(mapping: Mapping[K, V]) -> KeysView[K]:
    """Return the keys."""
    return mapping.keys()


def itervalues(mapping: Mapping[K, V]) -> ValuesView[V]:
    """Return the values."""
    return mapping.values()


def iteritems(mapping: Mapping[K, V]) -> ItemsView[K, V]:
    """Return the pairs."""
    return mapping.items()


def raise_from(value: BaseException, from_value: BaseException | None) -> None:
    """Raise an exception with its cause."""
    raise value from from_value


def add_metaclass(metaclass: type) -> Callable[[type], type]:
    """Return a class decorator that makes the class again with a metaclass."""

    def decorate(cls: type) -> type:
        body = {name: value for name, value in vars(cls).items() if name not in {"__dict__", "__weakref__"}}
        made: Any = metaclass(cls.__name__, cls.__bases__, body)
        return made  # type: ignore[no-any-return] # the metaclass makes a class

    return decorate


def with_metaclass(meta: type, *bases: type) -> type:
    """Return a base class that has a metaclass."""
    made: Any = meta("temporary_class", bases or (object,), {})
    return made  # type: ignore[no-any-return] # the metaclass makes a class
