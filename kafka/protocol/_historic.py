"""Finds the names that programs of the 1.x and 2.x generations import.

Those had a class for each version (``MetadataRequest_v1``), some messages under other names or in other modules, and
constants beside their messages. A module that was there in those days ends its imports with one line::

    __getattr__ = historic_names(__name__)

The tables in ``aliases`` map the names; a module is imported when a program uses a name of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

from kafka._lazy import module_in
from kafka.protocol.aliases import CLASS_ALIASES, HISTORIC_APIS, MOVED_NAMES

_MESSAGE: Final = re.compile(r"(\w+?)(Request|Response)(?:_v(\d+))?")


def historic_names(module: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module, which is asked for the names that the module itself does not have.

    >>> find = historic_names("kafka.protocol.offset")
    >>> find("OffsetRequest_v1")
    <class ListOffsetsRequest[1](replica_id, topics)>
    >>> find("UNKNOWN_OFFSET")
    -1
    """

    def find(name: str) -> Any:
        home = MOVED_NAMES.get(module, {}).get(name)
        return _message(module, name) if home is None else getattr(import_module(home), name)

    return find


def _message(module: str, name: str) -> Any:
    given = _MESSAGE.fullmatch(name)
    if given is not None:
        old, version = given[1] + given[2], given[3]
        api, kind = _split(CLASS_ALIASES.get(module, {}).get(old, old))
        if api in HISTORIC_APIS.get(module, ()):
            from kafka.protocol.registry import api_named

            cls = getattr(api_named(api), kind.lower())
            if version is None:
                return cls
            if int(version) in cls._versions:
                return cls[int(version)]
            raise AttributeError(f"module {module!r} has no {name}: {cls.__name__} has versions {cls._versions}")
    if module == "kafka.protocol":  # the package; the others are modules
        return module_in(module, name)
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


def _split(message: str) -> tuple[str, str]:
    """``MetadataRequest`` is ``Metadata`` and ``Request``."""
    api = message.removesuffix("Request").removesuffix("Response")
    return api, message[len(api) :]


def _new_partitions(given: object) -> object:
    """``(topic, (count, [[1, 2], [2, 3]]))``: count and replicas were a pair."""
    if not isinstance(given, (tuple, list)) or len(given) != 2 or not isinstance(given[1], (tuple, list)):
        return given
    count, assignments = given[1]
    return given[0], count, None if assignments is None else [{"broker_ids": ids} for ids in assignments]


#: Struct in a list of a message -> converts a historic tuple to a current one, and returns anything else unchanged.
OLD_TUPLES: Final[Mapping[str, Callable[[object], object]]] = {
    "CreatePartitionsRequest.CreatePartitionsTopic": _new_partitions
}
