"""The broker's time: the machine's, which a test can push forward or stop, and the timers that follow it.

One clock and one set of timers per :class:`~kafka.broker.Broker`. Whatever the broker does after a while (session
timeouts, retention, the end of a long poll) goes through these timers, so that a test of a five-minute timeout says
``broker.clock.advance(300)`` and takes no time. Nothing else in the broker reads the system's clocks.

The clock may be asked from any thread. Timers belong to the broker's event loop.
"""

from __future__ import annotations

import time
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from heapq import heapify, heappop, heappush

from kafka._arguments import check_time


class BrokerClock:
    """The system's time plus what was added to it.

    >>> clock = BrokerClock()
    >>> clock.freeze()
    >>> before = clock.monotonic()
    >>> clock.advance(300)
    >>> round(clock.monotonic() - before)
    300
    """

    def __init__(self) -> None:
        self._ahead = 0.0
        self._stopped_at: tuple[float, float] | None = None
        self._on_change: Callable[[], None] = lambda: None

    def monotonic(self) -> float:
        """Seconds since an arbitrary point; never goes back."""
        base = time.monotonic() if self._stopped_at is None else self._stopped_at[0]
        return base + self._ahead

    def time(self) -> float:
        """Seconds since the epoch."""
        base = time.time() if self._stopped_at is None else self._stopped_at[1]
        return base + self._ahead

    def now_ms(self) -> int:
        """Milliseconds since the epoch, as record timestamps have them."""
        return int(self.time() * 1000)

    def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass at once; whatever falls due has happened when this returns."""
        check_time("the time to advance", seconds, unit="seconds")
        self._ahead += seconds
        self._on_change()

    def freeze(self) -> None:
        """Stand still from now on, save for :meth:`advance`."""
        if self._stopped_at is None:
            self._stopped_at = (time.monotonic(), time.time())
            self._on_change()

    def resume(self) -> None:
        """Run again, from where it stood."""
        if self._stopped_at is not None:
            stood = self._stopped_at[0]
            self._stopped_at = None
            self._ahead -= time.monotonic() - stood
            self._on_change()

    def reset(self) -> None:
        """Go by the system's time again, whatever was advanced or stopped; for a cluster that has no timers."""
        self._ahead = 0.0
        self._stopped_at = None

    @property
    def is_frozen(self) -> bool:
        """Whether it stands still."""
        return self._stopped_at is not None

    def listen(self, on_change: Callable[[], None]) -> None:
        """Call ``on_change`` whenever time has jumped, stopped or gone on."""
        self._on_change = on_change


class Timer:
    """Something that will be called at its deadline unless it is cancelled before."""

    __slots__ = ("args", "call", "deadline")

    def __init__(self, deadline: float, call: Callable[..., object], args: tuple[object, ...]) -> None:
        self.deadline = deadline
        self.call: Callable[..., object] | None = call
        self.args = args

    def cancel(self) -> None:
        """Forget it; harmless if it has been called already."""
        self.call = None
        self.args = ()

    @property
    def is_pending(self) -> bool:
        """Whether it is still to come."""
        return self.call is not None


class Timers:
    """Timers on the broker's clock, driven by one handle of the event loop: idle costs nothing."""

    #: Cancelled entries are swept when they are more than this and more than half of the heap.
    _SWEEP_FROM = 256

    def __init__(self, clock: BrokerClock, loop: AbstractEventLoop) -> None:
        self._clock = clock
        self._loop = loop
        self._heap: list[tuple[float, int, Timer]] = []
        self._number = 0
        self._handle: TimerHandle | None = None
        self._armed_for = 0.0

    def call_later(self, delay: float, call: Callable[..., object], *args: object) -> Timer:
        """Call ``call(*args)`` after ``delay`` seconds of the broker's time."""
        return self.call_at(self._clock.monotonic() + delay, call, *args)

    def call_at(self, deadline: float, call: Callable[..., object], *args: object) -> Timer:
        """Call ``call(*args)`` when the clock's ``monotonic()`` has reached ``deadline``."""
        timer = Timer(deadline, call, args)
        self._number += 1
        heappush(self._heap, (deadline, self._number, timer))
        if len(self._heap) > self._SWEEP_FROM and self._number % self._SWEEP_FROM == 0:
            live = [entry for entry in self._heap if entry[2].call is not None]
            if len(live) * 2 < len(self._heap):
                heapify(live)
                self._heap = live
        if self._handle is None or deadline < self._armed_for:
            self._arm()
        return timer

    def run_due(self) -> None:
        """Call the timers that are due; then wait for the next one."""
        now = self._clock.monotonic()
        heap = self._heap
        while heap and (heap[0][0] <= now or heap[0][2].call is None):
            timer = heappop(heap)[2]
            call, args = timer.call, timer.args
            if call is not None:
                timer.cancel()
                try:
                    call(*args)
                except Exception as error:  # one timer's failure is not the others'
                    self._loop.call_exception_handler({"message": "a broker's timer failed", "exception": error})
        self._arm()

    def close(self) -> None:
        """Forget all of them."""
        self._heap.clear()
        self._arm()

    def _arm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if self._heap and not self._clock.is_frozen:
            self._armed_for = self._heap[0][0]
            delay = max(0.0, self._armed_for - self._clock.monotonic())
            self._handle = self._loop.call_later(delay, self.run_due)
