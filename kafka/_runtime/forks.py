"""Loops in the child of a fork: each lets go of the parent's descriptors and refuses further work.

No lock is taken, as the thread that held it does not exist in the child, and nothing is unregistered: the kernel's
epoll set is still shared with the parent.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    import selectors

__all__ = ["LOOPS", "let_go"]


class AbandonedLoop(Protocol):
    """A loop, as a fork knows it."""

    def abandon(self) -> None:
        """Let go of what belongs to the parent."""


LOOPS: Final[weakref.WeakSet[AbandonedLoop]] = weakref.WeakSet()
"""The loops of this process that are not closed."""


def let_go(selector: selectors.BaseSelector, others: Iterable[object]) -> None:
    """Close the descriptors that a selector watches, its own and the others', without a word to the brokers."""
    files: list[Any] = []
    with suppress(AttributeError, RuntimeError):
        files = [key.fileobj for key in selector.get_map().values()]
    for file in (*files, selector, *others):
        # Closing a TLS stream would send close_notify to the broker, over the socket that the parent still uses.
        close: Callable[[], object] | None = getattr(file, "abandon", None) or getattr(file, "close", None)
        if close is not None:  # a selector may watch a bare number, which its owner closes
            with suppress(OSError):
                close()


def _after_fork_in_child() -> None:
    for loop in tuple(LOOPS):
        loop.abandon()
    LOOPS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
