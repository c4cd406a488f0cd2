"""When each partition may send, in which order, and what its answers mean: the rules that keep order and lose nothing.

Runs on the loop only. What holds at any time:

- The batches of a partition that are in flight are all on one connection, in order, so their answers come in order.
  When the leader moves, the first batch to the new one goes out after the last answer of the old one.
- When one has to be sent again, nothing more goes out until all answers are in; then all that are not settled go back
  to the head of the queue in their order. So no batch can overtake another.
- Batches are settled in order. An answer that comes before its turn waits in the batch.
- A batch that was sent keeps its bytes and its sequence number, until an answer has shown that no broker has it.
- A sequence number that was spent on a batch which is not in the log, or of which nobody knows, leaves a gap that the
  broker would refuse ("broken"). The partition then goes on under the next epoch, from sequence 0: the epoch is the
  partition's own, since brokers compare it per partition, and a request of the old one that is still on its way
  somewhere is refused from then on. This is KIP-360's way, without its round trip.
- A broker that does not know a producer takes any sequence number from it (KIP-360), so the second batch of an epoch
  could be taken where the first was not. The first one travels alone.
- Without idempotence a retry could overtake; so with retries allowed one batch per partition is in flight at a time.
"""

from __future__ import annotations

import logging
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
from kafka.producer.diagnostics import hindrance
from kafka.producer.idempotence import SEQUENCES, SequenceNumbers
from kafka.producer.producer_batch import Delivered, Divided, ProduceOutcome, ProducerBatch
from kafka.producer.sink import Sink
from kafka.record.batch import split_batch

