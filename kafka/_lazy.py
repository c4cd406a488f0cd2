"""Names of a package that live in its modules, loaded when they are first used (PEP 562).

A package must not import its own modules while it is imported itself. A thread that imports ``kafka.metrics.stats``
holds the import lock of that module while it waits for ``kafka.metrics``; a thread that is importing
``kafka.metrics`` and then wants ``kafka.metrics.stats`` waits for the first one. Python ends such a deadlock with an
exception in one of the two threads. A package that loads nothing while it is imported cannot be part of it.

The modules of a package are attributes of it as well, as in kafka-python, which loads them all: tracers patch
``kafka.producer.kafka.KafkaProducer.send`` after ``import kafka``, and programs catch ``kafka.errors.KafkaError``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import Any

__all__ = ["lazy_names", "module_in"]


def lazy_names(
    package: str, modules: Mapping[str, str], elsewhere: Mapping[str, str] = MappingProxyType({})
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and the ``__dir__`` of a package; `modules` has for each module the names in it.

    `elsewhere` has names of other packages, with what to use here.

    >>> find, names = lazy_names("kafka.serializer", {"default": "JsonSerializer StringSerializer"})
    >>> find("JsonSerializer")
    <class 'kafka.serializer.default.JsonSerializer'>
    """

    def find(name: str) -> Any:
        home = next((module for module, names in modules.items() if name in names.split()), None)
        if home is None:
            if name in elsewhere:  # the text of an AttributeError does not come out of `from kafka import ...`
                raise ImportError(f"cannot import name {name!r} from {package!r}: use {elsewhere[name]}", name=package)
            return module_in(package, name)
        value = getattr(import_module(f"{package}.{home}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted(
            {*vars(sys.modules[package]), *" ".join(modules.values()).split()}
            - {"TYPE_CHECKING", "annotations", "lazy_names"}
        )

    return find, names


def module_in(package: str, name: str) -> ModuleType:
    """Load and return a module of a package; AttributeError if the package has no such module.

    >>> module_in("kafka", "errors")
    <module 'kafka.errors' from ...>
    >>> module_in("kafka", "nothing")
    Traceback (most recent call last):
    AttributeError: module 'kafka' has no attribute 'nothing'
    """
    full = f"{package}.{name}"
    if not name.startswith("_"):
        try:
            return import_module(full)
        except ModuleNotFoundError as error:
            if error.name != full:  # the module is there and needs one that is not
                raise
    raise AttributeError(f"module {package!r} has no attribute {name!r}")
