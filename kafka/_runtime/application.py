"""How an application-side coroutine waits: by blocking a thread, or by suspending a task of asyncio.

What a public call does on behalf of its caller (poll, commit, close, wait for room in send) is written once, as
``async def``, with an `Application` to wait with. It never runs on the network thread, so it may call user code.
Below a synchronous face the application is an `ApplicationThread`, whose methods block and never suspend: `complete`
runs such a coroutine from beginning to end in the calling thread. Below `kafka.aio` it is an `ApplicationTask`, and
the coroutine is awaited in the caller's task.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kafka.errors import IllegalStateError
from kafka.future import Future

if TYPE_CHECKING:
    from kafka._runtime.asyncio_driver import AsyncioDriver, ThreadedAsyncioDriver
    from kafka._runtime.network_thread import ThreadDriver

__all__ = ["Application", "ApplicationTask", "ApplicationThread", "complete"]

T = TypeVar("T")


class Application(Protocol):
    """What an application-side coroutine waits with."""

    async def wait(self, future: Future[Any], deadline: float | None = None) -> bool:
        """Wait for a future; whether it is done by the deadline (as the loop's `time()` counts)."""
        ...

    async def run(self, coro: Coroutine[Any, Any, T], deadline: float | None = None, what: str = "the call") -> T:
        """Run a library-side coroutine on the loop and return its result; KafkaTimeoutError at the deadline."""
        ...

    async def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call user code, a listener for instance, and return its result."""
        ...


class ApplicationThread:
    """The thread of an application that calls a synchronous face: waiting blocks it."""

    def __init__(self, driver: ThreadDriver) -> None:
        self._driver = driver

    async def wait(self, future: Future[Any], deadline: float | None = None) -> bool:
        """See `Application.wait`."""
        return self._driver.wait(future, deadline)

    async def run(self, coro: Coroutine[Any, Any, T], deadline: float | None = None, what: str = "the call") -> T:
        """See `Application.run`."""
        return self._driver.run(coro, deadline, what)

    async def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """See `Application.call`."""
        return function(*args)


class ApplicationTask:
    """A task of asyncio that awaits a method of `kafka.aio`: waiting suspends it, and cancelling it ends the wait."""

    def __init__(self, driver: AsyncioDriver | ThreadedAsyncioDriver) -> None:
        self._driver = driver

    async def wait(self, future: Future[Any], deadline: float | None = None) -> bool:
        """See `Application.wait`."""
        if not future.is_done:
            await self._driver.wait(future, deadline)
        return future.is_done

    async def run(self, coro: Coroutine[Any, Any, T], deadline: float | None = None, what: str = "the call") -> T:
        """See `Application.run`."""
        return await self._driver.run(coro, deadline, what)

    async def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """See `Application.call`: an awaitable result is awaited, so that listeners may be coroutine functions."""
        result = function(*args)
        return await result if isawaitable(result) else result


def complete(coro: Coroutine[Any, Any, T]) -> T:
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
