"""What one response has brought of one partition: records that this member has acquired, with their delivery counts.

Brokers send whole batches, in which other members may have records: only the acquired ones are returned. An acquired
offset without a record (compaction removed it, or it is a control record) is acknowledged as a gap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kafka.errors import CorruptRecordError, RecordDeserializationError
from kafka.record.batch_reader import RecordReader
from kafka.share.acknowledgements import GAP, AcknowledgeType
from kafka.share.record import ShareRecord

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from kafka.consumer.fetch_response import ReaderSettings
    from kafka.record.header import Buffer
    from kafka.structs import TopicPartition

__all__ = ["AcquiredRange", "AcquiredRecords", "Refused"]

_ALL: Final = 1 << 62


class AcquiredRange(NamedTuple):
    """Consecutive offsets that were acquired, and how often their records were delivered."""

    first: int
    last: int
    delivery_count: int


class Refused(NamedTuple):
    """Acquired offsets whose records cannot be returned."""

    offsets: list[int]
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
    ) -> None:
        self.partition = partition
        self.topic_id = topic_id
        self.node_id = node_id
        self.version = version
        """The version of the ShareFetch that brought them."""
        self.lock_deadline = lock_deadline
        """When the broker makes them available to others, as the loop counts."""
        self.counts = {
            offset: entry.delivery_count for entry in acquired for offset in range(entry.first, entry.last + 1)
        }
        """The delivery count of each acquired offset that was not taken yet, ascending."""
        buffer = bytes(records or b"")
        self.size = len(buffer)
        self._reader = RecordReader(
            buffer,
            partition.topic,
            partition.partition,
            min(self.counts, default=0),
            check_crcs=settings.check_crcs,
            max_batch_bytes=settings.max_batch_bytes,
            key_deserializer=settings.key_deserializer(partition.topic),
            value_deserializer=settings.value_deserializer(partition.topic),
            deserialize_with_headers=settings.with_headers,
            record_type=ShareRecord,
        )

    @property
    def exhausted(self) -> bool:
        """Whether all has been taken."""
        return self._reader.exhausted

    def take(self) -> list[ShareRecord]:
        """Return the records, up to one that cannot be returned; where that comes first, raise its error.

        The error comes again until `skip` was called.
        """
        counts = self.counts
        found: list[ShareRecord] = []
        while not found and not self._reader.exhausted:
            try:
                rows = self._reader.take(_ALL, _ALL)
            except RecordDeserializationError as error:
                if error.offset in counts:
                    raise
                self._reader.skip()  # another member's
                continue
            for row in rows:
                count = counts.pop(row.offset, None)
                if count is not None:
                    assert isinstance(row, ShareRecord)
                    row.delivery_count = count
                    found.append(row)
        return found

    def skip(self, error: CorruptRecordError | RecordDeserializationError) -> Refused:
        """Step over what the last error of `take` was about; return the acquired offsets of it."""
        start = self._reader.next_offset
        self._reader.skip()
        if isinstance(error, RecordDeserializationError):
            self.counts.pop(error.offset, None)
            return Refused([error.offset], is_damaged=False)
        end = _ALL if self._reader.exhausted else self._reader.next_offset
        offsets = [offset for offset in self.counts if start <= offset < end]
        for offset in offsets:
            del self.counts[offset]
        return Refused(offsets, is_damaged=True)

    def gaps(self) -> dict[int, int]:
        """Return acknowledgements of the offsets without a record; once everything was taken."""
        gaps = dict.fromkeys(self.counts, GAP)
        self.counts = {}
        return gaps

    def released(self) -> dict[int, int]:
        """Return acknowledgements that release what was not taken, so that other members get it."""
        return dict.fromkeys(self.counts, AcknowledgeType.RELEASE.value)
