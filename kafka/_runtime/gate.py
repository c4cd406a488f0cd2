"""How one thread wakes another out of a selector, and where the network thread sleeps while another turns its loop.

A `Waker` is an eventfd where there is one, else a socket pair. At a `Gate` the network thread *dozes*, 2 ms at a time,
while another thread sends one record after the other and waits for each: to wake it for the time that a record may
linger costs two threads that want the interpreter as much as the record. What no thread waits for may be that late.
"""

from __future__ import annotations

import os
import select
import selectors
import socket
from collections.abc import Callable
from functools import partial
from typing import Any, Final

__all__ = ["Gate", "Waker"]

_HAS_EVENTFD: Final = hasattr(os, "eventfd")


class _Event(int):
    """The descriptor of an eventfd, which is closed when the last reference is gone.

    `Waker.signal` runs in any thread and in signal handlers, so it must not take a lock that `close` could hold. But a
    descriptor that is closed between its look at the waker and its write may be another file's number by then, and the
    write would go into that file. So `close` only drops the reference: a thread that is about to write has one too.
    """

    __slots__ = ()

    # `os.close(self)` without a frame: an interrupt in one would be ignored, and the descriptor stay open.
    __del__: Any = property(partial(partial, os.close))


class _Pair:  # pragma: no cover - Linux has eventfd
    """A pair of sockets, where there is no eventfd; it is closed like an `_Event`."""

    __slots__ = ("_ends", "fd")

    def __init__(self, ends: tuple[socket.socket, socket.socket]) -> None:
        self._ends = ends
        for end in ends:
            end.setblocking(False)
        self.fd = ends[0].fileno()

    def signal(self) -> None:
        self._ends[1].send(b"\0")

    def drain(self) -> None:
        self._ends[0].recv(4096)

    def __del__(self) -> None:
        for end in self._ends:
            end.close()


class Waker:
    """A descriptor that any thread can make readable. The reader decides how often it is written."""

    # No function has the event in a variable: a frame may live long, in the traceback of a signal's handler that raised
    # there. The exceptions that are expected: it is full, so it is readable anyway; it is closed.

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._end: Any
        if _HAS_EVENTFD:
            # In one call from Python: Ctrl-C between two would leave a number that no code closes.
            self._end = next(map(_Event, map(os.eventfd, (0,), (os.EFD_NONBLOCK | os.EFD_CLOEXEC,))))
            self._fd = int(self._end)
        else:  # pragma: no cover - Linux has eventfd
            self._end = _Pair(socket.socketpair())
            self._fd = self._end.fd

    def fileno(self) -> int:
        """Return the descriptor to watch for reading."""
        return self._fd

    def signal(self) -> None:
        """Make it readable; nothing happens once it is closed. Safe from every thread, and from signal handlers."""
        try:
            if _HAS_EVENTFD:
                os.eventfd_write(self._end, 1)
            else:  # pragma: no cover - Linux has eventfd
                self._end.signal()
        except (OSError, TypeError, AttributeError):
            pass

    def drain(self) -> None:
        """Make it unreadable again."""
        try:
            if _HAS_EVENTFD:
                os.eventfd_read(self._end)
            else:  # pragma: no cover - Linux has eventfd
                self._end.drain()
        except (OSError, TypeError, AttributeError):
            pass

    def close(self) -> None:
        """Free it; idempotent."""
        self._end = None


# How long the driver sleeps while other threads claim the loop repeatedly, in seconds: no thread wakes it meanwhile.
_DOZE: Final = 0.002


class Gate:
    """Where the thread of a driver sleeps until the selector of its loop has something, unless the gate is shut.

    A separate epoll or kqueue, which contains the selector's: another thread uses the selector itself, and of two
    threads in one epoll each event wakes both.
    """

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self.claims = 0
        """How often another thread has claimed the loop."""
        self.dozing = False
        """Whether the driver sleeps for a doze only, so that no thread has to wake it."""
        self.spared = False
        """Whether a thread would have woken it."""
        self._claims_seen = 0
        self._slept = float("-inf")  # when the driver went to sleep last
        fd: int = selector.fileno()  # type: ignore[attr-defined]  # epoll or kqueue
        outer: Any
        self.open: Callable[[], object]
        """Lets the selector end a sleep. ValueError when the gate is closed."""
        self.shut: Callable[[], object]
        """Lets nothing but the time end a sleep. ValueError when the gate is closed."""
        if hasattr(select, "epoll"):  # twice for each call that blocks: three times as fast as by a selector
            outer = select.epoll()
            outer.register(fd, select.EPOLLIN)
            # One event at most: a sleeper has memory for all that it may get, by default 12 KiB.
            poll = outer.poll
            self.sleep: Callable[[float | None], object] = lambda wait: poll(wait, 1)
            self.open, self.shut = partial(outer.modify, fd, select.EPOLLIN), partial(outer.modify, fd, 0)
        else:  # pragma: no cover - Linux has epoll
            outer = selectors.DefaultSelector()
            outer.register(fd, selectors.EVENT_READ)
            self.sleep = outer.select
            self.open, self.shut = partial(outer.register, fd, selectors.EVENT_READ), partial(outer.unregister, fd)
        self.close: Callable[[], object] = outer.close

    def doze(self, wait: float | None, now: float) -> float | None:
        """Return how long the driver dozes now instead of sleeping for `wait`; None if it sleeps. For the driver."""
        again = self.spared if self.dozing else now - self._slept < 2 * _DOZE
        self.dozing, self.spared = again and self.claims != self._claims_seen, False
        self._claims_seen, self._slept = self.claims, now
        return _DOZE if self.dozing and (wait is None or wait >= _DOZE) else None
