"""How an application-side coroutine waits: by blocking a thread, or by suspending a task of asyncio.

The work of a public call on behalf of its caller (poll, commit, close, wait for room in send) is written once, as
``async def``, with an `Application` to wait with. It never runs on the network thread, so it may call user code.

The drivers of a loop are the applications. Below a synchronous face it is a `ThreadDriver`, whose methods block and
never suspend: `kafka._runtime.network_thread.complete` runs such a coroutine from beginning to end in the calling
thread. Below `kafka.aio` it is an `AsyncioDriver`, and the coroutine is awaited in the caller's task.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from kafka._runtime.tasks import Coro, Pending
    from kafka.future import Future

__all__ = ["Application"]

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
