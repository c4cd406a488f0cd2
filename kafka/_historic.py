"""Fills names of kafka-python's inner objects into the classes of today, from tables in ``kafka.legacy``.

A class says where its table is; it neither inherits nor calls anything that is there.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TypeVar

__all__ = ["historic_names"]

ClassT = TypeVar("ClassT", bound=type)


def historic_names(table: str) -> Callable[[ClassT], ClassT]:
    """Return a decorator that gives a class the attributes of `table`, ``"module:class"``, unless it has them.

    >>> @historic_names("kafka.legacy.private_names:ConsumerNames")
    ... class Consumer:
    ...     _closed = True
    >>> Consumer._closed, Consumer._fetcher
    (True, <property object at ...>)
    """
    module, name = table.split(":")

    def fill(cls: ClassT) -> ClassT:
        for attribute, value in vars(getattr(import_module(module), name)).items():
            if not attribute.startswith("__") and attribute not in vars(cls):
                setattr(cls, attribute, value)
        return cls

    return fill
