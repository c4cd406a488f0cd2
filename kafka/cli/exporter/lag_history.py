"""The ends of partitions over time, from which the age of the oldest unread record follows."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Mapping
from typing import Final, NamedTuple

from kafka.structs import TopicPartition

#: Samples that are kept; when there are more, every second one of the older half goes.
_SAMPLES: Final = 128
_UNKNOWN: Final = -1


class _Sample(NamedTuple):
    time: float
    ends: array[int]


class LagHistory:
    """Remembers where partitions ended at each collection: eight bytes for each partition and sample.

    >>> history, tp = LagHistory(), TopicPartition("events", 0)
    >>> for now, end in ((0.0, 100), (10.0, 200), (20.0, 400)):
    ...     history.add(now, {tp: end})
    >>> history.seconds(tp, 400), history.seconds(tp, 300), history.seconds(tp, 150), history.seconds(tp, 20)
    (0.0, 5.0, 15.0, 20.0)
    """

    def __init__(self) -> None:
        self._slots: dict[TopicPartition, int] = {}
        self._samples: list[_Sample] = []

    def add(self, now: float, ends: Mapping[TopicPartition, int]) -> None:
        """Remember where partitions end now; a partition that is not given ends where it did."""
        if len(self._slots) > 2 * len(ends) + 1000:  # topics with names that never come again
            self._forget(ends)
        slots = self._slots
        for tp in ends:
            slots.setdefault(tp, len(slots))
        row = array("q", self._samples[-1].ends if self._samples else ())
        row.extend([_UNKNOWN] * (len(slots) - len(row)))
        for tp, end in ends.items():
            slot = slots[tp]
            if end < row[slot]:  # the topic was made again, or its log was cut
                for sample in self._samples:
                    if slot < len(sample.ends):
                        sample.ends[slot] = min(sample.ends[slot], end)
            row[slot] = end
        self._samples.append(_Sample(now, row))
        if len(self._samples) > _SAMPLES:
            half = _SAMPLES // 2
            self._samples[:half] = self._samples[:half:2]

    def _forget(self, ends: Mapping[TopicPartition, int]) -> None:
        kept = {tp: slot for tp, slot in self._slots.items() if tp in ends}
        self._samples = [
            _Sample(time, array("q", (row[slot] if slot < len(row) else _UNKNOWN for slot in kept.values())))
            for time, row in self._samples
        ]
        self._slots = {tp: at for at, tp in enumerate(kept)}

    def seconds(self, tp: TopicPartition, offset: int) -> float | None:
        """Return how long ago the record at an offset was written, as of the last collection; 0 at the end.

        A record that is older than the first sample has the age of that sample, at least. None: that cannot be known.
        """
        slot = self._slots.get(tp)
        if slot is None:
            return None
        samples = self._samples
        newest = samples[-1].time

        def end(sample: _Sample) -> int:
            return sample.ends[slot] if slot < len(sample.ends) else _UNKNOWN

        if end(samples[-1]) <= offset:
            return 0.0
        after = bisect_right(samples, offset, key=end)  # the first sample in which the record was there
        if after == 0 or end(samples[after - 1]) == _UNKNOWN:
            age = newest - samples[after].time
            return age if age > 0 else None
        earlier, later = samples[after - 1], samples[after]
        share = (offset - end(earlier)) / (end(later) - end(earlier))
        return newest - (earlier.time + share * (later.time - earlier.time))
