"""The clients of a Spark worker process: created once, used by one task after the other.

Spark keeps idle Python workers for a minute, and gives them further tasks of the same and of other queries. The process
keeps one client for each set of options; a client that fails is dropped, so that the next task creates a new one. A
worker runs one task at a time, so there are no locks.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from kafka._runtime.clock import SYSTEM_CLOCK, Clock

__all__ = ["ClientCache", "TaskClock", "prepare_worker"]


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

    def get(self, options: Mapping[str, Any]) -> T:
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

    def drop(self, options: Mapping[str, Any]) -> None:
        """Close the one for these options."""
        found = self._kept.pop(repr(sorted(options.items())), None)
        if found is not None:
            found.close()

    def close(self) -> None:
        """Close all of them."""
        while self._kept:
            self._kept.popitem()[1].close()


class TaskClock:
    """The machine's clock without the time in which Spark had a task's rows, and nobody turned the client's loop.

    Minutes may pass until Spark takes the next batch. By the machine's clock a reply that has come meanwhile, and only
    waits to be read, would be late, and its connection given up.

    >>> clock = TaskClock()
    >>> before = clock.monotonic()
    >>> clock.leave_out(60)
    >>> clock.monotonic() < before
    True
    """

    def __init__(self, base: Clock = SYSTEM_CLOCK) -> None:
        self.base = base
        self._left_out = 0.0

    def monotonic(self) -> float:
        """Return seconds since an arbitrary point."""
        return self.base.monotonic() - self._left_out

    def time(self) -> float:
        """Return seconds since the epoch; nothing of them is left out."""
        return self.base.time()

    def leave_out(self, seconds: float) -> None:
        """Leave out the time that has just passed."""
        self._left_out += seconds


_frozen = False


def prepare_worker(*, freeze: bool) -> None:
    """Do what every task begins with: with ``freeze`` spare the garbage collector what is loaded, once per process.

    A worker collects garbage after every task: 17 to 33 ms with pyarrow and pandas loaded, most of a small task's time.
    """
    global _frozen  # noqa: PLW0603 - a fact about the process
    if freeze and not _frozen:
        _frozen = True
        gc.collect()
        gc.freeze()
