"""One assigned partition: where the application is in it, and what was fetched ahead.

Two threads meet here, the application's and whoever turns the loop, without a lock. The rules:

- A `Cursor` is one stay at one place. Whoever moves the partition elsewhere (assign, seek, reset,
  truncation) puts a new cursor in its place, and only the application's thread does that. Replies
  belong to the cursor that they were asked for, so what comes too late for an old one goes nowhere.
- The loop appends to `Cursor.fetched` and moves `fetch_offset`; the application's thread pops, and
  moves `position`. Each number has one writer.
- `place` gives a cursor its position, once, from the loop; `position` is written last, so who sees
  it sees the rest.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from kafka.consumer.reset import Reset
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.errors import KafkaError
    from kafka.record.reader import RecordReader

__all__ = ["AssignedPartition", "Cursor", "Fetched"]


class Fetched:
    """What one reply brought for a partition: records, or why there are none."""

    __slots__ = ("error", "reader", "size")

    def __init__(self, reader: RecordReader | None, size: int, error: KafkaError | None = None) -> None:
        self.reader = reader
        self.size = size
        self.error = error


class Cursor:
    """A stay at one place of a partition.

    >>> cursor = Cursor()
    >>> cursor.place(10, 3)
    >>> cursor.position, cursor.epoch, cursor.fetch_offset
    (10, 3, 10)
    """

    __slots__ = (
        "busy",
        "current",
        "epoch",
        "fetch_epoch",
        "fetch_offset",
        "fetched",
        "position",
        "reset",
        "validated",
        "waiting",
    )

    def __init__(self, position: int | None = None, epoch: int = -1, reset: Reset | None = None) -> None:
        self.fetch_offset = -1 if position is None else position
        """The offset to ask for next; ahead of the position by what was fetched ahead."""
        self.fetch_epoch = epoch
        """The leader epoch of the record before that (KIP-320)."""
        self.epoch = epoch
        """The leader epoch of the record before the position."""
        self.reset = reset
        """The place that has to be looked up first."""
        self.fetched: deque[Fetched] = deque()
        self.waiting = 0
        """Bytes in `fetched`."""
        self.current: Fetched | None = None
        """What records are being taken from."""
        self.busy = False
        """Whether a request for it is under way; the loop's."""
        self.validated = -1
        """The leader epoch under which the log was found not to be cut before this place."""
        self.position = position
        """The offset of the next record for the application; None until it is known."""

    def place(self, offset: int, epoch: int = -1) -> None:
        """Give it its position."""
        self.fetch_offset = offset
        self.fetch_epoch = self.epoch = epoch
        self.position = offset

    @property
    def has_data(self) -> bool:
        """Whether something is there to be taken."""
        return self.current is not None or bool(self.fetched)

    def __repr__(self) -> str:
        where = self.reset if self.position is None else self.position
        return f"<Cursor at {where} fetches {self.fetch_offset} has {len(self.fetched)} waiting>"


class AssignedPartition:
    """A partition as long as it is assigned."""

    __slots__ = (
        "cursor",
        "end_offset",
        "high_watermark",
        "in_rotation",
        "leaving",
        "log_start",
        "paused",
        "problem",
        "replica",
        "replica_until",
        "retry_at",
        "stable_offset",
        "topic_partition",
    )

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition
        self.cursor = Cursor()
        self.paused = False
        self.leaving = False
        """Whether the group takes it away: it is neither fetched nor handed out any more."""
        self.high_watermark: int | None = None
        self.stable_offset: int | None = None
        """The first offset that an open transaction may still take back (read_committed)."""
        self.log_start: int | None = None
        self.end_offset: int | None = None
        """What ListOffsets said last, for the lag of a partition that nothing was fetched from."""
        self.replica: int | None = None
        """The follower to read from, as the leader has told (KIP-392)."""
        self.replica_until = 0.0
        self.retry_at = 0.0
        """When it may be asked for again after an error."""
        self.problem: str | None = None
        """Why nothing is fetched at the moment, for the log and `health()`."""
        self.in_rotation = False
        """Whether the application's thread has it among those with data."""

    def __repr__(self) -> str:
        flags = "".join(f" {name}" for name in ("paused", "leaving") if getattr(self, name))
        return f"<{self.topic_partition.topic}-{self.topic_partition.partition}{flags} {self.cursor!r}>"
