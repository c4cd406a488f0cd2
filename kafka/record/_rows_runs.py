"""Records of a batch that come in runs, made as they are taken: for a batch that is taken piece by piece.

The columns of :mod:`kafka.record._runs` are cut once for all of the batch, which also shows that it is whole, and only
the records that are taken are made of them. Tuples are what the cycle collector looks through, columns are not.
"""

from __future__ import annotations

from collections import deque

from kafka.record._decode import Origin, run_rows
from kafka.record._runs import SHORTEST, Run, find_run
from kafka.record.consumer_record import ConsumerRecord


class RunIndex:
    """What is at the front of a batch in runs.

    >>> index = RunIndex(b"\\x0e\\0\\0\\0\\1\\2x\\0", 0, 8, 1, Origin("events", 0, 0, 0, None, -1))
    >>> index.left, index.end
    (0, 0)
    """

    __slots__ = ("_begin", "_origin", "_runs", "end", "left")

    left: int
    """Records that were not taken yet."""
    end: int
    """The position after the last run."""

    def __init__(self, data: bytes, start: int, end: int, count: int, origin: Origin) -> None:
        self._origin = origin
        self._runs: deque[Run] = deque()
        self._begin = 0  # within the first of the runs
        self.left = 0
        self.end = start
        while count - self.left >= SHORTEST:
            run = find_run(data, self.end, end, count - self.left)
            if run is None:
                break
            self._runs.append(run)
            self.left += run.count
            self.end = run.end

    def take(self, count: int, rows: list[ConsumerRecord]) -> int:
        """Append the next records, ``left`` at most, to ``rows``; return the position after them."""
        self.left -= count
        while True:
            run = self._runs[0]
            begin = self._begin
            part = run.part(begin, min(run.count, begin + count))
            rows += run_rows(part, self._origin)
            count -= part.count
            self._begin += part.count
            if self._begin == run.count:
                self._runs.popleft()
                self._begin = 0
            if not count:
                return part.end
