"""Records that wait to be sent: a queue of batches per partition, the last of them open, all within buffer_memory.

The threads of the application fill it and the sender empties it; one lock guards everything here, and it is held for
the length of one append. What the sender has to look at is handed over per batch, never per record: a batch is
*fresh* when it is opened, and the loop is called when the first one is.

Nothing here does I/O or reads a clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from kafka.errors import RecordTooLargeError
from kafka.producer.batch import ProducerBatch
from kafka.producer.memory import Memory, Ticket
from kafka.record.builder import FULL, BatchBuilder, record_size
from kafka.record.header import V2_HEADER_SIZE
from kafka.record.legacy_builder import LegacyBuilder, message_size
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.producer.core import ProducerCore
    from kafka.producer.sink import Sink

__all__ = ["Accumulator", "Partition", "Topic"]

Headers = Any
# What the rest of a request takes beside its records: names, lengths, transactional id.
_REQUEST_OVERHEAD: Final = 512


class Partition:
    """One partition of a topic, from the producer's side."""

    __slots__ = (
        "acknowledged",
        "answers_due",
        "broken",
        "core",
        "epoch",
        "in_flight",
        "index",
        "known",
        "next_sequence",
        "not_before",
        "open",
        "producer_id",
        "queue",
        "recovering",
        "scheduled",
        "sink",
        "timer",
        "topic",
        "tp",
    )

    def __init__(self, topic: Topic, index: int, core: ProducerCore) -> None:
        self.topic = topic
        self.index = index
        self.tp = TopicPartition(topic.name, index)
        self.core = core
        # Under the accumulator's lock:
        self.queue: deque[ProducerBatch] = deque()
        self.open: ProducerBatch | None = None
        """The last of the queue, as long as it takes records."""
        # On the loop only:
        self.in_flight: deque[ProducerBatch] = deque()
        """Sent and not settled, in order; all of them on one connection."""
        self.answers_due = 0
        """How many answers are still to come; those of batches that were given up meanwhile too."""
        self.recovering = False
        """A batch has to be sent again: nothing goes out until all answers are in."""
        self.broken = False
        """A sequence number was spent on a batch that may not be in the log: the next ones need a new epoch."""
        self.known = False
        """Its leader has taken a batch of this epoch, so it will refuse one that does not follow."""
        self.sink: Sink | None = None
        self.scheduled = False
        """It stands in its sink's line."""
        self.not_before = 0.0
        self.timer: Any = None
        self.producer_id = -1
        self.epoch = -1
        self.next_sequence = 0
        self.acknowledged = 0
        """The sequence number after the last batch of this epoch that is in the log."""

    def __repr__(self) -> str:
        return (
            f"<Partition {self.tp.topic}-{self.tp.partition} queue={len(self.queue)} in_flight={len(self.in_flight)}>"
        )


class Topic:
    """A topic's partitions, and where its records without a key go now (KIP-480, KIP-794)."""

    __slots__ = ("filled", "indexes", "line", "name", "partitions", "sticky", "used_at")

    def __init__(self, name: str) -> None:
        self.name = name
        self.partitions: dict[int, Partition] = {}
        self.indexes: list[int] = []
        self.line: list[Partition] = []
        """The partitions in the order of their numbers."""
        self.sticky: Partition | None = None
        self.filled = 0
        """Bytes that went to the sticky partition since it was chosen."""
        self.used_at = 0.0


