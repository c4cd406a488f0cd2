"""The network thread: it turns the loop of a synchronous client, and waiting threads turn it themselves.

A `ThreadDriver` is the `kafka._runtime.application.Application` of a synchronous face: its methods block and never
suspend, so `complete` runs a coroutine that waits with them in the calling thread. Where the selector allows it, the
waiting thread claims the loop and turns it itself, so a call whose answer has arrived needs no other thread. The
network thread sleeps behind the loop's gate meanwhile, and takes over on release without being woken.
"""

from __future__ import annotations

import atexit
import logging
import math
import threading
import weakref
from collections.abc import Callable, Coroutine
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar, cast

from kafka._runtime.loop import Loop
from kafka._runtime.signals import SignalsDeferred
from kafka._runtime.tasks import Task
from kafka._runtime.workers import daemon_thread
from kafka.errors import ClientClosedError, IllegalStateError, KafkaTimeoutError
from kafka.future import Future

if TYPE_CHECKING:
    from kafka._runtime.tasks import Coro, Pending

__all__ = ["CallerDriver", "ThreadDriver", "blocking", "complete", "run_here"]

log = logging.getLogger("kafka.client")

P = ParamSpec("P")
T = TypeVar("T")

# How long a call whose time is up waits for its own coroutine to clean up, in seconds.
_CANCEL_GRACE: Final = 0.25
# How often the main thread looks for signals while it waits for another one, in seconds.
_GLANCE: Final = 0.5
_DAY: Final = 86_400.0  # not `threading.TIMEOUT_MAX`: the locks of eventlet refuse it
# How long tasks may take to end when a client is closed without saying how long.
_CLOSE_GRACE: Final = 1.0


def complete(coro: Coro[T]) -> T:
    """Run an application-side coroutine whose application is a driver of this module, and return its result.

    >>> async def answer():
    ...     return 42
    >>> complete(answer())
    42
    """
    try:
        coro.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    coro.close()
    raise IllegalStateError(f"{coro!r} suspended, which only code that an asyncio task awaits may do")


def blocking(call: Callable[Concatenate[Any, P], Coro[T]]) -> Callable[Concatenate[Any, P], T]:
    """Return the method of a synchronous client that waits for a call in the caller's thread.

    It has the parameters and types of the call, whose `self` is the client's ``_calls``; ``_complete`` runs it.
    """

    def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        coro = call(self._calls, *args, **kwargs)
        try:
            result: T = self._complete(coro)
        except BaseException:
            coro.close()  # Ctrl-C before it began: Python would warn
            raise
        return result

    update_wrapper(method, call)
    return method


class CallerDriver:
    """Turns a loop in the threads that call, as their `kafka._runtime.application.Application`: without a thread.

    >>> loop = Loop()
    >>> complete(CallerDriver(loop).wait(Future(), loop.time()))
    False
    >>> loop.close()
    """

    def __init__(self, loop: Loop) -> None:
        self.loop = loop

    async def wait(
        self, future: Future[T] | Pending, deadline: float | None = None, begin: Callable[[], object] | None = None
    ) -> bool:
        """See `Application.wait`."""
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

    def pending(self) -> Pending:
        """See `Application.pending`."""
        return Future[None]()

    async def run(self, coro: Coro[T], deadline: float | None = None, what: str = "the call") -> T:
        """See `Application.run`."""
        return run_here(self.loop, self.loop.spawn(coro, what), deadline)

    async def call(self, function: Callable[..., object], *args: object) -> Any:
        """See `Application.call`: a coroutine is awaited here, so that listeners may be coroutine functions."""
        result = function(*args)
        if not isinstance(result, Coroutine):  # a future of commit_async(), which a lambda returns, can be awaited too
            return result
        import asyncio  # only such listeners need it

        async def to_its_end() -> object:
            return await result

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(to_its_end())
        result.close()  # no warning beside the error
        raise IllegalStateError(
            f"{getattr(result, '__qualname__', result)} is a coroutine function, and this call was made in a coroutine "
            "of asyncio, whose event loop it blocks: use kafka.aio there, or make the call in another thread"
        )

    async def turn(self) -> None:
        """See `Application.turn`."""
        self.loop.turn(0)

    async def close(self, timeout: float = _CLOSE_GRACE) -> None:
        """See `Application.close`."""
        self.loop.close(timeout)


def run_here(loop: Loop, task: Task[T], deadline: float | None = None) -> T:
    """Turn a loop that has no driver in this thread until a task of it has ended, and return its result.

    KafkaTimeoutError at the deadline; then, as after Ctrl-C, the task is cancelled.
    """
    try:
        if not complete(CallerDriver(loop).wait(task, deadline)):
            raise KafkaTimeoutError(f"{task.name} took too long")
    finally:
        if not task.is_done:
            task.cancel()
    return task.result()


class ThreadDriver(CallerDriver):
    """A daemon thread that turns a loop, and the way in for the threads of the application.

    >>> driver = ThreadDriver(Loop())
    >>> async def answer():
    ...     return 42
    >>> complete(driver.run(answer()))
    42
    >>> complete(driver.close())
    """

    def __init__(self, loop: Loop, name: str = "kafka-network") -> None:
        super().__init__(loop)
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

    async def run(self, coro: Coro[T], deadline: float | None = None, what: str = "the call") -> T:
        """See `Application.run`. When the time is up, or Ctrl-C is pressed, the coroutine is cancelled."""
        if self._turns_the_loop:
            coro.close()
            raise IllegalStateError(f"{what} blocks, so it cannot be called from a callback")
        begun: list[Task[T]] = []

        def begin() -> Task[T]:
            begun.append(self.loop.spawn(coro))
            return begun[0]

        try:
            self.start()
            self._attend(None, begin, deadline)
        except BaseException:
            for task in begun:
                task.cancel()
            if not begun:
                coro.close()
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

    async def wait(
        self, future: Future[T] | Pending, deadline: float | None = None, begin: Callable[[], object] | None = None
    ) -> bool:
        """See `Application.wait`."""
        if begin is None and future.is_done:
            return True
        if self._thread.ident is None:
            self.start()
        waited = cast("Future[T]", future)
        self._attend(waited, begin and partial(self._queue, begin, waited), deadline)
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

    async def turn(self) -> None:
        """See `Application.turn`. Where another thread makes the passes there is nothing to do."""
        with SignalsDeferred(self.loop) as pending:
            if self.loop.claim():
                try:
                    if not pending:
                        self.loop.turn(0)
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
        longest = _GLANCE if threading.current_thread() is threading.main_thread() else _DAY
        self._life.gates.add(gate)
        try:
            while not self._life.ended:
                remaining = longest if deadline is None else max(0.0, deadline - self.loop.time())
                if gate.acquire(timeout=min(remaining, longest)) or (remaining <= longest and deadline is not None):
                    break
        finally:
            self._life.gates.discard(gate)
            future.discard(opened)

    async def close(self, timeout: float = _CLOSE_GRACE) -> None:
        """See `Application.close`.

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
            self._thread.join(min(timeout, _DAY) + _CLOSE_GRACE)


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


_DRIVERS: Final[weakref.WeakSet[ThreadDriver]] = weakref.WeakSet()


def _close_all_at_exit() -> None:
    for driver in tuple(_DRIVERS):
        complete(driver.close(0.0))


# Runs while daemon threads still do, so what is left open is ended in order and resolved.
atexit.register(_close_all_at_exit)
