"""How one thread wakes another out of a selector: eventfd where there is one, else a socket pair."""

from __future__ import annotations

import os
import socket

__all__ = ["Waker"]


class Waker:
    """A descriptor that any thread can make readable. Whoever reads it decides how often it is written."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._closed = True  # until there is something to close
        self._sockets: tuple[socket.socket, socket.socket] | None = None
        if hasattr(os, "eventfd"):
            self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        else:  # pragma: no cover - Linux has eventfd
            self._sockets = socket.socketpair()
            for end in self._sockets:
                end.setblocking(False)
            self._fd = self._sockets[0].fileno()
        self._closed = False

    def fileno(self) -> int:
        """Return the descriptor to watch for reading."""
        return self._fd

    def signal(self) -> None:
        """Make it readable."""
        if self._closed:
            return
        try:
            if self._sockets is None:
                os.eventfd_write(self._fd, 1)
            else:  # pragma: no cover - Linux has eventfd
                self._sockets[1].send(b"\0")
        except OSError:  # full (so it is readable anyway), or closed this very moment
            pass

    def drain(self) -> None:
        """Make it unreadable again."""
        try:
            if self._sockets is None:
                os.eventfd_read(self._fd)
            else:  # pragma: no cover - Linux has eventfd
                self._sockets[0].recv(4096)
        except OSError:  # spurious
            pass

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Free it; idempotent."""
        if not self._closed:
            self._closed = True
            if self._sockets is None:
                os.close(self._fd)
            else:  # pragma: no cover - Linux has eventfd
                for end in self._sockets:
                    end.close()
