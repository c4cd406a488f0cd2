"""A pending result: the historic ``Future`` with its callbacks, awaitable under the library's scheduler.

Any thread may complete a future and any thread may add callbacks; each callback runs exactly once, on the thread that
completes the future, or at once on the caller's thread if the future is already complete. Awaiting yields the future
itself to the scheduler (kafka._runtime.loop), which resumes the task from a callback.

No lock. A future has two lists, and only uses ``list.append`` and ``list.pop`` on them, which are atomic under the GIL
and take the list's own lock on free-threaded builds:

- Completing appends the outcome; the first entry counts, so a future is never half complete.
- The completing thread then pops callbacks until the list is empty. A thread that adds a callback appends it first and
  checks for an outcome second. Either the append precedes the last, empty pop, and the completing thread finds the
  callback; or it follows that pop, thus the outcome, and the adding thread finds the outcome. No wake-up is lost.

A lock (one per future, or one for all) was rejected: a finalizer that runs inside the locked region may complete
another future, a signal handler too, and a lock held by another thread during a fork stays locked in the child.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar, cast

from kafka._runtime.callback_errors import raise_after_pass
from kafka.errors import IllegalStateError

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

__all__ = ["Future"]

log = logging.getLogger(__name__)

T = TypeVar("T")
Back = Callable[..., object]


class Future(Generic[T]):
    """The outcome of an operation: a value or an exception, now or later.

    >>> future = Future()
    >>> _ = future.add_callback(print, "got", sep=": ").add_errback(print)
    >>> future.is_done
    False
    >>> _ = future.success(42)
    got: 42
    >>> future.succeeded(), future.value
    (True, 42)
    """

    # _outcome: [] or [(value, None, None)] or [(None, error, its traceback)]. _backs: pairs of what to call on success
    # and on failure.
    __slots__ = ("__weakref__", "_backs", "_outcome", "is_done")

    error_on_callbacks: ClassVar[bool] = False
    """For tests: raise what a callback raised out of the completing call, besides logging it."""

    def __init__(self) -> None:
        self._outcome: list[tuple[T | None, BaseException | None, TracebackType | None]] = []
        self._backs: list[tuple[Back | None, Back | None]] = []
        # Loops ask for it all the time. A thread that finds an outcome before it is set sets it, then calls back.
        self.is_done = False
        """Whether there is an outcome."""

    # Looking…

    @property
    def value(self) -> T | None:
        """The value, or None where there is none yet or an exception instead."""
        return self._outcome[0][0] if self._outcome else None

    @property
    def exception(self) -> BaseException | None:
        """The exception, or None."""
        return self._outcome[0][1] if self._outcome else None

    def succeeded(self) -> bool:
        """Whether it is done and has a value."""
        return bool(self._outcome) and self._outcome[0][1] is None

    def failed(self) -> bool:
        """Whether it is done and has an exception."""
        return bool(self._outcome) and self._outcome[0][1] is not None

    def retriable(self) -> bool:
        """Whether it failed with an error after which trying again may help."""
        return bool(getattr(self.exception, "retriable", False))

    def result(self) -> T:
        """Return the value or raise the exception; raise `IllegalStateError` while the future is not complete."""
        if not self._outcome:
            raise IllegalStateError("The future is not done yet")
        value, error, traceback = self._outcome[0]
        if error is not None:
            try:
                # With the traceback that it had: each raise adds frames.
                raise error.with_traceback(traceback)
            finally:
                # The error's traceback holds this frame, which must not hold the error in turn.
                del self, error, traceback
        return cast("T", value)

    def __await__(self) -> Generator[Self, None, T]:
        while not self._outcome:
            yield self
        try:
            return self.result()
        finally:
            del self  # as in result()

    # Completing…

    def success(self, value: T) -> Self:
        """Complete with a value. A future completes once: a second time raises `IllegalStateError`."""
        if not self.try_success(value):
            raise IllegalStateError(f"{self!r} is already complete")
        return self

    def failure(self, e: BaseException | type[BaseException]) -> Self:
        """Complete with an exception, or an exception class to be instantiated; once, as `success`."""
        if not self.try_failure(e):
            raise IllegalStateError(f"{self!r} is already complete")
        return self

    def try_success(self, value: T) -> bool:
        """Complete with a value unless it is complete; tells whether this call did it."""
        return self._complete((value, None, None))

    def try_failure(self, error: BaseException | type[BaseException]) -> bool:
        """Complete with an exception unless it is complete; tells whether this call did it."""
        if isinstance(error, type):
            error = error()
        if not isinstance(error, BaseException):
            raise TypeError(f"A future fails with an exception, not with {error!r}")
        return self._complete((None, error, error.__traceback__))

    def _complete(self, outcome: tuple[T | None, BaseException | None, TracebackType | None]) -> bool:
        outcomes = self._outcome
        outcomes.append(outcome)
        if outcomes[0] is not outcome:
            # Too late. Each late comer takes one entry off again, and the first is never the last one then.
            outcomes.pop()
            return False
        self.is_done = True
        if self._backs:
            self._run_backs()
        return True

    # Callbacks…

    def add_callback(self, f: Callable[..., object], *args: object, **kwargs: object) -> Self:
        """Call ``f(*args, value, **kwargs)`` on success."""
        return self._add((partial(f, *args, **kwargs) if args or kwargs else f, None))

    def add_errback(self, f: Callable[..., object], *args: object, **kwargs: object) -> Self:
        """Call ``f(*args, exception, **kwargs)`` on failure."""
        return self._add((None, partial(f, *args, **kwargs) if args or kwargs else f))

    def add_both(self, f: Callable[..., object], *args: object, **kwargs: object) -> Self:
        """Call ``f(*args, value or exception, **kwargs)`` when it is done."""
        back = partial(f, *args, **kwargs) if args or kwargs else f
        self._backs.append((back, back))
        if self._outcome:
            self._run_backs()
        return self

    def chain(self, future: Future[T]) -> Self:
        """Complete another future like this one, unless it has been completed by then."""
        return self._add((future.try_success, future.try_failure))

    def discard(self, f: Callable[..., object]) -> None:
        """Forget what `add_both(f)` has added, unless it has run: a wait that was given up leaves nothing behind."""
        with suppress(ValueError):  # it is being called this moment, or was
            self._backs.remove((f, f))

    def _add(self, backs: tuple[Back | None, Back | None]) -> Self:
        self._backs.append(backs)
        if self._outcome:
            self._run_backs()
        return self

    def _run_backs(self) -> None:
        """Run what is left of the callbacks, in the order in which they were added."""
        self.is_done = True
        value, error, _ = self._outcome[0]
        raised: BaseException | None = None
        pop = self._backs.pop
        while True:
            try:
                on_success, on_failure = pop(0)
            except IndexError:
                break
            back = on_success if error is None else on_failure
            if back is None:
                continue
            try:
                back(value if error is None else error)
            except Exception as problem:
                log.exception("A callback of a future failed: %r", back)
                if self.error_on_callbacks:
                    raised = problem
            except BaseException as problem:  # Ctrl-C must not cost the others their wake-up
                raised = problem
        if raised is None:
            return
        if isinstance(raised, Exception):
            raise raised
        raise_after_pass(raised)

    def __repr__(self) -> str:
        if not self._outcome:
            state = "pending"
        else:
            value, error, _ = self._outcome[0]
            state = f"value={value!r}" if error is None else f"exception={error!r}"
        return f"<{type(self).__name__} {state}>"
