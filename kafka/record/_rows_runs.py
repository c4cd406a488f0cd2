"""Records of a batch that come in runs, made as they are taken: for a batch that is taken piece by piece.

The columns of :mod:`kafka.record._runs` are cut once for all of the batch, which also shows that it is whole, and only
the records that are taken are made of them. Tuples are what the cycle collector looks through, columns are not.
"""

from __future__ import annotations

from collections import deque

from kafka.record._decode import Origin, find_run, run_rows
from kafka.record._runs import Run, find_even
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

    def __init__(
        self, data: bytes, start: int, end: int, count: int, origin: Origin, *, even_only: bool = False
    ) -> None:
        find = find_even if even_only else find_run
        self._origin = origin
        self._runs: deque[Run] = deque()
        self._begin = 0  # within the first of the runs
        self.left = 0
        self.end = start
        while (run := find(data, self.end, end, count - self.left)) is not None:
            self._runs.append(run)
            self.left += run.count
            self.end = run.ends[-1]

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
                return part.ends[-1]
