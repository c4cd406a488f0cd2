"""How slow the processor is just now: limits in seconds are for the one on which they were set."""

from __future__ import annotations

import time

__all__ = ["slowness"]

#: What `_work` took there, in seconds of a processor.
_REFERENCE = 0.0075
_RUNS = 7


def _work() -> int:
    table: dict[bytes, int] = {}
    for number in range(30_000):
        table[b"%d" % number] = number & 7
    return sum(table.values())


def slowness() -> float:
    """Return by what to multiply a limit, at least 1: a processor may be 1.5 times slower in a minute than before.

    The least of some runs counts: what else a machine does only adds to them.
    """
    least = float("inf")
    for _ in range(_RUNS):
        began = time.thread_time()
        _work()
        least = min(least, time.thread_time() - began)
    return max(1.0, least / _REFERENCE)
