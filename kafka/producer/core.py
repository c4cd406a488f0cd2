"""The producer without a face: client, accumulator and sender put together, and the ways in from other threads.

A face brings a driver for the loop, checks arguments, and adds records; everything else is here, for the synchronous
face and the asyncio one alike.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from itertools import accumulate
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final

from kafka._core.client import make_client
from kafka.config import Config
from kafka.errors import (
    Cancelled,
    ClientClosedError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    UnsupportedVersionError,
    for_code,
)
from kafka.net.environment import Environment
from kafka.producer.diagnostics import hindrance, hindrances, no_answers
from kafka.producer.idempotence import ProducerId
from kafka.producer.producer_batch import Candidates, Delivered, Partition, ProducerBatch, Topic
from kafka.producer.record_accumulator import RecordAccumulator
from kafka.producer.sender import Sender

if TYPE_CHECKING:
    import asyncio

    from kafka._runtime.application import Application
    from kafka.cluster import ClusterMetadata
    from kafka.producer.metrics import ProducerMetrics
    from kafka.producer.transaction_manager import TransactionManager

__all__ = ["ProducerCore"]

log = logging.getLogger(__name__)

_PRODUCE: Final = 0
_ZSTD_SINCE: Final = 7
_V2_SINCE: Final = 3
_V1_SINCE: Final = 2
# How long a record may wait for its turn and for an answer before `health()` calls that a problem, in seconds.
_PATIENCE: Final = 1.0


class ProducerCore:
    """See the head of this file."""

    def __init__(self, config: Config, environment: Environment | None = None) -> None:
        self.config = config
        self.client = make_client(config, environment)
        self.loop = self.client.loop
        self.cluster = self.client.cluster
        self.now = self.loop.time
        self.call_soon = self.loop.call_soon
        self.closed = False
        self.keeper: Callable[[], object] = lambda: None
        """Returns what is to be kept alive while records are under way: the face."""
        self.application: Callable[[], Application | None] = lambda: None
        """Returns what calls of the face wait with."""
        self.event_loop: asyncio.AbstractEventLoop | None = None
        """That of an asyncio face. The core is made on its thread."""
        self.event_thread = get_ident()
        self.metrics: ProducerMetrics | None = None
        self.on_settled: Callable[[ProducerBatch, Delivered | BaseException], object] | None = None
        self.given_up = 0
        """How many records `shut_down` has given up."""
        self.given_up_because = ""
        """What kept the records from being written that `shut_down` gave up."""
        self._adaptive: bool = config["partitioner_adaptive_partitioning_enable"]
        self._availability_timeout = config.seconds("partitioner_availability_timeout_ms")
        self._topic_idle = config.seconds("metadata_max_idle_ms")
        self._sought: dict[str, float] = {}
        """Names that are asked for and were not found yet, and when a call wanted each last."""
        self._searches: Counter[str] = Counter()
        """How many calls wait for each of them."""
        self.accumulator = RecordAccumulator(
            self,
            batch_size=config["batch_size"],
            buffer_memory=config["buffer_memory"],
            max_request_size=config["max_request_size"],
            codec=config["compression_type"],
            level=config["compression_level"],
        )
        self.transactions: TransactionManager | None = None
        if config["transactional_id"] is not None:
            from kafka.producer.transaction_manager import TransactionManager

            self.transactions = TransactionManager(
                self, config["transactional_id"], config.seconds("transaction_timeout_ms")
            )
        self.identity = (
            ProducerId(self, config["enable_idempotence"], "enable_idempotence" in config.given)
            if self.transactions is None
            else self.transactions.identity
        )
        self.sender = Sender(self)
        self.loop.on_fork(self.accumulator.forked)
        self.cluster.add_listener(self._metadata_changed)

    # Beginning…

    async def bootstrap(self) -> None:
        """Get to know the cluster, and what its brokers can do."""
        await self.client.bootstrap()
        self.check_features()

    def check_features(self) -> None:
        """Choose the format of batches; raise for what was asked for and brokers do not have."""
        self.identity.check_supported()
        versions = self.client.versions
        if versions is None:
            return
        newest = versions.ranges.get(_PRODUCE, (0, 0))[1]
        self.accumulator.magic = 2 if newest >= _V2_SINCE else 1 if newest >= _V1_SINCE else 0
        if self.config["compression_type"] == "zstd" and newest < _ZSTD_SINCE:
            release = ".".join(map(str, versions.release))
            raise UnsupportedVersionError(f"compression_type='zstd' needs brokers of Kafka 2.1; this one is {release}")

    # From other threads…

    def work_soon(self) -> None:
        """There are new batches to look at."""
        self.call_soon(self.sender.work)

    def hurry_soon(self) -> None:
        """Somebody waits for memory: nothing lingers."""
        self.call_soon(self.sender.hurry_all)

    def hurry(self, batch: ProducerBatch) -> None:
        """Somebody waits for this batch."""
        if not batch.hurried and self.sender.linger:
            self.call_soon(self.sender.hurry, batch)

    def look_soon(self, partition: Partition) -> None:
        """The calls that a batch of this partition was kept open for have added their records."""
        self.call_soon(self.sender.look, partition)

    @property
    def on_loop(self) -> bool:
        """Whether the caller is run by the loop or is its network thread, which must not wait for itself."""
        return self.loop.in_pass or self.loop.driven_by == get_ident()

    async def wait_for(self, batch: ProducerBatch, timeout: float | None) -> None:
        """Send a batch now and wait until it is settled, `timeout` seconds at most: an application-side coroutine."""
        if batch.is_done:
            return
        application = self.application()
        if application is None or self.loop.closed:
            self.loop.check_usable()
            return
        if self.on_loop:
            raise IllegalStateError("get() blocks, so it cannot be called from a callback: the record is not done yet")
        self.accumulator.check_outside("get()")
        self.hurry(batch)
        await application.wait(batch, None if timeout is None else self.now() + timeout)

    async def wait_for_async(self, batch: ProducerBatch) -> None:
        """Wait in a task: of our loop, or of asyncio's."""
        self.hurry(batch)
        if self.loop.in_pass and self.loop.current_task is not None:
            await batch
            return
        import asyncio  # whoever comes here by a task of asyncio has loaded it

        try:
            aio = asyncio.get_running_loop()
        except RuntimeError:
            raise IllegalStateError(
                "the future of a record can be awaited in a task of asyncio only; call get() to wait elsewhere"
            ) from None
        done = aio.create_future()

        def resolve() -> None:
            if not done.done():
                done.set_result(None)

        def settled(_: object) -> None:
            try:
                aio.call_soon_threadsafe(resolve)
            except RuntimeError:
                if not aio.is_closed():  # if it is, no task waits any more
                    raise

        batch.add_both(settled)
        await done

    # On the loop…

    async def flush(self) -> None:
        """Send everything that has been added so far, and wait until all of it is settled."""
        batches = [batch for batch in self.accumulator.unsettled() if not batch.is_done]
        self.sender.hurry(*batches)
        for batch in batches:
            if not batch.is_done:
                await batch

    async def finish(self) -> None:
        """Bring to an end what is under way, before the producer is closed."""
        if self.transactions is not None:
            await self.transactions.wind_up()
        await self.flush()

    async def purge(self, in_flight: bool) -> int:
        """Give up what is not sent, and with `in_flight` what is not answered; how many records that were."""
        return self.sender.abandon(Cancelled("The record was purged before it was sent."), in_flight=in_flight)

    def known_topic(self, name: str) -> Topic | None:
        """Return a topic that metadata is known of, also when nothing was sent to it for long; else None."""
        indexes = self.cluster.partitions_for_topic(name)
        if not indexes:
            return None
        if name not in self.cluster.wanted_topics:
            self.cluster.add_topic(name)
        self._sought.pop(name, None)
        topic = self.accumulator.topic(name, indexes)
        topic.used_at = self.now()
        return topic

    async def find_topic(self, name: str, deadline: float, limit: str | None = None) -> Topic:
        """Return a topic, asking the cluster for it if need be; it may be created by that.

        `limit` is the time that the caller has, in words: max_block_ms if it is left out.
        """
        topic = self.known_topic(name)
        if topic is not None:
            return topic
        self._sought[name] = self.now()
        self._searches[name] += 1
        try:
            if name not in self.cluster.wanted_topics:
                self.cluster.add_topic(name)
            return await self._search(name, deadline, limit or f"max_block_ms ({self.config['max_block_ms']} ms)")
        finally:
            self._searches[name] -= 1
            if not self._searches[name]:
                del self._searches[name]
                self._stop_asking(self._not_found())

    async def _search(self, name: str, deadline: float, limit: str) -> Topic:
        error: KafkaError | None = None
        asked = False
        while (topic := self.known_topic(name)) is None:
            # What an earlier answer said may be over: a right was given, a topic made.
            code = self.cluster.topology.errors.get(name) if asked else None
            if code is not None and not (kind := for_code(code)).retriable:
                raise kind(f"topic {name!r}: {kind.description}")
            if self.now() >= deadline:
                said = str(error) if error else no_answers(self.client) if code is None else for_code(code).__name__
                raise KafkaTimeoutError(
                    f"Topic {name!r} was not found within {limit}{f': {said}' if said else ''}"
                ) from error
            try:
                await self.client.refresh(deadline)
                asked = True
            except KafkaTimeoutError:
                continue
            except KafkaError as failed:
                if not failed.retriable:
                    raise
                error = failed
        return topic

    def _metadata_changed(self, cluster: ClusterMetadata) -> None:
        topics = cluster.topology.topics
        for name, topic in tuple(self.accumulator.topics.items()):
            partitions = topics.get(name)
            if partitions and len(partitions) != len(topic.indexes):
                self.accumulator.topic(name, partitions)
        idle = self._idle_topics()
        for name in idle:
            self.accumulator.retire(name)
        self._stop_asking(idle | self._not_found())
        self.sender.metadata_changed()

    def _idle_topics(self) -> set[str]:
        """Return the topics that nothing was sent to for metadata_max_idle_ms."""
        now = self.now()
        for batch in self.accumulator.unsettled():
            batch.partition.topic.used_at = now
        long_ago = now - self._topic_idle
        return {name for name, topic in tuple(self.accumulator.topics.items()) if topic.used_at < long_ago}

    def _not_found(self) -> set[str]:
        """Return the names that no call waits for, and of which the cluster has said that they are not topics.

        A name that got no answer is kept for metadata_max_idle_ms: the call may come again, with little time each.
        """
        refused = self.cluster.topology.errors
        long_ago = self.now() - self._topic_idle
        return {
            name
            for name, since in self._sought.items()
            if name not in self._searches and (name in refused or since < long_ago)
        }

    def _stop_asking(self, names: set[str]) -> None:
        for name in names:
            self._sought.pop(name, None)
        if names:
            self.cluster.set_topics(self.cluster.wanted_topics - names)

    def hindrances(self) -> str:
        """Return what keeps the records under way from being acknowledged, in words; from any thread."""
        return hindrances(self, [batch for batch in self.accumulator.unsettled() if batch.outcome is None])

    async def health(self) -> dict[str, Any]:
        """Return what works and what does not."""
        return self.health_now()

    def health_now(self) -> dict[str, Any]:
        """The same, for whoever is on the loop or finds it closed: connections change while others look at them."""
        memory = self.accumulator.memory
        problems = []
        more: dict[str, Any] = {}
        if self.transactions is not None:
            more["transaction"] = transaction = self.transactions.health()
            problems = [f"transaction: {why}" for why in (transaction["error"], transaction["waiting_for"]) if why]
        return self.client.health_with(
            self._partitions_under_way(),
            problems,
            closed=self.closed,
            buffer_available=max(0, memory.free),
            buffer_waited_for=memory.has_waiters,
            **more,
        )

    def _partitions_under_way(self) -> dict[str, dict[str, Any]]:
        """Return the partitions with records under way, and for each what keeps its oldest record from being written.

        A record that waits for linger_ms, or for the answer to a request that has just been sent, has no problem yet.
        """
        found: dict[str, dict[str, Any]] = {}
        patience = self.config.seconds("linger_ms") + _PATIENCE
        now = self.now()
        for batch in self.accumulator.unsettled():
            if batch.outcome is not None:
                continue
            partition = batch.partition
            name = f"{partition.tp.topic}-{partition.index}"
            entry = found.get(name)
            if entry is None:
                waited = max(0.0, now - batch.created)
                hindered = batch.error is not None or waited > patience
                entry = found[name] = {
                    "records": 0,
                    "oldest_s": waited,
                    "attempts": 0,
                    "leader": self.cluster.leader_for_partition(partition.tp),
                    "problem": hindrance(self, batch) if hindered else None,
                }
            entry["records"] += batch.count
            entry["attempts"] = max(entry["attempts"], batch.attempts)
        return found

    # Choosing partitions for records without a key…

    def choose_partition(self, topic: Topic) -> Partition:
        """Choose the next partition to fill: any that has a leader, those with fewer batches in their queue more often.

        Called with the accumulator's lock held, once for about each batch. To look at all partitions takes longer than
        to fill a batch where there are thousands, so a choice may be made by what was seen some choices ago.
        """
        now = self.now()
        candidates = topic.candidates
        if candidates is None or not candidates.hold(topic, self.cluster.topology, now):
            candidates = topic.candidates = self._candidates(topic, now)
        candidates.choices_left -= 1
        able, weights = candidates.able, candidates.weights
        if len(able) == 1:
            return able[0]
        rng = self.loop.rng
        return rng.choice(able) if weights is None else rng.choices(able, cum_weights=weights)[0]

    def _candidates(self, topic: Topic, now: float) -> Candidates:
        topology = self.cluster.topology
        known = topology.topics.get(topic.name, {})
        everything = list(topic.partitions.values())
        able = [one for one in everything if one.index in known and known[one.index].leader >= 0] or everything
        if self._availability_timeout:
            limit = now - self._availability_timeout
            able = [one for one in able if one.sink is None or (one.sink.stalled_since or limit) >= limit] or able
        weights = None
        if self._adaptive:
            lengths = [len(one.queue) for one in able]
            longest = max(lengths)
            if longest > min(lengths):
                weights = list(accumulate(longest + 1 - length for length in lengths))
        return Candidates(able, weights, topic.partitions, topology, now)

    # EndTransaction…

    def shut_down(self) -> None:
        """Accept no more records, give up the records under way, close the connections. Idempotent."""
        if self.closed:
            return
        why = self.given_up_because = self.hindrances()
        error = ClientClosedError(f"The producer was closed before this record was written{f': {why}' if why else '.'}")
        self.accumulator.refuse(ClientClosedError("This producer is closed."))
        self.closed = True
        self.given_up = self.sender.abandon(error)
        self.client.shut_down()
