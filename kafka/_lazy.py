"""Looking names up: those of a package that live in its modules, loaded on first use (PEP 562), and those not there.

A package must not import its own modules while it is imported itself. A thread that imports ``kafka.metrics.stats``
holds the import lock of that module while it waits for ``kafka.metrics``; a thread that is importing
``kafka.metrics`` and then wants ``kafka.metrics.stats`` waits for the first one. Python ends such a deadlock with an
exception in one of the two threads. A package that loads nothing while it is imported cannot be part of it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Any

__all__ = ["hint_for_name", "lazy_names"]


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


def hint_for_name(name: str, known: Collection[str], elsewhere: Mapping[str, str]) -> str:
    """Return what to say of a name that is not there, to end the sentence that says so.

    `elsewhere` has names of other clients, and what to use here in place of each.

    >>> hint_for_name("produce", ["send"], {"produce": "send()"}), hint_for_name("sendMany", ["send_many"], {})
    (': use send()', ": did you mean 'send_many'?")
    """
    from difflib import get_close_matches

    spelling = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    use = elsewhere.get(spelling) or elsewhere.get(spelling.replace("_", ""))
    if use is not None:
        return f": use {use}"
    near = get_close_matches(spelling, known, n=1, cutoff=0.75)
    return f": did you mean {near[0]!r}?" if near else ""
