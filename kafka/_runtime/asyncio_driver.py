"""The loop of an asyncio client: turned by the running event loop, without a thread where the platform allows it.

The event loop watches one descriptor, the selector's, and has one timer, that of the first deadline. It turns our loop
when either is due, and when a callback was queued. A turn is cut by time (`SLICE`), so that the timers and the tasks of
the application run between two slices however much the brokers send; an idle client causes no turn.

The event loop may be closed first, as by `asyncio.run` when a client was not stopped. Nothing is scheduled on it then.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from kafka._runtime.loop import Loop
from kafka._runtime.network_thread import ThreadDriver, complete
from kafka._runtime.tasks import Pending
from kafka.errors import KafkaTimeoutError
from kafka.future import Future

if TYPE_CHECKING:
    from typing_extensions import Self

    from kafka._runtime.tasks import Coro
    from kafka._runtime.timers import Timer

__all__ = [
    "SLICE",
    "AsyncioDriver",
    "ThreadedAsyncioDriver",
    "as_asyncio",
    "asyncio_driver",
    "call_on",
    "call_user",
    "to_its_end",
]

T = TypeVar("T")

# How long one turn handles sockets, and then again callbacks, before the event loop has its turn; in seconds.
SLICE: Final = 0.001
# How long tasks may take to end when a client is closed without saying how long, in seconds.
_CLOSE_GRACE: Final = 1.0
# How long a call whose time is up waits for its own coroutine to clean up, in seconds.
_CANCEL_GRACE: Final = 0.25


async def call_user(
    function: Callable[..., object],
    *args: object,
    context: contextvars.Context | None = None,
    timeout: float | None = None,
) -> Any:
    """See `Application.call`: an awaitable result is awaited, so that listeners may be coroutine functions.

    The first cancellation of the caller takes effect when the listener has ended, as with a listener that does not
    suspend: a rebalance must not continue after half a listener. A second one reaches the listener. A listener that
    raises CancelledError has failed; taken as a cancellation, it would end the task that serves the group.
    """
    context = contextvars.copy_context() if context is None else context
    name = "a rebalance listener or a callback"
    cancelled: BaseException | None = None
    try:
        result = context.run(function, *args)
    except asyncio.CancelledError as error:
        cancelled = error
    else:
        if not hasattr(result, "__await__"):
            return result
        name = getattr(result, "__qualname__", name)
        task = context.run(asyncio.ensure_future, result)
        if not await to_its_end(task, timeout):
            task.cancel()
            raise KafkaTimeoutError(
                f"{name} took longer than rebalance_timeout_ms ({0 if timeout is None else timeout * 1000:.0f} ms), "
                "so the rebalance continues without it"
            )
        if not task.cancelled():
            return task.result()
    raise RuntimeError(
        f"{name} raised asyncio.CancelledError, which ends no rebalance. If it awaits a task that it has cancelled, "
        "write: with contextlib.suppress(asyncio.CancelledError): await task"
    ) from cancelled


async def to_its_end(task: asyncio.Future[T], timeout: float | None = None) -> bool:
    """Wait for a task of user code, `timeout` seconds at most; whether it has ended.

    When the caller is cancelled, the task still gets its time before the cancellation takes effect. A second
    cancellation reaches the task.
    """
    try:
        await asyncio.wait({task}, timeout=timeout)
    except asyncio.CancelledError:
        try:
            await asyncio.wait({task}, timeout=timeout)
        except asyncio.CancelledError:
            task.cancel()
        if task.done() and not task.cancelled():
            task.exception()  # looked at: the cancellation goes first
        raise
    return task.done()


class _TaskDriver:
    """How tasks of asyncio wait: waiting suspends the task, and cancelling the task ends the wait."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        loop.slice = SLICE
        self.call: Callable[..., Coro[Any]] = call_user
        """See `Application.call`. A client may replace it by what knows how its users' code is to be called."""
        self._aio = asyncio.get_running_loop()
        # Not the caller's, which a handle of the event loop would keep alive, a cancelled one too.
        self._context = contextvars.Context()

    async def run(self, coro: Coro[T], deadline: float | None = None, what: str = "the call") -> T:
        """See `Application.run`. Cancelling the asyncio task cancels the coroutine, and so does the deadline."""
        task = self.loop.spawn(coro)
        try:
            if not await self.wait(task, deadline):
                task.cancel()
                await self.wait(task, self.loop.time() + _CANCEL_GRACE)
                if not task.succeeded():
                    raise KafkaTimeoutError(f"{what} took too long")
        except BaseException:  # cancelled, mostly
            task.cancel()
            raise
        return task.result()

    async def wait(
        self, future: Future[T] | Pending, deadline: float | None = None, begin: Callable[[], object] | None = None
    ) -> bool:
        """See `Application.wait`. Leaves no callback behind."""
        # Hot when many tasks wait.
        if begin is not None:
            self.loop.call_soon(begin)
        if future.is_done:
            return True
        wait = _Wait.of(future, self._aio) if isinstance(future, Future) else cast("_Wait", future)
        timer = None if deadline is None else self._call_at(deadline, wait.end)
        try:
            await wait.done
        finally:
            if timer is not None:
                timer.cancel()
            if isinstance(future, Future) and not future.is_done:
                future.discard(wait)
        return future.is_done

    async def turn(self) -> None:
        """See `Application.turn`; other tasks of asyncio run meanwhile."""
        self.pass_now()
        await asyncio.sleep(0)

    def pass_now(self) -> None:
        raise NotImplementedError

    def _call_at(self, when: float, callback: Callable[[], object]) -> Timer | asyncio.TimerHandle:
        raise NotImplementedError


