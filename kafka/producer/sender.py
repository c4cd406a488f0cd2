"""Sends what the accumulator has gathered: calls the partitions when there is something to do, and has the sinks.

A `Partition` decides what it sends and what an answer means; a `Sink` makes the requests to one broker. The sender is
what both know: the client, the options, the sinks, and the events that concern more than one partition. Its methods run
on the loop, unless they say otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from math import inf
from threading import get_ident
from typing import TYPE_CHECKING

from kafka.errors import IllegalStateError
from kafka.future import Future
from kafka.producer.lost_records import LostRecords
from kafka.producer.sink import Sink

if TYPE_CHECKING:
    import asyncio

    from kafka._core.client import Client
    from kafka._hooks import ProducerTracer
    from kafka._runtime.application import Application
    from kafka._runtime.timers import Timer
    from kafka.config import Config
    from kafka.producer.diagnostics import Diagnostics
    from kafka.producer.metrics import ProducerMetrics
    from kafka.producer.partition import Partition
    from kafka.producer.producer_batch import Delivered, ProducerBatch
    from kafka.producer.producer_id import ProducerId
    from kafka.producer.record_accumulator import RecordAccumulator
    from kafka.producer.transaction_manager import TransactionManager

__all__ = ["Sender"]


class Sender:
    """See the head of this module. The core sets the other parts of the producer."""

    accumulator: RecordAccumulator
    producer: ProducerId
    transactions: TransactionManager | None = None
    diagnostics: Diagnostics

    def __init__(self, client: Client, config: Config) -> None:
        self.client = client
        self.loop = client.loop
        self.now = client.loop.time
        self.call_soon = client.loop.call_soon
        self.cluster = client.cluster
        self.acks: int = config["acks"]
        self.retries: float = config["retries"]
        self.linger = config.seconds("linger_ms")
        self.request_timeout = config.seconds("request_timeout_ms")
        self.max_in_flight: int = config["max_in_flight_requests_per_connection"]
        self.compression = config["compression_type"], config["compression_level"]
        self.backoff = client.backoff
        self.workers = client.environment.codec_workers
        self.metrics: ProducerMetrics | None = None
        self.on_settled: Callable[[ProducerBatch, Delivered | BaseException], object] | None = None
        """Called with each batch that is written or given up."""
        self.tracer: ProducerTracer | None = None
        self.lost = LostRecords(self.loop)
        """The failures, unless `on_settled` or the end of a transaction tells the program of them."""
        self.acknowledged_at = 0.0
        """When a batch was last acknowledged."""
        self.gathering: dict[Sink, None] | None = None
        """The brokers that there is something to send to, while partitions are looked at."""
        self.resting: set[Partition] = set()
        """Partitions that wait for a point in time: the end of the linger, or of a backoff."""
        self.rests: list[tuple[float, int, Partition]] = []
        """When to look at them, as a heap; it has also entries of partitions that do not rest any more."""
        self._timer: Timer | None = None
        """That of the first of these."""
        self.keeper: Callable[[], object] = lambda: None
        """Returns the object that is kept alive while records are under way: the face."""
        self.application: Callable[[], Application | None] = lambda: None
        """Returns what calls of the face wait with."""
        self.event_loop: asyncio.AbstractEventLoop | None = None
        """The event loop of an asyncio face. The sender is made on its thread."""
        self.event_thread = get_ident()
        self._delivery_timeout = config.seconds("delivery_timeout_ms")
        self._expiry_is_set = False
        self._sinks: dict[int, Sink] = {}
        self._leaderless: set[Partition] = set()
        self.answer_awaited: Future[None] | None = None
        """Done with the next answer to a request."""

    # On any thread…

    def hurry_soon(self, batch: ProducerBatch) -> None:
        """Have a batch sent without waiting for more records: a call waits for it."""
        if not batch.hurried:
            batch.hurried = True
            # In this order, and `work` in the opposite one: either of the two sees that the batch is to be sent.
            if batch.scheduled and self.linger:
                self.call_soon(self.hurry, batch)

    async def wait_for(self, batch: ProducerBatch, timeout: float | None) -> None:
        """Send a batch now and wait until it is settled, `timeout` seconds at most: an application-side coroutine."""
        if batch.is_done:
            return
        application = self.application()
        if application is None or self.loop.closed:
            self.loop.check_usable()
            return
        if self.loop.runs_caller:
            raise IllegalStateError("get() blocks, so it cannot be called from a callback: the record is not done yet")
        if self.accumulator.inside():
            self.accumulator.check_outside("get()")
        self.hurry_soon(batch)
        await application.wait(batch, None if timeout is None else self.now() + timeout)

    async def wait_for_async(self, batch: ProducerBatch) -> None:
        """Wait in a task, of our loop or of asyncio, until a batch is settled."""
        self.hurry_soon(batch)
        if self.loop.in_pass and self.loop.current_task is not None:
            await batch
            return
        from kafka._runtime.asyncio_driver import as_asyncio  # a task of asyncio that comes here has loaded asyncio

        try:
            settled = as_asyncio(batch)
        except RuntimeError:
            raise IllegalStateError(
                "the future of a record can be awaited in a task of asyncio only; call get() to wait elsewhere"
            ) from None
        await settled

    # Events…

    def work(self) -> None:
        """Look at the partitions whose batches were opened, and at those whose batches are full now."""
        fresh, left = self.accumulator.take_fresh()
        for batch in fresh:
            batch.scheduled = True
            left.append(batch.partition)
        if fresh and not self._expiry_is_set:
            self._expire_at(fresh[0].created + self._delivery_timeout)
        self._schedule(left)

    def hurry(self, *batches: ProducerBatch) -> None:
        """Send batches without waiting for more records, as a call waits for them."""
        for batch in batches:
            batch.hurried = True
        # Each partition once: flush() comes with all that wait, which may be hundreds for one.
        self._schedule(dict.fromkeys([batch.partition for batch in batches]))

    def hurry_all(self) -> None:
        """Send all batches that wait for more records, as a call waits for memory."""
        self._schedule(tuple(self.resting))

    def rest(self, partition: Partition, until: float) -> None:
        """Look at a partition again at a point in time."""
        # Hot: each batch that lingers. One timer for all costs a third of one for each.
        self.resting.add(partition)
        if partition.rests_until <= until:
            return  # it is looked at before, which leads here again
        partition.rests_until = until
        heappush(self.rests, (until, id(partition), partition))
        if self._timer is None or until < self._timer.when:
            self._wake_at(until)

    def _wake_at(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_at(when, self._rests_end)

    def _rests_end(self) -> None:
        """Look at the partitions whose time has come: one request to each broker for all of them."""
        self._timer = None
        due, rests, now = [], self.rests, self.now()
        while rests and rests[0][0] <= now:
            when, _, partition = heappop(rests)
            if partition.rests_until == when:
                partition.rests_until = inf
                due.append(partition)
        if rests:
            self._wake_at(rests[0][0])
        self._schedule(due)

    def forget_rests(self) -> None:
        """No partition rests any more: without this, the network thread would be woken for nothing."""
        for _, _, partition in self.rests:
            partition.rests_until = inf
        self.rests.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _schedule(self, partitions: Iterable[Partition]) -> None:
        """Queue partitions at their leaders' sinks, then send at once: that saves a pass of the loop."""
        sinks: dict[Sink, None] = {}
        self.gathering = sinks
        ends, time, left = self.loop.slice_end(), self.loop.time, iter(partitions)
        try:
            for partition in left:
                partition.schedule()
                if time() >= ends:
                    self.call_soon(self._schedule, left)
                    break
        finally:
            self.gathering = None
        for sink in sinks:
            sink.pump(ends)

    def _expire_at(self, when: float) -> None:
        self._expiry_is_set = True
        self.loop.call_at(when, self._expire)

    def _expire(self) -> None:
        """Give up the batches whose delivery_timeout_ms has passed, and come back for the next one."""
        self._expiry_is_set = False
        now = self.now()
        for batch in self.accumulator.unsettled():
            if batch.created + self._delivery_timeout <= now and batch.outcome is None:
                batch.partition.expire(batch)
        left = [batch.created for batch in self.accumulator.unsettled()]
        if left and not self._expiry_is_set:
            self._expire_at(min(left) + self._delivery_timeout)

    def metadata_changed(self) -> None:
        """Send the batches of partitions whose leader has moved to the new leader."""
        for partition in (*self._leaderless, *self.resting):
            if partition.sink is None or self.cluster.topology.leader_of(partition.tp) != partition.sink.node_id:
                partition.not_before = 0.0
            partition.schedule()
        for node_id, sink in tuple(self._sinks.items()):
            for partition in tuple(sink.waiting):
                if self.cluster.topology.leader_of(partition.tp) != node_id:
                    sink.waiting.remove(partition)
                    partition.scheduled = False
                    partition.schedule()
            if sink.is_idle and self.client.cluster.broker_metadata(node_id) is None:
                del self._sinks[node_id]  # the broker has left the cluster

    def resume(self) -> None:
        """Continue to send: there is a producer id, or no batch needs one."""
        for sink in tuple(self._sinks.values()):
            sink.pump_soon()

    def sink_of(self, partition: Partition) -> Sink | None:
        """Return the sink of the partition's leader; without one the partition waits for metadata."""
        leader = self.cluster.topology.leader_of(partition.tp)
        if leader is None or leader < 0:
            self._leaderless.add(partition)
            # Requested again after each update that brings none; the cluster pauses between requests.
            self.client.cluster.request_update()
            return None
        self._leaderless.discard(partition)
        sink = self._sinks.get(leader)
        if sink is None:
            sink = self._sinks[leader] = Sink(leader, self)
        return sink

    # Waiting for batches, and giving them up…

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
            self.answer_awaited = self.answer_awaited or Future()
            await self.answer_awaited

    def request_done(self) -> None:
        """Notify `quiet`, which waits, that a request is answered, and the answer handled."""
        awaited, self.answer_awaited = self.answer_awaited, None
        if awaited is not None:
            awaited.success(None)

    def abandon(self, error: BaseException, *, in_flight: bool = True) -> int:
        """Fail all batches, with or without the ones in flight; return how many records they have."""
        records = 0
        for batch in self.accumulator.unsettled():
            partition = batch.partition
            if batch.outcome is None and (in_flight or batch not in partition.in_flight):
                records += batch.count
                partition.give_up(batch, error)
        return records
