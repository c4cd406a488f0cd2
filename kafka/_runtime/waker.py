"""How one thread wakes another out of a selector: eventfd where there is one, else a socket pair."""

from __future__ import annotations

import os
import socket
from functools import partial
from typing import Any, Final

__all__ = ["Waker"]

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
