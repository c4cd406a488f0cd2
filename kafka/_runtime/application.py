"""How an application-side coroutine waits: by blocking a thread, or by suspending a task of asyncio.

The work of a public call on behalf of its caller (poll, commit, close, wait for room in send) is written once, as
``async def``, with an `Application` to wait with. It never runs on the network thread, so it may call user code.
Below a synchronous face the application is an `ApplicationThread`, whose methods block and never suspend: `complete`
runs such a coroutine from beginning to end in the calling thread. Below `kafka.aio` it is an `ApplicationTask`, and
the coroutine is awaited in the caller's task.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from kafka.errors import IllegalStateError
from kafka.future import Future

if TYPE_CHECKING:
    import asyncio

    from kafka._runtime.asyncio_driver import AsyncioDriver, ThreadedAsyncioDriver
    from kafka._runtime.network_thread import CallerDriver, ThreadDriver
    from kafka._runtime.tasks import Coro, Pending

__all__ = ["Application", "ApplicationTask", "ApplicationThread", "Wakeup", "blocking", "complete"]

P = ParamSpec("P")
T = TypeVar("T")


class Application(Protocol):
    """The means of an application-side coroutine to wait."""

    async def wait(
        self,
        future: Future[T] | Pending,
        deadline: float | None = None,
        begin: Callable[[], object] | None = None,
    ) -> bool:
        """Wait for a future; whether it is done by the deadline (as the loop's `time()` counts).

        `begin()` runs on the loop first: where this thread turns the loop, no other one is woken for it.
        """
        ...

    def pending(self) -> Pending:
        """Return a future that one coroutine will wait for: where thousands wait, it is cheaper than others."""
        ...

    async def run(self, coro: Coro[T], deadline: float | None = None, what: str = "the call") -> T:
        """Run a library-side coroutine on the loop and return its result; KafkaTimeoutError at the deadline."""
        ...

    async def call(self, function: Callable[..., object], *args: object) -> Any:
        """Call user code, a listener for instance, and return its result."""
        ...

    async def turn(self) -> None:
        """Make one pass of the loop without sleeping: a call with a timeout of 0 must not starve the network."""
        ...

    async def close(self, timeout: float) -> None:
        """End the loop and whatever turns it, within about `timeout` seconds."""
        ...


class ApplicationThread:
    """The thread of an application that calls a synchronous face: waiting blocks it."""

    def __init__(self, driver: ThreadDriver | CallerDriver) -> None:
        self._driver = driver

    async def wait(
        self, future: Future[T] | Pending, deadline: float | None = None, begin: Callable[[], object] | None = None
    ) -> bool:
        """See `Application.wait`."""
        return self._driver.wait(cast("Future[T]", future), deadline, begin)

    def pending(self) -> Pending:
        """See `Application.pending`."""
        return Future[None]()

    async def run(self, coro: Coro[T], deadline: float | None = None, what: str = "the call") -> T:
        """See `Application.run`."""
        return self._driver.run(coro, deadline, what)

    async def call(self, function: Callable[..., object], *args: object) -> Any:
        """See `Application.call`."""
        return function(*args)

    async def turn(self) -> None:
        """See `Application.turn`."""
        self._driver.try_turn()

    async def close(self, timeout: float) -> None:
        """See `Application.close`."""
        self._driver.close(timeout)


class ApplicationTask:
    """A task of asyncio that awaits a method of `kafka.aio`: waiting suspends it, and cancelling it ends the wait."""

    def __init__(self, driver: AsyncioDriver | ThreadedAsyncioDriver) -> None:
        self._driver = driver

    def wait(
        self, future: Future[T] | Pending, deadline: float | None = None, begin: Callable[[], object] | None = None
    ) -> Coro[bool]:
        """See `Application.wait`."""
        if begin is not None:
            self._driver.loop.call_soon(begin)
        return self._driver.wait(future, deadline)

    def pending(self) -> Pending:
        """See `Application.pending`."""
        return self._driver.pending()

    async def run(self, coro: Coro[T], deadline: float | None = None, what: str = "the call") -> T:
        """See `Application.run`."""
        return await self._driver.run(coro, deadline, what)

    async def call(self, function: Callable[..., object], *args: object) -> Any:
        """See `Application.call`: an awaitable result is awaited, so that listeners may be coroutine functions.

        The first cancellation of the caller takes effect when the listener has ended, as with a listener that does not
        suspend: a rebalance must not continue after half a listener. A second one reaches the listener.
        """
        result = function(*args)
        if not hasattr(result, "__await__"):
            return result
        from asyncio import ensure_future

        task = ensure_future(result)
        await self.to_its_end(task)
        return task.result()

    @staticmethod
    async def to_its_end(task: asyncio.Future[T], timeout: float | None = None) -> bool:
        """Wait for a task of user code, `timeout` seconds at most; whether it has ended.

        When the caller is cancelled, the task still gets its time before the cancellation takes effect. A second
        cancellation reaches the task.
        """
        from asyncio import CancelledError, wait

        try:
            await wait({task}, timeout=timeout)
        except CancelledError:
            try:
                await wait({task}, timeout=timeout)
            except CancelledError:
                task.cancel()
            if task.done() and not task.cancelled():
                task.exception()  # looked at: the cancellation goes first
            raise
        return task.done()

    async def turn(self) -> None:
        """See `Application.turn`; other tasks of asyncio run meanwhile."""
        from asyncio import sleep

        self._driver.turn()
        await sleep(0)

    async def close(self, timeout: float) -> None:
        """See `Application.close`."""
        await self._driver.close(timeout)


class Wakeup:
    """How a call waits for the loop to bring something, and is woken for other reasons.

    A call that waits first takes the armed future and then looks whether there is something; the loop first brings
    something and then calls `notify`. So nothing is missed, and while no call waits notifying costs little.

    >>> wakeup = Wakeup()
    >>> future = wakeup.armed()
    >>> wakeup.notify()
    >>> future.is_done
    True
    """

    __slots__ = ("_future",)

    def __init__(self) -> None:
        self._future: Future[None] = Future()

    def armed(self) -> Future[None]:
        """Return the future that the next `notify` completes. Calls that wait at the same time share it."""
        future = self._future
        if future.is_done:
            future = self._future = Future()
        return future

    def notify(self) -> None:
        """Wake the calls that wait. Safe from every thread."""
        self._future.try_success(None)


def complete(coro: Coro[T]) -> T:
    """Run an application-side coroutine whose application is an `ApplicationThread`, and return its result.

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
        result: T = self._complete(call(self._calls, *args, **kwargs))
        return result

    update_wrapper(method, call)
    return method