class Accumulator:
    """See the head of this file."""

    def __init__(
        self,
        core: ProducerCore,
        *,
        batch_size: int,
        buffer_memory: int,
        max_request_size: int,
        codec: str | None,
        level: int | None,
    ) -> None:
        self.lock = Lock()
        self.memory = Memory(buffer_memory)
        self.topics: dict[str, Topic] = {}
        self.sticky: dict[str, ProducerBatch] = {}
        """By topic, the open batch for records without a key: what the fast path of `send()` looks at."""
        self.incomplete: dict[ProducerBatch, None] = {}
        """All batches that are not settled, oldest first."""
        self.magic = 2
        self.refusal: BaseException | None = None
        """Why no records are taken any more."""
        self.max_request_size = max_request_size
        self._core = core
        self._batch_size = max(1, min(batch_size, max_request_size - _REQUEST_OVERHEAD, buffer_memory))
        self._codec = codec
        self._level = level
        self._fresh: list[ProducerBatch] = []
        self._retired: dict[str, Topic] = {}
        self._choose: Callable[[Topic], Partition] = core.choose_partition

    # Filling: on the threads of the application…

    def add(
        self,
        topic: Topic,
        partition: Partition | None,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
    ) -> tuple[ProducerBatch, int] | Ticket:
        """Add a record, without a partition to the sticky one; return its place, or the ticket to wait for first.

        >>> # batch, index = accumulator.add(topic, None, 1700000000000, None, b"value", None)
        """
        with self.lock:
            if self.refusal is not None:
                raise self.refusal.with_traceback(None)
            found = self._append(topic, partition, timestamp, key, value, headers)
            if found is not None:
                return found
            size = self._room_for(key, value, headers)
            if not self.memory.take(size):
                self._core.hurry_soon()
                return self.memory.queue(size)
            return self._open(topic, partition, size, timestamp, key, value, headers)

    def add_granted(
        self,
        ticket: Ticket,
        topic: Topic,
        partition: Partition | None,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
    ) -> tuple[ProducerBatch, int]:
        """The same for whom memory was granted."""
        with self.lock:
            if self.refusal is not None:
                raise self.refusal.with_traceback(None)
            found = self._append(topic, partition, timestamp, key, value, headers)
            if found is None:
                return self._open(topic, partition, self.memory.spend(ticket), timestamp, key, value, headers)
            served = self.memory.leave(ticket)
        _tell(served)
        return found

    def extend(
        self, topic: Topic, values: list[bytes | None], start: int, timestamp: int
    ) -> tuple[ProducerBatch, int, int] | Ticket:
        """Add values without keys from `start` on, as many as fit one batch: batch, first index, count."""
        with self.lock:
            if self.refusal is not None:
                raise self.refusal.with_traceback(None)
            batch = self.sticky.get(topic.name)
            if batch is not None:
                first = batch.count
                taken = batch.builder.extend(values, timestamp, start=start)
                if taken:
                    return batch, first, taken
            size = self._room_for(None, values[start], None)
            if not self.memory.take(size):
                self._core.hurry_soon()
                return self.memory.queue(size)
            batch, first = self._open(topic, None, size, timestamp, None, values[start], None)
            return batch, first, 1 + batch.builder.extend(values, timestamp, start=start + 1)

    def add_built(
        self, topic: Topic, built: deque[tuple[Partition | None, BatchBuilder]], ticket: Ticket | None = None
    ) -> tuple[list[ProducerBatch], Ticket | None]:
        """Queue batches that have their records already, without a partition where the sticky ones go.

        Takes as many from the left as there is memory for, and wakes the loop once for all of them. Returns these, and
        where some are left the ticket to wait for first: come again with it.
        """
        added: list[ProducerBatch] = []
        with self.lock:
            if self.refusal is not None:
                raise self.refusal.with_traceback(None)
            while built:
                partition, builder = built[0]
                size = builder.size
                if ticket is not None:
                    self.memory.spend(ticket)
                    ticket = None
                elif not self.memory.take(size):
                    self._core.hurry_soon()
                    return added, self.memory.queue(size)
                added.append(self._add_built(topic, partition, builder, size))
                built.popleft()
            return added, None

    def _add_built(self, topic: Topic, partition: Partition | None, builder: BatchBuilder, size: int) -> ProducerBatch:
        if partition is None:
            partition = self._sticky_partition(topic)
        if partition.open is not None:  # its records were first
            self.close(partition.open)
        batch = ProducerBatch(partition, builder, self._core.now(), size)
        if partition is topic.sticky:
            topic.filled += size
        self._queue(batch)
        return batch

    def sticky_partition(self, topic: Topic) -> Partition:
        """Return where records without a key go now."""
        with self.lock:
            return self._sticky_partition(topic)

    @property
    def batch_size(self) -> int:
        """How large batches are to be, before compression."""
        return self._batch_size

    def give_up(self, ticket: Ticket) -> None:
        """Wait for memory no more."""
        with self.lock:
            served = self.memory.leave(ticket)
        _tell(served)

    def _append(
        self,
        topic: Topic,
        partition: Partition | None,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
    ) -> tuple[ProducerBatch, int] | None:
        batch = self.sticky.get(topic.name) if partition is None else partition.open
        if batch is None:
            return None
        index = batch.append(timestamp, key, value, headers)
        return None if index == FULL else (batch, index)

    def _room_for(self, key: bytes | None, value: bytes | None, headers: Headers) -> int:
        """Return how much memory a batch that begins with this record takes."""
        if self.magic > 1:
            size = V2_HEADER_SIZE + record_size(key, value, headers)
        else:
            size = message_size(self.magic, key, value)
        for limit, name in ((self.max_request_size, "max_request_size"), (self.memory.total, "buffer_memory")):
            if size > limit:
                raise RecordTooLargeError(f"The record takes {size} bytes, which is more than {name} ({limit}) allows")
        return max(size, self._batch_size)

    def _open(
        self,
        topic: Topic,
        partition: Partition | None,
        reserved: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
    ) -> tuple[ProducerBatch, int]:
        """Open a batch that begins with this record; the memory is taken."""
        sticky = partition is None
        if partition is None:
            full = self.sticky.get(topic.name)
            if full is not None:
                self.close(full)
            partition = self._sticky_partition(topic)
        if partition.open is not None:
            if sticky and (index := partition.open.append(timestamp, key, value, headers)) != FULL:
                # Records with keys have opened one there.
                self.sticky[topic.name] = partition.open
                _tell_later(self._core, self.memory.give(reserved))
                return partition.open, index
            self.close(partition.open)
        builder: BatchBuilder | LegacyBuilder
        if self.magic > 1:
            builder = BatchBuilder(self._batch_size, self._codec, self._level)
        else:
            builder = LegacyBuilder(self.magic, self._batch_size, self._codec, self._level)
        batch = ProducerBatch(partition, builder, self._core.now(), reserved)
        index = batch.append(timestamp, key, value, headers)
        self._queue(batch)
        partition.open = batch
        if sticky:
            self.sticky[topic.name] = batch
        return batch, index

    def _queue(self, batch: ProducerBatch) -> None:
        """Have a batch sent when its time has come.

        Ctrl-C may come between any two steps. Nobody appends to a batch that is in no queue, and the loop is woken
        before there is something that whoever comes next takes for a sign that it was; it waits for the lock.
        """
        batch.keeper = self._core.keeper()
        batch.partition.queue.append(batch)
        self.incomplete[batch] = None
        if not self._fresh:
            self._core.work_soon()
        self._fresh.append(batch)

    def _sticky_partition(self, topic: Topic) -> Partition:
        partition = topic.sticky
        if partition is None or topic.filled >= self._batch_size or partition.index not in topic.partitions:
            partition = topic.sticky = self._choose(topic)
            topic.filled = 0
        return partition

    # Emptying: on the loop…

    def take_fresh(self) -> list[ProducerBatch]:
        """Return the batches that were opened since the last call."""
        with self.lock:
            fresh, self._fresh = self._fresh, []
            return fresh

    def close(self, batch: ProducerBatch) -> None:
        """Let a batch take no more records. The lock is held."""
        assert self.lock.locked()
        partition = batch.partition
        if partition.open is not batch:
            return
        partition.open = None
        topic = partition.topic
        if self.sticky.get(topic.name) is batch:
            del self.sticky[topic.name]
        size = batch.builder.size
        if partition is topic.sticky:
            topic.filled += size
        if size < batch.reserved:
            spare, batch.reserved = batch.reserved - size, size
            _tell_later(self._core, self.memory.give(spare))

    def close_for_sending(self, batch: ProducerBatch) -> None:
        """Let a batch that is about to be sealed take no more records."""
        with self.lock:
            self.close(batch)

    def remove(self, batch: ProducerBatch) -> None:
        """Take a batch that was given up out of its queue."""
        with self.lock:
            self.close(batch)
            queue = batch.partition.queue
            if batch in queue:
                queue.remove(batch)

    def put_back(self, partition: Partition, batches: Iterable[ProducerBatch]) -> None:
        """Put batches to be sent again at the head of the queue."""
        with self.lock:
            partition.queue.extendleft(reversed(list(batches)))

    def divided(self, parts: Iterable[ProducerBatch]) -> None:
        """Account for the parts of a batch that was divided; they have its memory."""
        with self.lock:
            for part in parts:
                self.incomplete[part] = None

    def settled(self, batch: ProducerBatch) -> None:
        """Give the memory of a batch back."""
        with self.lock:
            self.incomplete.pop(batch, None)
            served = self.memory.give(batch.reserved)
            batch.reserved = 0
        _tell(served)

    def refuse(self, error: BaseException) -> None:
        """Take no more records; whoever waits for memory hears why."""
        with self.lock:
            self.refusal = error
            self.sticky.clear()
            for topic in self.topics.values():
                for partition in topic.partitions.values():
                    partition.open = None
            waiting = self.memory.refuse_all()
        for ticket in waiting:
            ticket.try_failure(error)

    def pause(self, error: BaseException) -> None:
        """Take no records until `admit()`: whoever comes, and whoever waits for memory, hears why."""
        with self.lock:
            self.refusal = error
            for topic in self.topics.values():
                for partition in topic.line:
                    if partition.open is not None:
                        self.close(partition.open)
            waiting = self.memory.refuse_all()
        for ticket in waiting:
            ticket.try_failure(error)

    def admit(self) -> None:
        """Take records again."""
        with self.lock:
            self.refusal = None

    def check_admits(self) -> None:
        """Raise if records are not taken now."""
        if self.refusal is not None:
            raise self.refusal.with_traceback(None)

    def unsettled(self) -> list[ProducerBatch]:
        """Return all batches that are not settled, oldest first."""
        with self.lock:
            return list(self.incomplete)

    # Topics…

    def topic(self, name: str, indexes: Iterable[int]) -> Topic:
        """Return a topic, with the partitions that the cluster says it has."""
        with self.lock:
            topic = self.topics.get(name) or self._retired.pop(name, None)
            if topic is None:
                topic = Topic(name)
            known = sorted(indexes)
            if known != topic.indexes:
                # New objects, not changed ones: the fast path reads them without the lock.
                topic.partitions = {at: topic.partitions.get(at) or Partition(topic, at, self._core) for at in known}
                topic.line = [topic.partitions[at] for at in known]
                topic.indexes = known
            self.topics[name] = topic
            return topic

    def retire(self, name: str) -> None:
        """Put a topic aside that nothing is sent to. Its sequence numbers go on if it comes back.

        From 0 again they would be those of batches that brokers remember, and drop as sent twice.
        """
        with self.lock:
            topic = self._retired[name] = self.topics.pop(name)
            if (batch := self.sticky.get(name)) is not None:
                self.close(batch)
            topic.sticky = None

    def all_topics(self) -> list[Topic]:
        """Return the topics that anything was ever sent to."""
        return [*self.topics.values(), *self._retired.values()]


def _tell(served: list[Ticket]) -> None:
    for ticket in served:
        ticket.try_success(None)


def _tell_later(core: ProducerCore, served: list[Ticket]) -> None:
    """Tell those who wait for memory, but not under the lock: what they do next takes it."""
    if served:
        core.call_soon(_tell, served)
