"""Threads for what cannot be done without blocking: name lookups, token endpoints, password hashing.

A worker lives while there is work and not longer, so an idle client has none. They are daemons: a
name server that does not answer must not hold up the interpreter's end, which is why this is not
concurrent.futures, whose threads are joined at exit.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from functools import partial
from threading import Event, Lock, Thread, main_thread
from typing import Final, Generic, Protocol, TypeVar, cast

from kafka.future import Future

__all__ = ["InlineWorkers", "SharedCall", "ThreadWorkers", "Workers", "daemon_thread"]

T = TypeVar("T")

# Lookups of different names in parallel; more would only queue at the resolver.
_MOST: Final = 4


def daemon_thread(target: Callable[..., object], name: str, args: tuple[object, ...] = ()) -> Thread:
    """Return a daemon thread; in a sub-interpreter that allows none, a thread that its end waits for.

    >>> daemon_thread(print, "example").daemon
    True
    """
    try:
        return Thread(target=target, args=args, name=name, daemon=True)
    except RuntimeError:
        return Thread(target=target, args=args, name=name, daemon=False)


class Workers(Protocol):
    """Runs a blocking function somewhere and gives the future of its result."""

    def submit(self, function: Callable[..., T], *args: object) -> Future[T]:
        """Run `function(*args)`."""
        ...


class ThreadWorkers:
    """Up to `most` threads at a time.

    >>> done = ThreadWorkers().submit(len, "four")
    >>> while not done.is_done: pass
    >>> done.value
    4
    """

    def __init__(self, most: int = _MOST, name: str = "kafka-worker") -> None:
        self._most = most
        self._name = name
        self._lock = Lock()
        self._jobs: deque[Callable[[], object]] = deque()
        self._running = 0

    def submit(self, function: Callable[..., T], *args: object) -> Future[T]:
        """Run `function(*args)` on a worker. The future's callbacks run there too.

        While the interpreter exits it runs in the caller's thread: Python 3.12 starts no thread then,
        and a producer that was not closed still has to connect, to send what is left.
        """
        future: Future[T] = Future()
        with self._lock:
            self._jobs.append(partial(_run, future, function, args))
            if self._running >= self._most:
                return future
            self._running += 1
        try:
            daemon_thread(self._work, self._name).start()
        except RuntimeError as error:
            if not main_thread().is_alive():  # the interpreter exits
                self._work()
                return future
            # The machine has no more threads.
            with self._lock:
                self._running -= 1
            future.try_failure(error)
        return future

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._jobs:
                    self._running -= 1
                    return
                job = self._jobs.popleft()
            job()


class InlineWorkers:
    """Runs at once, in the caller: for tests in memory."""

    def submit(self, function: Callable[..., T], *args: object) -> Future[T]:
        """Run `function(*args)` now."""
        future: Future[T] = Future()
        _run(future, function, args)
        return future


class SharedCall(Generic[T]):
    """A call that blocks and that several threads want at once: one makes it, the others share its outcome.

    No lock is held during the call, and its time limit is its own: a thread that comes after it has failed makes it
    again.

    >>> SharedCall().run(lambda: 42)
    42
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = Lock()
        self._current: _Outcome[T] | None = None

    @property
    def under_way(self) -> bool:
        """Whether a thread makes the call now."""
        return self._current is not None and self._pid == os.getpid()

    def run(self, call: Callable[[], T]) -> T:
        """Return what `call` returns, or what it returns to the thread that makes it already."""
        if self._pid != os.getpid():  # a fork: the thread that makes the call is in the parent
            self._begin()
        mine: _Outcome[T] = _Outcome()
        with self._lock:
            outcome = self._current
            if outcome is None:
                self._current = mine
        if outcome is not None:
            outcome.known.wait()
            if outcome.error is not None:
                raise outcome.error.with_traceback(None)
            return cast("T", outcome.value)
        try:
            value = mine.value = call()
        except BaseException as error:
            mine.error = error
            raise
        finally:
            self._current = None
            mine.known.set()
        return value


class _Outcome(Generic[T]):
    """The outcome of a shared call."""

    def __init__(self) -> None:
        self.known = Event()
        self.value: T | None = None
        self.error: BaseException | None = None


def _run(future: Future[T], function: Callable[..., T], args: tuple[object, ...]) -> None:
    try:
        value = function(*args)
    except BaseException as error:  # a worker has no caller; the future passes it on
        future.try_failure(error if isinstance(error, Exception) else RuntimeError(repr(error)))
    else:
        future.try_success(value)
