"""The deliveries of one partition to the members of one share group (KIP-932).

A record is available, acquired (delivered to one member, which has it until a lock ends), acknowledged, or archived.
Between the start offset and the end are the records in delivery; those before the start are finished, and those after
the end were never delivered. As Kafka, it delivers whole batches of the log where it may, and delivers them again in
the pieces in which it has delivered them first; where deliveries of a record have failed, it narrows them down
until the record comes alone.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import islice, takewhile
from typing import Final, NamedTuple

from kafka.broker.cluster.clock import BrokerClock, Timer, Timers
from kafka.broker.cluster.topics import Partition
from kafka.broker.groups.settings import GroupSettings
from kafka.broker.groups.share_offsets import UNINITIALIZED, RecordState, ShareOffsets
from kafka.broker.storage.segment import Segment
from kafka.broker.storage.times import Reader, first_at_or_after
from kafka.errors import Code
from kafka.record.header import Buffer, read_header

#: The types of acknowledgements; a gap is an offset without a record that a member could see.
GAP: Final = 0
ACCEPT: Final = 1
RELEASE: Final = 2
REJECT: Final = 3
RENEW: Final = 4

_AFTER: Final = {
    GAP: RecordState.ARCHIVED,
    ACCEPT: RecordState.ACKNOWLEDGED,
    RELEASE: RecordState.AVAILABLE,
    REJECT: RecordState.ARCHIVED,
}


class Acknowledgement(NamedTuple):
    """A member's answer for some offsets: one type for all, or one for each."""

    first: int
    last: int
    types: Sequence[int]


class ShareRecord(NamedTuple):
    """A record that a share group has in delivery."""

    state: str
    """``available``, ``acquired``, ``acknowledged`` or ``archived``."""
    delivery_count: int
    """How often it was delivered."""
    member: str | None
    """The member that has it, if it is acquired."""


class Range(NamedTuple):
    """Offsets that were acquired together and as often."""

    first: int
    last: int
    delivery_count: int


@dataclass
class Acquired:
    """The records that a member gets from a partition."""

    ranges: list[Range] = field(default_factory=list)
    #: Whole batches of the log, which may have more records than were acquired.
    data: Buffer = b""

    @property
    def count(self) -> int:
        """How many records were acquired."""
        return sum(one.last - one.first + 1 for one in self.ranges)


class _Lock:
    """The records that one member has acquired at one time."""

    __slots__ = ("member", "offsets", "timer")

    timer: Timer

    def __init__(self, member: str, offsets: Iterable[int]) -> None:
        self.member = member
        #: The offsets that it still has.
        self.offsets = set(offsets)


class _Delivery:
    """One record in delivery."""

    __slots__ = ("count", "lock", "state")

    def __init__(self, state: RecordState = RecordState.AVAILABLE, count: int = 0) -> None:
        self.state = state
        self.count = count
        #: Set while it is acquired.
        self.lock: _Lock | None = None


class _LogBatch(NamedTuple):
    """A batch of the log."""

    segment: Segment
    first: int
    last: int
    position: int
    end: int


