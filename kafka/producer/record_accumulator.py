"""Records that wait to be sent: a queue of batches per partition, the last of them open, all within buffer_memory.

The threads of the application fill it and the sender empties it; one lock guards everything here, and it is held for
the length of one append. The sender learns of work per batch, never per record: a batch is *fresh* when it is opened, a
partition is *left* when its batch is full and the next record goes to another partition, and the loop is called when
the first of these comes.

A signal handler or a finalizer that sends can run between any two instructions of the thread that holds the lock.
Therefore the lock is reentrant, and for such a *call from inside*:

- A batch that a record is being added to looks full to it (`taken_up`); any other batch accepts its record.
- It opens no batch. Its record gets a separate batch, and the partition's open batch is closed without a look at its
  content: later records are behind it. The interrupted call, if it opens a batch, checks whether that is still last.
- It does not wait: its memory is allocated even if there is too little, and calls that would turn the loop, which might
  seal the batch that is being added to, are refused (`check_outside`).

Ctrl-C may come at the same places. A batch stores how much memory it holds, and one that was not queued is released.

Nothing here does I/O or reads a clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice
from threading import RLock
from typing import TYPE_CHECKING, Final

from kafka.errors import IllegalStateError, RecordTooLargeError
from kafka.producer.buffer_pool import BufferPool, Reservation, Share
from kafka.producer.partition import Partition, PartitionsByKey, Topic
from kafka.producer.producer_batch import ProducerBatch, taken_up
from kafka.record.batch_builder import FULL, BatchBuilder, encode_headers, record_size
from kafka.record.header import V2_HEADER_SIZE
from kafka.record.message_v0_v1 import LegacyBuilder, message_size

if TYPE_CHECKING:
    from kafka._runtime.tasks import Pending
    from kafka.producer.sender import Sender

__all__ = ["RecordAccumulator", "too_large"]

Record = tuple[int, "bytes | None", "bytes | None", "list[tuple[str, bytes | None]] | None"]
"""Timestamp, key, value, headers."""
# Bytes of a request beside its records: names, lengths, transactional id.
_REQUEST_OVERHEAD: Final = 512
# Bytes of a batch with one record without headers, in any format, beside its key and its value; or less.
_FRAMING: Final = 128
# Bytes of a record beside its key, value and headers, in a batch of default size that is open for minutes.
_RECORD_FRAMING: Final = 18


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
        self.magic = 2
        self.refusal: BaseException | None = None
        """Why no records are accepted now."""
        self.closed = False
        """No records will be accepted any more."""
        self.max_request_size = max_request_size
        self._sender = sender
        self._batch_size = max(1, min(batch_size, max_request_size - _REQUEST_OVERHEAD, buffer_memory))
        self._codec = codec
        self._level = level
        self._fresh: list[ProducerBatch] = []
        self._left: list[Partition] = []
        self._retired: dict[str, Topic] = {}
        self._choose = choose

    def forked(self) -> None:
        """In the child of a fork: each call gets a clear error, also if another thread of the parent had the lock."""
        self.lock._at_fork_reinit()  # type: ignore[attr-defined]  # noqa: SLF001 - as threading does
        self.sticky.clear()
        self.topics.clear()

    # Filling: on the threads of the application…

    def add(
        self,
        topic: Topic,
        partition: Partition | None,
        record: Record,
    ) -> tuple[ProducerBatch, int] | None:
        """Add a record, without a partition to the sticky one; return its place, None where there is no memory.

        >>> # batch, index = accumulator.add(topic, None, (1700000000000, None, b"value", None))
        """
        inside = self.inside()
        with self.lock:
            if self.refusal is not None:
                raise self.refusal.with_traceback(None)
            found = self._append(topic, partition, record)
            if found is not None:
                return found
            if inside:
                return self._add_inside(topic, partition, record)
            size = self._room_for(topic, partition, record)
            opened = self.sticky.get(topic.name) if partition is None else partition.open
            if opened is not None and opened.share is not None and not self.memory.has(size):
                return None  # the batch has room, but for calls that were first
            if partition is None:
                found = self._append_to_next(topic, record)
                if found is not None:
                    return found
            if not self.memory.has(size):
                return None
            return self._open(topic, partition, size, None, record)

    def reservation(
        self, topic: Topic, partition: Partition | None, record: Record, ready: Pending | None = None
    ) -> Reservation:
        """Return the reservation for a record that `add` has found no memory for; `wait` puts it into the queue."""
        size = self._room_for(topic, partition, record)
        _, key, value, headers = record
        if self.magic > 1:
            bytes_ = len(key or b"") + len(value or b"") + _RECORD_FRAMING
            if headers:
                bytes_ += len(encode_headers(headers))
        else:
            bytes_ = message_size(self.magic, key, value)
        return Reservation(size, partition or topic, bytes_, ready)

    def wait(self, reservation: Reservation) -> None:
        """Queue a reservation: its future is done when the call can try again."""
        with self.lock:
            self.check_admits()
            first = not self.memory.has_waiters
            self.memory.queue(reservation)
            granted = self.memory.grant()
        _wake_soon(self._sender, granted)
        if first:  # while calls wait, batches do not linger
            self._sender.call_soon(self._sender.hurry_all)

    def wait_again(self, reservation: Reservation, ready: Pending) -> None:
        """Queue a reservation in its old place, after `add_reserved` has found no room for it."""
        reservation.record_size = self._batch_size  # for a batch that it opens itself
        with self.lock:
            granted = self.memory.queue_again(reservation, ready)
        _wake_soon(self._sender, granted)

    def cancel(self, reservation: Reservation) -> None:
        """Wait for memory no more."""
        with self.lock:
            share = reservation.share
            if share is not None and (batch := share.batch) is not None and batch.share is share:
                batch.builder.limit += reservation.record_size  # its room
                reservation.record_size = 0
            granted = self.memory.cancel(reservation)
            if share is not None and not share.members:
                self._all_added(share)
        _wake_soon(self._sender, granted)

    def add_reserved(
        self, reservation: Reservation, topic: Topic, partition: Partition | None, record: Record
    ) -> tuple[ProducerBatch, int] | None:
        """Add the record of a reservation that is ready; None where it must wait again (`wait_again`)."""
        with self.lock:
            self.check_admits()
            share = reservation.share
            if share is not None and (batch := share.batch) is not None and batch.share is share:
                batch.builder.limit += reservation.record_size  # its room
                reservation.record_size = 0
                found = _append(batch, record)
            else:
                found = self._append(topic, partition, record)  # other calls may have opened a batch
                if found is None and partition is None:
                    found = self._append_to_next(topic, record)
                if found is None and share is not None and share.held:
                    reservation.record_size = 0
                    found = self._open(topic, partition, share.held, share, record)
            granted: list[Reservation] = []
            emptied = self.memory.leave(reservation)
            if emptied is not None:
                granted = self.memory.give_back(emptied)
                self._all_added(emptied)
        _wake_soon(self._sender, granted)
        return found

    def _all_added(self, share: Share) -> None:
        """Wake more calls whose records fit into the batch of a share, or let it be sent. The lock is held."""
        batch = share.batch
        if batch is None or batch.share is not share:  # closed already
            return
        joined = self.memory.join(share, self._batch_size - batch.builder.size)
        if joined:
            batch.builder.limit -= sum(reservation.record_size for reservation in joined)
            _wake_soon(self._sender, joined)
            return
        if batch.partition.open is batch:
            batch.share = None
        else:
            self.close(batch)
        self._sender.call_soon(batch.partition.schedule)

    def extend(
        self, topic: Topic, values: list[bytes | None], start: int, timestamp: int
    ) -> tuple[ProducerBatch, int, int] | None:
        """Add values without keys from `start` on, as many as fit one batch: batch, first index, count.

        None where there is no memory.
        """
        with self.lock:
            self.check_admits()
            batch = self.sticky.get(topic.name)
            if batch is not None:
                first, taken = batch.extend(values, timestamp, start)
                if taken:
                    return batch, first, taken
        place = self.add(topic, None, (timestamp, None, values[start], None))
        return None if place is None else (*place, 1)

    def extend_pairs(
        self,
        topic: Topic,
        pairs: list[tuple[bytes | None, bytes | None]],
        timestamp: int,
        places: list[tuple[ProducerBatch, int]],
    ) -> None:
        """Add pairs of key and value to open batches and their places to `places`, until one needs a new batch.

        Begins with the first pair that `places` does not have. A key goes where its hash says.
        """
        # Hot: `_append`, without its calls.
        by_key, sticky, name = topic.by_key, self.sticky, topic.name
        with self.lock:
            self.check_admits()
            for key, value in islice(pairs, len(places), None):
                batch = sticky.get(name) if key is None else by_key[key].open
                if batch is None:
                    return
                append, batch.append = batch.append, taken_up
                try:
                    index = append(timestamp, key, value)
                finally:
                    batch.append = append
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
                    added.append(self._queue_inside(topic, partition, builder))
                elif reservation is None and not self.memory.has(builder.size):
                    break
                else:
                    added.append(self._add_built(topic, partition, builder, reservation))
                    reservation = None
                built.popleft()
        return added

    def _add_built(
        self, topic: Topic, partition: Partition | None, builder: BatchBuilder, reservation: Reservation | None
    ) -> ProducerBatch:
        share = None if reservation is None else reservation.share
        if partition is None:
            partition = self._sticky_partition(topic)
        if (opened := partition.open) is not None:  # its records were first
            self.close(opened)
        batch = ProducerBatch(partition, builder, self._sender.now(), 0)
        self._queue(batch, builder.size, share)
        if reservation is not None:
            self.memory.leave(reservation)
        if partition is topic.sticky:
            topic.filled += builder.size
        return batch

    # Filling: inside a callback or an interceptor…

    def check_outside(self, what: str) -> None:
        """Raise if the calling thread was interrupted while it held the lock: it would wait for itself."""
        if self.inside():
            raise IllegalStateError(
                f"{what} was called by a signal handler or a finalizer that interrupted this producer within send(), "
                "where only send() to a topic that it knows can be called: set a flag in the handler, or raise, and "
                f"call {what} afterwards"
            )

    def _add_inside(self, topic: Topic, partition: Partition | None, record: Record) -> tuple[ProducerBatch, int]:
        """Put a record into a separate batch."""
        with self.lock:
            self.check_admits()
            builder = self._builder(self._room_for(topic, partition, record))
            builder.append(*record)
            return self._queue_inside(topic, partition, builder), 0

    def _queue_inside(
        self, topic: Topic, partition: Partition | None, builder: BatchBuilder | LegacyBuilder
    ) -> ProducerBatch:
        """Queue a batch that accepts no more records."""
        if partition is None:
            partition = topic.sticky or self._choose(topic)
        if (opened := partition.open) is not None:
            self._shut(opened)
        batch = ProducerBatch(partition, builder, self._sender.now(), 0)
        self._queue(batch, builder.size, None)
        return batch

    def sticky_partition(self, topic: Topic) -> Partition:
        """Return where records without a key go now."""
        with self.lock:
            return self._sticky_partition(topic)

    @property
    def batch_size(self) -> int:
        """The size of batches, before compression."""
        return self._batch_size

    def _append(
        self,
        topic: Topic,
        partition: Partition | None,
        record: Record,
    ) -> tuple[ProducerBatch, int] | None:
        batch = self.sticky.get(topic.name) if partition is None else partition.open
        return None if batch is None else _append(batch, record)

    def _append_to_next(self, topic: Topic, record: Record) -> tuple[ProducerBatch, int] | None:
        """Close the full batch for records without a partition; add one to the next one if that is open."""
        if (full := self.sticky.get(topic.name)) is not None:
            # Before it is closed: Ctrl-C in between costs one look, and in the other order linger_ms.
            if not self._fresh and not self._left:
                self._sender.work_soon()
            self._left.append(full.partition)
            self._leave_to_share(full)
        partition = self._sticky_partition(topic)
        found = self._append(topic, partition, record)
        if found is not None:
            # Records with keys have opened one there.
            self.sticky[topic.name] = found[0]
            if partition.open is not found[0]:  # not open any more
                self._shut(found[0])
        return found

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

    def _open(
        self,
        topic: Topic,
        partition: Partition | None,
        reserved: int,
        share: Share | None,
        record: Record,
    ) -> tuple[ProducerBatch, int]:
        """Open a batch that begins with this record; the memory is there, or the share's."""
        sticky = partition is None
        if partition is None:
            partition = self._sticky_partition(topic)
        if (opened := partition.open) is not None:
            self._leave_to_share(opened)
        batch = ProducerBatch(partition, self._builder(self._batch_size), self._sender.now(), 0)
        index = batch.append(*record)
        self._queue(batch, reserved, share)
        if share is not None:
            # The room of the others is not for calls that find the batch meanwhile.
            batch.builder.limit -= sum(each.record_size for each in share.members)
            share.batch, batch.share = batch, share
        partition.open = batch
        if sticky:
            self.sticky[topic.name] = batch
        if partition.queue[-1] is not batch:  # a call from inside has queued another: later records are behind that
            self._shut(batch)
        return batch, index

    def _builder(self, limit: int) -> BatchBuilder | LegacyBuilder:
        if self.magic > 1:
            return BatchBuilder(limit, self._codec, self._level)
        return LegacyBuilder(self.magic, limit, self._codec, self._level)

    def _queue(self, batch: ProducerBatch, size: int, share: Share | None) -> None:
        """Queue a batch for sending, and allocate its memory.

        Ctrl-C may come between any two steps. No call appends to a batch that is in no queue, and the loop is called
        before the lists say that it was; it waits for the lock.
        """
        try:
            batch.keeper = self._sender.keeper()
            self.memory.allocate(batch, size, share)
            batch.partition.topic.used_at = batch.created
            batch.partition.queue.append(batch)
            self.incomplete[batch] = None
            if not self._fresh and not self._left:
                self._sender.work_soon()
            self._fresh.append(batch)
        except BaseException:
            if batch not in self._fresh:
                if batch in batch.partition.queue:
                    batch.partition.queue.remove(batch)
                self.incomplete.pop(batch, None)
                _wake_soon(self._sender, self.memory.release(batch))
            raise

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
            taken = self._fresh, self._left
            self._fresh, self._left = [], []
            return taken

    def close(self, batch: ProducerBatch) -> None:
        """Close a batch for records. The caller holds the lock."""
        assert self.inside()
        if not self._shut(batch):
            return
        partition = batch.partition
        size = batch.builder.size
        if partition is partition.topic.sticky:
            partition.topic.filled += size
        if size < batch.reserved and (granted := self.memory.release(batch, size)):
            _wake_soon(self._sender, granted)

    def _leave_to_share(self, batch: ProducerBatch) -> None:
        """Close a batch, or if calls were woken to add to it, let no other call find it: they close it."""
        share, batch.share = batch.share, None
        if share is None:
            self.close(batch)
        else:
            self._shut(batch)
            batch.share = share

    def _shut(self, batch: ProducerBatch) -> bool:
        """Let no call find a batch to add to; whether it could be found until now."""
        partition = batch.partition
        name = partition.topic.name
        # In this order: one that is not open is not the one for records without a key either.
        if self.sticky.get(name) is batch:
            self.sticky.pop(name, None)
        shared, batch.share = batch.share is not None, None  # calls that were woken to add to it find it closed
        if partition.open is not batch:
            return shared
        partition.open = None
        return True

    def close_for_sending(self, batch: ProducerBatch) -> None:
        """Close a batch that is about to be sealed."""
        with self.lock:
            self.close(batch)

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
        _wake(granted)

    def refuse(self, error: BaseException) -> None:
        """Accept no more records; calls that wait for memory raise the error."""
        self.closed = True
        with self.lock:
            self.refusal = error
            self.sticky.clear()
            for topic in self.topics.values():
                for partition in topic.partitions.values():
                    partition.open = None
            waiting = self.memory.refuse_all()
        for reservation in waiting:
            reservation.ready.try_failure(error)

    def pause(self, error: BaseException) -> None:
        """Accept no records until `admit()`: calls that send, or wait for memory, raise the error."""
        with self.lock:
            self.refusal = error
            for topic in self.topics.values():
                for partition in topic.ordered:
                    if partition.open is not None:
                        self.close(partition.open)
            for batch in self.incomplete:
                if batch.share is not None:
                    self.close(batch)
            waiting = self.memory.refuse_all()
        for reservation in waiting:
            reservation.ready.try_failure(error)

    def admit(self) -> None:
        """Accept records again."""
        with self.lock:
            self.refusal = None

    def check_admits(self) -> None:
        """Raise if records are not accepted now."""
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
    append, batch.append = batch.append, taken_up
    try:
        index = append(timestamp, key, value, headers)
    finally:
        batch.append = append
    return None if index == FULL else (batch, index)


def _wake(reservations: list[Reservation]) -> None:
    for reservation in reservations:
        reservation.ready.try_success(None)


def _wake_soon(sender: Sender, reservations: list[Reservation]) -> None:
    """Wake calls that wait for memory; a thread that waits may be the one that turns the loop."""
    if reservations:
        sender.call_soon(_wake, reservations)