class AsyncioDriver(_TaskDriver):
    """Turns a loop on a running asyncio loop. Made and used on that loop's thread only."""

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._thread = threading.get_ident()
        self._timer: asyncio.TimerHandle | None = None
        self._armed_for = inf
        self._fd = loop.fileno()
        self._context.run(self._aio.add_reader, self._fd, self._turn)
        loop.attach(self._notify)

    def pending(self) -> Pending:
        """See `Application.pending`."""
        return _Wait(self._aio)

    def pass_now(self) -> None:
        """Make one pass now, rather than when asyncio next looks at the selector."""
        self._turn()

    def _call_at(self, when: float, callback: Callable[[], object]) -> Timer:
        """Let the loop call back at a time; the event loop has one timer, for the first of all."""
        timer = self.loop.call_at(when, callback)
        if when < self._armed_for and not self.loop.in_pass:
            self._arm()
        return timer

    async def close(self, timeout: float = _CLOSE_GRACE) -> None:
        """End everything that runs on the loop, within `timeout` seconds; idempotent."""
        if self.loop.closed:
            return
        try:
            await self.wait(self.loop.spawn(self.loop.wind_down(timeout), "close"))
        finally:
            self.abort()

    def abort(self) -> None:
        """End everything that runs on the loop without waiting; idempotent. After a fork it changes nothing."""
        loop = self.loop
        if loop.in_pass:  # a callback of the loop has dropped the client
            self._call_soon(self.abort)
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if loop.closed:
            return
        if not self._aio.is_closed():
            with contextlib.suppress(RuntimeError):
                self._aio.remove_reader(self._fd)
        loop.detach()
        loop.close(0.0)

    def _notify(self) -> None:
        """The loop has work: schedule a turn. From any thread, once until the next turn."""
        self._call_soon(self._turn)

    def _call_soon(self, callback: Callable[[], object]) -> None:
        try:
            if threading.get_ident() == self._thread:
                self._aio.call_soon(callback, context=self._context)
            else:
                self._aio.call_soon_threadsafe(callback, context=self._context)
        except RuntimeError:
            if not self._aio.is_closed():  # if it is, no task waits any more
                raise

    def _turn(self) -> None:
        loop = self.loop
        if loop.closed:
            return
        loop.rearm()
        loop.turn(0, budget=SLICE)
        if loop.has_ready:
            loop.wakeup()
        else:
            self._arm()

    def _arm(self) -> None:
        deadline = self.loop.timers.earliest
        if deadline == self._armed_for:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._armed_for, self._timer = deadline, None
        if deadline < inf:
            left = max(0.0, deadline - self.loop.time())
            self._timer = self._aio.call_later(left, self._on_timer, context=self._context)

    def _on_timer(self) -> None:
        self._timer, self._armed_for = None, inf
        self._turn()