if TYPE_CHECKING:
    from kafka.producer.core import ProducerCore
    from kafka.producer.producer_batch import Partition

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
    """See the head of this file."""

    def __init__(self, core: ProducerCore) -> None:
        config = core.config
        self.core = core
        self.client = core.client
        self.loop = core.loop
        self.accumulator = core.accumulator
        self.transactions = core.transactions
        self._numbering = SequenceNumbers(self)
        self.acks: int = config["acks"]
        self.request_timeout = config.seconds("request_timeout_ms")
        self.max_in_flight: int = config["max_in_flight_requests_per_connection"]
        self.leaderless: set[Partition] = set()
        self.linger = config.seconds("linger_ms")
        self._delivery_timeout = config.seconds("delivery_timeout_ms")
        self._retries: float = config["retries"]
        self._sinks: dict[int, Sink] = {}
        self.gathering: dict[Sink, None] | None = None
        """The brokers that there is something to send to, while partitions are looked at."""
        self._resting: set[Partition] = set()
        """Partitions that wait for a point in time: the end of the linger, or of a backoff."""
        self._answer_awaited: Future[None] | None = None
        self._backoff = Backoff(
            config.seconds("retry_backoff_ms"), config.seconds("retry_backoff_max_ms"), self.loop.rng
        )

    # Something happened…

    def work(self) -> None:
        """Look at the partitions whose batches were opened, and at those whose batches are full now."""
        fresh, left = self.accumulator.take_fresh()
        for batch in fresh:
            batch.timer = self.loop.call_at(batch.created + self._delivery_timeout, self._expired, batch)
        self._look_and_pump([*left, *(batch.partition for batch in fresh)])

    def hurry(self, *batches: ProducerBatch) -> None:
        """Somebody waits for these: send them without waiting for more records."""
        for batch in batches:
            batch.hurried = True
        self._look_and_pump([batch.partition for batch in batches if not batch.partition.scheduled])

    def _look_and_pump(self, partitions: list[Partition]) -> None:
        """Let partitions stand in line, then send to their leaders at once: a pass of the loop less."""
        sinks: dict[Sink, None] = {}
        self.gathering = sinks
        try:
            for partition in partitions:
                self.look(partition)
        finally:
            self.gathering = None
        for sink in sinks:
            sink.pump()

    def hurry_all(self) -> None:
        """Somebody waits for memory, or for the end: nothing lingers."""
        for partition in tuple(self._resting):
            self.look(partition)

    def metadata_changed(self) -> None:
        """Let partitions whose leader is another now go there."""
        leader_of = self.client.cluster.leader_for_partition
        for partition in (*self.leaderless, *self._resting):
            if partition.sink is None or leader_of(partition.tp) != partition.sink.node_id:
                partition.not_before = 0.0
            self.look(partition)
        for node_id, sink in tuple(self._sinks.items()):
            for partition in tuple(sink.line):
                if leader_of(partition.tp) != sink.node_id:
                    sink.line.remove(partition)
                    partition.scheduled = False
                    self.look(partition)
            if sink.is_idle and self.client.cluster.broker_metadata(node_id) is None:
                del self._sinks[node_id]  # the broker has left the cluster

    def ready(self) -> bool:
        """Whether all is there that sending needs; if not, `resume` is called when it is."""
        return self.core.identity.ready()

    def resume(self) -> None:
        """What sending needs is there: go on."""
        for sink in tuple(self._sinks.values()):
            sink.pump_soon()

    # Choosing what to send…

    def look(self, partition: Partition) -> None:
        """Let a partition stand in line, if it has something that may be sent now."""
        if partition.scheduled or partition.recovering:
            return
        queue = partition.queue
        if queue and queue[0].answer is not None:
            self._settle_answered(partition)
        if not queue:
            self._resting.discard(partition)
            return
        if len(partition.in_flight) >= self._window(partition):
            if partition.in_flight and partition.sink is not None:
                partition.sink.stalled()
            return
        head = queue[0]
        due = partition.not_before
        if partition.open is head and not head.hurried:
            due = max(due, head.created + self._patience(head))
        if due > self.loop.time():
            self._rest_until(partition, due)
            return
        self._resting.discard(partition)
        sink = self._sink_of(partition)
        if sink is None or (partition.in_flight and partition.sink is not sink):
            return
        partition.sink = sink
        partition.scheduled = True
        sink.line.append(partition)
        sink.pump_soon()

    def _patience(self, batch: ProducerBatch) -> float:
        """Return the seconds for which a batch is kept open for more records."""
        if batch.expected:
            return _EXPECTED_WITHIN
        return 0.0 if self.accumulator.memory.has_waiters else self.linger

    def _window(self, partition: Partition) -> int:
        """Return how many batches of a partition may be in flight."""
        if self.transactions is not None and not self.transactions.admits(partition):
            return 0
        if self.core.identity.wanted:
            return min(_REMEMBERED, self.max_in_flight) if partition.known and not partition.broken else 1
        return 1 if self._retries and self.acks else self.max_in_flight

    def _rest_until(self, partition: Partition, when: float) -> None:
        self._resting.add(partition)
        timer = partition.timer
        if timer is not None:
            if timer.callback is not None and timer.when == when:
                return
            timer.cancel()
        partition.timer = self.loop.call_at(when, self.look, partition)

    def rest(self, partition: Partition, delay: float) -> None:
        """Look at a partition again after a while."""
        partition.not_before = self.loop.time() + delay
        self.look(partition)

    def backoff(self, failures: int) -> float:
        """Return the seconds to wait after so many failures."""
        return self._backoff.delay(failures)

    def _sink_of(self, partition: Partition) -> Sink | None:
        """Return the sink of the partition's leader; without one the partition waits for metadata."""
        leader = self.client.cluster.leader_for_partition(partition.tp)
        if leader is None or leader < 0:
            self.leaderless.add(partition)
            # Asked again after each update that brings none; the cluster sees to the pauses between.
            self.client.cluster.request_update()
            return None
        self.leaderless.discard(partition)
        sink = self._sinks.get(leader)
        if sink is None:
            sink = self._sinks[leader] = Sink(leader, self)
        return sink

    def next_batch(self, partition: Partition, sink: Sink) -> ProducerBatch | None:
        """Return the batch that a partition sends next, sealed; None if it may not send to this sink now."""
        if partition.recovering or not partition.queue or len(partition.in_flight) >= self._window(partition):
            return None
        if self.client.cluster.leader_for_partition(partition.tp) != sink.node_id:
            self.look(partition)
            return None
        batch = partition.queue[0]
        if self.core.identity.wanted and not self._numbering.numbered(partition, batch):
            return None
        if batch.sealed is None:
            try:
                self._numbering.seal(batch)
            except KafkaError as error:
                self._drop(batch, error)
                self.look(partition)
                return None
        return batch

    def taken(self, batch: ProducerBatch) -> None:
        """A batch goes out."""
        partition = batch.partition
        first = partition.queue.popleft()
        assert first is batch, "a partition sends in order"
        partition.in_flight.append(batch)
        partition.answers_due += 1
        batch.attempts += 1
        batch.error = None

    def sent(self, batches: list[ProducerBatch]) -> None:
        """A request is made of these."""
        metrics = self.core.metrics
        if metrics is not None:
            metrics.sent(batches, self.loop.time())

    # When the answers come…

    def answered(
        self,
        batch: ProducerBatch,
        verdict: ProduceOutcome,
        answer: Delivered | BaseException,
        *,
        definite: bool = True,
        at_once: bool = False,
    ) -> None:
        """Take the answer to one attempt; `definite` if this attempt has not written the batch, whatever the error."""
        partition = batch.partition
        partition.answers_due -= 1
        if batch.outcome is None:
            if not definite:
                batch.unsure = True
                if self.transactions is not None:
                    self.transactions.unanswered()
            elif verdict in _COVERS_EARLIER:
                batch.unsure = False
            if verdict is ProduceOutcome.DONE:
                batch.answer = answer
                partition.known = True
                if self.transactions is not None:
                    self.transactions.written()
            elif self._is_final(batch, verdict, answer):
                assert isinstance(answer, BaseException)
                batch.answer = self._final_error(batch, answer)
            else:
                assert isinstance(answer, BaseException)
                self._to_be_sent_again(batch, verdict, answer, at_once)
        self._advance(partition)

    def _is_final(self, batch: ProducerBatch, verdict: ProduceOutcome, error: object) -> bool:
        """Whether an attempt that has not succeeded is the last."""
        if self.transactions is not None:
            # No new epoch without an end of the transaction. Behind a batch that is sent again the wrong sequence
            # number is merely the echo.
            lost = isinstance(error, InvalidProducerEpochError) or batch.partition.in_flight[0] is batch
            if not self.transactions.is_sending or (verdict is ProduceOutcome.SEQUENCE and lost):
                return True
        if verdict is ProduceOutcome.RETRY:
            return batch.attempts > self._retries or (self.acks == 0 and batch.unsure)
        return verdict is ProduceOutcome.FAIL or (verdict is ProduceOutcome.SEQUENCE and not self.core.identity.wanted)

    def _to_be_sent_again(
        self, batch: ProducerBatch, verdict: ProduceOutcome, error: BaseException, at_once: bool
    ) -> None:
        partition = batch.partition
        partition.recovering = True
        batch.error = error
        if isinstance(error, InvalidProducerEpochError):
            self.core.identity.renew()
        if verdict is ProduceOutcome.DIVIDE:
            batch.hurried = True
        elif (
            not at_once and partition.in_flight[0] is batch and (verdict is ProduceOutcome.RETRY or batch.attempts > 1)
        ):
            # A new number may be all that is missing: the first attempt with one is made at once.
            soon = isinstance(error, ConcurrentTransactionsError)
            partition.not_before = self.loop.time() + (_SOON if soon else self.backoff(batch.attempts))
        if partition.in_flight[0] is batch and verdict is ProduceOutcome.SEQUENCE:
            # Nothing before it is unsettled, so the gap is real: we gave up a batch, or the broker lost its end.
            if not partition.broken:
                log.warning("%s-%s: %s; going on under a new epoch", *partition.tp, error)
            partition.broken = True
        elif verdict is ProduceOutcome.DIVIDE:
            partition.broken = self.core.identity.wanted and self.transactions is None
        if self.core.metrics is not None:
            self.core.metrics.retried(batch)

    def _advance(self, partition: Partition) -> None:
        """Settle what has its turn, and go on sending when all that must be known is."""
        in_flight = partition.in_flight
        while in_flight and in_flight[0].answer is not None:
            self._finish(in_flight.popleft())
        if partition.recovering:
            if partition.answers_due:
                return
            partition.recovering = False
            again = list(in_flight)
            in_flight.clear()
            self.accumulator.put_back(partition, self._divided(again))
        self.look(partition)

    def _settle_answered(self, partition: Partition) -> None:
        """Settle batches that got their answer while one before them was sent again."""
        while not partition.in_flight and partition.queue and partition.queue[0].answer is not None:
            self._finish(partition.queue.popleft())

    def _finish(self, batch: ProducerBatch) -> None:
        answer = batch.answer
        assert answer is not None
        if isinstance(answer, BaseException):
            self._left_gap(batch)
        else:
            batch.partition.acknowledged = (batch.partition.acknowledged + batch.count) % SEQUENCES
        self._settle(batch, answer)

    def _left_gap(self, batch: ProducerBatch) -> None:
        """A batch was given up: if it had a sequence number, those behind it need another."""
        if batch.sealed is not None and self.core.identity.wanted:
            partition = batch.partition
            partition.broken = True
            if partition.answers_due:
                partition.recovering = True

    def _divided(self, batches: list[ProducerBatch]) -> list[ProducerBatch]:
        """Replace the first batch, if it was too large, by smaller ones (KIP-126)."""
        if not batches or not self._is_too_large(batches[0]):
            return batches
        whole = batches[0]
        sealed = whole.sealed
        assert sealed is not None
        config = self.core.config
        limit = max(1, sealed.uncompressed_size // 2)
        parts = []
        for builder in split_batch(sealed, limit, config["compression_type"], config["compression_level"]):
            part = ProducerBatch(whole.partition, builder, whole.created, 0)
            part.keeper = whole.keeper
            part.timer = self.loop.call_at(part.created + self._delivery_timeout, self._expired, part)
            parts.append(part)
        if self.transactions is not None:
            self._numbering.seal_parts(whole, parts)
        # The memory is the last part's to give back, as it is settled last.
        parts[-1].reserved, whole.reserved = whole.reserved, 0
        self.accumulator.divided(parts)
        self._settle(whole, Divided(tuple(parts)))
        return [*parts, *batches[1:]]

    @staticmethod
    def _is_too_large(batch: ProducerBatch) -> bool:
        from kafka.producer.producer_batch import classify

        error = batch.error
        return isinstance(error, KafkaError) and classify(error, batch.count) is ProduceOutcome.DIVIDE

    # The end of a batch…

    def _settle(self, batch: ProducerBatch, outcome: Delivered | Divided | BaseException) -> None:
        if batch.timer is not None:
            batch.timer.cancel()
            batch.timer = None
        self.accumulator.settled(batch)
        if self.core.metrics is not None:
            self.core.metrics.settled(batch, outcome)
        if self.transactions is not None and isinstance(outcome, BaseException):
            self.transactions.lost(batch, outcome)
        if self.core.on_settled is not None and not isinstance(outcome, Divided):
            self.core.on_settled(batch, outcome)
        batch.settle(outcome)

    def _final_error(self, batch: ProducerBatch, error: BaseException) -> BaseException:
        """Return an error that tells the truth about whether the batch may be in the log."""
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
        """delivery_timeout_ms is over."""
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
            f"(delivery_timeout_ms) after {batch.attempts} attempts: {hindrance(self.core, batch)}",
            topic_partition=tp,
        )
        error.__cause__ = batch.error
        self._drop(batch, error)
        self._advance(partition)

    def _drop(self, batch: ProducerBatch, error: BaseException) -> None:
        """Give a batch up, wherever it is."""
        partition = batch.partition
        if batch in partition.in_flight:
            partition.in_flight.remove(batch)
        else:
            self.accumulator.remove(batch)
        if batch.answer is None:
            self._left_gap(batch)
        self._settle(batch, batch.answer or error)

    def give_up(self, partition: Partition, error: KafkaError) -> None:
        """Fail all that a partition has not sent yet."""
        for batch in tuple(partition.queue):
            self._drop(batch, self._final_error(batch, error))

    async def quiet(self) -> None:
        """Wait until no request is under way."""
        while any(sink.in_flight for sink in self._sinks.values()):
            self._answer_awaited = self._answer_awaited or Future()
            await self._answer_awaited

    def one_answer_less(self) -> None:
        """A request has its answer, and what it said is done."""
        awaited, self._answer_awaited = self._answer_awaited, None
        if awaited is not None:
            awaited.success(None)

    def abandon(self, error: BaseException, *, in_flight: bool = True) -> int:
        """Fail everything, at the end or when asked to; return how many records that were."""
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
