"""A partition: its queue, what it may send and when, its sequence numbers, and what the answers to its batches mean.

The accumulator fills the queue, under its lock. All else runs on the loop only. What holds at any time:

- The batches of a partition that are in flight are all on one connection, in order, so their answers arrive in order.
  When the leader moves, the first batch to the new one is sent after the last answer of the old one.
- When one must be sent again, nothing more is sent until all answers have arrived; then all batches that are not
  settled return to the head of the queue in their order. So no batch can overtake another.
- Batches are settled in order. An answer that comes before its turn waits in the batch.
- A batch that was sent keeps its bytes and its sequence number, until an answer has shown that no broker has it.
- A sequence number that was spent on a batch which is not in the log, or whose outcome is unknown, leaves a gap that
  the broker would refuse (`sequence_gap`). The partition then continues under the next epoch, from sequence 0: the
  epoch is the partition's own, since brokers compare it per partition, and from then on a broker refuses a late request
  of the old one. This is KIP-360's way, without its round trip.
- A broker that does not know a producer accepts any sequence number from it (KIP-360), so it could accept the second
  batch of an epoch without the first. The first one is in flight alone.
- Without idempotence a retry could overtake; so with retries allowed one batch per partition is in flight at a time.
"""

from __future__ import annotations

import logging
from collections import deque
from math import inf
from typing import TYPE_CHECKING, Any, Final

from kafka._text import counted
from kafka.errors import (
    ConcurrentTransactionsError,
    InvalidProducerEpochError,
    KafkaError,
    KafkaTimeoutError,
    OutcomeUnknownError,
    OutcomeUnknownTimeoutError,
)
from kafka.partitioner.murmur2_hash import murmur2_once
from kafka.producer.producer_batch import Delivered, Divided, ProduceOutcome, ProducerBatch, classify
from kafka.record.batch import split_batch
from kafka.record.batch_builder import BatchBuilder, SealedBatch
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka._core.topology import Topology
    from kafka.producer.sender import Sender
    from kafka.producer.sink import Sink

__all__ = ["SEQUENCES", "Partition", "PartitionsByKey", "Topic"]

log = logging.getLogger(__name__)

SEQUENCES: Final = 2**31
"""After the last sequence number comes 0."""
_LAST_EPOCH: Final = 2**15 - 1
# Brokers remember this many batches of a producer, to recognise one that comes twice.
_REMEMBERED: Final = 5
# The markers of the last transaction are written within milliseconds.
_MARKERS_WITHIN: Final = 0.01
# Where the broker tells written from unwritten, by number or by size. A tuple: a set asks members for their hashes.
_COVERS_EARLIER: Final = (ProduceOutcome.DONE, ProduceOutcome.SEQUENCE, ProduceOutcome.DIVIDE)


