"""Where a partition without a position starts: the beginning, the end, a point in time, or nowhere."""

from __future__ import annotations

from typing import Final, NamedTuple

from kafka.config import duration_ms

__all__ = ["EARLIEST", "LATEST", "Reset", "policy"]

_LATEST_TIMESTAMP: Final = -1
_EARLIEST_TIMESTAMP: Final = -2


class Reset(NamedTuple):
    """A place in a partition that has to be looked up: what ListOffsets is asked for.

    >>> EARLIEST
    Reset(timestamp=-2)
    """

    timestamp: int
    """Milliseconds since 1970, or the protocol's marks: -1 the end, -2 the beginning."""


LATEST: Final = Reset(_LATEST_TIMESTAMP)
EARLIEST: Final = Reset(_EARLIEST_TIMESTAMP)


def policy(name: str, now: float) -> Reset | None:
    """Return what auto_offset_reset says at a time (seconds since 1970); None for 'none'.

    >>> policy("latest", 0), policy("by_duration:PT10S", 60.0), policy("none", 0)
    (Reset(timestamp=-1), Reset(timestamp=50000), None)
    """
    if name == "none":
        return None
    if name == "latest":
        return LATEST
    if name == "earliest":
        return EARLIEST
    return Reset(max(0, round(now * 1000) - duration_ms(name.removeprefix("by_duration:"))))  # KIP-1106
