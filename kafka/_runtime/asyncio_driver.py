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
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from kafka._runtime.loop import Loop
from kafka._runtime.network_thread import ThreadDriver
from kafka._runtime.tasks import Task
from kafka.errors import KafkaTimeoutError
from kafka.future import Future

__all__ = ["SLICE", "AsyncioDriver", "ThreadedAsyncioDriver", "asyncio_driver"]

T = TypeVar("T")

# How long one turn handles sockets, and then again callbacks, before the event loop has its turn; in seconds.
SLICE: Final = 0.001
# How long tasks may take to end when a client is closed without saying how long, in seconds.
_CLOSE_GRACE: Final = 1.0
# How long a call whose time is up waits for its own coroutine to clean up, in seconds.
_CANCEL_GRACE: Final = 0.25


class AsyncioDriver:
    """Turns a loop on a running asyncio loop. Made and used on that loop's thread only."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self._aio = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        # Not the caller's, which a handle of the event loop would keep alive, a cancelled one too.
        self._context = contextvars.Context()
        self._timer: asyncio.TimerHandle | None = None
        self._armed_for: float | None = None
        self._fd = loop.fileno()
        self._context.run(self._aio.add_reader, self._fd, self._turn)
        loop.attach(self._notify)

    def start(self) -> None:
        """Nothing to start: the asyncio loop runs already."""
        self.loop.check_usable()

    async def run(self, coro: Coroutine[Any, Any, T], deadline: float | None = None, what: str = "the call") -> T:
        """Run a coroutine of the library as part of the calling asyncio task.

        Cancelling the asyncio task cancels the coroutine, and so does the deadline, with KafkaTimeoutError.
        """
        return await _run(self.loop.spawn(coro), self._aio, self._context, self._left(deadline), what)

    async def wait(self, future: Future[Any], deadline: float | None = None) -> None:
        """Wait for a future in the calling asyncio task, until the deadline at most."""
        await _wait(future, self._aio, self._context, self._left(deadline))

    def turn(self) -> None:
        """Make one pass now, rather than when asyncio next looks at the selector."""
        self._turn()

    def _left(self, deadline: float | None) -> float | None:
        return None if deadline is None else deadline - self.loop.time()

    async def close(self, timeout: float = _CLOSE_GRACE) -> None:
        """End everything that runs on the loop, within `timeout` seconds; idempotent."""
        if self.loop.closed:
            return
        try:
            await _wait(self.loop.spawn(self.loop.wind_down(timeout), "close"), self._aio, self._context)
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
        self._call_soon(self._run_ready)

    def _call_soon(self, callback: Any) -> None:
        try:
            if threading.get_ident() == self._thread:
                self._aio.call_soon(callback, context=self._context)
            else:
                self._aio.call_soon_threadsafe(callback, context=self._context)
        except RuntimeError:
            if not self._aio.is_closed():  # if it is, no task waits any more
                raise

    def _run_ready(self) -> None:
        # Queued callbacks need no look at the sockets, which is a system call; the event loop looks at them.
        self._turn_once(look=False)

    def _turn(self) -> None:
        self._turn_once(look=True)

    def _turn_once(self, *, look: bool) -> None:
        loop = self.loop
        if loop.closed:
            return
        loop.rearm()
        loop.turn(0, look=look, budget=SLICE)
        if loop.has_ready:
            loop.wakeup()
        elif (deadline := loop.next_deadline()) != self._armed_for:
            if self._timer is not None:
                self._timer.cancel()
            self._armed_for, self._timer = deadline, None
            if deadline is not None:
                left = max(0.0, deadline - loop.time())
                self._timer = self._aio.call_later(left, self._on_timer, context=self._context)

    def _on_timer(self) -> None:
        self._timer = self._armed_for = None
        self._turn()


async def _wait(
    future: Future[Any], aio: asyncio.AbstractEventLoop, context: contextvars.Context, seconds: float | None = None
) -> None:
    """Wait for a future of ours in a task of asyncio, for `seconds` at most. Leaves no callback behind."""
    wait = _Wait(aio)
    future.add_both(wait)
    timer = None if seconds is None else aio.call_later(max(0.0, seconds), wait.end, context=context)
    try:
        await wait.done
    finally:
        if timer is not None:
            timer.cancel()
        if not future.is_done:
            future.discard(wait)


class _Wait:
    """Ends the wait of a task of asyncio when a future of ours calls it, on any thread."""

    # One object for the cycle collector to look at, where ten thousand tasks may wait.
    __slots__ = ("_aio", "_thread", "done")

    def __init__(self, aio: asyncio.AbstractEventLoop) -> None:
        self._aio = aio
        self._thread = threading.get_ident()
        self.done: asyncio.Future[None] = aio.create_future()

    def __call__(self, _result: object) -> None:
        if threading.get_ident() == self._thread:
            self.end()
            return
        try:
            self._aio.call_soon_threadsafe(self.end)
        except RuntimeError:
            if not self._aio.is_closed():  # if it is, no task waits any more
                raise

    def end(self) -> None:
        if not self.done.done():
            self.done.set_result(None)


async def _run(
    task: Task[T], aio: asyncio.AbstractEventLoop, context: contextvars.Context, seconds: float | None, what: str
) -> T:
    """Wait for a task of ours in a task of asyncio; cancelling the latter, or its deadline, cancels the former."""
    try:
        await _wait(task, aio, context, seconds)
        if not task.is_done:
            task.cancel()
            await _wait(task, aio, context, _CANCEL_GRACE)
            if not task.succeeded():
                raise KafkaTimeoutError(f"{what} took too long")
    except BaseException:  # cancelled, mostly
        task.cancel()
        raise
    return task.result()


class ThreadedAsyncioDriver:
    """The network thread under asyncio, for event loops that cannot watch a selector (Windows' proactor)."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self._aio = asyncio.get_running_loop()
        self._context = contextvars.Context()
        self._driver = ThreadDriver(loop)

    def start(self) -> None:
        """Start the thread."""
        self._driver.start()

    async def run(self, coro: Coroutine[Any, Any, T], deadline: float | None = None, what: str = "the call") -> T:
        """See `AsyncioDriver.run`."""
        self._driver.start()
        seconds = None if deadline is None else deadline - self.loop.time()
        return await _run(self.loop.spawn(coro), self._aio, self._context, seconds, what)

    async def wait(self, future: Future[Any], deadline: float | None = None) -> None:
        """See `AsyncioDriver.wait`."""
        self._driver.start()
        seconds = None if deadline is None else deadline - self.loop.time()
        await _wait(future, self._aio, self._context, seconds)

    def turn(self) -> None:
        """The network thread makes the passes: nothing to do."""

    async def close(self, timeout: float = _CLOSE_GRACE) -> None:
        """End the thread and everything that runs on the loop, within `timeout` seconds; idempotent."""
        await self._aio.run_in_executor(None, self._driver.close, timeout)

    def abort(self) -> None:
        """End everything that runs on the loop, waiting for the end of one pass at most; idempotent."""
        self._driver.close(0.0)


def asyncio_driver(loop: Loop) -> AsyncioDriver | ThreadedAsyncioDriver:
    """Return what turns `loop` under the running asyncio loop, as good as the platform allows."""
    try:
        return AsyncioDriver(loop)
    except (NotImplementedError, OSError, ValueError, AttributeError):
        return ThreadedAsyncioDriver(loop)
