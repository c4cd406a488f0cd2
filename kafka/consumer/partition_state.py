"""One assigned partition: the position of the application in it, and the data that was fetched ahead.

Two threads share it without a lock, the application's and the one that turns the loop. The rules:

- A `Cursor` is one continuous reading from one place. Whatever moves the position elsewhere (assign, seek, reset,
  truncation) replaces the cursor, and only the application's thread does that. A response belongs to the cursor that
  it was requested for, so a late one for an old cursor is dropped.
- The loop appends to `Cursor.fetched` and advances `fetch_offset`; the application's thread pops, and advances
  `position`. Each number has one writer.
- `place` gives a cursor its position, once, from the loop; `position` is written last, so a thread that sees it sees
  the rest.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from kafka.config import duration_ms
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.errors import KafkaError
    from kafka.interceptors import Interceptors
    from kafka.record.batch_reader import RecordReader
    from kafka.record.consumer_record import ConsumerRecord

__all__ = [
    "AssignedPartition",
    "Chunk",
    "Cursor",
    "EARLIEST",
    "CompletedFetch",
    "LATEST",
    "Position",
    "Reset",
    "policy",
]


class Position(int):
    """An offset, which is also read as ``position.offset`` since kafka-python 2.1.

    >>> position = Position(7)
    >>> position + 1, position.offset, position.leader_epoch
    (8, 7, -1)
    """

    leader_epoch: int = -1
    metadata: str = ""

    @property
    def offset(self) -> int:
        """The offset."""
        return int(self)


class CompletedFetch:
    """One partition's part of a response: records, or the error in their place."""

    __slots__ = ("count", "damaged", "error", "reader", "size")

    def __init__(
        self, reader: RecordReader | None, size: int, error: KafkaError | None = None, *, damaged: bool = False
    ) -> None:
        self.reader = reader
        self.size = size
        self.count = 0
        """Records taken so far."""
        self.error = error
        self.damaged = damaged
        """Whether nothing behind it can be fetched."""


