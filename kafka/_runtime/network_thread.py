"""The network thread: it turns the loop of a synchronous client, and waiting threads turn it themselves.

`ThreadDriver.run` is how a synchronous face waits. Where the selector allows it, the waiting thread claims the loop and
turns it itself, so a call whose answer has arrived needs no other thread. The network thread sleeps behind the loop's
gate meanwhile, and takes over on release without being woken.
"""

from __future__ import annotations

import atexit
import logging
import math
import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from kafka._runtime.loop import Loop
from kafka._runtime.signals import SignalsDeferred
from kafka._runtime.tasks import Task
from kafka._runtime.workers import daemon_thread
from kafka.errors import ClientClosedError, IllegalStateError, KafkaTimeoutError
from kafka.future import Future

if TYPE_CHECKING:
    from kafka._runtime.tasks import Coro

__all__ = ["CallerDriver", "ThreadDriver", "run_here"]

log = logging.getLogger("kafka.client")

T = TypeVar("T")

# How long a call whose time is up waits for its own coroutine to clean up, in seconds.
_CANCEL_GRACE: Final = 0.25
# How often the main thread looks for signals while it waits for another one, in seconds.
_GLANCE: Final = 0.5
# How long tasks may take to end when a client is closed without saying how long.
_CLOSE_GRACE: Final = 1.0


class ThreadDriver:
    """A daemon thread that turns a loop, and the way in for the threads of the application.

    >>> driver = ThreadDriver(Loop())
    >>> async def answer():
    ...     return 42
    >>> driver.run(answer())
    42
    >>> driver.close()
    """

    def __init__(self, loop: Loop, name: str = "kafka-network") -> None:
        self.loop = loop
        self._life = _Life(loop)
        self._start_lock = threading.Lock()
        # The thread holds the loop and its life, never the driver: a driver without other references
        # can be collected, which ends the thread.
        self._thread = daemon_thread(_network_thread, name, (loop, self._life))
        self._finalizer = weakref.finalize(self, self._life.stop, _CLOSE_GRACE)
        self._finalizer.atexit = False  # there is a hook of our own for that
        loop.allow_claims()
        _DRIVERS.add(self)

    def start(self) -> None:
        """Start the thread if it does not run yet."""
        if self._thread.ident is None:
            with self._start_lock:
                self.loop.check_usable()
                if self._thread.ident is None:
                    self._thread.start()

    @property
    def on_network_thread(self) -> bool:
        """Whether the caller is the network thread, which must not wait for itself."""
        return threading.get_ident() == self._thread.ident

    @property
    def _turns_the_loop(self) -> bool:
        """Whether the caller is what the loop runs, in the network thread or in one that has claimed it."""
        return self.on_network_thread or self.loop._claimed_by == threading.get_ident()  # noqa: SLF001

    def run(self, coro: Coro[T], deadline: float | None = None, what: str = "the call") -> T:
        """Run a coroutine of the library to its end and return its result, by the deadline.

        When the time is up, or Ctrl-C is pressed, the coroutine is cancelled.
        """
        if self._turns_the_loop:
            coro.close()
            raise IllegalStateError(f"{what} blocks, so it cannot be called from a callback")
        try:
            self.start()
        except BaseException:
            coro.close()
            raise
        begun: list[Task[T]] = []

        def begin() -> Task[T]:
            begun.append(self.loop.spawn(coro))
            return begun[0]

        try:
            self._attend(None, begin, deadline)
        except BaseException:
            for task in begun:
                task.cancel()
            raise
        task = begun[0]
        if not task.is_done:
            self._give_up(task, what)
        return task.result()

    def _give_up(self, task: Task[T], what: str) -> None:
        """End a task whose time is up; what it finished this very moment counts."""
        task.cancel()
        self._wait_for_others(task, self.loop.time() + _CANCEL_GRACE)
        if self.loop.retiring:
            raise ClientClosedError(f"The client was closed before {what} was done.")
        if not task.succeeded():
            raise KafkaTimeoutError(f"{what} took too long")

    def wait(self, future: Future[T], deadline: float | None = None, begin: Callable[[], object] | None = None) -> bool:
        """Wait for a future in the calling thread; whether it is done by the deadline. `begin()` runs on the loop."""
        if begin is not None or not future.is_done:
            if self._thread.ident is None:
                self.start()
            self._attend(future, begin and partial(self._queue, begin, future), deadline)
        return future.is_done

    def _queue(self, begin: Callable[[], object], future: Future[T]) -> Future[T]:
        self.loop.call_soon(begin)
        return future

    def _attend(self, future: Future[T] | None, begin: Callable[[], Future[T]] | None, deadline: float | None) -> None:
        """Turn the loop, or wait for the thread that does, until the future, or that of `begin()`, is done."""
        loop = self.loop
        while True:
            with (deferred := SignalsDeferred(loop)) as pending:
                # A signal that comes right before the selector's system call does not end it, see _wait_for_others.
                longest = _GLANCE if deferred.handlers else math.inf
                # Claimed before a task is queued: then no thread must be woken for it.
                claimed = loop.claim()
                try:
                    if begin is not None:
                        future, begin = begin(), None
                    assert future is not None
                    if claimed:
                        while not (future.is_done or pending or loop.closed or loop.retiring):
                            remaining = longest if deadline is None else deadline - loop.time()
                            if remaining <= 0:
                                break
                            loop.turn(min(longest, remaining))
                finally:
                    if claimed:
                        loop.release()
            # A handler that raises has done so by now. One that only records a signal ends no call.
            if not pending:
                break
        if not claimed:
            self._wait_for_others(future, deadline)

    def try_turn(self) -> bool:
        """Make one pass in the calling thread, without sleeping, if no other thread does."""
        with SignalsDeferred(self.loop) as pending:
            if not self.loop.claim():
                return False
            try:
                return not pending and self.loop.turn(0)
            finally:
                self.loop.release()

    def run_now(self, function: Callable[..., T], *args: object) -> T:
        """Return `function(*args)`; what it queues is done by the calling thread if the loop rests: see `Loop`."""
        with SignalsDeferred(self.loop):
            return self.loop.run_now(function, *args)

    def _wait_for_others(self, future: Future[T], deadline: float | None) -> None:
        """The network thread turns the loop: sleep until it has resolved the future, or has ended."""
        if future.is_done:
            return
        gate = threading.Lock()
        gate.acquire()

        def opened(_result: object) -> None:
            if gate.locked():
                gate.release()

        future.add_both(opened)
        # A lock's wait is interruptible by signals, which is what makes Ctrl-C work here. But a signal that comes right
        # before it, or to another thread, does not end it: where handlers run, that is looked at now and then.
        longest = _GLANCE if threading.current_thread() is threading.main_thread() else threading.TIMEOUT_MAX
        self._life.gates.add(gate)
        try:
            while not self._life.ended:
                remaining = longest if deadline is None else max(0.0, deadline - self.loop.time())
                if gate.acquire(timeout=min(remaining, longest)) or (remaining <= longest and deadline is not None):
                    break
        finally:
            self._life.gates.discard(gate)
            future.discard(opened)

    def close(self, timeout: float = _CLOSE_GRACE) -> None:
        """End the thread and everything that runs on the loop, within about `timeout` seconds.

        Idempotent. From a callback of the loop, whichever thread runs it, it returns at once; the network
        thread ends after the pass. (A finalizer may run as one: the last who held a client can be a batch.)
        """
        if self.loop.forked:
            pass
        elif self._thread.ident is None:
            self.loop.close(0.0)
        else:
            self._life.stop(timeout)
        # Not before: Ctrl-C in between leaves the rest to the finalizer.
        self._finalizer.detach()
        _DRIVERS.discard(self)
        if self._thread.ident is not None and not self.loop.forked and not self._turns_the_loop:
            self._thread.join(timeout + _CLOSE_GRACE)


