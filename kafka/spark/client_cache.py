"""The clients of a Spark worker process: created once, used by one task after the other.

Spark keeps idle Python workers for a minute, and gives them further tasks of the same and of other queries. The process
keeps one client for each set of options; a client that fails is dropped, so that the next task creates a new one. A
worker runs one task at a time, so there are no locks.
"""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from kafka.spark.errors import is_spark_process

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

__all__ = ["ClientCache", "admin_client", "prepare_worker", "show_warnings", "spare_collector"]


class _Closable(Protocol):
    def close(self) -> None: ...


T = TypeVar("T", bound=_Closable)


class ClientCache(Generic[T]):
    """Things that cost connections, by the options that they were made with.

    >>> from contextlib import closing
    >>> from io import BytesIO
    >>> kept = ClientCache(lambda options: BytesIO())
    >>> kept.get({"a": 1}) is kept.get({"a": 1}), kept.get({"a": 1}) is kept.get({"a": 2})
    (True, False)
    """

    def __init__(self, make: Callable[[Mapping[str, Any]], T], limit: int = 8) -> None:
        self._make = make
        self._limit = limit
        self._kept: dict[str, T] = {}
        self._pid = os.getpid()

    def get(self, options: Mapping[str, object]) -> T:
        """Return the one for these options, made now if need be."""
        if os.getpid() != self._pid:  # connections inherited by a fork belong to the parent
            self._kept.clear()
            self._pid = os.getpid()
        key = repr(sorted(options.items()))
        found = self._kept.pop(key, None)
        if found is None:
            found = self._make(options)
            while len(self._kept) >= self._limit:
                self._kept.pop(next(iter(self._kept))).close()
        self._kept[key] = found  # the last used is the last to go
        return found

    def drop(self, options: Mapping[str, object]) -> None:
        """Close the one for these options."""
        found = self._kept.pop(repr(sorted(options.items())), None)
        if found is not None:
            found.close()

    def close(self) -> None:
        """Close all of them."""
        while self._kept:
            self._kept.popitem()[1].close()


def admin_client(options: Mapping[str, Any]) -> KafkaAdminClient:
    """Return an administrator with those options of a consumer or a producer that it has too."""
    from kafka import KafkaAdminClient  # which takes longer to import than reading needs in all

    return KafkaAdminClient(
        **{name: value for name, value in options.items() if name in KafkaAdminClient.DEFAULT_CONFIG}
    )


def show_warnings() -> None:
    """Have the warnings of this package printed by processes that Spark has started, where nothing else takes them.

    A library leaves that to the program; but a program has no say in these processes, and what they skip would be
    skipped without a line.
    """
    logger = logging.getLogger("kafka.spark")
    if is_spark_process() and not logger.handlers and not logging.getLogger().handlers:
        handler = logging.StreamHandler()
        handler.setLevel(logging.WARNING)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        logger.addHandler(handler)


def spare_collector() -> None:
    """Leave out of garbage collections what is loaded by now: pyspark, pyarrow and numpy, some 100,000 objects.

    Importing the client and compiling its codecs makes the collector go through all of them several times, which takes
    longer than connecting. Only in processes that Spark has started.
    """
    if is_spark_process():
        gc.freeze()


_frozen = False


def prepare_worker(*, freeze: bool) -> None:
    """Do what every task begins with: with ``freeze`` spare the garbage collector what is loaded, once per process.

    A worker collects garbage after every task: 17 to 33 ms with pyarrow and pandas loaded, most of a small task's time.
    """
    show_warnings()
    global _frozen  # noqa: PLW0603 - a fact about the process
    if freeze and not _frozen:
        _frozen = True
        gc.collect()
        gc.freeze()
