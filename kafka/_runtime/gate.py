"""Where the network thread sleeps while another thread turns its loop, and for how long.

It *dozes*, 2 ms at a time, while another thread sends one record after the other and waits for each: to wake it for the
time that a record may linger costs two threads that want the interpreter as much as the record. What no thread waits
for may be that late then.
"""

from __future__ import annotations

import select
import selectors
from collections.abc import Callable
from typing import Any, Final

__all__ = ["Gate"]

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
        self._fd: int = selector.fileno()  # type: ignore[attr-defined]  # epoll or kqueue
        self._outer: Any
        if hasattr(select, "epoll"):  # twice for each call that blocks: three times as fast as by a selector
            self._outer = select.epoll()
            self._outer.register(self._fd, select.EPOLLIN)
            # One event at most: a sleeper has memory for all that it may get, by default 12 KiB.
            poll = self._outer.poll
            self.sleep: Callable[[float | None], object] = lambda wait: poll(wait, 1)
        else:  # pragma: no cover - Linux has epoll
            self._outer = selectors.DefaultSelector()
            self._outer.register(self._fd, selectors.EVENT_READ)
            self.sleep = self._outer.select
        self.close: Callable[[], object] = self._outer.close

    def set_open(self, is_open: bool) -> None:
        """Let the selector end a sleep, or nothing but the time."""
        try:
            if hasattr(select, "epoll"):
                self._outer.modify(self._fd, select.EPOLLIN if is_open else 0)
            elif is_open:  # pragma: no cover - Linux has epoll
                self._outer.register(self._fd, selectors.EVENT_READ)
            else:  # pragma: no cover - Linux has epoll
                self._outer.unregister(self._fd)
        except ValueError:  # it is closed: the network thread broke down meanwhile
            pass

    def doze(self, wait: float | None, now: float) -> float | None:
        """Return how long the driver dozes now instead of sleeping for `wait`; None if it sleeps. For the driver."""
        again = self.spared if self.dozing else now - self._slept < 2 * _DOZE
        self.dozing, self.spared = again and self.claims != self._claims_seen, False
        self._claims_seen, self._slept = self.claims, now
        return _DOZE if self.dozing and (wait is None or wait >= _DOZE) else None
