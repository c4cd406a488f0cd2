"""The bounds of a read, the size of a micro-batch, and the ranges of offsets that tasks read. No I/O.

The ranges of tasks depend on the arguments of `split` and `group` alone. The exactly-once sink relies on that: a batch
that is run again after a crash gets the same tasks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka.spark.offsets import EARLIEST, LATEST, Offsets
from kafka.structs import TopicPartition

__all__ = ["MinOffsetsGate", "OffsetLimit", "OffsetRange", "group", "limited", "split"]


# Bounds and sizes.


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
        """Whether to wait for more; if not, the next wait begins."""
        now = self._clock()
        fresh = sum(stop - start.get(tp, 0) for tp, stop in end.items())
        if now - self._last < self._max_delay and fresh < self._minimum:
            return True
        self._last = now
        return False


# Ranges.


class OffsetRange(NamedTuple):
    """Offsets of a partition, from ``start`` to before ``end``."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def tp(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def size(self) -> int:
        """How many offsets there are."""
        return self.end - self.start


def split(
    ranges: Iterable[OffsetRange], *, min_partitions: int | None = None, max_records: int | None = None
) -> list[OffsetRange]:
    """Drop what is empty and cut what is large, as Spark's own connector does: ``minPartitions`` is a rough wish.

    >>> split([OffsetRange("a", 0, 0, 10), OffsetRange("a", 1, 5, 5)], max_records=4)  # doctest: +ELLIPSIS
    [OffsetRange(topic='a', partition=0, start=0, end=3), OffsetRange(..., start=3, end=6), OffsetRange(...end=10)]
    """
    left = sorted(each for each in ranges if each.size > 0)
    if max_records is not None:
        left = [part for each in left for part in _cut(each, math.ceil(each.size / max_records))]
    if min_partitions is None or len(left) >= min_partitions:
        return left
    total = sum(each.size for each in left)
    # What stays whole is left out of the sums, or the rest would be cut into too few parts.
    small = [each for each in left if _parts(each.size, total, min_partitions) == 1]
    whole = {each.tp for each in small}
    rest, wanted = total - sum(each.size for each in small), min_partitions - len(small)
    found = []
    for each in left:
        found += [each] if each.tp in whole else _cut(each, _parts(each.size, rest, wanted))
    return [part for part in found if part.size > 0]


def _parts(size: int, total: int, wanted: int) -> int:
    return max(math.floor(size / total * wanted + 0.5), 1)


def _cut(whole: OffsetRange, parts: int) -> list[OffsetRange]:
    found = []
    start, left = whole.start, whole.size
    for part in range(parts):
        size = left // (parts - part)
        left -= size
        found.append(whole._replace(start=start, end=start + size))
        start += size
    return found


def group(ranges: Sequence[OffsetRange], rows: int) -> list[tuple[OffsetRange, ...]]:
    """Put neighbours together while they have at most that many offsets: each task costs some 30 ms.

    >>> parts = group([OffsetRange("a", 0, 0, 10), OffsetRange("a", 1, 0, 10), OffsetRange("a", 2, 0, 10)], rows=20)
    >>> [len(part) for part in parts]
    [2, 1]
    """
    groups: list[tuple[OffsetRange, ...]] = []
    size = 0
    for each in ranges:
        if groups and size + each.size <= rows:
            groups[-1] = (*groups[-1], each)
            size += each.size
        else:
            groups.append((each,))
            size = each.size
    return groups
