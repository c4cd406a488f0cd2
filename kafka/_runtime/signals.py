"""Signals while the main thread makes a pass of a loop: their handlers run right after it.

A handler that raises would cut a pass in two and leave a connection half-read, so in the main thread the handlers are
put off while it turns the loop; they run, and raise, right after the pass (milliseconds later).
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from kafka._runtime.loop import Loop

__all__ = ["SignalsDeferred"]

# Handlers of these often raise (KeyboardInterrupt, SystemExit, a task queue's time limit).
_DEFERRED: Final = tuple(
    int(getattr(signal, name))
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGBREAK")
    if hasattr(signal, name)
)

# `signal` wraps the C functions to turn numbers into enum members, which makes them ten times as
# slow; here they are called for every call that blocks.
_signal: Final[Any] = sys.modules.get("_signal", signal)

# The threads that Python did not let set a handler: all but the one that runs them.
_WITHOUT_SIGNALS: Final[set[int]] = set()
Handlers = list[tuple[int, Callable[[int, "FrameType | None"], object]]]
# The handlers of the signals above when they were looked at last, and the ones to put off: they rarely change.
_known: tuple[tuple[object, ...], Handlers] = ((), [])
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_WITHOUT_SIGNALS.clear)  # in the child the thread that forked runs them


class SignalsDeferred:
    """Put off the handlers of signals to the end of the block, in the main thread; elsewhere nothing.

    Gives the list of what has come in, which is empty until then.
    """

    __slots__ = ("_loop", "_pending", "handlers")

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._pending: list[tuple[int, FrameType | None]] = []
        self.handlers: Handlers = []
        """The application's, which are put off."""

    def __enter__(self) -> list[tuple[int, FrameType | None]]:
        global _known  # noqa: PLW0603 - for all threads, of which one has signals
        if threading.get_ident() in _WITHOUT_SIGNALS:
            return self._pending
        try:
            found = tuple(map(_signal.getsignal, _DEFERRED))
            if found != _known[0]:  # callable: not SIG_DFL, SIG_IGN, or set by C code, as those do not raise
                _known = found, [each for each in zip(_DEFERRED, found, strict=True) if callable(each[1])]
            # SIGINT first: its handler is the one that may raise in between.
            for number, handler in _known[1]:
                self.handlers.append((number, handler))
                before = _signal.signal(number, self._note)
                if before is not handler and callable(before):  # one that ran this moment has set another
                    self.handlers[-1] = number, before
        except BaseException as error:
            # Only Python knows which thread runs the handlers: `threading` takes the thread that imported it first for
            # the main one, and a second interpreter has none. Elsewhere the very first attempt is refused.
            traceback = error.__traceback__
            refused = type(error) is ValueError and traceback is not None and traceback.tb_next is None
            if refused and len(self.handlers) == 1:
                self.handlers.clear()
                _WITHOUT_SIGNALS.add(threading.get_ident())
                return self._pending
            self.__exit__()
            raise
        return self._pending

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._pending.append((number, frame))
        self._loop.wakeup()

    def __exit__(self, *_: object) -> None:
        if not self.handlers:
            return
        handlers = dict(self.handlers)
        # The application gets all of them back, though each may run, and raise, right after.
        raised: BaseException | None = None
        while self.handlers:
            number, handler = self.handlers[0]
            try:
                _signal.signal(number, handler)
                del self.handlers[0]
            except BaseException as error:
                if error is not raised:
                    error.__context__, raised = raised, error
        if raised is not None:
            raise raised
        if self._pending:
            self._run(handlers, 0)

    def _run(self, handlers: dict[int, Callable[[int, FrameType | None], object]], at: int) -> None:
        """Run the handlers of the signals that came, each of them whatever the others raise."""
        if at < len(self._pending):
            number, frame = self._pending[at]
            try:
                handlers[number](number, frame)
            finally:
                self._run(handlers, at + 1)