class _Wait:
    """Ends the wait of a task of asyncio: a future of ours calls it, or the loop completes it, on any thread."""

    # One object for the cycle collector to look at, where ten thousand tasks may wait.
    __slots__ = ("_aio", "_error", "_thread", "done", "is_done")

    def __init__(self, aio: asyncio.AbstractEventLoop) -> None:
        self._aio = aio
        self._thread = threading.get_ident()
        self._error: BaseException | None = None
        self.done: asyncio.Future[None] = aio.create_future()
        self.is_done = False
        """Whether there is an outcome: the wait may have ended without one, by its deadline."""

    @classmethod
    def of(cls, future: Future[T], aio: asyncio.AbstractEventLoop) -> Self:
        """Return the wait for a future."""
        wait = cls(aio)
        future.add_both(wait)
        return wait

    def __call__(self, _result: object) -> None:
        call_on(self._thread, self._aio, self.end)

    def end(self) -> None:
        done = self.done
        if not done.done():
            done.set_result(None)

    # As a `Pending`, which the loop completes…

    def try_success(self, _value: None) -> bool:
        if self.is_done:
            return False
        self.is_done = True
        self(None)
        return True

    def try_failure(self, error: BaseException) -> bool:
        if self.is_done:
            return False
        self._error = error
        return self.try_success(None)

    def result(self) -> None:
        if self._error is not None:
            raise self._error.with_traceback(None)  # which other waits may have too


def call_on(thread: int, aio: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
    """Call back on the thread of an event loop: now if this is that thread, never if the event loop is closed."""
    if threading.get_ident() == thread:
        callback()
        return
    try:
        aio.call_soon_threadsafe(callback)
    except RuntimeError:
        if not aio.is_closed():  # if it is, no task waits any more
            raise


def as_asyncio(future: Future[T]) -> asyncio.Future[T]:
    """Return a future of the running event loop that gets the outcome of one of ours, on whichever thread that comes.

    >>> async def main():
    ...     future = Future()
    ...     threading.Timer(0, future.success, ["done"]).start()
    ...     return await as_asyncio(future)
    >>> asyncio.run(main())
    'done'
    """
    aio, thread = asyncio.get_running_loop(), threading.get_ident()
    told: asyncio.Future[T] = aio.create_future()

    def tell() -> None:
        if told.done() or aio.is_closed():
            return
        if future.exception is None:
            told.set_result(cast("T", future.value))
        else:
            told.set_exception(future.exception)

    def done(_outcome: object) -> None:
        call_on(thread, aio, tell)

    future.add_both(done)
    told.add_done_callback(lambda _: future.discard(done))  # cancelled, it leaves nothing behind
    return told


class ThreadedAsyncioDriver(_TaskDriver):
    """The network thread under asyncio, for event loops that cannot watch a selector (Windows' proactor)."""

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._driver = ThreadDriver(loop)
        self._driver.start()

    def _call_at(self, when: float, callback: Callable[[], object]) -> asyncio.TimerHandle:
        return self._aio.call_later(max(0.0, when - self.loop.time()), callback, context=self._context)

    def pending(self) -> Pending:
        """See `Application.pending`."""
        return Future[None]()

    def pass_now(self) -> None:
        """The network thread makes the passes: nothing to do."""

    async def close(self, timeout: float = _CLOSE_GRACE) -> None:
        """End the thread and everything that runs on the loop, within `timeout` seconds; idempotent."""
        await self._aio.run_in_executor(None, lambda: complete(self._driver.close(timeout)))

    def abort(self) -> None:
        """End everything that runs on the loop, waiting for the end of one pass at most; idempotent."""
        complete(self._driver.close(0.0))


def asyncio_driver(loop: Loop) -> AsyncioDriver | ThreadedAsyncioDriver:
    """Return what turns `loop` under the running asyncio loop, as good as the platform allows."""
    loop.check_usable()
    try:
        return AsyncioDriver(loop)
    except (NotImplementedError, OSError, ValueError, AttributeError):
        return ThreadedAsyncioDriver(loop)
