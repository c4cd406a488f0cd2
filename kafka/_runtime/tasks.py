"""Tasks from `async def`, and what they wait with: timeouts, shields, groups, scopes, events.

A coroutine of this library yields one of two things and nothing else: a `kafka.future.Future`
that is not done ("run me when it is") or `None` ("run me in the next pass"). It never yields
anything of asyncio's, and asyncio is not imported: the same coroutine runs under the network
thread and under a foreign event loop.

Everything here belongs to one `kafka._runtime.loop.Loop` and runs on the thread that turns it; only
`Task.cancel` may be called from anywhere.

Cancelling: `TaskCancelled` is thrown at the point where the task waits. It derives from
BaseException, so `except Exception` and `except KafkaError` do not swallow it. Outside, a
cancelled task is a future that failed with `kafka.errors.Cancelled`. A clean-up that has to wait
itself goes under `with Shield(loop):`; the cancellation comes when the block is left.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Generator
from types import TracebackType, coroutine
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from kafka.errors import Cancelled, ClientClosedError, KafkaTimeoutError
from kafka.future import Future

if TYPE_CHECKING:
    from typing_extensions import Self

    from kafka._runtime.timers import Timer

__all__ = [
    "Coro",
    "Event",
    "Pending",
    "Scope",
    "Shield",
    "Task",
    "TaskCancelled",
    "TaskGroup",
    "TimeoutScope",
    "Wakeup",
    "checkpoint",
    "deferred",
    "wait_any",
]

log = logging.getLogger("kafka.client")

T = TypeVar("T")

Coro = Coroutine[Any, Any, T]
"""What `async def` makes; of this library or of asyncio."""


class Pending(Protocol):
    """What one application-side coroutine waits for and the loop completes: a `Future`, or what is cheaper to await."""

    @property
    def is_done(self) -> bool:
        """Whether there is an outcome."""
        ...

    def result(self) -> None:
        """Return the result, or raise the exception."""
        ...

    def try_success(self, value: None, /) -> bool:
        """Complete it unless it is complete; tells whether this call did it."""
        ...

    def try_failure(self, error: BaseException, /) -> bool:
        """Complete it with an exception unless it is complete; tells whether this call did it."""
        ...


class Scheduler(Protocol):
    """The part of a `kafka._runtime.loop.Loop` that tasks need."""

    current_task: Task[Any] | None
    _tasks: set[Task[Any]]

    def call_soon(self, callback: Callable[..., object], *args: object) -> None:
        """Run a callback in the next pass."""
        ...

    def call_at(self, when: float, callback: Callable[..., object], *args: object) -> Timer:
        """Run a callback at a time."""
        ...

    def spawn(self, coro: Coro[T], name: str | None = None) -> Task[T]:
        """Start a task."""
        ...


class TaskCancelled(BaseException):
    """Thrown into a coroutine whose task was cancelled or whose timeout scope ran out."""


class Task(Future[T], Generic[T]):
    """A running coroutine, and the future of what it returns."""

    def __init__(self, loop: Scheduler, coro: Coro[T], name: str | None = None) -> None:
        super().__init__()
        self.name = name or getattr(coro, "__qualname__", "task")
        self._loop = loop
        self._coro: Coro[T] | None = coro
        self._waiting: Future[Any] | None = None
        self._cancel_asked = False  # by `cancel`, as opposed to a timeout scope
        self._cancel_due = False  # to be thrown at the next step that is not shielded
        self._shields = 0
        loop._tasks.add(self)  # noqa: SLF001 - the loop knows what it must end when it is closed
        loop.call_soon(self._step)

    def cancel(self) -> None:
        """Ask the task to end; safe from any thread, without effect on a task that is done."""
        self._cancel_asked = self._cancel_due = True
        self._loop.call_soon(self._interrupt)

    def abort(self, why: str) -> None:
        """End the task at once, whatever it waits for or does: the loop is over, and no future stays open."""
        coro = self._coro
        self._end()
        if coro is not None:
            try:
                coro.throw(TaskCancelled())
            except (Exception, TaskCancelled, StopIteration):  # noqa: S110 - the coroutine ends; its exception has no receiver
                pass
            else:
                log.warning("%s did not end when it was cancelled", self.name)
                try:
                    coro.close()
                except RuntimeError:  # it ignored even that
                    log.warning("%r cannot be closed", coro)
        self.try_failure(ClientClosedError(why))

    # Running…

    def _step(self) -> None:  # noqa: C901, PLR0912 - hot
        """Run the coroutine up to its next wait."""
        coro = self._coro
        if coro is None:
            return
        self._waiting = None
        loop, outer = self._loop, self._loop.current_task
        loop.current_task = self
        try:
            if self._cancel_due and not self._shields:
                self._cancel_due = False
                yielded = coro.throw(TaskCancelled())
            else:
                yielded = coro.send(None)
        except StopIteration as stop:
            self._end()
            self.success(stop.value)
        except TaskCancelled:
            self._end()
            self.failure(Cancelled(f"{self.name} was cancelled"))
        except Exception as error:  # whatever it is, it is the task's result
            self._end()
            self.failure(error)
        except BaseException as error:  # Ctrl-C and the like: the task ends and the driver gets the exception
            self._end()
            self.failure(Cancelled(f"{self.name} was interrupted by {type(error).__name__}"))
            raise
        else:
            if yielded is None:
                loop.call_soon(self._step)
            elif isinstance(yielded, Future):
                self._waiting = yielded
                yielded.add_both(loop.call_soon, self._resume)  # on whichever thread resolves it
                if self._cancel_due and not self._shields:
                    loop.call_soon(self._resume)
            else:
                self._reject(yielded)
        finally:
            loop.current_task = outer

    def _reject(self, yielded: object) -> None:
        coro = self._coro
        self._end()
        if coro is not None:
            coro.close()
        self.failure(TypeError(f"{self.name} awaited {yielded!r}, which is not of this library"))

    def _resume(self, _result: object = None) -> None:
        # A wake-up may be stale: the future it came from was abandoned by a cancellation. What
        # counts is whether the future that is awaited *now* is done.
        waiting = self._waiting
        if waiting is not None and (waiting.is_done or (self._cancel_due and not self._shields)):
            self._step()

    def _interrupt(self) -> None:
        # Without a wait it is about to run anyway, and meets the flag at its next step.
        if self._cancel_due and self._waiting is not None and not self._shields:
            self._step()

    def _end(self) -> None:
        self._coro = None
        self._loop._tasks.discard(self)  # noqa: SLF001

    def __repr__(self) -> str:
        state = "done" if self.is_done else f"waits for {self._waiting!r}" if self._waiting is not None else "runs"
        return f"<Task {self.name} {state}>"


@coroutine
def _deferred(make: Callable[..., Coro[T]], args: tuple[object, ...]) -> Generator[Any, Any, T]:
    return (yield from make(*args).__await__())


def deferred(make: Callable[..., Coro[T]], *args: object) -> Coro[T]:
    """Return what makes the coroutine `make(*args)` when it is first run.

    A client may be dropped before it is. Python warns of a coroutine that was made and never awaited, and it may free
    that one before the client, whose finalizer would end it.
    """
    return cast("Coro[T]", _deferred(make, args))


class Shield:
    """`with Shield(loop):` puts off the cancellation of the running task to the end of the block."""

    def __init__(self, loop: Scheduler) -> None:
        task = loop.current_task
        assert task is not None, "a shield needs a running task"
        self._task = task

    def __enter__(self) -> None:
        self._task._shields += 1  # noqa: SLF001

    def __exit__(self, *_: object) -> None:
        self._task._shields -= 1  # noqa: SLF001


class TimeoutScope:
    """`with loop.timeout_at(deadline, "what was tried"):` ends the block at the deadline.

    The block gets `TaskCancelled` at the point where it waits; the code outside gets `KafkaTimeoutError`. A
    cancellation from elsewhere passes through unchanged.
    """

    def __init__(self, loop: Scheduler, deadline: float | None, what: str) -> None:
        task = loop.current_task
        assert task is not None, "a timeout needs a running task"
        self._task = task
        self._what = what
        self._expired = False
        self._timer = None if deadline is None else loop.call_at(deadline, self._expire)

    def __enter__(self) -> Self:
        return self

    def _expire(self) -> None:
        if not self._task._cancel_due:  # noqa: SLF001 - else it is being cancelled already
            self._expired = self._task._cancel_due = True  # noqa: SLF001
            self._task._interrupt()  # noqa: SLF001

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self._expired:
            return
        if kind is TaskCancelled:
            if self._task._cancel_asked:  # noqa: SLF001 - someone else cancels too, and goes first
                return
            raise KafkaTimeoutError(f"{self._what} took too long") from None
        # The block ended before the interruption reached it: nothing is left to interrupt.
        self._task._cancel_due = self._task._cancel_asked  # noqa: SLF001


class TaskGroup:
    """Tasks that end together: the block is left when all are done.

    When one fails the others are cancelled, and its error comes out of the block. When the block
    itself fails or is cancelled, all tasks are cancelled and waited for.

    ::

        async with TaskGroup(loop) as group:
            group.spawn(fetch(1))
            group.spawn(fetch(2))
    """

    def __init__(self, loop: Scheduler) -> None:
        self._loop = loop
        self._tasks: set[Task[Any]] = set()
        self._error: BaseException | None = None
        self._changed = Event()

    def spawn(self, coro: Coro[T], name: str | None = None) -> Task[T]:
        """Start a task of the group."""
        task = self._loop.spawn(coro, name)
        self._tasks.add(task)
        task.add_callback(lambda _: self._ended(task, None))
        task.add_errback(lambda error: self._ended(task, error))
        return task

    def _ended(self, task: Task[T], error: BaseException | None) -> None:
        self._tasks.discard(task)
        if error is not None and self._error is None:
            self._error = error
            self.cancel()
        self._changed.set()

    def cancel(self) -> None:
        """Cancel every task of the group."""
        for task in tuple(self._tasks):
            task.cancel()

    async def _drained(self) -> None:
        while self._tasks:
            self._changed.clear()
            await self._changed.wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is not None:
                self.cancel()
            else:
                await self._drained()
        except TaskCancelled:
            self.cancel()
            raise
        finally:
            with Shield(self._loop):
                await self._drained()
        if kind is None and self._error is not None:
            raise self._error


class Scope:
    """Tasks and timers with one end: `cancel()` ends all of them, and the scope can be used again.

    Unlike a `TaskGroup` it has no block that waits: the tasks report to callbacks.
    """

    __slots__ = ("_loop", "_tasks", "_timers")

    def __init__(self, loop: Scheduler) -> None:
        self._loop = loop
        self._tasks: set[Task[Any]] = set()
        self._timers: dict[Callable[[], object], Timer] = {}

    def spawn(self, coro: Coro[T], name: str, ended: Callable[[Task[T]], object]) -> None:
        """Start a task; `ended(task)` is called when it is done, unless the scope was cancelled before."""
        task = self._loop.spawn(coro, name)
        self._tasks.add(task)

        def end(_result: object) -> None:
            if task in self._tasks:
                self._tasks.remove(task)
                ended(task)

        task.add_both(end)

    def call_at(self, when: float, callback: Callable[[], object]) -> None:
        """Run `callback()` at `when` and not at the time that was set for it before."""
        timer = self._timers.get(callback)
        if timer is not None:
            timer.cancel()
        self._timers[callback] = self._loop.call_at(when, callback)

    def cancel(self) -> None:
        """Cancel the tasks and the timers."""
        tasks, self._tasks = self._tasks, set()
        timers, self._timers = self._timers, {}
        for task in tasks:
            task.cancel()
        for timer in timers.values():
            timer.cancel()


class Event:
    """A flag that tasks wait for. Set it on the loop (`loop.call_soon(event.set)` from elsewhere)."""

    __slots__ = ("_flag", "_waiters")

    def __init__(self) -> None:
        self._flag = False
        self._waiters: list[Future[None]] = []

    def is_set(self) -> bool:
        """Whether the flag is up."""
        return self._flag

    def set(self) -> None:
        """Set the flag; waiting tasks continue."""
        self._flag = True
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter.success(None)

    def clear(self) -> None:
        """Lower the flag."""
        self._flag = False

    async def wait(self) -> None:
        """Wait until the flag is up."""
        if self._flag:
            return
        waiter: Future[None] = Future()
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            if not waiter.is_done:  # cancelled: leave nothing behind in a long-lived event
                self._waiters.remove(waiter)

    async def wait_until(self, loop: Scheduler, when: float) -> None:
        """Wait until the flag is up; at `when`, as the loop counts, it is set."""
        timer = loop.call_at(when, self.set)
        try:
            await self.wait()
        finally:
            timer.cancel()


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


class checkpoint:  # noqa: N801 - reads as a verb: `await checkpoint()`
    """`await checkpoint()` lets everything else that is ready run first."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        yield None


async def wait_any(loop: Scheduler, *futures: Future[Any], deadline: float | None = None) -> bool:
    """Wait until one of `futures` is done (True) or the deadline is reached (False).

    Meant for futures of requests, which end: a callback stays on each until it is done. For what
    may never end use an `Event`.
    """
    if any(future.is_done for future in futures):
        return True
    gate: Future[None] = Future()
    for future in futures:
        future.add_both(lambda _: gate.try_success(None))
    timer = None if deadline is None else loop.call_at(deadline, gate.try_success, None)
    try:
        await gate
    finally:
        if timer is not None:
            timer.cancel()
    return any(future.is_done for future in futures)
