"""What one response has brought of one partition: records that this member has acquired, with their delivery counts.

Brokers send whole batches, in which other members may have records: only the acquired ones are returned. An acquired
offset without a record (compaction removed it, or it is a control record) is acknowledged as a gap.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from kafka.errors import CorruptRecordError, RecordDeserializationError
from kafka.record.batch_reader import RecordReader
from kafka.share.acknowledgements import GAP, AcknowledgedRange, AcknowledgeType, acknowledged_ranges
from kafka.share.record import ShareRecord

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from kafka._core.topology import Topology
    from kafka.consumer.fetch_response import ReaderSettings
    from kafka.record.header import Buffer
    from kafka.share.session import ShareSession
    from kafka.structs import TopicPartition

_ALL: Final = 1 << 62


class AcquiredRange(NamedTuple):
    """Consecutive offsets that were acquired, and how often their records were delivered."""

    first: int
    last: int
    delivery_count: int

    @property
    def size(self) -> int:
        """How many offsets there are."""
        return self.last - self.first + 1


class Refused(NamedTuple):
    """Acquired offsets whose records cannot be returned."""

    ranges: list[AcquiredRange]
    is_damaged: bool
    """Whether their batch is damaged: they are rejected. Otherwise a deserializer has raised."""


class AcquiredRecords:
    """The acquired records of one partition in one response."""

    def __init__(
        self,
        partition: TopicPartition,
        topic_id: UUID,
        node_id: int,
        version: int,
        acquired: Iterable[AcquiredRange],
        records: Buffer | None,
        settings: ReaderSettings,
        lock_deadline: float,
        session: ShareSession,
        topology: Topology,
    ) -> None:
        self.partition = partition
        self.topic_id = topic_id
        self.node_id = node_id
        self.version = version
        """The version of the ShareFetch that brought them."""
        self.lock_deadline = lock_deadline
        """When the broker makes them available to others, as the loop counts."""
        self.session = session
        """The broker's, which ends with the locks."""
        self.topology = topology
        """The cluster as it was known when they were requested, or later while that made no difference to them."""
        self._left = deque(acquired)
        """The ranges that were not taken yet, ascending."""
        self._gaps: list[int] = []
        """Acquired offsets that were passed and have no record."""
        self.count = self.left
        """How many offsets were acquired."""
        buffer = bytes(records or b"")
        self.size = len(buffer)
        self._reader = RecordReader(
            buffer,
            partition.topic,
            partition.partition,
            self._left[0].first if self._left else 0,
            check_crcs=settings.check_crcs,
            max_batch_bytes=settings.max_batch_bytes,
            key_deserializer=settings.key_deserializer and settings.key_deserializer(partition.topic),
            value_deserializer=settings.value_deserializer and settings.value_deserializer(partition.topic),
            deserialize_with_headers=settings.with_headers,
            record_type=ShareRecord,
        )

    @property
    def left(self) -> int:
        """How many offsets were not taken yet."""
        return sum([one.size for one in self._left])

    @property
    def exhausted(self) -> bool:
        """Whether all has been taken."""
        return self._reader.exhausted

    def take(self) -> list[ShareRecord]:
        """Return the records, up to one that cannot be returned; where that comes first, raise its error.

        The error comes again until `skip` was called.
        """
        found: list[ShareRecord] = []
        while not found and not self._reader.exhausted:
            try:
                rows = cast("list[ShareRecord]", self._reader.take(_ALL, _ALL))
            except RecordDeserializationError as error:
                offset = error.offset
                if any(one.first <= offset <= one.last for one in self._left):
                    raise
                self._reader.skip()  # another member's
                continue
            if rows:
                found = self._acquired_of(rows)
        return found

    def _acquired_of(self, rows: list[ShareRecord]) -> list[ShareRecord]:
        """Return the rows that were acquired, with their delivery counts."""
        ranges = self._cut(rows[-1].offset + 1)
        if len(ranges) == 1 and ranges[0].first == rows[0].offset and ranges[0].size == len(rows):
            found = rows  # the usual case: whole batches
            if ranges[0].delivery_count > 1:
                for row in rows:
                    row.delivery_count = ranges[0].delivery_count
            return found
        found, by_offset = [], {row.offset: row for row in rows}
        for first, last, count in ranges:
            for offset in range(first, last + 1):
                if offset in by_offset:
                    found.append(by_offset[offset])
                    found[-1].delivery_count = count
                else:
                    self._gaps.append(offset)
        return found

    def _cut(self, end: int) -> list[AcquiredRange]:
        """Take the acquired offsets before an offset out of what is left."""
        cut: list[AcquiredRange] = []
        left = self._left
        while left and left[0].first < end:
            first, last, count = left.popleft()
            if last >= end:
                left.appendleft(AcquiredRange(end, last, count))
                last = end - 1
            cut.append(AcquiredRange(first, last, count))
        return cut

    def _pass(self, end: int) -> None:
        """Note that the acquired offsets before an offset have no records."""
        for first, last, _ in self._cut(end):
            self._gaps += range(first, last + 1)

    def skip(self, error: CorruptRecordError | RecordDeserializationError) -> Refused:
        """Step over what the last error of `take` was about; return the acquired offsets of it."""
        if isinstance(error, RecordDeserializationError):
            self._reader.skip()
            self._pass(error.offset)
            return Refused(self._cut(error.offset + 1), is_damaged=False)
        self._pass(self._reader.next_offset)
        self._reader.skip()
        return Refused(self._cut(_ALL if self._reader.exhausted else self._reader.next_offset), is_damaged=True)

    def gaps(self) -> list[AcknowledgedRange]:
        """Return acknowledgements of the offsets without a record; once everything was taken."""
        self._pass(_ALL)
        gaps, self._gaps = self._gaps, []
        return acknowledged_ranges(dict.fromkeys(gaps, GAP)) if gaps else []

    def released(self) -> list[AcknowledgedRange]:
        """Return acknowledgements that release what was not taken, so that other members get it."""
        return as_one(self._left, AcknowledgeType.RELEASE) + acknowledged_ranges(dict.fromkeys(self._gaps, GAP))


def as_one(ranges: Iterable[AcquiredRange], kind: AcknowledgeType) -> list[AcknowledgedRange]:
    """Return the same acknowledgement of all offsets.

    >>> as_one([AcquiredRange(3, 5, 1)], AcknowledgeType.REJECT)
    [AcknowledgedRange(first=3, last=5, types=[3])]
    """
    return [AcknowledgedRange(first, last, [kind.value]) for first, last, _ in ranges]