class _Life:
    """The end of a network thread, and the threads that are to be notified of it."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self.ended = False
        self.grace = _CLOSE_GRACE
        self.gates: set[threading.Lock] = set()
        """The gates of threads that wait for a future; they open when the thread ends."""

    def end(self) -> None:
        self.ended = True  # first: a thread that begins to wait now looks at this after it has added its gate
        for gate in tuple(self.gates):
            if gate.locked():
                gate.release()

    def stop(self, grace: float) -> None:
        if not self._loop.forked:  # the thread is in another process
            self._loop.retiring, self.grace = True, grace
            self._loop.wakeup()


def _network_thread(loop: Loop, life: _Life) -> None:
    """The life of the network thread."""
    loop.driven_by = threading.get_ident()
    try:
        while not loop.retiring:
            loop.turn()
        while not loop.retire():  # a thread that waits for a task has the loop: it goes when it sees the end
            loop.turn()
        loop.close(life.grace)
    except BaseException as error:  # no caller is above this one, and every future must end
        log.critical("The network thread died; this is a bug, please report it", exc_info=error)
        loop.crash(error)
    finally:
        life.end()


class CallerDriver:
    """Turns a loop in the threads that call: for a client that has no thread."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop

    def wait(self, future: Future[T], deadline: float | None = None, begin: Callable[[], object] | None = None) -> bool:
        """See `ThreadDriver.wait`."""
        if begin is not None:
            self.loop.call_soon(begin)
        while not future.is_done:
            with (deferred := SignalsDeferred(self.loop)) as pending:
                longest = _GLANCE if deferred.handlers else math.inf
                while not future.is_done and not pending:
                    remaining = longest if deadline is None else deadline - self.loop.time()
                    if remaining <= 0:
                        return False
                    self.loop.turn(min(remaining, longest))
        return True

    def run(self, coro: Coro[T], deadline: float | None = None, what: str = "the call") -> T:
        """See `ThreadDriver.run`."""
        return run_here(self.loop, self.loop.spawn(coro, what), deadline)

    def try_turn(self) -> bool:
        """Make one pass without sleeping."""
        return self.loop.turn(0)

    def close(self, timeout: float = _CLOSE_GRACE) -> None:
        """End the loop within `timeout` seconds."""
        self.loop.close(timeout)


def run_here(loop: Loop, task: Task[T], deadline: float | None = None) -> T:
    """Turn a loop that has no driver in this thread until a task of it has ended, and return its result.

    KafkaTimeoutError at the deadline; then, as after Ctrl-C, the task is cancelled.
    """
    try:
        if not CallerDriver(loop).wait(task, deadline):
            raise KafkaTimeoutError(f"{task.name} took too long")
    finally:
        if not task.is_done:
            task.cancel()
    return task.result()


_DRIVERS: Final[weakref.WeakSet[ThreadDriver]] = weakref.WeakSet()


def _close_all_at_exit() -> None:
    for driver in tuple(_DRIVERS):
        driver.close(0.0)


# Runs while daemon threads still do, so what is left open is ended in order and resolved.
atexit.register(_close_all_at_exit)