class Cursor:
    """A continuous reading of a partition.

    >>> cursor = Cursor()
    >>> cursor.place(10, 3)
    >>> cursor.position, cursor.epoch, cursor.fetch_offset
    (10, 3, 10)
    """

    __slots__ = (
        "_epoch",
        "_position",
        "blocked",
        "checked_epoch",
        "connection",
        "current",
        "fetch_epoch",
        "fetch_offset",
        "fetched",
        "given_back",
        "given_back_end",
        "received",
        "reset",
        "returned",
        "side_empty",
        "start",
        "taken",
        "topic_id",
    )

    def __init__(self, position: int | None = None, epoch: int = -1, reset: Reset | None = None) -> None:
        self.start = position
        """Its first position; None until that is known."""
        self.fetch_offset = -1 if position is None else position
        """The offset to fetch next; the records between the position and it are buffered or under way."""
        self.fetch_epoch = epoch
        """The leader epoch of the record before `fetch_offset` (KIP-320)."""
        self.topic_id: UUID | None = None
        """The id of the topic: another topic may get its name (KIP-516). Written by the loop."""
        self.checked_epoch = -1
        """The last leader epoch for which the log was checked (KIP-320). Written by the loop."""
        self.reset = reset
        """The place that must be looked up first."""
        self.fetched: deque[CompletedFetch] = deque()
        self.received = 0
        """Bytes that were put into `fetched`. Written by the loop."""
        self.taken = 0
        """Bytes that were taken from it. Written by the application."""
        self.current: CompletedFetch | None = None
        """The response that records are being taken from."""
        self.given_back: list[ConsumerRecord] = []
        """Records that an iteration had taken and has not returned."""
        self.given_back_end = (-1, -1)
        """The position after these, and its epoch."""
        self.connection: object = None
        """The connection that asks for it. Written by the loop."""
        self.side_empty = False
        """Whether the side connection found no data: it waits for the main connection."""
        self.blocked = False
        """Whether no more can be fetched before the application has taken, or skipped, the last part."""
        self.returned: ConsumerRecord | None = None
        """The record that an iteration returned last: the position is behind it."""
        self._epoch = epoch
        self._position = position

    @property
    def position(self) -> int | None:
        """The offset of the next record for the application; None until it is known."""
        returned = self.returned
        return self._position if returned is None else returned.offset + 1

    @position.setter
    def position(self, offset: int | None) -> None:
        self._epoch = self.epoch
        self._position = offset
        self.returned = None

    @property
    def epoch(self) -> int:
        """The leader epoch of the record before the position."""
        returned = self.returned
        return self._epoch if returned is None else returned.leader_epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self._epoch = epoch

    def advance(self, offset: int, epoch: int) -> None:
        """Set the position, and the epoch of the record before it."""
        self._position = offset
        self._epoch = epoch
        self.returned = None

    def follow(self, reader: RecordReader) -> None:
        """Set the position to where a reader is, with the epoch of what was passed: a check of the log asks for it."""
        offset = reader.next_offset
        if self._position != offset or self.returned is not None:
            self._position, self._epoch, self.returned = offset, reader.leader_epoch, None

    def place(self, offset: int, epoch: int = -1) -> None:
        """Give it its position."""
        self.start = self.fetch_offset = offset
        self.fetch_epoch = self.epoch = epoch
        self.position = offset

    def step_over(self, offset: int) -> bool:
        """Skip the record or batch that could not be read, if the next one is at `offset`; return whether it is."""
        current = self.current
        if current is None or current.reader is None or self.given_back:
            return False
        if offset not in current.reader.skip_target:
            return False
        current.reader.skip()
        self.advance(offset, current.reader.leader_epoch)
        return True

    @property
    def has_data(self) -> bool:
        """Whether records, or an error, can be taken."""
        return self.current is not None or bool(self.fetched) or bool(self.given_back)

    @property
    def waiting(self) -> int:
        """Bytes in `fetched`."""
        return self.received - self.taken

    @property
    def held(self) -> int:
        """Bytes in memory for it."""
        current = self.current
        return self.waiting + (0 if current is None else current.size)

    def __repr__(self) -> str:
        where = self.reset if self.position is None else self.position
        return f"<Cursor at {where} fetches {self.fetch_offset} has {len(self.fetched)} waiting>"


