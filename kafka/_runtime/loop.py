"""The scheduler that every face of the client runs on: sockets, timers, tasks, one pass at a time.

A `Loop` has no thread. The thread that drives the client calls `turn()`: the network
thread (`kafka._runtime.network_thread`), a foreign event loop (`kafka._runtime.asyncio_driver`), a
user's thread that waits anyway, a test. Asyncio is not imported.

- A turn sleeps in the selector, outside the lock, for as long as its caller allows and no deadline
  is due, then makes one *pass* under the lock: handlers of sockets that are ready, timers that are
  due, and the callbacks that are queued. What those callbacks queue has some rounds more in this
  pass and then waits for the next, so the time between two looks at the sockets is bounded.
  Connections send at the end of the pass what all of these have submitted.
- Nothing wakes the loop periodically. `turns` counts the turns; tests hold an idle client to it.
- `call_soon` is safe from every thread and writes to the wake-up pipe only while someone sleeps.
  All else (timers, descriptors, tasks' inner state) belongs to the pass.
- A thread of the application that *claims* the loop turns it itself, and its work then costs no thread switch. The
  network thread sleeps, or dozes, behind a `Gate` and sees nothing of it.

Rejected: asyncio on a private thread (a second network stack for the asyncio face, ten times the
cost per wake-up), and generated sync/async twins (see DESIGN, section 1).
"""

from __future__ import annotations

import logging
import os
import selectors
import time
from collections import deque
from collections.abc import Callable, Generator
from math import inf
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from kafka._runtime.callback_errors import PASSES
from kafka._runtime.clock import SYSTEM_CLOCK, Clock
from kafka._runtime.forks import LOOPS, let_go
from kafka._runtime.gate import Gate, Waker
from kafka._runtime.tasks import Task, TimeoutScope, checkpoint, wait_any
from kafka._runtime.timers import Timer, TimerHeap
from kafka.errors import ClientClosedError, ForkedClientError, IllegalStateError, KafkaError, KafkaTimeoutError
from kafka.future import Future

if TYPE_CHECKING:
    from random import Random

    from _typeshed import HasFileno

    from kafka._runtime.tasks import Coro

__all__ = ["READ", "WRITE", "Loop"]

log = logging.getLogger("kafka.client")
# A program that does not configure logging gets no output of ours on its stderr.
logging.getLogger("kafka").addHandler(logging.NullHandler())

T = TypeVar("T")

READ: Final = selectors.EVENT_READ
WRITE: Final = selectors.EVENT_WRITE

# The longest single sleep, in seconds: epoll counts milliseconds in 32 bits. One wake-up a day.
_LONGEST_SLEEP: Final = 86_400.0
# How long to wait for a pass of another thread to end, in seconds: they take well below a millisecond.
_PASS_TIME: Final = 0.01
# Passes that `close` makes without waiting; a cancelled task needs two or three.
_LAST_PASSES: Final = 50
# The least that the driver sleeps while another thread has claimed the loop, in seconds.
_ASIDE: Final = 0.1
# How long the driver lets a thread shut the gate that claims the loop while there are events for it, in seconds.
_STEP_ASIDE: Final = 0.0002
# How often a pass looks at the queue: a call of the library takes about as many steps to its request.
_ROUNDS: Final = 4
_FAILED: Final = "A callback on the network loop failed: %r"