class Partition:
    """One partition of a topic. See the head of this module."""

    __slots__ = (
        "acknowledged",
        "draining",
        "epoch",
        "epoch_accepted",
        "in_flight",
        "index",
        "leader",
        "next_sequence",
        "not_before",
        "open",
        "producer_id",
        "queue",
        "rests_until",
        "scheduled",
        "sender",
        "sequence_gap",
        "sink",
        "topic",
        "topology",
        "tp",
        "unanswered",
    )

    def __init__(self, topic: Topic, index: int, sender: Sender) -> None:
        self.topic = topic
        self.index = index
        self.tp = TopicPartition(topic.name, index)
        self.sender = sender
        # Under the accumulator's lock:
        self.queue: deque[ProducerBatch] = deque()
        self.open: ProducerBatch | None = None
        """The last of the queue, as long as it takes records."""
        # On the loop only:
        self.in_flight: deque[ProducerBatch] = deque()
        """Sent and not settled, in order; all of them on one connection."""
        self.unanswered = 0
        """How many sent batches have no answer, including batches that were given up meanwhile."""
        self.draining = False
        """A batch must be sent again: nothing is sent until all answers have arrived."""
        self.sequence_gap = False
        """A sequence number was spent on a batch that may not be in the log: the next batches need a new epoch."""
        self.epoch_accepted = False
        """Its leader has accepted a batch of this epoch, so it refuses one that does not follow."""
        self.leader: Sink | None = None
        """The sink of its leader in `topology`, the one that was looked at last."""
        self.topology: Topology | None = None
        self.sink: Sink | None = None
        """The sink that it is in, or that has sent the batches in flight."""
        self.scheduled = False
        """It waits in its sink."""
        self.not_before = 0.0
        self.rests_until = inf
        """When the sender looks at it again."""
        self.producer_id = -1
        self.epoch = -1
        self.next_sequence = 0
        self.acknowledged = 0
        """The sequence number after the last batch of this epoch that is in the log."""

    def __repr__(self) -> str:
        return (
            f"<Partition {self.tp.topic}-{self.tp.partition} queue={len(self.queue)} in_flight={len(self.in_flight)}>"
        )

    # Choosing what to send…

    def schedule(self) -> None:  # noqa: C901 - hot
        """Wait in the sink of the leader, if there is a batch that may be sent now."""
        if self.scheduled or self.draining:
            return
        sender, queue = self.sender, self.queue
        if queue and queue[0].answer is not None:
            self._take_answered()
        if not queue:
            sender.resting.discard(self)
            return
        # With nothing in flight there is room for a batch, unless a transaction does not admit it.
        if (self.in_flight or sender.transactions is not None) and len(self.in_flight) >= self._window():
            if self.in_flight and self.sink is not None:
                self.sink.stalled()
            return
        head, due = queue[0], self.not_before
        if head.compressed is not None and not head.compressed.is_done:  # it calls this
            return
        if self.open is head and not head.hurried and not sender.accumulator.memory.has_waiters:
            due = max(due, head.created + sender.linger)
        if due > sender.loop.time():
            sender.rest(self, due)
            return
        sender.resting.discard(self)
        if sender.rests and not sender.resting:
            sender.forget_rests()
        topology = sender.cluster.topology
        if self.topology is not topology:
            self.leader = sender.sink_of(self)
            self.topology = None if self.leader is None else topology
        sink = self.leader
        if sink is None or (self.in_flight and self.sink is not sink):
            return
        self.sink = sink
        self.scheduled = True
        sink.waiting.append(self)
        sink.pump_soon()

    def _take_answered(self) -> None:
        """Take batches that were answered while one before them was sent again: they are settled behind that one."""
        while self.queue and self.queue[0].answer is not None:
            batch = self.queue.popleft()
            if self.in_flight:
                self.in_flight.append(batch)
            else:
                assert batch.answer is not None
                self._settle(batch, batch.answer, in_turn=True)

    def _window(self) -> int:
        """Return how many batches may be in flight."""
        sender = self.sender
        if sender.transactions is not None and not sender.transactions.admits(self):
            return 0
        if sender.producer.enabled:
            return min(_REMEMBERED, sender.max_in_flight) if self.epoch_accepted and not self.sequence_gap else 1
        return 1 if sender.retries and sender.acks else sender.max_in_flight

    def retry_later(self) -> None:
        """Look again after the first backoff."""
        self.not_before = self.sender.loop.time() + self.sender.backoff.delay(1)
        self.schedule()

    def next_batch(self, sink: Sink, room: int | None) -> ProducerBatch | None:
        """Move the batch that is sent next to those in flight, sealed; None if there is none for this sink now.

        One that is larger than `room` waits in the sink for the next request; None is room for any.
        """
        sender, queue = self.sender, self.queue
        if self.draining or not queue:
            return None
        if (self.in_flight or sender.transactions is not None) and len(self.in_flight) >= self._window():
            return None
        topology = sender.cluster.topology
        if self.topology is not topology and topology.leader_of(self.tp) != sink.node_id:
            self.schedule()
            return None
        batch = queue[0]
        is_numbered = self.producer_id >= 0 and not self.sequence_gap and sender.transactions is None
        if sender.producer.enabled and not is_numbered and not self._ensure_epoch(batch):
            return None
        if batch.sealed is None:
            if batch.builder.is_slow and not self._is_compressed(batch):
                return None
            try:
                self._seal(batch)
            except KafkaError as error:
                self._drop(batch, error)
                self.schedule()
                return None
        assert batch.sealed is not None
        if room is not None and batch.sealed.size > room:
            self.scheduled = True
            sink.waiting.append(self)
            return None
        batch.attempts += 1  # before it leaves the queue: the accumulator would queue it again
        queue.popleft()
        self.in_flight.append(batch)
        self.unanswered += 1
        batch.error = None
        return batch

    # Sequence numbers…

    def _ensure_epoch(self, head: ProducerBatch) -> bool:
        """Ensure that the broker will accept the next sequence number; False if that must wait."""
        if self.sender.transactions is not None:
            return self._ensure_epoch_of_transaction()
        if self.producer_id < 0 or (self.sequence_gap and not head.unsure):
            return not self.in_flight and self._begin_epoch()
        return True

    def _begin_epoch(self) -> bool:
        """Number the batches from 0 under an epoch that the leader has not seen yet."""
        producer = self.sender.producer
        if self.producer_id != producer.producer_id:
            self.producer_id, self.epoch = producer.producer_id, producer.epoch
        elif self.epoch < _LAST_EPOCH:
            self.epoch += 1
        else:
            producer.renew()
            self.retry_later()
            return False
        self.sequence_gap = self.epoch_accepted = False
        self.next_sequence = 0
        self._renumber()
        return True

    def _ensure_epoch_of_transaction(self) -> bool:
        """Number from 0 when the transaction has another epoch; after a gap nothing is sent until it is aborted."""
        producer = self.sender.producer
        if (self.producer_id, self.epoch) != (producer.producer_id, producer.epoch):
            # A leader that had the epoch before this one accepts nothing but 0 from this one.
            self.epoch_accepted = (
                self.epoch_accepted and self.producer_id == producer.producer_id and self.epoch == producer.epoch - 1
            )
            self.producer_id, self.epoch = producer.producer_id, producer.epoch
            self.sequence_gap = False
            self.next_sequence = self.acknowledged = 0
        return not self.sequence_gap

    def _renumber(self) -> None:
        """Give new numbers to the batches that were sealed with the old ones, and to all before them."""
        waiting = [batch for batch in tuple(self.queue) if batch.answer is None]
        while waiting and waiting[-1].sealed is None:
            waiting.pop()
        for batch in waiting:
            if isinstance(batch.sealed, SealedBatch):
                batch.sealed = batch.sealed.with_producer(self.producer_id, self.epoch, self.next_sequence)
                self.next_sequence = (self.next_sequence + batch.count) % SEQUENCES
            else:
                self._seal(batch)

    def _is_compressed(self, batch: ProducerBatch) -> bool:
        """Have a large batch compressed in another thread, once; whether that is over, with or without success.

        The batches behind it wait meanwhile, so their order and their numbers are as ever.
        """
        if batch.compressed is None:
            sender, builder = self.sender, batch.builder
            assert isinstance(builder, BatchBuilder)
            sender.accumulator.close(batch)
            batch.compressed = sender.workers.submit(builder.compress)
            batch.compressed.add_both(sender.call_soon, self._compression_ended)
        return batch.compressed.is_done

    def _compression_ended(self, _outcome: object) -> None:
        self.schedule()

    def _seal(self, batch: ProducerBatch) -> None:
        """Close a batch for records, and give it its sequence number and its final bytes."""
        sender = self.sender
        sender.accumulator.close(batch)
        builder = batch.builder
        if isinstance(builder, BatchBuilder):
            is_numbered, compressed = sender.producer.enabled, batch.compressed
            batch.sealed = builder.seal(
                producer_id=self.producer_id if is_numbered else -1,
                producer_epoch=self.epoch if is_numbered else -1,
                base_sequence=self.next_sequence if is_numbered else -1,
                transactional=sender.transactions is not None,
                compressed=compressed.value
                if compressed is not None and compressed.is_done
                else None,  # an error: None
            )
            if is_numbered:
                self.next_sequence = (self.next_sequence + batch.sealed.count) % SEQUENCES
        else:
            batch.sealed = builder.seal()

    # Answers…

    def answered(
        self,
        batch: ProducerBatch,
        outcome: ProduceOutcome,
        answer: Delivered | BaseException,
        *,
        definite: bool = True,
        at_once: bool = False,
    ) -> None:
        """Handle the answer to one attempt; `definite` unless its error leaves open whether the batch is written."""
        self.unanswered -= 1
        if batch.outcome is None:
            transactions = self.sender.transactions
            if not definite:
                batch.unsure = True
                if transactions is not None:
                    transactions.unanswered()
            elif outcome in _COVERS_EARLIER:
                batch.unsure = False
            if outcome is ProduceOutcome.DONE:
                batch.answer = answer
                self.epoch_accepted = True
                if transactions is not None:
                    transactions.written()
            else:
                assert isinstance(answer, BaseException)
                if self._is_final(batch, outcome, answer):
                    batch.answer = self._final_error(batch, answer)
                else:
                    self._to_be_sent_again(batch, outcome, answer, at_once)
        self.advance()

    def _is_final(self, batch: ProducerBatch, outcome: ProduceOutcome, error: BaseException) -> bool:
        """Whether an attempt that has not succeeded is the last."""
        sender = self.sender
        if sender.transactions is not None:
            # There is no new epoch before the end of the transaction. Behind a batch that is sent again, a wrong
            # sequence number is only a consequence.
            lost = isinstance(error, InvalidProducerEpochError) or self.in_flight[0] is batch
            if not sender.transactions.is_sending or (outcome is ProduceOutcome.SEQUENCE and lost):
                return True
        if outcome is ProduceOutcome.RETRY:
            return batch.attempts > sender.retries or (sender.acks == 0 and batch.unsure)
        return outcome is ProduceOutcome.FAIL or (outcome is ProduceOutcome.SEQUENCE and not sender.producer.enabled)

    def _to_be_sent_again(
        self, batch: ProducerBatch, outcome: ProduceOutcome, error: BaseException, at_once: bool
    ) -> None:
        sender, is_first = self.sender, self.in_flight[0] is batch
        self.draining = True
        batch.error = error
        if isinstance(error, InvalidProducerEpochError):
            sender.producer.renew()
        if outcome is ProduceOutcome.DIVIDE:
            batch.hurried = True
            self.sequence_gap = sender.producer.enabled and sender.transactions is None
        elif not at_once and is_first and (outcome is ProduceOutcome.RETRY or batch.attempts > 1):
            # A new number may be all that is needed: the first attempt with one is made at once.
            soon = isinstance(error, ConcurrentTransactionsError)
            self.not_before = sender.loop.time() + (_MARKERS_WITHIN if soon else sender.backoff.delay(batch.attempts))
        if is_first and outcome is ProduceOutcome.SEQUENCE:
            # All before it is settled, so the gap is real: a batch was given up, or the broker lost the end of its log.
            if not self.sequence_gap:
                log.warning(
                    "%s-%s: %s; continuing under a new epoch", *self.tp, error, extra={"kafka_topic": self.tp.topic}
                )
            self.sequence_gap = True
        if sender.metrics is not None:
            sender.metrics.retried(batch)

    def advance(self) -> None:
        """Settle the batches whose turn it is, and continue to send when all answers that matter have arrived."""
        in_flight = self.in_flight
        while in_flight and (answer := in_flight[0].answer) is not None:
            self._settle(in_flight.popleft(), answer, in_turn=True)
        if self.draining:
            if self.unanswered:
                return
            self.draining = False
            again = list(in_flight)
            in_flight.clear()
            if again and self._is_too_large(again[0]):
                again[:1] = self._divide(again[0])
            with self.sender.accumulator.lock:
                self.queue.extendleft(reversed(again))
        if self.queue:
            self.schedule()

    @staticmethod
    def _is_too_large(batch: ProducerBatch) -> bool:
        error = batch.error
        return isinstance(error, KafkaError) and classify(error, batch.count) is ProduceOutcome.DIVIDE

    def _divide(self, whole: ProducerBatch) -> list[ProducerBatch]:
        """Settle a batch that is too large for the broker; return the smaller ones that have its records (KIP-126)."""
        sender, sealed = self.sender, whole.sealed
        assert sealed is not None
        parts = []
        for builder in split_batch(sealed, max(1, sealed.uncompressed_size // 2), *sender.compression):
            part = ProducerBatch(self, builder, whole.created, 0)
            part.keeper = whole.keeper
            parts.append(part)
        if sender.transactions is not None:
            self._seal_parts(whole, parts)
        # The last part holds the memory, as it is settled last.
        parts[-1].reserved, whole.reserved = whole.reserved, 0
        sender.accumulator.divided(parts)
        self._settle(whole, Divided(tuple(parts)))
        return parts

    def _seal_parts(self, whole: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Give the parts of a batch its numbers, as it is not in the log: the batches behind it keep theirs."""
        assert isinstance(whole.sealed, SealedBatch)
        following, self.next_sequence = self.next_sequence, whole.sealed.base_sequence
        for part in parts:
            self._seal(part)
        self.next_sequence = following

    # The end of a batch…

    def _left_gap(self, batch: ProducerBatch) -> None:
        """Remember that a batch was given up: if it had a sequence number, the batches behind it need others."""
        if batch.sealed is not None and self.sender.producer.enabled:
            self.sequence_gap = True
            if self.unanswered:
                self.draining = True

    def _settle(
        self, batch: ProducerBatch, outcome: Delivered | Divided | BaseException, *, in_turn: bool = False
    ) -> None:
        """Give a batch its outcome; `in_turn` if all before it have theirs, as their answers say."""
        sender = self.sender
        transactions, report = sender.transactions, sender.on_settled
        if isinstance(outcome, BaseException):
            if in_turn:
                self._left_gap(batch)
            if sender.metrics is not None:
                sender.metrics.failed(batch, outcome)
        elif not isinstance(outcome, Divided):
            assert batch.sealed is not None, "it was sent"
            if in_turn:
                self.acknowledged = (self.acknowledged + batch.sealed.count) % SEQUENCES
                sender.acknowledged_at = sender.loop.time()
            self.topic.written_records += batch.sealed.count
            self.topic.written_bytes += batch.sealed.size
        sender.accumulator.settled(batch)
        if sender.tracer is not None and not isinstance(outcome, Divided):
            error = outcome if isinstance(outcome, BaseException) else None
            sender.tracer.settled(self.tp.topic, batch.count, sender.loop.time() - batch.created, error)
        if transactions is not None and isinstance(outcome, BaseException):
            transactions.lost(batch, outcome)
        if report is not None and not isinstance(outcome, Divided):
            report(batch, outcome)
        batch.settle(outcome)
        if report is None and transactions is None and isinstance(outcome, BaseException):
            sender.lost.add(batch)

    def _final_error(self, batch: ProducerBatch, error: BaseException) -> BaseException:
        """Return an error that is true about whether the batch may be in the log."""
        transactions = self.sender.transactions
        if transactions is not None and not transactions.is_sending:
            return transactions.aborted(error)
        if not batch.unsure or getattr(error, "outcome_unknown", False):
            return error
        unknown = OutcomeUnknownError(
            f"given up after {batch.attempts} attempts; an earlier one may have written it: {error}",
            topic_partition=self.tp,
        )
        unknown.__cause__ = error
        return unknown

    def expire(self, batch: ProducerBatch) -> None:
        """Give a batch up: delivery_timeout_ms has passed."""
        sender, tp = self.sender, self.tp
        batch.unsure = batch.unsure or (batch in self.in_flight and batch.error is None)
        kind = OutcomeUnknownTimeoutError if batch.unsure else KafkaTimeoutError
        spent = sender.loop.time() - batch.created
        error = kind(
            f"{counted(batch.count)} to {tp.topic}-{tp.partition} not acknowledged within {spent:.1f} seconds "
            f"(delivery_timeout_ms) after {batch.attempts} attempts: {sender.diagnostics.why_unacknowledged(batch)}",
            topic_partition=tp,
        )
        error.__cause__ = batch.error
        self._drop(batch, error)
        self.advance()

    def give_up(self, batch: ProducerBatch, error: BaseException) -> None:
        """Give a batch up, in the queue or in flight, as all that are in the same place are given up."""
        batch.unsure = batch.unsure or batch in self.in_flight
        self._drop(batch, self._final_error(batch, error))

    def give_up_unsent(self, error: KafkaError) -> None:
        """Give up all batches in the queue."""
        for batch in tuple(self.queue):
            self._drop(batch, self._final_error(batch, error))

    def _drop(self, batch: ProducerBatch, error: BaseException) -> None:
        if batch in self.in_flight:
            self.in_flight.remove(batch)
        else:
            self.sender.accumulator.remove(batch)
        if batch.answer is None:
            self._left_gap(batch)
        self._settle(batch, batch.answer or error)


# Keys repeat. Long ones are left out, so that a topic holds at most half a megabyte of keys.
_CACHED_LENGTH: Final = 128
_CACHED_KEYS: Final = 4096


class PartitionsByKey(dict[bytes, Partition]):
    """The partition of each key by the default partitioner's rule, among `ordered`; computed when a key is missing.

    One look-up takes a third of the time of the hash, its remainder and the list, even where the hash is cached.
    """

    __slots__ = ("_ordered",)

    def __init__(self, ordered: list[Partition]) -> None:
        super().__init__()
        self._ordered = ordered

    def __missing__(self, key: bytes) -> Partition:
        partition = self._ordered[(murmur2_once(key) & 0x7FFFFFFF) % len(self._ordered)]
        if len(key) <= _CACHED_LENGTH:
            if len(self) >= _CACHED_KEYS:
                self.clear()
            self[key] = partition
        return partition


class Topic:
    """A topic's partitions, and where its records without a key go now (KIP-480, KIP-794)."""

    __slots__ = (
        "by_key",
        "candidates",
        "filled",
        "indexes",
        "name",
        "ordered",
        "partitions",
        "sticky",
        "used_at",
        "written_bytes",
        "written_records",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.partitions: dict[int, Partition] = {}
        self.indexes: list[int] = []
        self.ordered: list[Partition] = []
        """The partitions in the order of their numbers."""
        self.by_key = PartitionsByKey(self.ordered)
        self.candidates: Any = None
        """The candidates that the built-in partitioner found at its last look at all partitions."""
        self.sticky: Partition | None = None
        self.filled = 0
        """Bytes that went to the sticky partition since it was chosen."""
        self.used_at = 0.0
        """When a batch was last opened, or a call last asked for the topic."""
        self.written_records = self.written_bytes = 0
        """In batches that were acknowledged. The loop alone writes them."""
