"""A range that a task is reading: how far it has come, and how much to ask for. No I/O."""

from __future__ import annotations

from typing import Final

from kafka.errors import CorruptRecordError
from kafka.record.header import LOG_OVERHEAD, scan
from kafka.spark.offset_ranges import OffsetRange

__all__ = ["RangePosition"]

# The size of a record, as long as none of its range is known. A short range in front of a long backlog shall not bring
# megabytes of it along; where the guess is too low, the rest takes another request.
_GUESS: Final = 4 << 10
# How many bytes to fetch beyond the estimated rest of a range.
_SPARE: Final = 64 << 10


class RangePosition:
    """See the head of this file.

    >>> each = RangePosition(OffsetRange("events", 0, 5, 9))
    >>> each.position, each.is_done
    (5, False)
    """

    __slots__ = ("_bytes_each", "_bytes_least", "end", "failing_since", "not_before", "position", "replica", "tp")

    def __init__(self, whole: OffsetRange) -> None:
        self.tp = whole.tp
        self.position = whole.start
        self.end = whole.end
        self.failing_since: float | None = None
        """When the first of the attempts was made that failed since it last advanced."""
        self.not_before = 0.0
        """When it may be asked for again."""
        self.replica: int | None = None
        """The nearer replica that the leader has named, to fetch from instead of the leader (KIP-392)."""
        self._bytes_each = 0.0
        self._bytes_least = 0

    @property
    def is_done(self) -> bool:
        """Whether nothing is left of it."""
        return self.position >= self.end

    def wanted_bytes(self, most: int) -> int:
        """Return how much to ask for: no more than is left of the range, as far as one can tell."""
        bytes_each = self._bytes_each or _GUESS
        wanted = min(most, int((self.end - self.position) * bytes_each * 1.1) + _SPARE)
        return max(wanted, self._bytes_least)

    def advance(self, buffer: bytes) -> int:
        """Move on to behind the batches of a reply; return where those end that are of the range."""
        start = self.position
        end = self._scan(buffer)
        if self.position > start:
            self._bytes_each = len(buffer) / (self.position - start)
            self.failing_since = None
        return end

    def needs_more(self, buffer: bytes, most: int) -> bool:
        """Whether a reply has only a part of its first batch, all of which is asked for from now on."""
        size = _size_of_first(buffer)
        if size <= self.wanted_bytes(most):
            return False
        self._bytes_least = size
        return True

    def _scan(self, buffer: bytes) -> int:
        try:
            for header in scan(buffer):
                if header.magic > 1 and header.base_offset >= self.end:
                    # The rest of the range was compacted away.
                    self.position = self.end
                    return header.position
                self.position = max(self.position, header.last_offset + 1)
        except CorruptRecordError as error:
            error.topic_partition = self.tp
            raise
        return len(buffer)


def _size_of_first(buffer: bytes) -> int:
    """Return the size of the batch that a buffer begins with, which brokers before 0.10.1 cut to what was asked for."""
    if len(buffer) < LOG_OVERHEAD:
        return 0
    return int.from_bytes(buffer[LOG_OVERHEAD - 4 : LOG_OVERHEAD], "big", signed=True) + LOG_OVERHEAD