class Loop:
    """A selector, a clock and what waits for them.

    >>> loop = Loop()
    >>> async def answer():
    ...     await loop.sleep(0.001)
    ...     return 42
    >>> loop.run_until(loop.spawn(answer()))
    42
    >>> loop.close()
    """

    def __init__(
        self,
        *,
        clock: Clock = SYSTEM_CLOCK,
        rng: Random | None = None,
        selector: Callable[[], selectors.BaseSelector] = selectors.DefaultSelector,
    ) -> None:
        if rng is None:
            from random import Random as SystemSeeded

            rng = SystemSeeded()  # noqa: S311 - jitter and choice among equals, no secrets
        self.clock = clock
        self.time: Callable[[], float] = clock.monotonic
        """The monotonic time that deadlines are given in: the clock's own function, as it is asked all the time."""
        self.rng = rng
        self.turns = 0
        self.slice = inf
        """How long a callback or a task may keep the loop from others, in seconds."""
        self.current_task: Task[Any] | None = None
        self._ready: deque[tuple[Callable[..., object], tuple[object, ...]]] = deque()
        self._at_end: deque[Callable[[], object]] = deque()
        self._events: list[tuple[selectors.SelectorKey, int]] = []  # left over by a pass that ran out of time
        self.timers = TimerHeap()
        self._tasks: set[Task[Any]] = set()
        self._handlers: dict[int, Callable[[int], object]] = {}
        self._lock = Lock()
        self._sleepers = 0
        self._sleep_until = inf  # the deadline of the driver's timeout
        self._passing: int | None = None  # the thread that makes a pass right now
        self._put_off: list[BaseException] = []  # what callbacks raise to end the program, until the pass is over
        self.driven_by: int | None = None  # the thread whose only work it is to turn the loop
        self._woken = False
        self._claimed_by: int | None = None
        self._gate: Gate | None = None
        self.retiring = False
        """Whether the driver is about to end: no thread can claim the loop any more."""
        self._closers: list[Callable[[], object]] = []
        self._fork_callbacks: list[Callable[[], object]] = []
        self._unusable: KafkaError | None = None
        self.closed = False
        """Whether the loop has ended, or belongs to another process."""
        self.forked = False
        self.broken: KafkaError | None = None
        """Why it is unusable, though nothing closed it: a fork, or an error inside it."""
        self._selector = selector()
        self._waker = Waker()
        self._selector.register(self._waker, READ)
        self._handlers[self._waker.fileno()] = self._drain_waker
        self.notify: Callable[[], object] = self._waker.signal
        LOOPS.add(self)

    # Asking for work to be done: from any thread…

    def call_soon(self, callback: Callable[..., object], *args: object) -> None:
        """Run `callback(*args)` in the next pass. Safe from every thread, and from signal handlers."""
        self._ready.append((callback, args))
        # A pass looks at the queue again when it ends, and who has claimed the loop is about to turn
        # it: no thread must be woken then.
        if self._sleepers and self._passing is None and self._claimed_by != get_ident():
            gate = self._gate
            if gate is not None and gate.dozing and self._claimed_by is None:
                gate.spared = True
            else:
                self.wakeup()

    def call_at_end(self, callback: Callable[[], object]) -> None:
        """Run `callback()` when the callbacks of this pass have run; between passes, in the next. On the loop only."""
        if self._passing == get_ident():
            self._at_end.append(callback)
        else:
            self.call_soon(callback)

    def spawn(self, coro: Coro[T], name: str | None = None) -> Task[T]:
        """Start a task; it first runs in the next pass. The task is the future of its result."""
        if self._unusable is not None:
            coro.close()
            self.check_usable()
        return Task(self, coro, name)

    def spawn_logged(self, coro: Coro[object], name: str | None = None) -> Task[object]:
        """Start a task that no caller waits for: a failure is logged."""
        task = self.spawn(coro, name)

        def report(error: BaseException) -> None:
            # A task that was cancelled has not failed, nor one that began while the loop ended, and ended with it.
            if not task._cancel_asked and not self.closed:  # noqa: SLF001
                log.error("%s failed: %s", task.name, error, exc_info=error)

        task.add_errback(report)
        return task

    def wakeup(self) -> None:
        """Wake the thread that sleeps in the selector, or the next one before it sleeps. Safe from every thread."""
        if not self._woken:
            try:
                self._woken = True
                self.notify()
            except BaseException:  # Ctrl-C, maybe before it was written: no later call would wake that thread
                self._woken = False
                raise

    def check_usable(self) -> None:
        """Raise ClientClosedError, or ForkedClientError in the child of the process that made the loop."""
        if self._unusable is not None:
            raise self._unusable.with_traceback(None)

    # On the loop only…

    def call_at(self, when: float, callback: Callable[..., object], *args: object) -> Timer:
        """Run `callback(*args)` at `when` (as `time()` counts). Returns what cancels it."""
        return self.timers.add(when, callback, args)

    def call_later(self, delay: float, callback: Callable[..., object], *args: object) -> Timer:
        """Run `callback(*args)` in `delay` seconds. Returns what cancels it."""
        return self.timers.add(self.clock.monotonic() + delay, callback, args)

    def watch(self, file: HasFileno, events: int, handler: Callable[[int], object]) -> None:
        """Call `handler(ready_events)` whenever `file` is ready for one of `events` (READ, WRITE)."""
        fd = file.fileno()
        if fd in self._handlers:
            self._selector.modify(file, events)
        else:
            self._selector.register(file, events)
        self._handlers[fd] = handler

    def unwatch(self, file: HasFileno) -> None:
        """Stop watching `file`; call it before closing the file."""
        if self._handlers.pop(file.fileno(), None) is not None:
            self._selector.unregister(file)

    def slice_end(self) -> float:
        """Return when the caller should leave the rest to the next pass (`call_soon`, `await checkpoint()`)."""
        return self.clock.monotonic() + self.slice

    async def in_slices(self, steps: Generator[None, None, T]) -> T:
        """Run a generator to its end and return its result; other tasks have their turn after each slice of it."""
        ends = self.slice_end()
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return cast("T", end.value)
            if self.clock.monotonic() >= ends:
                await checkpoint()
                ends = self.slice_end()

    async def sleep(self, delay: float) -> None:
        """Wait for `delay` seconds."""
        await self.sleep_until(self.clock.monotonic() + delay)

    async def sleep_until(self, when: float) -> None:
        """Wait until `when`."""
        gate: Future[None] = Future()
        timer = self.call_at(when, gate.try_success, None)
        try:
            await gate
        finally:
            timer.cancel()

    def timeout_at(self, deadline: float | None, what: str = "the operation") -> TimeoutScope:
        """`with loop.timeout_at(deadline, what):` raises KafkaTimeoutError in the running task."""
        return TimeoutScope(self, deadline, what)

    # Passes of the driver…

    @property
    def has_ready(self) -> bool:
        """Whether the next turn has something to do at once."""
        return bool(self._ready or self._events)

    @property
    def in_pass(self) -> bool:
        """Whether the caller is being run by the loop, and so cannot turn it."""
        return self._passing == get_ident()

    @property
    def runs_caller(self) -> bool:
        """Whether it runs the caller, or the caller is its network thread, which must not wait for itself."""
        return get_ident() in (self._passing, self.driven_by)

    def turn(self, timeout: float | None = None, *, budget: float | None = None) -> bool:  # noqa: C901, PLR0912 - hot
        """Sleep until something is to be done, `timeout` seconds at most; then make one pass.

        After `budget` seconds the pass handles no further socket, and after as long again no further callback, nor what
        callbacks have queued: the next pass does the rest.
        Returns False where another thread has claimed the loop: then there was no pass.
        """
        if self._unusable is not None:
            raise self._unusable.with_traceback(None)
        me = get_ident()
        if self._passing == me:
            raise IllegalStateError("this blocks, so it cannot be called from a callback on the network loop")
        gate = self._gate if self.driven_by == me else None
        with self._lock:
            self.turns += 1
            # Count first, look at the queue second: `call_soon` does it the other way round, so
            # either it sees a sleeper and wakes it, or the sleeper sees what was queued.
            self._sleepers += 1
            deadline, claimed_by, wait = self.timers.earliest, self._claimed_by, timeout
            by_another = claimed_by is not None and claimed_by != me
            if (self._ready or self._events) and not by_another:
                wait = 0.0
            else:
                if by_another:
                    # That thread meets what is due soon, and wakes the driver if it leaves an earlier deadline behind.
                    deadline = max(deadline, self.clock.monotonic() + _ASIDE)
                if claimed_by != me:  # else the driver sleeps at the same time, towards a deadline of before
                    self._sleep_until = deadline
                if deadline < inf:
                    left = max(0.0, deadline - self.clock.monotonic())
                    wait = left if wait is None or left < wait else wait
                if wait is not None and wait > _LONGEST_SLEEP:
                    wait = _LONGEST_SLEEP
            if gate is not None and wait != 0.0 and (doze := gate.doze(wait, self.clock.monotonic())) is not None:
                wait, self._sleep_until = doze, self.clock.monotonic() + doze
        try:
            fired: object = None
            if gate is not None and wait != 0.0:
                fired, wait = gate.sleep(wait), 0.0
            events = []
            if self._claimed_by in (None, me):
                events = self._selector.select(wait)
            elif fired:  # they are for the thread that claims the loop, and has yet to shut the gate
                time.sleep(_STEP_ASIDE)
        except BaseException:  # a signal handler may raise here, in a user's thread
            with self._lock:
                self._sleepers -= 1
            raise
        with self._lock:
            self._sleepers -= 1
            if self._claimed_by not in (None, me):
                return False
            self._pass(events, budget)
        if self._put_off:
            self._raise_put_off()
        return True

    def _raise_put_off(self) -> None:
        errors = self._put_off[:]
        del self._put_off[: len(errors)]
        if self.driven_by == get_ident():
            for error in errors:
                log.error("A callback raised %r; it runs in the network thread, where that ends nothing", error)
        else:
            raise errors[0]

    def run_until(self, future: Future[T], deadline: float | None = None) -> T:
        """Turn the loop in this thread until `future` is done or the deadline is reached.

        For loops without a driver, as in tests and examples.
        """
        while not future.is_done:
            remaining = None if deadline is None else deadline - self.clock.monotonic()
            if remaining is not None and remaining <= 0:
                raise KafkaTimeoutError(f"{future!r} was not done in time")
            self.turn(remaining)
        return future.result()

    def _pass(self, events: list[tuple[selectors.SelectorKey, int]], budget: float | None) -> None:  # noqa: C901, PLR0912 - hot
        ready, me, now = self._ready, get_ident(), self.clock.monotonic
        if self._events:
            # Only the events left over by the last pass: sockets and timers behind a busy socket have their turn, too.
            events, self._events = self._events, []
        self._passing, outer, PASSES[me] = me, PASSES.get(me), self._put_off
        try:
            ends = None if budget is None else now() + budget
            for done, (key, mask) in enumerate(events, 1):
                # Looked up now: an earlier handler, or the pass of another thread since the
                # selector returned, may have closed this one. Spurious calls are allowed.
                handler = self._handlers.get(key.fd)
                if handler is not None:
                    try:
                        handler(mask & (READ | WRITE))
                    except Exception:
                        log.exception(_FAILED, handler)
                    if ends is not None and now() >= ends:
                        self._events = events[done:]
                        break
            # Not with events left: a timer would end a request whose reply has arrived and was not read yet.
            if not self._events and self.timers.earliest <= now():
                for timer in self.timers.take_due(now()):
                    ready.append((timer.fire, ()))
            ends = None if budget is None else now() + budget
            rounds = _ROUNDS if budget is None else 1
            while ready and rounds:
                rounds -= 1
                for _ in range(len(ready)):
                    callback, args = ready.popleft()
                    try:
                        callback(*args)
                    except Exception:
                        log.exception(_FAILED, callback)
                    if ends is not None and now() >= ends:
                        rounds = 0
                        break
            for _ in range(len(self._at_end)):
                callback = self._at_end.popleft()
                try:
                    callback()
                except Exception:
                    log.exception(_FAILED, callback)
        finally:
            self._passing = None
            if self._at_end:  # asked for by one of them, or cut off
                ready.extend((callback, ()) for callback in self._at_end)
                self._at_end.clear()
            if outer is None:
                del PASSES[me]
            else:  # a callback of another loop turns this one
                PASSES[me] = outer

    def _drain_waker(self, _events: int) -> None:
        # Drain first: a wake-up that comes in between is then not lost, at worst one too many.
        self._waker.drain()
        self._woken = False

    # Passes of another thread…

    def claim(self) -> bool:
        """Let this thread alone make passes until `release`; False if that is not possible now."""
        # Before the lock: in the child of a fork its holder may not exist.
        if self._gate is None or self._unusable is not None:
            return False
        # The thread in a pass holds the lock, and a pass may run a callback of the application that waits:
        # then waiting with a deadline, where Ctrl-C interrupts, is better.
        if not self._lock.acquire(timeout=_PASS_TIME):
            return False
        try:
            if self._claimed_by is not None or self.retiring or self._gate is None:
                return False
            self._claimed_by = get_ident()
            gate = self._gate
            gate.claims += 1
        finally:
            self._lock.release()
        # Not under the lock: a system call lets the driver have the GIL, which would wait for the lock next.
        try:  # noqa: SIM105 - hot
            gate.shut()
        except ValueError:  # it is closed: the network thread broke down meanwhile
            pass
        return True

    def release(self) -> None:
        """Give the loop back to its driver."""
        gate = self._gate
        if gate is not None:
            try:  # noqa: SIM105 - hot
                gate.open()
            except ValueError:  # as above
                pass
        with self._lock:
            self._claimed_by = None
            stale = self._is_stale()
        if stale:
            self.wakeup()

    def run_now(self, function: Callable[..., T], *args: object) -> T:
        """Return `function(*args)`. What it queues is done by this thread if the loop rests; otherwise soon, as always.

        The loop rests while nothing is queued and its driver sleeps. Then no thread is woken.
        """
        if not self._lock.acquire(blocking=False):
            return function(*args)
        rests = False
        try:
            free = self._gate is not None and self._claimed_by is None and self._unusable is None
            rests = free and bool(self._sleepers) and not self._ready
            if rests:
                self._passing = get_ident()  # so `call_soon` wakes no thread
                try:
                    result = function(*args)
                finally:
                    self._passing = None
                self._pass([], None)
        finally:
            stale = rests and self._is_stale()
            self._lock.release()
            if stale:
                self.wakeup()
        return result if rests else function(*args)

    def _is_stale(self) -> bool:
        """Whether the driver sleeps, and should not: something is queued, or there is an earlier deadline."""
        late = self.timers.earliest < self._sleep_until
        return self.retiring or (bool(self._sleepers) and (late or bool(self._ready)))

    def allow_claims(self) -> None:
        """Let other threads than the driver's make passes, where the selector allows that."""
        # Only these let one thread change the set of descriptors while another sleeps on it.
        if type(self._selector).__name__ in {"EpollSelector", "KqueueSelector"}:
            self._gate = Gate(self._selector)

    # Passes of an asyncio event loop…

    def fileno(self) -> int:
        """Return the descriptor that is readable when a turn has something to do.

        Raises AttributeError or ValueError where the platform's selector has none.
        """
        return int(self._selector.fileno())  # type: ignore[attr-defined]  # epoll, kqueue, devpoll

    def attach(self, notify: Callable[[], object]) -> None:
        """Let `notify()` be called, from any thread, when the loop is to be turned soon."""
        self.notify = notify
        self._sleepers += 1  # between its turns the foreign loop sleeps for us
        self.wakeup()

    def rearm(self) -> None:
        """Let the next `call_soon` notify again; the foreign loop says so when it begins a turn."""
        self._woken = False

    def detach(self) -> None:
        """Undo `attach`."""
        self.notify = self._waker.signal
        self._sleepers -= 1

    # Closing…

    async def wind_down(self, grace: float) -> None:
        """Cancel every other task and wait until they have ended, for `grace` seconds at most."""
        deadline = self.clock.monotonic() + grace
        others = [task for task in self._tasks if task is not self.current_task]
        for task in others:
            task.cancel()
        for task in others:
            await wait_any(self, task, deadline=deadline)

    def on_close(self, callback: Callable[[], object]) -> None:
        """Call `callback()` when the loop is closed, by any thread and for any reason, before anything else."""
        self._closers.append(callback)

    def on_fork(self, callback: Callable[[], object]) -> None:
        """Call `callback()` in the child of a fork, where the loop is unusable; no lock may be taken there."""
        self._fork_callbacks.append(callback)

    def abandon(self) -> None:
        """In the child of a fork: let go of the parent's descriptors without touching its connections."""
        self.forked = self.closed = True
        self.broken = self._unusable = ForkedClientError(
            f"This client was made in process {self._waker.pid} and cannot be used in its child {os.getpid()}: "
            "connections do not survive a fork. Create the client in the child."
        )
        let_go(self._selector, () if self._gate is None else (self._gate,))
        _call_all(self._fork_callbacks)

    def retire(self) -> bool:
        """Refuse further claims and cancel all tasks; return whether no thread has claimed the loop."""
        self.retiring = True
        with self._lock:
            free = self._claimed_by is None
        for task in tuple(self._tasks):
            task.cancel()
        return free

    def crash(self, error: BaseException) -> None:
        """Make the loop unusable after an error inside it."""
        self.broken = ClientClosedError(f"This client broke down and cannot be used any more: {error!r}")
        self._end(self.broken)

    def close(self, grace: float = 1.0) -> None:
        """End every task, run what they still want to do for `grace` seconds, free everything.

        Idempotent. Called by the last thread that turns the loop.
        """
        if self._unusable is not None:
            return
        self.driven_by = get_ident()
        _call_all(self._closers)
        for task in tuple(self._tasks):
            task.cancel()
        deadline = self.clock.monotonic() + grace
        for _ in range(_LAST_PASSES):  # what can be done without waiting is done in any case
            if not self._ready:
                break
            self.turn(0)
        while self._tasks and (remaining := deadline - self.clock.monotonic()) > 0:
            self.turn(remaining)
        self._end(ClientClosedError("This client is closed."))

    def _end(self, error: KafkaError) -> None:
        """Be closed from now on: fail the tasks that are left, and free everything."""
        self._unusable, self.closed = error, True
        _call_all(self._closers)
        for task in tuple(self._tasks):
            task.abort("The client was closed before this was done.")
        self.timers.clear()
        self._ready.clear()
        self._handlers.clear()
        with self._lock:  # a claim may end at this moment
            gate, self._gate = self._gate, None
        if gate is not None:
            gate.close()
        self._selector.close()
        self._waker.close()
        LOOPS.discard(self)

    def __repr__(self) -> str:
        state = "closed" if self.closed else "claimed" if self._claimed_by is not None else "open"
        return f"<Loop {state} ready={len(self._ready)} timers={len(self.timers)} tasks={len(self._tasks)}>"


def _call_all(callbacks: list[Callable[[], object]]) -> None:
    """Call each once; one that fails does not keep the others from being called."""
    while callbacks:
        callback = callbacks.pop(0)
        try:
            callback()
        except Exception:
            log.exception(_FAILED, callback)