class AssignedPartition:
    """A partition while it is assigned."""

    __slots__ = (
        "answered",
        "cursor",
        "failures",
        "fetched_at",
        "full",
        "high_watermark",
        "in_rotation",
        "leaving",
        "node_id",
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
        """Whether the group is revoking it: its records are neither fetched nor returned any more."""
        self.high_watermark: int | None = None
        self.stable_offset: int | None = None
        """The first offset of an open transaction (read_committed): the last stable offset."""
        self.answered: int | None = None
        """The last offset that the group has stored, or refused for good. Written by the loop."""
        self.fetched_at: float | None = None
        """When the last fetch response of its leader arrived, in the loop's time."""
        self.node_id = -1
        """The broker that it is read from; -1 while that is not known. Written by the loop."""
        self.replica: int | None = None
        """The follower to read from, which the leader has named (KIP-392)."""
        self.replica_until = 0.0
        self.full = False
        """Whether it is not fetched because its buffer is full; taking records then wakes the fetcher."""
        self.failures = 0
        """Errors in a row."""
        self.retry_at = 0.0
        """When it may be fetched again after an error."""
        self.problem: str | None = None
        """Why nothing is fetched now, for the log and `health()`."""
        self.in_rotation = False
        """Whether the collector has it in its queue."""

    @property
    def unstored(self) -> int | None:
        """The position, if records were returned before it and no commit of it was answered; else None."""
        position = self.cursor.position
        return None if position is None or position in {self.cursor.start, self.answered} else position

    def lag(self, *, committed_only: bool) -> int | None:
        """Return how many offsets the position is behind the end, as of the last fetch; None before the first.

        With `committed_only` the end is the first record of a transaction that is still open.
        """
        end = self.stable_offset if committed_only and self.stable_offset is not None else self.high_watermark
        position = self.cursor.position
        return None if end is None or position is None else max(0, end - position)

    # Historic names.

    @property
    def position(self) -> Position | None:
        """The offset of the next record to hand out."""
        offset = self.cursor.position
        return None if offset is None else Position(offset)

    @property
    def highwater(self) -> int | None:
        """The high watermark."""
        return self.high_watermark

    def is_fetchable(self) -> bool:
        """Whether it has a position and is not paused."""
        return not self.paused and self.cursor.position is not None

    def __repr__(self) -> str:
        flags = "".join(f" {name}" for name in ("paused", "leaving") if getattr(self, name))
        return f"<{self.topic_partition.topic}-{self.topic_partition.partition}{flags} {self.cursor!r}>"


class Chunk:
    """Records of one partition that an iteration returns, and moves the position over, one by one.

    ``KafkaConsumer.__iter__`` sets `Cursor.returned` and yields the record. Python runs no signal handler between the
    two, so Ctrl-C comes before both or after both, and the records from the position on were not returned.
    """

    __slots__ = ("cursor", "end", "end_epoch", "interrupted", "is_traced", "records", "state")

    def __init__(
        self, state: AssignedPartition, records: list[ConsumerRecord], start: int | None, epoch: int = -1
    ) -> None:
        self.state = state
        self.cursor = state.cursor
        self.records = records
        self.end, self.end_epoch = self.cursor.position, self.cursor.epoch
        """The position behind all of them, which may be beyond the last one, and its epoch."""
        self.interrupted = False
        """Whether the iteration must stop before the next record: for the group, a commit that is due, `wakeup`."""
        self.is_traced = False
        """Whether a tracer has seen it."""
        self.cursor.position, self.cursor.epoch = start, epoch

    def pass_through(self, interceptors: Interceptors) -> None:
        """Pass the records through the interceptors, before the first one is returned."""
        changed = interceptors.through("on_consume", {self.state.topic_partition: self.records})
        self.records = list(changed.get(self.state.topic_partition, ()))

    def give_back(self) -> bool:
        """End the iteration and give the rest to the next call that takes records; return whether there is a rest."""
        self.interrupted = True
        cursor, records, position, end = self.cursor, self.records, self.cursor.position, self.end
        assert position is not None
        assert end is not None
        if not records or records[-1].offset < position:
            cursor.advance(end, self.end_epoch)
            return False
        cursor.given_back_end = end, self.end_epoch
        cursor.given_back = [record for record in records if record.offset >= position]
        return True


_LATEST_TIMESTAMP: Final = -1
_EARLIEST_TIMESTAMP: Final = -2


class Reset(NamedTuple):
    """A place in a partition that must be looked up, as ListOffsets names it.

    >>> EARLIEST
    Reset(timestamp=-2)
    """

    timestamp: int
    """Milliseconds since 1970, or the protocol's marks: -1 the end, -2 the beginning."""


LATEST: Final = Reset(_LATEST_TIMESTAMP)
EARLIEST: Final = Reset(_EARLIEST_TIMESTAMP)


def policy(name: str, now: float) -> Reset | None:
    """Return the place that auto_offset_reset names at a time (seconds since 1970); None for 'none'.

    >>> policy("latest", 0), policy("by_duration:PT10S", 60.0), policy("none", 0)
    (Reset(timestamp=-1), Reset(timestamp=50000), None)
    """
    if name == "none":
        return None
    if name == "latest":
        return LATEST
    if name == "earliest":
        return EARLIEST
    return Reset(max(0, round(now * 1000) - duration_ms(name.removeprefix("by_duration:"))))  # KIP-1106
