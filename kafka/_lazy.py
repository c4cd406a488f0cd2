"""Names of a package that live in its modules, loaded when they are first used (PEP 562).

A package must not import its own modules while it is imported itself. A thread that imports ``kafka.metrics.stats``
holds the import lock of that module while it waits for ``kafka.metrics``; a thread that is importing
``kafka.metrics`` and then wants ``kafka.metrics.stats`` waits for the first one. Python ends such a deadlock with an
exception in one of the two threads. A package that loads nothing while it is imported cannot be part of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and the ``__dir__`` of a package; `homes` has for each name the module that it is in.

    A module that is exported itself has its own name as its home.

    >>> find, names = lazy_names("kafka.serializer", {"JsonSerializer": "default"})
    >>> find("JsonSerializer")
    <class 'kafka.serializer.default.JsonSerializer'>
    """

    def find(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{package}.{home}")
        value = module if name == home else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return find, names
