"""What is left of threads when all is closed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["nothing_left"]


@contextmanager
def nothing_left() -> Iterator[None]:
    """Fail if there are threads at the end that were not there at the beginning.

    Those of others may end meanwhile; and whoever waits for a thread's end waits for a bounded time, in which a busy
    machine may not have come to it. The event loop of an asyncio client is the test's own (`faces`).
    """
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + 60
    while left := {each for each in threading.enumerate() if each.name != "event loop"} - before:
        assert time.monotonic() < deadline, left
        time.sleep(0.005)
