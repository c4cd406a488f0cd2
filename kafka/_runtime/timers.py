"""Deadlines of a loop, and the delay before a retry.

The heap belongs to one loop and takes no lock; it reads no clock. A cancelled timer drops its callback at once and
leaves an empty entry. Most request timeouts are cancelled, so the heap is rebuilt when the empty entries outnumber the
live ones.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from random import Random
from typing import Final

__all__ = ["Backoff", "Timer", "TimerHeap"]

# Below this many dead entries a rebuild is not worth its while.
_STALE_FLOOR: Final = 64


class Timer:
    """One callback at one time; `cancel()` is idempotent and may come after it has run."""

    __slots__ = ("_heap", "args", "callback", "when")

    def __init__(self, when: float, callback: Callable[..., object], args: tuple[object, ...], heap: TimerHeap) -> None:
        self.when = when
        self.callback: Callable[..., object] | None = callback
        self.args = args
        self._heap: TimerHeap | None = heap

    @property
    def active(self) -> bool:
        """Whether it will still run."""
        return self.callback is not None

    def cancel(self) -> None:
        """Take it back: it will not run, and lets go of what it held."""
        if self.callback is not None:
            self.callback, self.args = None, ()
            if self._heap is not None:  # else it was taken out to be run
                self._heap._forget()  # noqa: SLF001 - a timer and its heap are one thing in two classes

    def fire(self) -> None:
        """Make the call, unless it was taken back since the timer became due."""
        callback, args = self.callback, self.args
        if callback is not None:
            self.callback, self.args = None, ()
            callback(*args)

    def __repr__(self) -> str:
        return f"<Timer at {self.when:.3f} {self.callback if self.active else 'done'}>"


class TimerHeap:
    """The timers of a loop.

    >>> timers = TimerHeap()
    >>> late = timers.add(20.0, print, ("late",))
    >>> early = timers.add(10.0, print, ("early",))
    >>> early.cancel()
    >>> timers.earliest
    20.0
    >>> [timer.args for timer in timers.take_due(25.0)]
    [('late',)]
    """

    def __init__(self) -> None:
        self.earliest = inf
        """When the first live timer is due, infinite while there is none."""
        self._entries: list[tuple[float, int, Timer]] = []
        self._order = count()  # timers of one instant run in the order in which they were made
        self._stale = 0

    def __len__(self) -> int:
        """How many timers will still run."""
        return len(self._entries) - self._stale

    @property
    def entries(self) -> int:
        """Entries held, dead ones among them (what the memory bound is about)."""
        return len(self._entries)

    def add(self, when: float, callback: Callable[..., object], args: tuple[object, ...] = ()) -> Timer:
        """Arrange for `callback(*args)` at `when`."""
        timer = Timer(when, callback, args, self)
        heappush(self._entries, (when, next(self._order), timer))
        self.earliest = min(self.earliest, when)
        return timer

    def take_due(self, now: float) -> list[Timer]:
        """Remove and return the live timers that are due, earliest first.

        They stay cancellable until they run: the caller checks `active` first.
        """
        due: list[Timer] = []
        entries = self._entries
        while entries and entries[0][0] <= now:
            timer = heappop(entries)[2]
            if timer.callback is None:
                self._stale -= 1
            else:
                timer._heap = None  # noqa: SLF001 - no longer an entry of this heap
                due.append(timer)
        self._find_earliest()
        return due

    def clear(self) -> None:
        """Drop every timer without running it."""
        for _, _, timer in self._entries:
            timer.callback, timer.args = None, ()
        self._entries.clear()
        self._stale, self.earliest = 0, inf

    def _forget(self) -> None:
        self._stale += 1
        if self._stale > _STALE_FLOOR and self._stale * 2 > len(self._entries):
            # In place: a caller may be iterating over this very list's head.
            self._entries[:] = [entry for entry in self._entries if entry[2].callback is not None]
            heapify(self._entries)
            self._stale = 0
        self._find_earliest()

    def _find_earliest(self) -> None:
        entries = self._entries
        while entries and entries[0][2].callback is None:
            heappop(entries)
            self._stale -= 1
        self.earliest = entries[0][0] if entries else inf


_FACTOR: Final = 2.0
_JITTER: Final = 0.2  # 20 % either way, so that a thousand clients do not come back in the same instant


class Backoff:
    """The delay after a number of failures in a row; it has no state.

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
