"""The producer without a face: client, accumulator and sender put together, and how other threads call the loop.

A face brings a driver for the loop, and calls `kafka.producer.calls`; everything else is here, for the synchronous face
and the asyncio one alike.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from kafka._core.client import make_client
from kafka.config import Config
from kafka.errors import (
    Cancelled,
    ClientClosedError,
    KafkaError,
    KafkaTimeoutError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
    for_code,
)
from kafka.net.environment import Environment
from kafka.producer.built_in_partitioner import BuiltInPartitioner
from kafka.producer.diagnostics import Diagnostics, no_answers
from kafka.producer.producer_id import ProducerId
from kafka.producer.record_accumulator import RecordAccumulator
from kafka.producer.sender import Sender
from kafka.protocol.registry import ApiKey

if TYPE_CHECKING:
    from kafka.cluster import ClusterMetadata
    from kafka.producer.metrics import ProducerMetrics
    from kafka.producer.partition import Topic
    from kafka.producer.transaction_manager import TransactionManager

__all__ = ["ProducerCore"]

log = logging.getLogger(__name__)

_ZSTD_SINCE: Final = 7
_V2_SINCE: Final = 3
_V1_SINCE: Final = 2
# A topic is missing with this many answers: a broker that creates topics answers the first time that it does not exist.
_MISSED: Final = 2


class ProducerCore:
    """The parts of a producer that run on the loop. See the head of this module."""

    def __init__(self, config: Config, environment: Environment | None = None) -> None:
        self.config = config
        self.client = make_client(config, environment)
        self.loop = self.client.loop
        self.cluster = self.client.cluster
        self.now = self.loop.time
        self.call_soon = self.loop.call_soon
        self.closed = False
        self._features_known = True
        self.metrics: ProducerMetrics | None = None
        self._topic_idle = config.seconds("metadata_max_idle_ms")
        self._idle_from = 0.0  # no topic is idle before
        self._sought: dict[str, float] = {}
        """Names that are requested and were not found yet, and when a call wanted each last."""
        self._missed: set[str] = set()
        """Names that were requested and that the log has as missing."""
        self._searches: Counter[str] = Counter()
        """How many calls wait for each of them."""
        partitioner = BuiltInPartitioner(config, self.cluster, self.now, self.loop.rng)
        self.sender = sender = Sender(self.client, config)
        self.accumulator = sender.accumulator = RecordAccumulator(
            sender,
            partitioner.choose,
            batch_size=config["batch_size"],
            buffer_memory=config["buffer_memory"],
            max_request_size=config["max_request_size"],
            codec=config["compression_type"],
            level=config["compression_level"],
        )
        self.transactions: TransactionManager | None = None
        self.producer: ProducerId
        if config["transactional_id"] is not None:
            from kafka.producer.transaction_manager import TransactionManager

            self.transactions = sender.transactions = TransactionManager(sender, config)
            self.producer = self.transactions.producer
        else:
            self.producer = ProducerId(
                sender, enabled=config["enable_idempotence"], required="enable_idempotence" in config.given
            )
        sender.producer = self.producer
        self.diagnostics = sender.diagnostics = Diagnostics(
            self.client, sender.max_in_flight, sender.linger, self.transaction_problem, self.producer.problem
        )
        self.cluster.add_listener(self._metadata_changed)
        self.client.metadata.on_refusal = self._refused
        self.loop.on_fork(self.accumulator.forked)

    def measure(self, metrics: ProducerMetrics) -> None:
        """Record metrics from now on."""
        self.metrics = self.sender.metrics = metrics

    # Connecting…

    async def bootstrap(self) -> None:
        """Connect to the cluster, and find out which APIs its brokers support, if they are there."""
        await self.client.begin()
        self.check_features()
        self._features_known = self.client.versions is not None

    def check_features(self) -> None:
        """Choose the format of batches; raise for options that the brokers do not support."""
        self.producer.check_supported()
        versions = self.client.versions
        if versions is None:
            return
        newest = versions.ranges.get(ApiKey.Produce, (0, 0))[1]
        self.accumulator.use_format(2 if newest >= _V2_SINCE else 1 if newest >= _V1_SINCE else 0)
        if self.config["compression_type"] == "zstd" and newest < _ZSTD_SINCE:
            release = ".".join(map(str, versions.release))
            raise UnsupportedVersionError(f"compression_type='zstd' needs brokers of Kafka 2.1; this one is {release}")

    @property
    def on_loop(self) -> bool:
        """Whether the loop runs the caller, or the caller is its network thread, which must not wait for itself."""
        return self.loop.runs_caller

    # On the loop…

    async def finish(self) -> None:
        """Accept no more records, abort the open transaction, and send the remaining batches: `close` was called."""
        self.accumulator.pause(_closed(), for_good=True)  # nothing would wait for a record of another thread
        if self.transactions is not None:
            await self.transactions.finish()
        await self.sender.flush()

    async def purge(self, in_flight: bool) -> int:
        """Give up all batches, with or without the ones in flight; return how many records they had."""
        return self.sender.abandon(Cancelled("The record was purged before it was sent."), in_flight=in_flight)

    def shut_down(self) -> None:
        """Accept no more records, give up the records under way, close the connections. Idempotent."""
        if self.closed:
            return
        why = self.reasons()
        error = ClientClosedError(f"The producer was closed before this record was written{f': {why}' if why else '.'}")
        self.accumulator.pause(_closed(), for_good=True)
        self.closed = self.accumulator.closed = True
        self.sender.abandon(error)
        self.client.shut_down()

    # Health…

    def reasons(self) -> str:
        """Return why the records under way are not acknowledged, in words; from any thread."""
        return self.diagnostics.reasons(batch for batch in self.accumulator.unsettled() if batch.outcome is None)

    def transaction_problem(self) -> str:
        """Return what the present transaction waits for; empty if it does not wait, or there is none."""
        return "" if self.transactions is None else self.transactions.coordinator.problem()

    async def health(self) -> dict[str, Any]:
        """Return the state of the producer, on the loop."""
        return self.health_now()

    def health_now(self) -> dict[str, Any]:
        """Return the state of the producer. On the loop, or when it is closed: connections change meanwhile."""
        memory = self.accumulator.memory
        problems = []
        more: dict[str, Any] = {}
        if self.transactions is not None:
            more["transaction"] = transaction = self.transactions.health()
            problems = [f"transaction: {why}" for why in (transaction["error"], transaction["waiting_for"]) if why]
        return self.client.health_with(
            self.diagnostics.partitions(self.accumulator.unsettled()),
            problems,
            closed=self.closed,
            buffer_available=max(0, memory.free),
            buffer_waited_for=memory.has_waiters,
            **more,
        )

    # Topics…

    def known_topic(self, name: str) -> Topic | None:
        """Return a topic that the metadata contains, even if nothing was sent to it for long; otherwise None."""
        indexes = self.cluster.partitions_for_topic(name)
        if not indexes:
            return None
        if name not in self.cluster.wanted_topics:
            self.cluster.add_topic(name)
        self._sought.pop(name, None)
        self._missed.discard(name)
        topic = self.accumulator.topic(name, indexes)
        topic.used_at = self.now()
        return topic

    async def find_topic(
        self, name: str, deadline: float, limit: str | None = None, partition: int | None = None
    ) -> Topic:
        """Return a topic, requesting its metadata if necessary, by which brokers may create it.

        `limit` is the time that the caller has, in words; max_block_ms by default.
        """
        topic = self.known_topic(name)
        if topic is not None and partition is not None and partition not in topic.partitions:
            await self.client.refresh(deadline, {name})
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
                self._stop_requesting(self._not_found())

    async def _search(self, name: str, deadline: float, limit: str) -> Topic:
        error: KafkaError | None = None
        asked, missed = False, 0
        while (topic := self.known_topic(name)) is None:
            # An earlier answer may be out of date: a permission was granted, a topic created.
            code = self.cluster.topology.errors.get(name) if asked else None
            if code is not None and not (kind := for_code(code)).retriable:
                raise kind(f"topic {name!r}: {kind.description}")
            missed += code == UnknownTopicOrPartitionError.errno
            if missed == _MISSED and name not in self._missed:
                self._missed.add(name)
                log.warning(
                    "The cluster does not have topic %r, check its name; send() waits for it, for %s",
                    name,
                    limit,
                    extra={"kafka_topic": name},
                )
            if self.now() >= deadline:
                why = str(error) if error else no_answers(self.client) if code is None else for_code(code).__name__
                raise KafkaTimeoutError(
                    f"Topic {name!r} was not found within {limit}{f': {why}' if why else ''}"
                ) from error
            try:
                await self.client.refresh(deadline, {name})
                asked = True
            except KafkaTimeoutError:
                continue
            except KafkaError as failed:
                if not failed.retriable:
                    raise
                error = failed
        if not self._features_known:  # no broker was there when the producer was made
            self.check_features()
            self._features_known = True
        return topic

    def _refused(self, error: KafkaError) -> None:
        for partition in {batch.partition for batch in self.accumulator.unsettled()}:
            partition.give_up_unsent(error)

    def _metadata_changed(self, cluster: ClusterMetadata) -> None:
        topics = cluster.topology.topics
        for name in cluster.topology.named:
            topic, partitions = self.accumulator.topics.get(name), topics.get(name)
            if topic is not None and partitions and len(partitions) != len(topic.indexes):
                self.accumulator.topic(name, partitions)
        idle = self._idle_topics()
        for name in idle:
            self.accumulator.retire(name)
        self._stop_requesting(idle | self._not_found())
        self.sender.metadata_changed()

    def _idle_topics(self) -> set[str]:
        """Return the topics that nothing was sent to for metadata_max_idle_ms."""
        now = self.now()
        if now < self._idle_from:
            return set()
        for batch in self.accumulator.unsettled():
            batch.partition.topic.used_at = now
        topics = tuple(self.accumulator.topics.items())
        long_ago = now - self._topic_idle
        # With thousands of topics each new one is an update: look at all of them when the first may be idle.
        used = [topic.used_at for _, topic in topics if topic.used_at >= long_ago]
        self._idle_from = min(used, default=now) + self._topic_idle
        return {name for name, topic in topics if topic.used_at < long_ago}

    def _not_found(self) -> set[str]:
        """Return the names that no call waits for, and that the cluster has answered are not topics.

        A name without an answer is kept for metadata_max_idle_ms: the call may be repeated, with little time each.
        """
        refused = self.cluster.topology.errors
        long_ago = self.now() - self._topic_idle
        return {
            name
            for name, since in self._sought.items()
            if name not in self._searches and (name in refused or since < long_ago)
        }

    def _stop_requesting(self, names: set[str]) -> None:
        for name in names:
            self._sought.pop(name, None)
            self._missed.discard(name)
        if names:
            self.cluster.set_topics(self.cluster.wanted_topics - names)


def _closed() -> ClientClosedError:
    return ClientClosedError("This producer is closed.")
