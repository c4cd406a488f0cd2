"""The start and the end of a read, and the size of a micro-batch, before brokers are asked. No I/O."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kafka.spark.offsets import EARLIEST, LATEST, Offsets
from kafka.structs import TopicPartition

__all__ = ["OffsetLimit", "MinOffsetsGate", "limited"]


@dataclass(frozen=True)
class OffsetLimit:
    """One edge of a read: everywhere the earliest or latest offset, offsets, one timestamp, or timestamps.

    >>> OffsetLimit(everywhere=EARLIEST)
    OffsetLimit(earliest)
    """

    everywhere: int | None = None
    """EARLIEST or LATEST."""
    offsets: Offsets = field(default_factory=dict)
    """By partition; EARLIEST and LATEST may be among them."""
    timestamp: int | None = None
    """Milliseconds."""
    timestamps: Offsets = field(default_factory=dict)

    @property
    def is_fixed(self) -> bool:
        """Whether asking again later cannot give another place that is further on: nothing between is skipped then."""
        if self.everywhere is not None:
            return self.everywhere == EARLIEST
        return bool(self.offsets) and LATEST not in self.offsets.values()

    def __repr__(self) -> str:
        if self.everywhere is not None:
            return f"OffsetLimit({'earliest' if self.everywhere == EARLIEST else 'latest'})"
        if self.timestamp is not None:
            return f"OffsetLimit(timestamp {self.timestamp})"
        return f"OffsetLimit({self.offsets or self.timestamps})"


def limited(limit: int, start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> Offsets:
    """Return an end that is at most ``limit`` offsets from the start, shared out as the backlogs are.

    A partition with little is not starved: it gets one offset at least, so the sum can exceed the limit a little.

    >>> a, b = TopicPartition("a", 0), TopicPartition("a", 1)
    >>> list(limited(10, {a: 0, b: 0}, {a: 30, b: 10}).values())
    [7, 2]
    """
    sizes = {tp: stop - start[tp] for tp, stop in end.items() if tp in start and stop > start[tp]}
    total = sum(sizes.values())
    chosen = dict(end)
    for tp, size in sizes.items():
        share = limit * (size / total)
        chosen[tp] = min(end[tp], start[tp] + (math.ceil(share) if share < 1 else math.floor(share)))
    return chosen


class MinOffsetsGate:
    """Holds a batch back until there is enough for it, or it has waited long enough. The first is never held back.

    >>> now = [100.0]
    >>> gate = MinOffsetsGate(10, max_delay=60.0, clock=lambda: now[0])
    >>> tp = TopicPartition("a", 0)
    >>> gate.holds_back({tp: 0}, {tp: 5}), gate.holds_back({tp: 5}, {tp: 7}), gate.holds_back({tp: 5}, {tp: 15})
    (False, True, False)
    """

    def __init__(self, minimum: int, max_delay: float, clock: Callable[[], float]) -> None:
        self._minimum = minimum
        self._max_delay = max_delay
        self._clock = clock
        self._last = -math.inf

    def holds_back(self, start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> bool:
        """Whether to wait for more; where not, the waiting begins anew."""
        now = self._clock()
        fresh = sum(stop - start.get(tp, 0) for tp, stop in end.items())
        if now - self._last < self._max_delay and fresh < self._minimum:
            return True
        self._last = now
        return False
