"""Clocks for clients that a test can set forward."""

from __future__ import annotations

import time

__all__ = ["JumpingClock"]


class JumpingClock:
    """The system's clock, which can be set forward: ``Environment(clock=...)`` gives it to a client.

    The client's thread sleeps by the real clock: it has to be woken, as each call of the client does.
    """

    def __init__(self) -> None:
        self.ahead = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead

    def time(self) -> float:
        return time.time() + self.ahead
