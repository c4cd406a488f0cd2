"""Where time comes from: the one place of the client that reads the system's clocks.

A clock is passed to the code that needs one, so that a test of a five-minute timeout takes no time
(see :class:`kafka.testing.memory.FakeClock`). Reading `time` anywhere else is an error.
"""

from __future__ import annotations

import time
from typing import Final, Protocol

__all__ = ["SYSTEM_CLOCK", "Clock", "SystemClock"]


class Clock(Protocol):
    """Two readings: one that never goes back, one that people agree on."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary point; for deadlines and durations."""
        ...

    def time(self) -> float:
        """Seconds since the epoch; for timestamps, tokens and certificates."""
        ...


class SystemClock:
    """The machine's own clocks.

    >>> clock = SystemClock()
    >>> clock.monotonic() <= clock.monotonic()
    True
    """

    # Bound to the C functions themselves: a reading costs no Python frame.
    monotonic = staticmethod(time.monotonic)
    time = staticmethod(time.time)


SYSTEM_CLOCK: Final = SystemClock()
