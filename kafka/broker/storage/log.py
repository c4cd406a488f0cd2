"""One partition's log: its batches, in segments, and all that follows from them.

Offsets, the last stable offset, leader epochs, producers and aborted transactions are derived from the batches alone,
so a log that is read again from disk is as it was. As replicas are notional, the high watermark is the end of the log.

Not locked: it belongs to the broker's event loop.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, Final

from kafka.broker.storage.producers import Producers
from kafka.broker.storage.segment import Segment
from kafka.record.control import ABORT, COMMIT, encode_marker
from kafka.record.header import BatchHeader, Buffer, read_header, scan

#: Milliseconds after which an idle producer is forgotten (producer.id.expiration.ms).
_PRODUCER_EXPIRATION_MS: Final = 86_400_000
#: The value of flush.messages and flush.ms that leaves it to the system.
_NEVER: Final = 2**63 - 1


@dataclass(frozen=True)
class LogConfig:
    """The topic configuration that a log goes by; times in milliseconds, -1 without limit."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 604_800_000
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    deletes: bool = True
    compacts: bool = False
    delete_retention_ms: int = 86_400_000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = _NEVER
    flush_messages: int = _NEVER
    flush_ms: int = _NEVER
    # The limits that an append is checked against.
    max_message_bytes: int = 1_048_588
    append_time: bool = False
    timestamp_after_max_ms: int = 3_600_000
    timestamp_before_max_ms: int = 2**63 - 1
    compression: str = "producer"
    compression_level: int | None = None
    min_insync_replicas: int = 1


def _nothing(_: object) -> None:
    """Do nothing: no listener is set."""


def _never(_seconds: float, _call: Callable[[], object]) -> None:
    """Do nothing: no clock is set."""


SegmentMaker = Callable[[int, int], Segment]


