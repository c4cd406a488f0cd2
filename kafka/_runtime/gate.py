"""Where the network thread sleeps while another thread turns its loop."""

from __future__ import annotations

import select
import selectors
from collections.abc import Callable
from typing import Any

__all__ = ["Gate"]


class Gate:
    """Where the thread of a driver sleeps until the selector of its loop has something, unless the gate is shut.

    A separate epoll or kqueue, which contains the selector's: another thread uses the selector itself, and the events
    that are for that thread wake no other one.
    """

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._fd: int = selector.fileno()  # type: ignore[attr-defined]  # epoll or kqueue
        self._outer: Any
        if hasattr(select, "epoll"):  # twice for each call that blocks: three times as fast as by a selector
            self._outer = select.epoll()
            self._outer.register(self._fd, select.EPOLLIN)
            self.sleep: Callable[[float | None], object] = self._outer.poll
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
