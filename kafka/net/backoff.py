"""How long to wait before trying again: exponential, with jitter (KIP-144, KIP-580)."""

from __future__ import annotations

from random import Random
from typing import Final

__all__ = ["Backoff"]

_FACTOR: Final = 2.0
_JITTER: Final = 0.2  # 20 % either way, so that a thousand clients do not come back in the same instant


class Backoff:
    """The delay after a number of failures in a row; it keeps no state of its own.

    >>> backoff = Backoff(0.1, 1.0, Random(1))
    >>> [round(backoff.delay(failures), 1) for failures in (0, 1, 10)]
    [0.0, 0.1, 1.1]
    """

    __slots__ = ("_base", "_limit", "_rng")

    def __init__(self, base: float, limit: float, rng: Random) -> None:
        self._base = base
        self._limit = max(base, limit)
        self._rng = rng

    def delay(self, failures: int) -> float:
        """Return the seconds to wait after `failures` failures; none after none."""
        if failures <= 0:
            return 0.0
        # The exponent is bounded so that a client which fails for a year does not overflow.
        grown = min(self._limit, self._base * _FACTOR ** min(failures - 1, 64))
        return grown * self._rng.uniform(1 - _JITTER, 1 + _JITTER)
