"""Records that wait to be sent: a queue of batches per partition, the last of them open, all within buffer_memory.

The threads of the application fill it and the sender empties it; one lock guards everything here, and it is held for
the length of one append. The sender learns of work per batch, never per record: a batch is *fresh* when it is opened, a
partition is *left* when its batch is full and the next record goes to another partition, and the loop is called when
the first of these comes.

`try_append` adds a record to an open batch: nearly all records go this way. `add` takes the others, and opens batches.

A signal handler or a finalizer that sends can run between any two instructions of the thread that holds the lock. The
lock is reentrant, so that such a call finds out (`inside`) instead of waiting for itself. It adds to no batch and
changes no queue: its record gets a separate batch in `_new`, and the partition's open batch takes no more records, as
later ones are behind it. The call that was interrupted, or the next one, moves the batch to its queue (`_enqueue`). It
does not wait: its memory is allocated even if there is too little, and calls that would turn the loop are refused
(`check_outside`).

Ctrl-C may come at the same places. A new batch is in `_new` before anything else has it, and the steps from there can
be taken again: what one call has not done the next one does.

Nothing here does I/O or reads a clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from threading import RLock
from typing import TYPE_CHECKING, Final, TypeAlias

from kafka.errors import IllegalStateError, RecordTooLargeError
from kafka.producer.buffer_pool import BufferPool, Reservation
from kafka.producer.partition import Partition, PartitionsByKey, Topic
from kafka.producer.producer_batch import ProducerBatch
from kafka.record.batch_builder import FULL, BatchBuilder, encode_headers, record_size
from kafka.record.header import V2_HEADER_SIZE
from kafka.record.message_v0_v1 import LegacyBuilder, message_size

if TYPE_CHECKING:
    from kafka._runtime.tasks import Pending
    from kafka.producer.sender import Sender

__all__ = ["RecordAccumulator", "too_large"]

Pairs: TypeAlias = "Sequence[tuple[str, bytes | None]]"
Record: TypeAlias = "tuple[int, bytes | None, bytes | None, Pairs | None]"
"""Timestamp, key, value, headers."""
# Bytes of a request beside its records: names, lengths, transactional id.
_REQUEST_OVERHEAD: Final = 512
# Bytes of a batch with one record without headers, in any format, beside its key and its value; or less.
_FRAMING: Final = 128


class RecordAccumulator:
    """The batches of all partitions. See the head of this module."""

    def __init__(
        self,
        sender: Sender,
        choose: Callable[[Topic], Partition],
        *,
        batch_size: int,
        buffer_memory: int,
        max_request_size: int,
        codec: str | None,
        level: int | None,
    ) -> None:
        self.lock = RLock()
        self.inside: Callable[[], bool] = self.lock._is_owned  # type: ignore[attr-defined]  # noqa: SLF001 - as Condition
        """Whether the calling thread holds the lock."""
        self.memory = BufferPool(buffer_memory)
        self.topics: dict[str, Topic] = {}
        self.sticky: dict[str, ProducerBatch] = {}
        """By topic, the open batch for records without a key, which the fast path of `send()` reads."""
        self.incomplete: dict[ProducerBatch, None] = {}
        """All batches that are not settled, oldest first."""
        self.refusal: BaseException | None = None
        """Why no records are accepted now."""
        self._ends = False
        """No records will be accepted any more."""
        self.closed = False
        """No records will be sent any more."""
        self.max_request_size = max_request_size
        self._sender = sender
        self._batch_size = max(1, min(batch_size, max_request_size - _REQUEST_OVERHEAD, buffer_memory))
        self._codec = codec
        self._level = level
        self.use_format(2)
        self._new: deque[tuple[ProducerBatch, int]] = deque()
        """Batches on their way into a queue, and their sizes."""
        self._fresh: list[ProducerBatch] = []
        self._left: list[Partition] = []
        self._retired: dict[str, Topic] = {}
        self._choose = choose

    def use_format(self, magic: int) -> None:
        """Make batches in this format from now on."""
        self.magic = magic
        make = BatchBuilder if magic > 1 else partial(LegacyBuilder, magic)
        self._builder: Callable[[int], BatchBuilder | LegacyBuilder]
        self._builder = partial(make, codec=self._codec, level=self._level)

    def forked(self) -> None:
        """In the child of a fork: each call gets a clear error, also if another thread of the parent had the lock."""
        self.lock._at_fork_reinit()  # type: ignore[attr-defined]  # noqa: SLF001 - as threading does
        self.sticky.clear()
        self.topics.clear()

    # Filling: on the threads of the application…

    def try_append(
        self, topic: str, key: bytes | None, value: bytes | None, timestamp: int
    ) -> tuple[ProducerBatch, int] | None:
        """Add a record to an open batch, a key where its hash says; return its place, None if `add` must take it.

        >>> # batch, index = accumulator.try_append("events", None, b"value", 1700000000000)
        """
        # Hot: nearly every record.
        if self.inside():
            return None
        if key is None:
            with self.lock:
                batch = self.sticky.get(topic)
                if batch is not None:
                    index = batch.append(timestamp, None, value)
                    if index >= 0:
                        return batch, index
            return None
        state = self.topics.get(topic)
        if state is not None:
            partition = state.by_key[key]
            with self.lock:
                batch = partition.open
                if batch is not None:
                    index = batch.append(timestamp, key, value)
                    if index >= 0:
                        return batch, index
        return None

    def add(  # noqa: C901, PLR0912 - hot
        self, topic: Topic, partition: Partition | None, record: Record, reservation: Reservation | None = None
    ) -> tuple[ProducerBatch, int] | None:
        """Add a record, without a partition to the sticky one; return its place, None where there is no memory.

        With a reservation that is ready there is.

        >>> # batch, index = accumulator.add(topic, None, (1700000000000, None, b"value", None))
        """
        inside = self.inside()
        with self.lock:
            if self.refusal is not None:
                raise self.refusal.with_traceback(None)
            if inside:
                builder = self._builder(self._room_for(topic, partition, record))
                builder.append(*record)
                return self._set_aside(topic, partition, builder), 0
            if self._new:
                self._enqueue()
            batch = self.sticky.get(topic.name) if partition is None else partition.open
            place = None if batch is None else _append(batch, record)
            if place is None:
                size = self._room_for(topic, partition, record)
                where = partition
                if where is None:
                    if batch is not None:  # it is full
                        # Before it is closed: Ctrl-C in between costs one look, and in the other order linger_ms.
                        self._work_soon()
                        self._left.append(batch.partition)
                        self.close(batch)
                    where = self._sticky_partition(topic)
                    if (following := where.open) is not None:  # looked at once: a call from inside may close it
                        place = self._append_to_keyed(topic, where, following, record)
                if place is None:
                    if reservation is None and not self.memory.has(size):
                        return None
                    builder = self._builder(self._batch_size)
                    index = builder.append(*record)
                    batch = self._new_batch(where, builder, size, reservation)
                    self._enqueue()
                    where.open = batch
                    if partition is None:
                        self.sticky[topic.name] = batch
                    if self._new:
                        self._enqueue()  # batches that a call from inside has set aside
                    if where.queue[-1] is not batch:  # later records are behind that
                        self._shut(where)
                    place = batch, index
            if reservation is not None:
                self._wake_soon(self.memory.cancel(reservation))
            return place

    def reserve(
        self, topic: Topic, partition: Partition | None, record: Record, ready: Pending | None = None
    ) -> Reservation:
        """Return the reservation for a record that `add` has found no memory for; `wait` puts it into the queue."""
        return Reservation(self._room_for(topic, partition, record), ready)

    def wait(self, reservation: Reservation) -> None:
        """Queue a reservation: its future is done when there is memory for it."""
        with self.lock:
            self.check_admits()
            first = not self.memory.has_waiters
            self.memory.queue(reservation)
            self._wake_soon(self.memory.grant())
        if first:  # while calls wait, batches do not linger
            self._sender.call_soon(self._sender.hurry_all)

    def cancel(self, reservation: Reservation) -> None:
        """Wait for memory no more."""
        with self.lock:
            self._wake_soon(self.memory.cancel(reservation))

    def extend(
        self, topic: Topic, values: list[bytes | None], start: int, timestamp: int, headers: Pairs = ()
    ) -> tuple[ProducerBatch, int, int] | None:
        """Add values without keys from `start` on, as many as fit one batch: batch, first index, count.

        All of them get the `headers`.

        None where there is no memory.
        """
        if not self.inside():
            with self.lock:
                self.check_admits()
                batch = self.sticky.get(topic.name)
                if batch is not None:
                    first = batch.builder.count
                    if headers:
                        assert isinstance(batch.builder, BatchBuilder)  # older formats have no headers
                        tail = encode_headers(headers)
                        taken = batch.builder.extend(values, timestamp, start=start, headers=tail)
                    else:
                        taken = batch.builder.extend(values, timestamp, start=start)
                    if taken:
                        return batch, first, taken
        place = self.add(topic, None, (timestamp, None, values[start], headers or None))
        return None if place is None else (*place, 1)

    def extend_pairs(
        self,
        topic: Topic,
        pairs: list[tuple[bytes | None, bytes | None]],
        timestamp: int,
        places: list[tuple[ProducerBatch, int]],
        headers: Pairs = (),
    ) -> None:
        """Add pairs of key and value to open batches and their places to `places`, until one needs a new batch.

        Begins with the first pair that `places` does not have. A key goes where its hash says. All get the `headers`.
        """
        # Hot: `try_append` for many, with the lock taken once.
        if self.inside():
            return
        by_key, sticky, name = topic.by_key, self.sticky, topic.name
        tail = encode_headers(headers) if headers else None
        with self.lock:
            self.check_admits()
            for key, value in islice(pairs, len(places), None):
                batch = sticky.get(name) if key is None else by_key[key].open
                if batch is None:
                    return
                index = batch.append(timestamp, key, value, tail)
                if index == FULL:
                    return
                places.append((batch, index))

    def add_built(
        self,
        topic: Topic,
        built: deque[tuple[Partition | None, BatchBuilder]],
        reservation: Reservation | None = None,
    ) -> list[ProducerBatch]:
        """Queue batches that have their records already, without a partition where the sticky ones go.

        Takes as many from the left as there is memory for, the first one with that of a reservation, and wakes the loop
        once for all of them.
        """
        added: list[ProducerBatch] = []
        inside = self.inside()
        with self.lock:
            self.check_admits()
            while built:
                partition, builder = built[0]
                if inside:
                    added.append(self._set_aside(topic, partition, builder))
                elif reservation is None and not self.memory.has(builder.size):
                    break
                else:
                    added.append(self._queue_built(topic, partition, builder, reservation))
                    reservation = None
                built.popleft()
        return added

    def _queue_built(
        self, topic: Topic, partition: Partition | None, builder: BatchBuilder, reservation: Reservation | None
    ) -> ProducerBatch:
        if partition is None:
            partition = self._sticky_partition(topic)
        batch = self._new_batch(partition, builder, builder.size, reservation)
        self._enqueue()
        if partition is topic.sticky:
            topic.filled += builder.size
        return batch

    # Filling: while the lock is held…

    def check_outside(self, what: str) -> None:
        """Raise if the calling thread was interrupted while it held the lock: it would wait for itself."""
        if self.inside():
            raise IllegalStateError(
                f"{what} was called by a signal handler or a finalizer that interrupted this producer within send(), "
                "where only send() to a topic that it knows can be called: set a flag in the handler, or raise, and "
                f"call {what} afterwards"
            )

    def _set_aside(
        self, topic: Topic, partition: Partition | None, builder: BatchBuilder | LegacyBuilder
    ) -> ProducerBatch:
        """Have a batch queued when the call that was interrupted has ended."""
        if partition is None:
            partition = topic.sticky or self._choose(topic)
        batch = self._new_batch(partition, builder, builder.size)
        self._shut(partition)  # later records are behind it
        return batch

    def sticky_partition(self, topic: Topic) -> Partition:
        """Return where records without a key go now."""
        with self.lock:
            return self._sticky_partition(topic)

    @property
    def batch_size(self) -> int:
        """The size of batches, before compression."""
        return self._batch_size

    def _append_to_keyed(
        self, topic: Topic, partition: Partition, batch: ProducerBatch, record: Record
    ) -> tuple[ProducerBatch, int] | None:
        """Add a record without a key to a batch that records with keys have opened, and the following ones too."""
        place = _append(batch, record)
        if place is None:
            return None
        self.sticky[topic.name] = batch
        if partition.open is not batch:  # not open any more
            self._shut(partition)
        return place

    def _room_for(self, topic: Topic, partition: Partition | None, record: Record) -> int:
        """Return how much memory a batch that begins with this record takes."""
        _, key, value, headers = record
        if not headers and len(key or b"") + len(value or b"") + _FRAMING <= self._batch_size:
            return self._batch_size  # which is within both limits
        if self.magic > 1:
            size = V2_HEADER_SIZE + record_size(key, value, headers)
        else:
            size = message_size(self.magic, key, value)
        for limit, name in ((self.max_request_size, "max_request_size"), (self.memory.total, "buffer_memory")):
            if size > limit:
                raise too_large(size, name, limit, topic.name, partition)
        return max(size, self._batch_size)

    def _new_batch(
        self,
        partition: Partition,
        builder: BatchBuilder | LegacyBuilder,
        size: int,
        reservation: Reservation | None = None,
    ) -> ProducerBatch:
        """Return a batch that `_enqueue` will queue, with this much memory."""
        batch = ProducerBatch(partition, builder, self._sender.now(), 0)
        batch.keeper = self._sender.keeper()
        if reservation is not None:
            self.memory.give_back(reservation)  # nothing else takes it: the lock is held
        self._work_soon()  # before it is in the list; the loop waits for the lock
        self._new.append((batch, size))
        return batch

    def _enqueue(self) -> None:
        """Queue the new batches. Ctrl-C may come between any two steps: the next call repeats them."""
        while self._new:
            batch, size = self._new[0]
            partition = batch.partition
            if not batch.attempts and batch.outcome is None:
                self.incomplete[batch] = None
                if not batch.reserved:
                    self.memory.allocate(batch, size)
                before = partition.open or self.sticky.get(partition.topic.name)
                if before is not None and before.partition is partition:  # its records were first
                    self.close(before)
                    self._shut(partition)
                partition.topic.used_at = batch.created
                if not partition.queue or partition.queue[-1] is not batch:
                    partition.queue.append(batch)
                self._fresh.append(batch)
            self._new.popleft()

    def _work_soon(self) -> None:
        """Call the loop, unless it is called already."""
        if not (self._fresh or self._left or self._new):
            self._sender.call_soon(self._sender.work)

    def _sticky_partition(self, topic: Topic) -> Partition:
        partition = topic.sticky
        if partition is None or topic.filled >= self._batch_size or partition.index not in topic.partitions:
            partition = topic.sticky = self._choose(topic)
            topic.filled = 0
        return partition

    # Emptying: on the loop…

    def take_fresh(self) -> tuple[list[ProducerBatch], list[Partition]]:
        """Return the batches that were opened, and the partitions that were left, since the last call."""
        with self.lock:
            if self._new:
                self._enqueue()
            taken = self._fresh, self._left
            self._fresh, self._left = [], []
            return taken

    def close(self, batch: ProducerBatch) -> None:
        """Close a batch for records."""
        partition = batch.partition
        with self.lock:
            if partition.open is not batch:
                return
            self._shut(partition)
            size = batch.builder.size
            if partition is partition.topic.sticky:
                partition.topic.filled += size
            if size < batch.reserved and (granted := self.memory.release(batch, size)):
                self._wake_soon(granted)

    def _shut(self, partition: Partition) -> None:
        """Let no call find a batch of a partition to add to."""
        sticky = self.sticky.get(partition.topic.name)
        # In this order: one that is not open is not the one for records without a key either.
        if sticky is not None and sticky.partition is partition:
            self.sticky.pop(partition.topic.name, None)
        partition.open = None

    def remove(self, batch: ProducerBatch) -> None:
        """Remove a batch that was given up from its queue."""
        with self.lock:
            self.close(batch)
            queue = batch.partition.queue
            if batch in queue:
                queue.remove(batch)

    def divided(self, parts: Iterable[ProducerBatch]) -> None:
        """Register the parts of a batch that was divided; they hold its memory."""
        with self.lock:
            for part in parts:
                self.incomplete[part] = None

    def settled(self, batch: ProducerBatch) -> None:
        """Release the memory of a batch."""
        with self.lock:
            self.incomplete.pop(batch, None)
            granted = self.memory.release(batch)
        if granted:
            _wake(granted)

    def pause(self, error: BaseException, *, for_good: bool = False) -> None:
        """Accept no records until `admit()`: calls that send, or wait for memory, raise the error.

        `for_good` is for a producer that is being closed: it sends the records that it has, and accepts no others.
        """
        inside = self.inside()
        with self.lock:
            if self._ends:
                return
            self._ends = for_good
            self.refusal = error
            for topic in self.topics.values():
                for partition in topic.ordered:
                    if partition.open is not None:
                        self.close(partition.open)
            if not inside:
                self._enqueue()
            waiting = self.memory.refuse_all()
        for reservation in waiting:
            reservation.ready.try_failure(error)

    def admit(self) -> None:
        """Accept records again, unless the producer is being closed."""
        with self.lock:
            if not self._ends:
                self.refusal = None

    def check_admits(self) -> None:
        """Raise if records are not accepted now."""
        if self.refusal is not None:
            raise self.refusal.with_traceback(None)

    def unsettled(self) -> list[ProducerBatch]:
        """Return all batches that are not settled, oldest first."""
        inside = self.inside()
        with self.lock:
            if not inside:
                self._enqueue()
            return list(self.incomplete)

    def _wake_soon(self, reservations: list[Reservation]) -> None:
        """Wake calls that wait for memory; a thread that waits may be the one that turns the loop."""
        if reservations:
            self._sender.call_soon(_wake, reservations)

    # Topics…

    def topic(self, name: str, indexes: Iterable[int]) -> Topic:
        """Return a topic, with the partitions that the cluster says it has."""
        with self.lock:
            topic = self.topics.get(name) or self._retired.pop(name, None)
            if topic is None:
                topic = Topic(name)
            known = sorted(indexes)
            if known != topic.indexes:
                # New objects, not changed ones: send() reads them without the lock.
                topic.partitions = {at: topic.partitions.get(at) or Partition(topic, at, self._sender) for at in known}
                topic.ordered = [topic.partitions[at] for at in known]
                topic.by_key = PartitionsByKey(topic.ordered)
                topic.indexes = known
            self.topics[name] = topic
            return topic

    def retire(self, name: str) -> None:
        """Remove a topic that nothing is sent to. Its sequence numbers continue if it returns.

        From 0 again they would be numbers of batches that brokers remember, which drop such batches as sent twice.
        """
        with self.lock:
            topic = self._retired[name] = self.topics.pop(name)
            if (batch := self.sticky.get(name)) is not None:
                self.close(batch)
            topic.sticky = None

    def all_topics(self) -> list[Topic]:
        """Return all topics that records were sent to."""
        return [*self.topics.values(), *self._retired.values()]


def too_large(size: int, name: str, limit: int, topic: str, partition: Partition | None = None) -> RecordTooLargeError:
    """Return the error for a record that is larger than an option allows."""
    where = topic if partition is None else f"{topic}-{partition.index}"
    return RecordTooLargeError(
        f"The record to {where} takes {size} bytes, which is more than {name} ({limit}) allows",
        **({} if partition is None else {"topic_partition": partition.tp}),
    )


def _append(batch: ProducerBatch, record: Record) -> tuple[ProducerBatch, int] | None:
    timestamp, key, value, headers = record  # to spell them out is faster than append(*record)
    index = batch.append(timestamp, key, value, headers)
    return None if index == FULL else (batch, index)


def _wake(reservations: list[Reservation]) -> None:
    for reservation in reservations:
        reservation.ready.try_success(None)