class Log:
    """The records of one partition."""

    def __init__(
        self,
        make_segment: SegmentMaker,
        now_ms: Callable[[], int],
        config: LogConfig | None = None,
        *,
        max_segment_bytes: int = 1 << 62,
        directory: Any = None,
        on_complete: Callable[[Segment], None] = _nothing,
        on_start_moved: Callable[[int], None] = _nothing,
    ) -> None:
        self._make_segment = make_segment
        self._now_ms = now_ms
        #: Replaced when the topic's configuration changes.
        self.config = config or LogConfig()
        self._max_segment_bytes = max_segment_bytes
        self.directory = directory
        self._on_complete = on_complete
        self._on_start_moved = on_start_moved
        self.segments: list[Segment] = []
        self.start_offset = 0
        self.end_offset = 0
        self.producers = Producers()
        #: (epoch, first offset), ascending in both.
        self.epochs: list[tuple[int, int]] = []
        self._unflushed = 0
        self._flush_planned = False
        #: Calls a function after that number of seconds.
        self.call_later: Callable[[float, Callable[[], object]], object] = _never
        #: Compaction has seen the segments below.
        self.compacted_to = 0
        #: Whether every append is on the disk before it is acknowledged.
        self.fsync = False

    # Where it stands

    @property
    def high_watermark(self) -> int:
        """Readers see what is below."""
        return self.end_offset

    @property
    def stable_offset(self) -> int:
        """The last stable offset: ``read_committed`` readers see what is below."""
        first = self.producers.first_open()
        # The start may have been moved into an open transaction: no reader can read, or stop, before it.
        return self.end_offset if first is None else max(first, self.start_offset)

    @property
    def size(self) -> int:
        """Bytes in all segments."""
        return sum(segment.size for segment in self.segments)

    @property
    def last_epoch(self) -> int:
        """The latest leader epoch, -1 before the first."""
        return self.epochs[-1][0] if self.epochs else -1

    # Appending

    def append(self, data: Buffer, leader_epoch: int) -> int:
        """Append complete batches as they are, but for offsets and epoch; return the first offset."""
        base = self.end_offset
        for header in scan(data):
            self.append_batch(data, header, leader_epoch)
        self.appended()
        return base

    def append_batch(self, data: Buffer, header: BatchHeader, leader_epoch: int) -> int:
        """Append the batch that ``header`` is of; return its first offset. Call :meth:`appended` after the last one."""
        offset = self.end_offset
        segment = self._segment_for(header)
        segment.append(data, header, offset, leader_epoch)
        self.end_offset = offset + header.last_offset_delta + 1
        if leader_epoch > self.last_epoch:
            self.begin_epoch(leader_epoch, offset)
        if header.producer_id >= 0 and not header.is_control:
            self.producers.appended(header, offset)
        self._unflushed += max(header.count, 1)
        return offset

    def appended(self) -> None:
        """Flush what was appended as the configuration demands."""
        if self.fsync or self._unflushed >= self.config.flush_messages:
            self.flush()
        elif self.config.flush_ms < _NEVER and not self._flush_planned:
            self._flush_planned = True
            self.call_later(self.config.flush_ms / 1000, self._flush_due)

    def _flush_due(self) -> None:
        self._flush_planned = False
        if self._unflushed:
            self.flush()

    def append_marker(
        self, producer_id: int, producer_epoch: int, leader_epoch: int, *, committed: bool, coordinator_epoch: int = 0
    ) -> int:
        """Append the control record that ends a transaction; return its offset.

        Raises InvalidProducerEpochError or TransactionCoordinatorFencedError for one that comes too late.
        """
        self.producers.check_marker(producer_id, producer_epoch, coordinator_epoch)
        now = self._now_ms()
        data = encode_marker(
            COMMIT if committed else ABORT,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=coordinator_epoch,
            timestamp=now,
        )
        header = read_header(data)
        assert header is not None
        offset = self.append_batch(data, header, leader_epoch)
        self.producers.ended(
            producer_id, producer_epoch, offset, now, committed=committed, coordinator_epoch=coordinator_epoch
        )
        self.appended()
        return offset

    def begin_epoch(self, epoch: int, offset: int | None = None) -> None:
        """A leader with this epoch takes over; what it appends begins at the end of the log."""
        if epoch > self.last_epoch:
            start = self.end_offset if offset is None else offset
            # An epoch in which nothing was appended leaves no trace but the next one's start.
            while self.epochs and self.epochs[-1][1] >= start:
                self.epochs.pop()
            self.epochs.append((epoch, start))

    def _segment_for(self, header: BatchHeader) -> Segment:
        now = self._now_ms()
        if self.segments:
            last = self.segments[-1]
            if not len(last):
                return last
            limit = min(self.config.segment_bytes, self._max_segment_bytes)
            full = last.size + header.size > limit
            # A segment is as long as its records say, by the clock only if they say nothing: so what is to be kept
            # for some days is not held up, nor taken along, by what has the timestamps of another day.
            first = last.timestamps[0]
            age = header.max_timestamp - first if first >= 0 else now - last.created_ms
            if not full and age <= self._longest_segment_ms():
                return last
            self.complete(last)
        segment = self._make_segment(self.end_offset, now)
        self.segments.append(segment)
        return segment

    def _longest_segment_ms(self) -> int:
        # A segment that is appended to is not compacted.
        config = self.config
        return min(config.segment_ms, config.max_compaction_lag_ms) if config.compacts else config.segment_ms

    def complete(self, segment: Segment) -> None:
        """Finish a segment to which nothing will be appended any more."""
        segment.flush()
        self._on_complete(segment)
        segment.rest()

    def roll(self) -> None:
        """Complete the segment at the end, so that the next append begins another."""
        if self.segments and len(self.segments[-1]):
            self.complete(self.segments[-1])
            self.segments.append(self._make_segment(self.end_offset, self._now_ms()))

    # Coming back from disk

    def recovered(self, segment: Segment, header: BatchHeader, marker: tuple[bool, int] | None) -> None:
        """Learn of a batch that is there; of a marker, whether it commits and its coordinator's epoch."""
        offset = header.base_offset
        segment.note(offset, header.last_offset, header.position, header.size, header.max_timestamp)
        self.end_offset = header.last_offset + 1
        if header.leader_epoch > self.last_epoch:
            self.begin_epoch(header.leader_epoch, offset)
        if header.producer_id < 0:
            return
        if marker is not None:
            committed, coordinator_epoch = marker
            self.producers.ended(
                header.producer_id,
                header.producer_epoch,
                offset,
                header.max_timestamp,
                committed=committed,
                coordinator_epoch=coordinator_epoch,
            )
        elif not header.is_control:
            self.producers.appended(header, offset)

    def restored(self, start: int) -> None:
        """Finish the recovery; ``start`` is the log's start offset as stored."""
        first = self.segments[0].base_offset if self.segments else start
        self.end_offset = max(self.end_offset, start)
        self.start_offset = first
        if start > first:
            self._move_start(start)

    # Reading

    def read(self, offset: int, max_bytes: int, upper: int | None = None, *, whole_first: bool = True) -> Buffer:
        """Return batches from the one that holds ``offset`` on, at most ``max_bytes`` of them.

        As from Kafka, the first may begin before ``offset``, and the last may be cut off. If the first alone is larger
        than ``max_bytes`` it comes whole with ``whole_first``, and else nothing does: a reader that is given a part of
        its first batch, and no more, takes it for a limit that it cannot get over. Nothing from ``upper`` on is read.
        """
        upper = self.end_offset if upper is None else min(upper, self.end_offset)
        number = self._segment_number(offset)
        parts: list[Buffer] = []
        left = max_bytes
        while number < len(self.segments) and (left > 0 or (whole_first and not parts)):
            segment = self.segments[number]
            start = segment.find_position(offset)
            end = segment.size if segment.last_offset < upper else segment.find_position(upper)
            if end > start:
                if end - start > left:
                    end = start + left
                    if not parts and segment.batch_end(start) > end:
                        if not whole_first:
                            return b""
                        end = segment.batch_end(start)
                parts.append(segment.read(start, end))
                left -= end - start
            if segment.last_offset + 1 >= upper:
                break
            number += 1
        if len(parts) == 1:
            return parts[0]
        return b"".join(parts)

    def available(self, offset: int, upper: int, limit: int) -> int:
        """Return how many bytes :meth:`read` has from ``offset`` to ``upper``; counted no further than ``limit``."""
        number = self._segment_number(offset)
        total = 0
        while number < len(self.segments) and total < limit:
            segment = self.segments[number]
            total += segment.find_position(upper) - segment.find_position(offset)
            number += 1
        return total

    def offset_after(self, offset: int, size: int) -> int:
        """Return the offset after the last batch that ``size`` bytes from ``offset`` on reach into."""
        number = self._segment_number(offset)
        while number < len(self.segments):
            segment = self.segments[number]
            here = segment.size - segment.find_position(offset)
            if size <= here:
                at = bisect_left(segment.positions, segment.find_position(offset) + size)
                return segment.lasts[max(0, at - 1)] + 1
            size -= here
            number += 1
        return self.end_offset

    def _segment_number(self, offset: int) -> int:
        """Return the number of the segment in which to look for ``offset``."""
        segments = self.segments
        if not segments or offset >= segments[-1].base_offset:
            return max(0, len(segments) - 1)
        return max(0, bisect_right(segments, offset, key=lambda segment: segment.base_offset) - 1)

    def batches_from(self, offset: int) -> Iterator[tuple[Segment, int]]:
        """Yield (segment, entry number) of each batch from ``offset`` on."""
        for at in range(self._segment_number(offset), len(self.segments)):
            segment = self.segments[at]
            for number in range(segment.find(offset), len(segment)):
                yield segment, number

    # Epochs

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """Return the greatest known epoch up to ``epoch`` and where its records end; (-1, -1) if there is none.

        For the latest epoch, or any later one, records end at the end of the log: only the latter is not known (-1).
        """
        if not self.epochs or epoch < 0:
            return -1, -1
        if epoch == self.epochs[-1][0]:
            return epoch, self.end_offset
        number = bisect_right(self.epochs, epoch, key=lambda pair: pair[0])
        if number == len(self.epochs):
            return -1, -1
        if number == 0:
            # Before all that is known: the answer is where the first known epoch begins.
            return epoch, self.epochs[0][1]
        return self.epochs[number - 1][0], self.epochs[number][1]

    def epoch_of(self, offset: int) -> int:
        """Return the leader epoch under which ``offset`` was or would be written, -1 if unknown."""
        number = bisect_right(self.epochs, offset, key=lambda pair: pair[1])
        return self.epochs[number - 1][0] if number else -1

    # Shrinking

    def delete_before(self, offset: int) -> None:
        """Move the start of the log up; segments that are then wholly before it are removed."""
        if offset > self.start_offset:
            self._move_start(offset)
            self._on_start_moved(offset)

    def _move_start(self, offset: int) -> None:
        self.start_offset = offset
        self.producers.forget_before(offset)
        while len(self.segments) > 1 and self.segments[1].base_offset <= offset:
            self.segments.pop(0).delete()
        if self.segments and self.segments[0].last_offset < offset and len(self.segments) == 1:
            self.segments.pop().delete()
        number = bisect_right(self.epochs, self.start_offset, key=lambda pair: pair[1])
        if number > 1:
            self.epochs = self.epochs[number - 1 :]
        if self.epochs and self.epochs[0][1] < self.start_offset:
            self.epochs[0] = (self.epochs[0][0], self.start_offset)

    def dirty_ratio(self) -> float:
        """The share of the complete segments' bytes that was never compacted."""
        complete = self.segments[:-1]
        total = sum(segment.size for segment in complete)
        dirty = sum(segment.size for segment in complete if segment.base_offset >= self.compacted_to)
        return dirty / total if total else 0.0

    def is_dirty_before(self, timestamp: int) -> bool:
        """Whether a complete segment that was never compacted has a batch older than this (max.compaction.lag.ms)."""
        return any(
            0 <= segment.timestamps[0] < timestamp
            for segment in self.segments[:-1]
            if segment.base_offset >= self.compacted_to and len(segment)
        )

    def replace(self, segment: Segment, fresh: Segment) -> int:
        """Put what compaction has left of a complete segment in its place; return how many bytes fewer that are.

        An empty segment stays, so that the log begins where it did.
        """
        number = self.segments.index(segment)
        saved = segment.size - fresh.size
        self.segments[number] = fresh.put_in_place(segment)
        self.complete(self.segments[number])
        return saved

    def apply_retention(self) -> bool:
        """Remove what is older, or more, than the configuration allows; return whether anything was."""
        steps = self.retention()
        try:
            while True:
                next(steps)
        except StopIteration as end:
            return bool(end.value)

    def retention(self) -> Generator[None, None, bool]:
        """Apply retention, at each step to a segment of the log; return whether anything was removed."""
        before = self.start_offset
        now = self._now_ms()
        self.producers.expire(now - _PRODUCER_EXPIRATION_MS)
        yield
        if self.config.deletes:
            yield from self._expire_old(now)
            yield from self._shed_size()
        return self.start_offset > before

    def _expire_old(self, now: int) -> Generator[None, None, None]:
        keep = self.config.retention_ms
        if keep < 0:
            return
        while self.segments:
            # Segments that compaction has emptied go with the next one.
            segment = next((one for one in self.segments if len(one)), self.segments[-1])
            latest = segment.max_timestamp if segment.max_timestamp >= 0 else segment.created_ms
            if now - latest <= keep or not self._first_may_go():
                return
            self._drop_first()
            yield

    def _shed_size(self) -> Generator[None, None, None]:
        limit = self.config.retention_bytes
        if limit < 0:
            return
        excess = self.size - limit
        # As in Kafka whole segments go while the rest reaches the limit: with a limit of 0 the last one too.
        while self.segments and excess - self.segments[0].size >= 0 and self._first_may_go():
            excess -= self.segments[0].size
            self._drop_first()
            yield

    def _first_may_go(self) -> bool:
        """Whether all replicas have the first segment, and it is not a new one; compaction empties others."""
        segment = self.segments[0]
        is_new = not len(segment) and len(self.segments) == 1
        return not is_new and segment.last_offset + 1 <= self.high_watermark

    def _drop_first(self) -> None:
        segment = self.segments[0]
        start = self.segments[1].base_offset if len(self.segments) > 1 else segment.last_offset + 1
        if len(self.segments) == 1:
            self.segments.pop(0).delete()
        self.delete_before(start)

    # The end

    def flush(self) -> None:
        """Have everything on the disk."""
        self._unflushed = 0
        if self.segments:
            self.segments[-1].flush()

    def close(self) -> None:
        """Close the files."""
        for segment in self.segments:
            segment.close()