class SharePartition:
    """One partition as one share group reads it from the partition's leader."""

    def __init__(
        self,
        partition: Partition,
        offsets: ShareOffsets,
        settings: Callable[[], GroupSettings],
        clock: BrokerClock,
        timers: Timers,
    ) -> None:
        self.partition = partition
        self._leader_epoch = partition.leader_epoch
        self._offsets = offsets
        self._settings = settings
        self._clock = clock
        self._timers = timers
        #: The leader has moved, the topic is gone, or the group has begun again: nothing may be stored any more.
        self.is_closed = False
        #: An administrator has set the stored start: the next change fails, and ends this.
        self.is_fenced = False
        self._locks: set[_Lock] = set()
        self._watchers: set[Callable[[], None]] = set()
        #: By offset; there is none for an offset whose batch compaction has removed.
        self._deliveries: dict[int, _Delivery] = {}
        #: How many of them are final.
        self._finished = 0
        #: A heap of the available offsets, and of others that were available once: the first one is looked for often.
        self._available_offsets: list[int] = []
        #: First and last offset of what was first delivered in one piece, ascending.
        self._pieces: list[tuple[int, int]] = []
        partition.watch(self._log_changed)
        stored = offsets.of_topic(partition.topic.id).get(partition.index)
        if stored is None or stored.start == UNINITIALIZED:
            self.start = self._reset_offset()
            self.end = self.start - 1
            return
        self.start = stored.start
        deliveries = stored.deliveries
        self.end = max(deliveries, default=stored.start - 1)
        for offset in range(stored.start, self.end + 1):
            # Offsets between: they were acquired when the state was stored, and count as never delivered.
            state, count = deliveries.get(offset, (RecordState.AVAILABLE, 0))
            self._deliveries[offset] = _Delivery(state, count)
            self._finished += state.is_final
            if state is RecordState.AVAILABLE:
                heappush(self._available_offsets, offset)
            if self._pieces and self._pieces[-1][1] == offset - 1 and offset - 1 >= self.start:
                before = self._deliveries[offset - 1]
                if (before.state, before.count) == (state, count):
                    self._pieces[-1] = (self._pieces[-1][0], offset)
                    continue
            self._pieces.append((offset, offset))
        self._advance()

    def _reset_offset(self) -> int:
        reset, log = self._settings().share_auto_offset_reset, self.partition.log
        if reset == "earliest":
            return log.start_offset
        if reset == "latest":
            return log.high_watermark
        since = self._clock.now_ms() - int(_seconds(reset.partition(":")[2]) * 1000)
        found = first_at_or_after(log, since, Reader())
        return log.high_watermark if found is None else found[1]

    def close(self) -> None:
        """End it: a new one begins with what is stored."""
        self.is_closed = True
        self.partition.unwatch(self._log_changed)
        for lock in self._locks:
            lock.timer.cancel()
        self._locks.clear()
        self._changed()

    def _log_changed(self, partition: Partition) -> None:
        if partition.leader_epoch != self._leader_epoch or partition.topic.is_deleted:
            self.close()
        else:
            self._changed()

    # Where it stands

    @property
    def in_delivery(self) -> int:
        """The offsets from the start to the end, finished ones too."""
        return self.end - self.start + 1 if self._deliveries else 0

    @property
    def upper(self) -> int:
        """The end of what may be read."""
        log = self.partition.log
        return log.stable_offset if self._settings().share_isolation_level == "read_committed" else log.high_watermark

    def next_offset(self) -> int:
        """Return the offset at which to read on: the first available one, or the one after the end."""
        offsets = self._available_offsets
        while offsets:
            delivery = self._deliveries.get(offsets[0])
            if delivery is not None and delivery.state is RecordState.AVAILABLE:
                return offsets[0]
            heappop(offsets)
        return self.end + 1

    def acquirable_bytes(self, limit: int) -> int:
        """Return how many bytes there are to acquire, counted no further than ``limit``."""
        offset = self.next_offset()
        if offset == self.end + 1 and self.in_delivery >= self._settings().share_partition_max_record_locks:
            return 0
        upper = self.upper
        return self.partition.log.available(offset, upper, limit) if offset < upper else 0

    def records(self) -> dict[int, ShareRecord]:
        """Return the records in delivery."""
        return {
            offset: ShareRecord(
                delivery.state.name.lower(), delivery.count, delivery.lock.member if delivery.lock else None
            )
            for offset, delivery in self._deliveries.items()
        }

    # Waiting fetches

    def watch(self, call: Callable[[], None]) -> None:
        """Call ``call()`` after each change by which records may have become available."""
        self._watchers.add(call)

    def unwatch(self, call: Callable[[], None]) -> None:
        """Stop calling."""
        self._watchers.discard(call)

    def _changed(self) -> None:
        for call in tuple(self._watchers):
            call()

    # Acquiring

    def acquire(self, member: str, *, most: int, batch_size: int, max_bytes: int, exactly: bool) -> Acquired:
        """Deliver records to a member: about ``most`` of them, or with ``exactly`` no more than that.

        Newly delivered batches are kept together in pieces of about ``batch_size`` records.
        """
        batches = self._read(most, max_bytes)
        offsets = self._take(batches, most, batch_size, exactly=exactly) if batches and most > 0 else []
        if not offsets:
            return Acquired()
        self._lock(member, offsets)
        kept = self._without_aborted(batches, offsets)
        if not kept:
            return Acquired()
        ranges = self._ranges(kept)
        data = [
            one.segment.read(one.position, one.end) for one in batches if one.last >= kept[0] and one.first <= kept[-1]
        ]
        return Acquired(ranges, data[0] if len(data) == 1 else b"".join(data))

    def _read(self, most: int, max_bytes: int) -> list[_LogBatch]:
        """Return the batches of the log from the next offset on, within the limit; the first whatever its size."""
        found: list[_LogBatch] = []
        upper, size, enough = self.upper, 0, -1
        offset = self.next_offset()
        if offset < self.partition.log.start_offset:
            # As in Kafka, the request that finds this out gets nothing.
            # Leave out what retention or DeleteRecords has removed.
            log_start = self.partition.log.start_offset
            self._forget(log_start)
            self.end = max(self.end, log_start - 1)
            return found
        if offset >= upper:
            return found
        for segment, number in self.partition.log.batches_from(offset):
            entry = segment.entry(number)
            size += entry.end - entry.position
            if entry.first >= upper or (found and size > max_bytes) or 0 <= enough < entry.first:
                break
            if not found:
                enough = max(self.end, entry.first) + most
            found.append(_LogBatch(segment, entry.first, entry.last, entry.position, entry.end))
        while found and (offset := self.next_offset()) < found[0].first:
            self._archive([offset])  # compaction has removed its record
        return found

    def _take(self, batches: Sequence[_LogBatch], most: int, batch_size: int, *, exactly: bool) -> list[int]:
        """Choose the offsets to deliver; enter the ones that were never delivered."""
        low, high = max(batches[0].first, self.start), batches[-1].last
        free = self._settings().share_partition_max_record_locks - self.in_delivery
        wanted = min(most, free)
        if wanted <= 0:
            # Nothing new, but what was released inside.
            offset = self.next_offset()
            if offset > self.end:
                return []
            wanted, high = min(most, self.end - offset + 1), min(high, self.end)
        taken: list[int] = []
        number = bisect_left(self._pieces, low, key=lambda piece: piece[1])
        while number < len(self._pieces) and self._pieces[number][0] <= high and len(taken) < wanted:
            piece = self._pieces[number]
            number += 1
            limit = wanted - len(taken) if exactly else len(self._deliveries)
            offsets, is_suspect = self._available(piece, max(low, piece[0]), min(high, piece[1]), limit)
            if is_suspect and taken:
                return taken
            taken += offsets
            if is_suspect and offsets:
                return taken
        if len(taken) < wanted and high > self.end:
            taken += self._enter(batches, max(low, self.end + 1), wanted - len(taken), batch_size, exactly=exactly)
        return taken

    def _available(self, piece: tuple[int, int], low: int, high: int, limit: int) -> tuple[list[int], bool]:
        """Return the available offsets of a piece, and whether deliveries of them have failed too often before.

        Of these there are the fewer, the more deliveries have failed, and before the last delivery only one: so the
        record that makes members fail is found, and does not use up the deliveries of the others (KAFKA-19020).
        """
        most_deliveries = self._settings().share_delivery_count_limit
        suspect_from = max(2, (most_deliveries + 1) // 2)
        free = [
            (offset, delivery.count)
            for offset in range(low, high + 1)
            if (delivery := self._deliveries.get(offset)) and delivery.state is RecordState.AVAILABLE
        ]
        found: list[int] = []
        most = 0  # from the first suspect on, and of all: as in Kafka there is no limit if there are more before it
        for offset, count in free:
            is_last = most_deliveries > 2 and count == most_deliveries - 1
            if found and is_last:
                break
            if count >= suspect_from and not most:
                most = max(1, (piece[1] - piece[0] + 1) >> (count - suspect_from + 1))
            found.append(offset)
            if is_last or len(found) in {limit, most}:
                break
        return found, any(count >= suspect_from for _, count in free)

    def _enter(
        self, batches: Sequence[_LogBatch], first: int, most: int, batch_size: int, *, exactly: bool
    ) -> list[int]:
        """Enter records that were never delivered, up to the end of the batch in which there are enough."""
        ending = next((one for one in batches if one.last >= first + most - 1), batches[-1])
        last = min(ending.last, first + most - 1) if exactly else ending.last
        begin = first
        for batch in batches if not exactly else ():
            if begin < batch.first <= ending.first and batch.first - begin >= batch_size:
                self._pieces.append((begin, batch.first - 1))
                begin = batch.first
        self._pieces.append((begin, ending.last))
        for offset in range(first, ending.last + 1):
            self._deliveries[offset] = _Delivery()
        for offset in range(last + 1, ending.last + 1):
            heappush(self._available_offsets, offset)
        self.end = ending.last
        return list(range(first, last + 1))

    def _lock(self, member: str, offsets: Iterable[int]) -> None:
        duration = self._settings().share_record_lock_duration
        lock = _Lock(member, offsets)
        lock.timer = self._timers.call_later(duration, self._unlock, lock)
        self._locks.add(lock)
        for offset in lock.offsets:
            delivery = self._deliveries[offset]
            self._drop_lock(offset, delivery)  # a renewal is in place of the one before
            delivery.state, delivery.lock = RecordState.ACQUIRED, lock
            delivery.count += 1

    def _drop_lock(self, offset: int, delivery: _Delivery) -> None:
        lock, delivery.lock = delivery.lock, None
        if lock is not None:
            lock.offsets.discard(offset)
            if not lock.offsets:
                lock.timer.cancel()
                self._locks.discard(lock)

    def _without_aborted(self, batches: Sequence[_LogBatch], offsets: list[int]) -> list[int]:
        """Archive the records of aborted transactions, and return the other offsets."""
        if self._settings().share_isolation_level != "read_committed":
            return offsets
        aborted = self.partition.log.producers.aborted_between(batches[0].first, batches[-1].last + 1)
        gone: set[int] = set()
        for batch in batches if aborted else ():
            header = read_header(batch.segment.read(batch.position, batch.end))
            if header is None or not header.is_transactional or header.is_control:
                continue
            if any(
                one.producer_id == header.producer_id and one.first_offset <= batch.first <= one.last_offset
                for one in aborted
            ):
                gone.update(range(batch.first, batch.last + 1))
        if gone := gone & set(offsets):
            self._archive(sorted(gone))
        return [offset for offset in offsets if offset not in gone]

    def _ranges(self, offsets: Sequence[int]) -> list[Range]:
        """Return offsets as ranges; none reaches over the end of a piece."""
        number = bisect_left(self._pieces, offsets[0], key=lambda piece: piece[1])
        ends = {
            last for _, last in takewhile(lambda piece: piece[0] <= offsets[-1], islice(self._pieces, number, None))
        }
        ranges: list[Range] = []
        for offset in offsets:
            count = self._deliveries[offset].count
            last = ranges[-1] if ranges else None
            if last and last.last == offset - 1 and last.delivery_count == count and last.last not in ends:
                ranges[-1] = Range(last.first, offset, count)
            else:
                ranges.append(Range(offset, offset, count))
        return ranges

    # Acknowledging and releasing

    def check(self, member: str, acknowledgements: Iterable[Acknowledgement]) -> dict[int, int] | Code:
        """Return the type of acknowledgement of each offset, or why a member may not say that."""
        outcome: dict[int, int] = {}
        for first, last, types in acknowledgements:
            if last < self.start:
                continue  # finished already
            if last > self.end:
                return Code.INVALID_REQUEST if self._deliveries else Code.INVALID_RECORD_STATE
            for offset in range(max(first, self.start), last + 1):
                delivery = self._deliveries.get(offset)
                if delivery is None:
                    continue
                if delivery.lock is None or delivery.lock.member != member:
                    return Code.INVALID_RECORD_STATE  # not acquired, or by another member
                outcome[offset] = types[offset - first] if len(types) > 1 else types[0]
        if RENEW in outcome.values() and self._settings().share_renew_enable != "true":
            return Code.INVALID_RECORD_STATE
        return outcome

    def acknowledge(self, member: str, outcome: Mapping[int, int]) -> Code:
        """Do what a member says of records that it has, as `check` has returned it."""
        # Since then the log may have been cut.
        outcome = {offset: kind for offset, kind in outcome.items() if offset in self._deliveries}
        if self.is_fenced and set(outcome.values()) - {RENEW}:
            self.close()
            return Code.NOT_LEADER_OR_FOLLOWER
        renewed = [offset for offset, kind in outcome.items() if kind == RENEW]
        if renewed:
            for offset in renewed:
                self._deliveries[offset].count -= 1  # the same delivery
            self._lock(member, renewed)
        self._settle({offset: _AFTER[kind] for offset, kind in outcome.items() if kind != RENEW})
        return Code.NONE

    def release(self, member: str) -> None:
        """Make available what a member has not acknowledged."""
        held = (lock.offsets for lock in self._locks if lock.member == member)
        self._settle(dict.fromkeys(sorted(set().union(*held)), RecordState.AVAILABLE))

    def expire_locks(self) -> None:
        """End all locks now, as if their time were up."""
        for lock in list(self._locks):
            self._unlock(lock)

    def _unlock(self, lock: _Lock) -> None:
        self._settle(dict.fromkeys(sorted(lock.offsets), RecordState.AVAILABLE))
        self._locks.discard(lock)
        lock.timer.cancel()

    def _settle(self, states: dict[int, RecordState]) -> None:
        """End deliveries; a record that is released after its last delivery is archived."""
        if not states or self.is_closed:
            return
        if self.is_fenced:
            self.close()
            return
        limit = self._settings().share_delivery_count_limit
        for offset, state in states.items():
            if state is RecordState.AVAILABLE and self._deliveries[offset].count >= limit:
                states[offset] = RecordState.ARCHIVED
        self._finish(states)

    def _finish(self, states: Mapping[int, RecordState]) -> None:
        changes = {offset: (state, self._end(offset, state).count) for offset, state in states.items()}
        # As in Kafka the start is stored as it was before, and so is one write behind.
        self._offsets.write(self.partition.topic.id, self.partition.index, self.start, changes, self._finished)
        self._advance()
        self._changed()

    def _archive(self, offsets: Iterable[int]) -> None:
        """End what members never see; as in Kafka the start moves with the next change, which stores it too."""
        for offset in offsets:
            self._end(offset, RecordState.ARCHIVED)

    def _end(self, offset: int, state: RecordState) -> _Delivery:
        """End a delivery, which was not final."""
        delivery = self._deliveries[offset]
        delivery.state = state
        self._drop_lock(offset, delivery)
        if state.is_final:
            self._finished += 1
        else:
            heappush(self._available_offsets, offset)
        return delivery

    # Moving the start. The cost of an acknowledgement does not depend on how many records are in delivery: nothing
    # here looks at a record that stays

    def _advance(self) -> None:
        first = self.start
        while first <= self.end and ((found := self._deliveries.get(first)) is None or found.state.is_final):
            first += 1
        self._forget(first)

    def _forget(self, first: int) -> None:
        """Forget the deliveries before an offset, at which those in delivery start now."""
        for offset in range(self.start, min(first, self.end + 1)):
            delivery = self._deliveries.pop(offset, None)
            if delivery is not None:
                self._finished -= delivery.state.is_final
                self._drop_lock(offset, delivery)
        self.start = first
        del self._pieces[: bisect_left(self._pieces, first, key=lambda piece: piece[1])]


_UNITS: Final = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}


def _seconds(duration: str) -> float:
    """Read an ISO 8601 duration.

    >>> _seconds("P1DT2H"), _seconds("pt0.5s")
    (93600.0, 0.5)
    """
    return sum(_UNITS[unit] * float(number) for number, unit in re.findall(r"([\d.]+)([dhms])", duration.lower()))
