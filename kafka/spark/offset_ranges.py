"""Cutting what is to be read into the parts that tasks read. Pure functions of their arguments.

That they are is a promise: a batch that is run again after a crash gets the same tasks, which the exactly-once sink
builds on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kafka.structs import TopicPartition

__all__ = ["OffsetRange", "group", "split"]


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
    """Put neighbours together while they have no more than so many offsets: a task costs some 30 ms, however little.

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
