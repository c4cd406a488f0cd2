"""When each partition may send, in which order, and what answers mean: the rules that keep order and lose nothing.

Runs on the loop only. What holds at any time:

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
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kafka._runtime.timers import Backoff
from kafka._text import counted
from kafka.errors import (
    ConcurrentTransactionsError,
    InvalidProducerEpochError,
    KafkaError,
    KafkaTimeoutError,
    OutcomeUnknownError,
    OutcomeUnknownTimeoutError,
)
from kafka.future import Future
from kafka.producer.idempotence import SEQUENCES, SequenceNumbers
from kafka.producer.lost_records import LostRecords
from kafka.producer.producer_batch import (
    Delivered,
    Destination,
    Divided,
    Partition,
    ProduceOutcome,
    ProducerBatch,
    classify,
)
from kafka.record.batch import split_batch

if TYPE_CHECKING:
    from kafka._core.client import Client
    from kafka.config import Config
    from kafka.producer.diagnostics import Diagnostics
    from kafka.producer.idempotence import ProducerId
    from kafka.producer.metrics import ProducerMetrics
    from kafka.producer.record_accumulator import RecordAccumulator
    from kafka.producer.transaction_manager import TransactionManager

__all__ = ["Sender"]

log = logging.getLogger(__name__)

# Brokers remember this many batches of a producer, to recognise one that comes twice.
_REMEMBERED: Final = 5
# The markers of the last transaction are written within milliseconds.
_SOON: Final = 0.01
# How long a batch is kept open for the records of calls that were woken to add them, in seconds.
_EXPECTED_WITHIN: Final = 0.01
# Where the broker tells written from unwritten, by number or by size. A tuple: a set asks members for their hashes.
_COVERS_EARLIER: Final = (ProduceOutcome.DONE, ProduceOutcome.SEQUENCE, ProduceOutcome.DIVIDE)


class Sender:
    """Decides what each partition sends. See the head of this module."""

    def __init__(
        self,
        client: Client,
        config: Config,
        accumulator: RecordAccumulator,
        producer: ProducerId,
        transactions: TransactionManager | None,
        diagnostics: Diagnostics,
        sink_to: Callable[[int, Sender], Destination],
    ) -> None:
        self.client = client
        self.loop = client.loop
        self.accumulator = accumulator
        self.producer = producer
        self.transactions = transactions
        self.acks: int = config["acks"]
        self.request_timeout = config.seconds("request_timeout_ms")
        self.max_in_flight: int = config["max_in_flight_requests_per_connection"]
        self.linger = config.seconds("linger_ms")
        self.metrics: ProducerMetrics | None = None
        self.on_settled: Callable[[ProducerBatch, Delivered | BaseException], object] | None = None
        """Called with each batch that is written or given up."""
        self.lost = LostRecords(self.loop)
        """The failures, unless `on_settled` or the end of a transaction tells the program of them."""
        self.acknowledged_at = 0.0
        """When a batch was last acknowledged."""
        self.gathering: dict[Destination, None] | None = None
        """The brokers that there is something to send to, while partitions are looked at."""
        self._diagnostics = diagnostics
        self._sink_to = sink_to
        self._compression = config["compression_type"], config["compression_level"]
        self._delivery_timeout = config.seconds("delivery_timeout_ms")
        self._retries: float = config["retries"]
        self._sinks: dict[int, Destination] = {}
        self._leaderless: set[Partition] = set()
        self._resting: set[Partition] = set()
        """Partitions that wait for a point in time: the end of the linger, or of a backoff."""
        self._answer_awaited: Future[None] | None = None
        self._backoff = Backoff(
            config.seconds("retry_backoff_ms"), config.seconds("retry_backoff_max_ms"), self.loop.rng
        )
        self._numbers = SequenceNumbers(
            producer, accumulator, self._retry_later, is_transactional=transactions is not None
        )

    # Events…

    def work(self) -> None:
        """Look at the partitions whose batches were opened, and at those whose batches are full now."""
        fresh, left = self.accumulator.take_fresh()
        for batch in fresh:
            batch.timer = self.loop.call_at(batch.created + self._delivery_timeout, self._expired, batch)
        self._look_and_pump([*left, *(batch.partition for batch in fresh)])

    def hurry(self, *batches: ProducerBatch) -> None:
        """Send batches without waiting for more records, as a call waits for them."""
        for batch in batches:
            batch.hurried = True
        # Each partition once: flush() comes with all that wait, which may be hundreds for one.
        self._look_and_pump(list(dict.fromkeys(b.partition for b in batches if not b.partition.scheduled)))

    def _look_and_pump(self, partitions: list[Partition]) -> None:
        """Queue partitions at their leaders' sinks, then send at once: that saves a pass of the loop."""
        sinks: dict[Destination, None] = {}
        self.gathering = sinks
        try:
            for partition in partitions:
                self.look(partition)
        finally:
            self.gathering = None
        for sink in sinks:
            sink.pump()

    def hurry_all(self) -> None:
        """Send all batches that wait for more records, as a call waits for memory."""
        for partition in tuple(self._resting):
            self.look(partition)

    def metadata_changed(self) -> None:
        """Send the batches of partitions whose leader has moved to the new leader."""
        leader_of = self.client.cluster.leader_for_partition
        for partition in (*self._leaderless, *self._resting):
            if partition.sink is None or leader_of(partition.tp) != partition.sink.node_id:
                partition.not_before = 0.0
            self.look(partition)
        for node_id, sink in tuple(self._sinks.items()):
            for partition in tuple(sink.waiting):
                if leader_of(partition.tp) != sink.node_id:
                    sink.waiting.remove(partition)
                    partition.scheduled = False
                    self.look(partition)
            if sink.is_idle and self.client.cluster.broker_metadata(node_id) is None:
                del self._sinks[node_id]  # the broker has left the cluster

    def ready(self) -> bool:
        """Whether the producer has the id that sending needs; if not, `resume` is called when it has."""
        return self.producer.ready()

    def resume(self) -> None:
        """Continue to send: there is a producer id, or no batch needs one."""
        for sink in tuple(self._sinks.values()):
            sink.pump_soon()

    # Choosing what to send…

    def look(self, partition: Partition) -> None:
        """Queue a partition at its leader's sink, if it has a batch that may be sent now."""
        if partition.scheduled or partition.draining:
            return
        queue = partition.queue
        if queue and queue[0].answer is not None:
            self._take_answered(partition)
        if not queue:
            self._resting.discard(partition)
            return
        if len(partition.in_flight) >= self._window(partition):
            if partition.in_flight and partition.sink is not None:
                partition.sink.stalled()
            return
        head = queue[0]
        due = partition.not_before
        if head.share is not None:
            due = max(due, head.created + _EXPECTED_WITHIN)
        elif partition.open is head and not head.hurried:
            due = max(due, head.created + self._patience())
        if due > self.loop.time():
            self._rest_until(partition, due)
            return
        self._resting.discard(partition)
        sink = self._sink_of(partition)
        if sink is None or (partition.in_flight and partition.sink is not sink):
            return
        partition.sink = sink
        partition.scheduled = True
        sink.waiting.append(partition)
        sink.pump_soon()

    def _patience(self) -> float:
        """Return the seconds for which a batch is kept open for more records."""
        return 0.0 if self.accumulator.memory.has_waiters else self.linger

    def _window(self, partition: Partition) -> int:
        """Return how many batches of a partition may be in flight."""
        if self.transactions is not None and not self.transactions.admits(partition):
            return 0
        if self.producer.enabled:
            return (
                min(_REMEMBERED, self.max_in_flight) if partition.epoch_accepted and not partition.sequence_gap else 1
            )
        return 1 if self._retries and self.acks else self.max_in_flight

    def _rest_until(self, partition: Partition, when: float) -> None:
        self._resting.add(partition)
        timer = partition.timer
        if timer is not None:
            if timer.callback is not None and timer.when == when:
                return
            timer.cancel()
        partition.timer = self.loop.call_at(when, self.look, partition)

    def _retry_later(self, partition: Partition) -> None:
        """Look at a partition again after the first backoff."""
        self.rest(partition, self.backoff(1))

    def rest(self, partition: Partition, delay: float) -> None:
        """Look at a partition again after a while."""
        partition.not_before = self.loop.time() + delay
        self.look(partition)

    def backoff(self, failures: int) -> float:
        """Return the seconds to wait after this many failures in a row."""
        return self._backoff.delay(failures)

    def _sink_of(self, partition: Partition) -> Destination | None:
        """Return the sink of the partition's leader; without one the partition waits for metadata."""
        leader = self.client.cluster.leader_for_partition(partition.tp)
        if leader is None or leader < 0:
            self._leaderless.add(partition)
            # Requested again after each update that brings none; the cluster pauses between requests.
            self.client.cluster.request_update()
            return None
        self._leaderless.discard(partition)
        sink = self._sinks.get(leader)
        if sink is None:
            sink = self._sinks[leader] = self._sink_to(leader, self)
        return sink

    def next_batch(self, partition: Partition, sink: Destination) -> ProducerBatch | None:
        """Return the batch that a partition sends next, sealed; None if it may not send to this sink now."""
        if partition.draining or not partition.queue or len(partition.in_flight) >= self._window(partition):
            return None
        if self.client.cluster.leader_for_partition(partition.tp) != sink.node_id:
            self.look(partition)
            return None
        batch = partition.queue[0]
        if self.producer.enabled and not self._numbers.ensure_epoch(partition, batch):
            return None
        if batch.sealed is None:
            try:
                self._numbers.seal(batch)
            except KafkaError as error:
                self._drop(batch, error)
                self.look(partition)
                return None
        return batch

    def taken(self, batch: ProducerBatch) -> None:
        """Move a batch from the queue to the batches in flight."""
        partition = batch.partition
        first = partition.queue.popleft()
        assert first is batch, "a partition sends in order"
        partition.in_flight.append(batch)
        partition.unanswered += 1
        batch.attempts += 1
        batch.error = None

    def sent(self, batches: list[ProducerBatch]) -> None:
        """Count a request with these batches."""
        if self.metrics is not None:
            self.metrics.sent(batches, self.loop.time())

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
        partition = batch.partition
        partition.unanswered -= 1
        if batch.outcome is None:
            if not definite:
                batch.unsure = True
                if self.transactions is not None:
                    self.transactions.unanswered()
            elif outcome in _COVERS_EARLIER:
                batch.unsure = False
            if outcome is ProduceOutcome.DONE:
                batch.answer = answer
                partition.epoch_accepted = True
                if self.transactions is not None:
                    self.transactions.written()
            elif self._is_final(batch, outcome, answer):
                assert isinstance(answer, BaseException)
                batch.answer = self._final_error(batch, answer)
            else:
                assert isinstance(answer, BaseException)
                self._to_be_sent_again(batch, outcome, answer, at_once)
        self._advance(partition)

    def _is_final(self, batch: ProducerBatch, outcome: ProduceOutcome, error: object) -> bool:
        """Whether an attempt that has not succeeded is the last."""
        if self.transactions is not None:
            # There is no new epoch before the end of the transaction. Behind a batch that is sent again, a wrong
            # sequence number is only a consequence.
            lost = isinstance(error, InvalidProducerEpochError) or batch.partition.in_flight[0] is batch
            if not self.transactions.is_sending or (outcome is ProduceOutcome.SEQUENCE and lost):
                return True
        if outcome is ProduceOutcome.RETRY:
            return batch.attempts > self._retries or (self.acks == 0 and batch.unsure)
        return outcome is ProduceOutcome.FAIL or (outcome is ProduceOutcome.SEQUENCE and not self.producer.enabled)

    def _to_be_sent_again(
        self, batch: ProducerBatch, outcome: ProduceOutcome, error: BaseException, at_once: bool
    ) -> None:
        partition = batch.partition
        partition.draining = True
        batch.error = error
        if isinstance(error, InvalidProducerEpochError):
            self.producer.renew()
        if outcome is ProduceOutcome.DIVIDE:
            batch.hurried = True
        elif (
            not at_once and partition.in_flight[0] is batch and (outcome is ProduceOutcome.RETRY or batch.attempts > 1)
        ):
            # A new number may be all that is needed: the first attempt with one is made at once.
            soon = isinstance(error, ConcurrentTransactionsError)
            partition.not_before = self.loop.time() + (_SOON if soon else self.backoff(batch.attempts))
        if partition.in_flight[0] is batch and outcome is ProduceOutcome.SEQUENCE:
            # All before it is settled, so the gap is real: a batch was given up, or the broker lost the end of its log.
            if not partition.sequence_gap:
                log.warning("%s-%s: %s; continuing under a new epoch", *partition.tp, error)
            partition.sequence_gap = True
        elif outcome is ProduceOutcome.DIVIDE:
            partition.sequence_gap = self.producer.enabled and self.transactions is None
        if self.metrics is not None:
            self.metrics.retried(batch)

    def _advance(self, partition: Partition) -> None:
        """Settle the batches whose turn it is, and continue to send when all answers that matter have arrived."""
        in_flight = partition.in_flight
        while in_flight and in_flight[0].answer is not None:
            self._finish(in_flight.popleft())
        if partition.draining:
            if partition.unanswered:
                return
            partition.draining = False
            again = list(in_flight)
            in_flight.clear()
            self.accumulator.put_back(partition, self._divided(again))
        self.look(partition)

    def _take_answered(self, partition: Partition) -> None:
        """Take batches that were answered while one before them was sent again: they are settled behind that one."""
        while partition.queue and partition.queue[0].answer is not None:
            batch = partition.queue.popleft()
            if partition.in_flight:
                partition.in_flight.append(batch)
            else:
                self._finish(batch)

    def _finish(self, batch: ProducerBatch) -> None:
        answer = batch.answer
        assert answer is not None
        if isinstance(answer, BaseException):
            self._left_gap(batch)
        else:
            batch.partition.acknowledged = (batch.partition.acknowledged + batch.count) % SEQUENCES
            self.acknowledged_at = self.loop.time()
        self._settle(batch, answer)

    def _left_gap(self, batch: ProducerBatch) -> None:
        """Remember that a batch was given up: if it had a sequence number, the batches behind it need others."""
        if batch.sealed is not None and self.producer.enabled:
            partition = batch.partition
            partition.sequence_gap = True
            if partition.unanswered:
                partition.draining = True

    def _divided(self, batches: list[ProducerBatch]) -> list[ProducerBatch]:
        """Replace the first batch, if it was too large, by smaller ones (KIP-126)."""
        if not batches or not self._is_too_large(batches[0]):
            return batches
        whole = batches[0]
        sealed = whole.sealed
        assert sealed is not None
        limit = max(1, sealed.uncompressed_size // 2)
        parts = []
        for builder in split_batch(sealed, limit, *self._compression):
            part = ProducerBatch(whole.partition, builder, whole.created, 0)
            part.keeper = whole.keeper
            part.timer = self.loop.call_at(part.created + self._delivery_timeout, self._expired, part)
            parts.append(part)
        if self.transactions is not None:
            self._numbers.seal_parts(whole, parts)
        # The last part holds the memory, as it is settled last.
        parts[-1].reserved, whole.reserved = whole.reserved, 0
        self.accumulator.divided(parts)
        self._settle(whole, Divided(tuple(parts)))
        return [*parts, *batches[1:]]

    @staticmethod
    def _is_too_large(batch: ProducerBatch) -> bool:
        error = batch.error
        return isinstance(error, KafkaError) and classify(error, batch.count) is ProduceOutcome.DIVIDE

    # The end of a batch…

    def _settle(self, batch: ProducerBatch, outcome: Delivered | Divided | BaseException) -> None:
        if batch.timer is not None:
            batch.timer.cancel()
            batch.timer = None
        self.accumulator.settled(batch)
        if self.metrics is not None:
            self.metrics.settled(batch, outcome)
        if self.transactions is not None and isinstance(outcome, BaseException):
            self.transactions.lost(batch, outcome)
        if self.on_settled is not None and not isinstance(outcome, Divided):
            self.on_settled(batch, outcome)
        batch.settle(outcome)
        if isinstance(outcome, BaseException) and self.on_settled is None and self.transactions is None:
            self.lost.add(batch)

    def _final_error(self, batch: ProducerBatch, error: BaseException) -> BaseException:
        """Return an error that is true about whether the batch may be in the log."""
        if self.transactions is not None and not self.transactions.is_sending:
            return self.transactions.aborted(error)
        if not batch.unsure or getattr(error, "outcome_unknown", False):
            return error
        unknown = OutcomeUnknownError(
            f"given up after {batch.attempts} attempts; an earlier one may have written it: {error}",
            topic_partition=batch.partition.tp,
        )
        unknown.__cause__ = error
        return unknown

    def _expired(self, batch: ProducerBatch) -> None:
        """Give a batch up: delivery_timeout_ms has passed."""
        batch.timer = None
        if batch.outcome is not None:
            return
        partition = batch.partition
        under_way = batch in partition.in_flight and batch.error is None
        batch.unsure = batch.unsure or under_way
        kind = OutcomeUnknownTimeoutError if batch.unsure else KafkaTimeoutError
        spent = self.loop.time() - batch.created
        tp = partition.tp
        error = kind(
            f"{counted(batch.count)} to {tp.topic}-{tp.partition} not acknowledged within {spent:.1f} seconds "
            f"(delivery_timeout_ms) after {batch.attempts} attempts: {self._diagnostics.why_unacknowledged(batch)}",
            topic_partition=tp,
        )
        error.__cause__ = batch.error
        self._drop(batch, error)
        self._advance(partition)

    def _drop(self, batch: ProducerBatch, error: BaseException) -> None:
        """Give a batch up, in the queue or in flight."""
        partition = batch.partition
        if batch in partition.in_flight:
            partition.in_flight.remove(batch)
        else:
            self.accumulator.remove(batch)
        if batch.answer is None:
            self._left_gap(batch)
        self._settle(batch, batch.answer or error)

    def give_up(self, partition: Partition, error: KafkaError) -> None:
        """Fail all batches that a partition has not sent yet."""
        for batch in tuple(partition.queue):
            self._drop(batch, self._final_error(batch, error))

    async def flush(self) -> None:
        """Send all batches that exist now, and wait until they are settled."""
        batches = [batch for batch in self.accumulator.unsettled() if not batch.is_done]
        self.hurry(*batches)
        # Newest first: a partition settles its batches in order, so this wakes once per partition, not once per batch.
        for batch in reversed(batches):
            if not batch.is_done:
                await batch

    async def quiet(self) -> None:
        """Wait until no request is under way."""
        while any(sink.in_flight for sink in self._sinks.values()):
            self._answer_awaited = self._answer_awaited or Future()
            await self._answer_awaited

    def request_done(self) -> None:
        """Notify `quiet` that a request is answered, and the answer handled."""
        awaited, self._answer_awaited = self._answer_awaited, None
        if awaited is not None:
            awaited.success(None)

    def abandon(self, error: BaseException, *, in_flight: bool = True) -> int:
        """Fail all batches, with or without the ones in flight; return how many records they have."""
        records = 0
        partitions = set()
        for batch in self.accumulator.unsettled():
            partition = batch.partition
            under_way = batch in partition.in_flight
            if batch.outcome is not None or (under_way and not in_flight):
                continue
            records += batch.count
            batch.unsure = batch.unsure or under_way
            self._drop(batch, self._final_error(batch, error))
            partitions.add(partition)
        for partition in partitions:
            self._advance(partition)
        return records
