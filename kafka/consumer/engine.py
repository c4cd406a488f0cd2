"""The parts of a consumer put together, and how the application's thread works with them.

No protocol and no argument checking: the face above checks, the parts below do the work. A call that
waits turns the client's loop in the application's thread where it can (`kafka._runtime.network_thread`).
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafka._core.client import make_client
from kafka._runtime.network_thread import ThreadDriver
from kafka._runtime.signals import SignalsDeferred
from kafka.consumer.allocator import keep_freed_memory
from kafka.consumer.collector import Collector
from kafka.consumer.doorbell import Doorbell
from kafka.consumer.fetcher import Fetcher
from kafka.consumer.lanes import FetchSettings
from kafka.consumer.offsets import OffsetLookup
from kafka.consumer.partition import Chunk
from kafka.consumer.positions import Positions
from kafka.consumer.replies import ReaderSettings
from kafka.consumer.subscription import Mode, SubscriptionState
from kafka.errors import (
    ClientClosedError,
    FixNeededError,
    IllegalStateError,
    InvalidTopicError,
    KafkaError,
    KafkaTimeoutError,
    UnknownTopicOrPartitionError,
    WakeupError,
    for_code,
)
from kafka.serializer import Bound, bind_deserializer
from kafka.structs import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka.config import Config
    from kafka.consumer.membership import Membership
    from kafka.interceptors import Interceptors
    from kafka.metrics import Metrics
    from kafka.net.environment import Environment
    from kafka.record.columns import Columns
    from kafka.record.consumer_record import ConsumerRecord

__all__ = ["Engine"]

log = logging.getLogger(__name__)

T = TypeVar("T")

_CLOSE_TIMEOUT: Final = 30.0  # seconds


class Engine:
    """One consumer, without its face."""

    def __init__(self, config: Config, environment: Environment | None = None) -> None:
        keep_freed_memory()
        self.config = config
        self.client = make_client(config, environment)
        self.loop = self.client.loop
        self.driver = ThreadDriver(self.loop, name=f"kafka-consumer-{config['client_id']}")
        self.bell = Doorbell()
        self.subscription = SubscriptionState()
        read_committed = config["isolation_level"] == "read_committed"
        self.lookup = OffsetLookup(self.client, committed_only=read_committed)
        self.positions = Positions(
            self.client, self.subscription, self.lookup, config["auto_offset_reset"], self._placed, self._unplaceable
        )
        self._deserializers = [
            bind_deserializer(config[option], option) for option in ("key_deserializer", "value_deserializer")
        ]
        self.fetcher = Fetcher(
            self.client,
            self.subscription,
            self.positions,
            _fetch_settings(config),
            _reader_settings(config, self._deserializers),
            self.bell,
        )
        self.collector = Collector(self.subscription, self.fetcher, self.positions)
        self.subscription.on_change = self.fetcher.kick
        self.subscription.on_ready = self.fetcher.arrivals.append
        self.metrics: Metrics | None = None
        if config["metrics_enabled"]:
            from kafka._core.metrics import make_metrics
            from kafka.consumer.metrics import FetchMetrics

            self.metrics = make_metrics(config, self.client)
            self.fetcher.metrics = FetchMetrics(self.metrics, config["metric_group_prefix"], self.subscription)
        self.interceptors: Interceptors | None = None
        self._committed: deque[Mapping[TopicPartition, OffsetAndMetadata]] = deque()
        if config["interceptors"]:
            from kafka.interceptors import Interceptors

            self.interceptors = Interceptors(config["interceptors"], config)
        self.membership = self._join() if config["group_id"] is not None else None
        self.positions.membership = self.membership
        self.closed = False
        self.busy_thread = 0
        """The thread that is inside a call; 0 for none. It may make others meanwhile, as from a listener."""
        self._closing = False
        self._woken = False
        self._break_armed = False
        self._seen_topology: object = None
        self._missed: frozenset[str] = frozenset()
        self.client.cluster.add_listener(lambda _cluster: self.bell.ring())
        self.loop.on_fork(self._end_iteration)

    def _end_iteration(self) -> None:
        chunk = self.subscription.chunk
        if chunk is not None:
            chunk.interrupted = True

    def _join(self) -> Membership:
        """Return the membership in the group that the configuration names."""
        from kafka.coordinator.consumer import ConsumerCoordinator
        from kafka.coordinator.membership import GroupMembership

        coordinator = ConsumerCoordinator(
            self.client,
            self.subscription,
            self.metrics,
            config=self.config.subset("consumer_coordinator"),
            driver=self.driver,
        )
        if self.interceptors is not None and self.interceptors.has("on_commit"):
            coordinator.committer.on_committed = self._committed.append
        return GroupMembership(coordinator, self._summon)

    def start(self) -> None:
        """Find the cluster."""
        try:
            self.driver.run(self.client.bootstrap(), what="looking for a broker")
        except BaseException:
            self.close(0.0)
            raise

    # One thread at a time…

    def enter(self) -> int:
        """Begin a call that waits or hands out records; returns what `busy_thread` is to be after it."""
        before = self.busy_thread
        if before != (me := get_ident()):
            if before:
                self.check_thread()
            self.busy_thread = me
        return before

    def check_thread(self) -> None:
        """Raise IllegalStateError if another thread is inside a call."""
        busy = self.busy_thread
        if busy and busy != get_ident():
            names = (f"thread {thread.name!r}" for thread in threading.enumerate() if thread.ident == busy)
            raise IllegalStateError(
                f"This consumer is in use by {next(names, 'another thread')}, and one thread at a time may use it. To "
                "end the other's poll() call wakeup(); to read in several threads make a consumer for each"
            )

    # Waiting…

    def deadline(self, timeout: float) -> float:
        """Return when so many seconds are over."""
        return self.loop.time() + timeout

    def run(self, coro: Coroutine[Any, Any, T], deadline: float, what: str) -> T:
        """Run a coroutine to its end in the application's thread."""
        if self.closed:
            coro.close()
            raise ClientClosedError("This consumer is closed.")
        before = self.enter()
        try:
            return self.driver.run(coro, deadline, what)
        finally:
            self.busy_thread = before

    def wakeup(self) -> None:
        """End the wait in poll with WakeupError: this one, or the next. Safe from every thread."""
        self._woken = True
        self._summon()
        self.loop.wakeup()  # who waits turns the loop, and may be asleep in it

    def _summon(self) -> None:
        """Have the application's thread come by: out of its wait, or before the next record of an iteration."""
        self._end_iteration()
        self.bell.ring()

    def wait_until(self, ready: Callable[[], bool], deadline: float, what: str) -> None:
        """Wait until something holds that the loop brings about; KafkaTimeoutError if it does not in time."""
        before = self.enter()
        try:
            while True:
                future = self.bell.hang_up()
                self._raise_pending()
                if ready():
                    return
                if self.loop.time() >= deadline:
                    raise KafkaTimeoutError(f"{what} took too long")
                self.driver.wait(future, deadline)
        finally:
            self.bell.take_down()
            self.busy_thread = before

    # Polling…

    def poll(self, limit: int, deadline: float, *, move_on: bool = True) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Return records as soon as there are some, or none at the deadline."""
        before = self.enter()
        self.collector.begin()
        try:
            records = self._poll(self.collector.take, limit, deadline) or {}
            if records and self.interceptors is not None:
                records = self._through_interceptors(records)
            if not move_on:
                for partition, rows in records.items():
                    if rows:
                        self.subscription.seek(partition, rows[0].offset)
        except BaseException as error:
            self._take_back(error)
            raise
        finally:
            self.busy_thread = before
        return records

    def _through_interceptors(
        self, records: dict[TopicPartition, list[ConsumerRecord]]
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Let interceptors see, and change, the records that they have not seen yet."""
        assert self.interceptors is not None
        seen = {partition: records.pop(partition) for partition in self.collector.given_back & records.keys()}
        if records:
            seen.update(self.interceptors.through("on_consume", records))
        return seen

    def poll_columns(self, at_least: int, deadline: float) -> dict[TopicPartition, Columns]:
        """Return columns as soon as there are some, or none at the deadline."""
        before = self.enter()
        self.collector.begin()
        try:
            return self._poll(self.collector.take_columns, at_least, deadline) or {}
        except BaseException as error:
            self._take_back(error)
            raise
        finally:
            self.busy_thread = before

    def poll_chunk(self, limit: int, deadline: float) -> Chunk | None:
        """Return records of one partition for an iteration."""
        before = self.enter()
        self.collector.begin()
        try:
            chunk = self._poll(self.collector.take_chunk, limit, deadline)
            if chunk is not None and self.interceptors is not None and not self.collector.given_back:
                chunk.pass_through(self.interceptors)
            self.subscription.chunk = chunk
        except BaseException as error:
            self._take_back(error)
            raise
        finally:
            self.busy_thread = before
        if self._woken and chunk is not None:
            chunk.interrupted = True  # wakeup() was called before it could see the chunk
        if self.membership is not None and (self.membership.due or not self._break_armed):
            self._arm_break()
        return chunk

    def _take_back(self, error: BaseException) -> None:
        """Lose nothing that was taken and does not come to the application, as after Ctrl-C."""
        if not isinstance(error, KafkaError):
            with SignalsDeferred(self.loop):
                self.collector.take_back()

    def _arm_break(self) -> None:
        """Interrupt slow iterations so that automatic commits keep to their interval."""
        if self.membership is not None and self.membership.due:
            self._summon()  # it became so before there was anything to interrupt
        if self.config["enable_auto_commit"] and not self._break_armed:
            self._break_armed = True
            interval = self.config.seconds("auto_commit_interval_ms")
            self.loop.call_soon(lambda: self.loop.call_later(interval, self._take_break))

    def _take_break(self) -> None:
        self._break_armed = False
        self._summon()

    def _poll(self, take: Callable[[int], T | None], limit: int, deadline: float) -> T | None:
        collector = self.collector
        if self.subscription.chunk is not None:
            self.subscription.put_down()
        while True:
            self.serve(deadline)
            if collector.may_have_data:
                found = take(limit)
                if found:
                    return found
                collector.begin()
            if not self._wait(deadline):
                return None

    def serve(self, deadline: float) -> None:
        """Do what belongs into the application's thread: raise, reassign, let the group work."""
        self._raise_pending()
        self.tell_interceptors()
        membership = self.membership
        if membership is not None:
            membership.polled(self.loop.time())
            if membership.due:
                membership.serve(deadline)
        if self.client.cluster.topology is not self._seen_topology:
            self._topology_changed()

    def tell_interceptors(self) -> None:
        """Let interceptors hear of the commits that have succeeded."""
        while self._committed and self.interceptors is not None:
            self.interceptors.tell("on_commit", self._committed.popleft())

    def _raise_pending(self) -> None:
        if self._woken:
            self._woken = False
            raise WakeupError("wakeup() was called")
        if self.fetcher.errors and (error := self.fetcher.take_error()) is not None:
            raise error

    def _wait(self, deadline: float) -> bool:
        """Wait until there may be something to do; whether there was time for that."""
        self.loop.check_usable()
        future = self.bell.hang_up()
        try:
            if self._has_work():
                return True
            if self.loop.time() >= deadline:
                # poll(0) in a loop must not keep the network thread from the interpreter's lock: make the pass here.
                self.driver.try_turn()
                return self._has_work()
            if self.fetcher.starved:
                self.fetcher.release_paused(self.subscription.partitions.values())
            self.driver.wait(future, deadline)
        finally:
            self.bell.take_down()
        self.loop.check_usable()
        return True

    def _has_work(self) -> bool:
        membership = self.membership
        return bool(
            self.collector.may_have_data
            or self._woken
            or self.fetcher.errors
            or self.client.cluster.topology is not self._seen_topology
            or (membership is not None and membership.due)
        )

    # What metadata changes…

    def _topology_changed(self) -> None:
        cluster, subscription = self.client.cluster, self.subscription
        self._seen_topology = cluster.topology
        for topic, code in cluster.topology.errors.items():
            error = for_code(code)
            if topic not in subscription.wanted_topics:
                continue
            if issubclass(error, (FixNeededError, InvalidTopicError)):
                raise error(f"topic {topic!r} cannot be read")
            if issubclass(error, UnknownTopicOrPartitionError) and topic not in self._missed:
                log.warning(
                    "The cluster does not have topic %r, check its name; it is read as soon as it exists", topic
                )
        self._missed = frozenset(cluster.topology.errors)
        if subscription.is_automatic:
            subscription.match(cluster.topics(exclude_internal_topics=self.config["exclude_internal_topics"]))
            if self.membership is None:
                self._assign_all()

    def _assign_all(self) -> None:
        """Without a group have all partitions of the topics, and tell the listener."""
        cluster, subscription = self.client.cluster, self.subscription
        found = {
            TopicPartition(topic, number)
            for topic in subscription.subscribed_topics
            for number in cluster.partitions_for_topic(topic) or ()
        }
        before = set(subscription.partitions)
        if found == before:
            return
        listener = subscription.listener
        try:
            if listener is not None and before - found:
                listener.on_partitions_revoked(before - found)
        finally:  # it is told of what is so, whatever it says
            subscription.assign_from_group(sorted(found))
        if listener is not None and found - before:
            listener.on_partitions_assigned(found - before)

    def look_again(self) -> None:
        """Compare the subscription with the topology at the next poll."""
        self._seen_topology = None

    # Positions…

    def _placed(self) -> None:
        self.fetcher.kick()
        self.bell.ring()

    def _unplaceable(self, state: Any) -> None:
        self.fetcher.arrivals.append(state)
        self.bell.ring()

    def position(self, partition: TopicPartition, deadline: float) -> int:
        """Return the position of a partition, waiting until it is known."""
        subscription = self.subscription

        def known() -> bool:
            cursor = subscription.get(partition).cursor
            if cursor.position is None and cursor.fetched and cursor.fetched[0].error is not None:
                raise cursor.fetched[0].error
            return cursor.position is not None

        self.wait_until(known, deadline, f"finding the position of {partition.topic}-{partition.partition}")
        position = subscription.get(partition).cursor.position
        assert position is not None
        return position

    def find_offsets(self, wanted: Mapping[TopicPartition, int], deadline: float) -> Mapping[TopicPartition, Any]:
        """Look offsets up."""
        if not wanted:
            return {}
        return self.run(self.lookup.find(wanted, deadline), deadline, "looking up offsets")

    # Topics…

    async def _refresh_metadata(self, deadline: float) -> None:
        """Have metadata refreshed, whatever passes by itself meanwhile; the backoff keeps attempts apart."""
        while True:
            try:
                return await self.client.refresh(deadline)
            except KafkaError as error:  # noqa: PERF203 - a request each time round
                if not error.retriable or self.client.loop.time() >= deadline:
                    raise

    def refresh_metadata(self, deadline: float) -> None:
        """Ask for metadata and wait until it came."""
        self.run(self._refresh_metadata(deadline), deadline, "asking for metadata")

    def topics(self, deadline: float) -> set[str]:
        """Return all topics that this client may see."""
        cluster = self.client.cluster

        async def refresh() -> set[str]:
            before, cluster.need_all_topic_metadata = cluster.need_all_topic_metadata, True
            try:
                await self._refresh_metadata(deadline)
            finally:
                cluster.need_all_topic_metadata = before
            return set(cluster.topics())

        return self.run(refresh(), deadline, "listing topics")

    def partitions_for_topic(self, topic: str, deadline: float) -> set[int] | None:
        """Return the partitions of a topic; None if there is no such topic."""
        cluster = self.client.cluster
        known = cluster.partitions_for_topic(topic)
        if known is not None:
            return known

        async def refresh() -> set[int] | None:
            with cluster.also({topic}):
                await self._refresh_metadata(deadline)
            return cluster.partitions_for_topic(topic)

        return self.run(refresh(), deadline, "asking for a topic")

    # How it is…

    def health(self) -> dict[str, Any]:
        """Return what works and what is waited for, as plain values."""
        partitions: dict[str, Any] = {}
        for (topic, number), state in self.subscription.partitions.items():
            cursor = state.cursor
            partitions[f"{topic}-{number}"] = {
                "position": cursor.position,
                "buffered_bytes": cursor.held,
                "paused": state.paused,
                "leader": self.client.cluster.leader_for_partition(TopicPartition(topic, number)),
                "problem": state.problem or (None if cursor.position is not None else "its position is looked up"),
            }
        group = None if self.membership is None else self.membership.health()
        waiting_for = group and group["waiting_for"]
        return self.client.health_with(
            partitions,
            [f"group {group['group_id']!r}: {waiting_for}"] if group and waiting_for else [],
            closed=self.closed,
            subscription=self.subscription.mode.value,
            group=group,
        )

    # When it ends…

    @property
    def close_timeout(self) -> float:
        """The seconds that ending takes at most unless the application says otherwise."""
        return min(_CLOSE_TIMEOUT, self.config.seconds("default_api_timeout_ms"))

    def close(self, timeout: float | None, *, commit: bool = True) -> None:
        """Free everything, in about `timeout` seconds also when brokers do not answer. Idempotent.

        With None that is `close_timeout`, and a few seconds while no broker can be reached.
        """
        if self.closed or self._closing:
            return
        if self.loop.forked:
            self.closed = True
            return
        before = self.enter()
        self._closing = True
        patient = timeout is not None
        if timeout is None:
            timeout = self.close_timeout
        deadline = self.deadline(timeout)
        try:
            # The listener is called once more, and may commit: the consumer is not closed yet.
            if self.membership is not None and timeout > 0:
                self.membership.close(deadline, commit=commit, patient=patient)
        finally:
            self.closed = True
            self._shut_down(deadline)
            self._close_what_was_given()
            self.busy_thread = before

    def _close_what_was_given(self) -> None:
        if self.interceptors is not None:
            self.tell_interceptors()
            self.interceptors.close()
        for bound in self._deserializers:
            if bound is not None and bound.close is not None:
                try:
                    bound.close()
                except Exception:
                    log.exception("A deserializer could not be closed")

    def _shut_down(self, deadline: float) -> None:
        async def end() -> None:
            try:
                await self.fetcher.close(deadline)
            finally:
                self.client.shut_down()

        try:
            if not self.loop.closed:
                self.driver.run(end(), max(deadline, self.deadline(0.25)), "closing")
        except (KafkaError, IllegalStateError):
            pass  # a broker that does not answer keeps nobody from leaving
        finally:
            if self.metrics is not None:
                self.metrics.close()
            self.driver.close(max(0.1, deadline - self.loop.time()))

    def check_group(self) -> Membership:
        """Return the membership; IllegalStateError without a group."""
        if self.membership is None:
            raise IllegalStateError("This needs a group: make the consumer with group_id=...")
        return self.membership

    def seek_all(self, partitions: Collection[TopicPartition], move: Callable[[TopicPartition], None]) -> None:
        """Move partitions, all that are assigned if none are named."""
        for partition in partitions or tuple(self.subscription.partitions):
            move(partition)

    def check_assigned(self, what: str) -> None:
        """Raise IllegalStateError if no partitions were assigned since the last subscribe()."""
        subscription = self.subscription
        if subscription.partitions or subscription.had_assignment:
            return
        if subscription.mode is Mode.NONE:
            raise IllegalStateError(f"{what} has no partitions to move: call subscribe() or assign() first")
        raise IllegalStateError(
            f"{what} has no partitions to move: a subscription gets its partitions within poll(). Call it in "
            "on_partitions_assigned() of a ConsumerRebalanceListener, or once assignment() is not empty. (Without a "
            "committed offset auto_offset_reset decides where a partition starts.)"
        )


def _fetch_settings(config: Config) -> FetchSettings:
    return FetchSettings(
        max_wait_ms=config["fetch_max_wait_ms"],
        min_bytes=config["fetch_min_bytes"],
        max_bytes=config["fetch_max_bytes"],
        max_partition_bytes=config["max_partition_fetch_bytes"],
        buffer_memory=config["fetch_buffer_memory"],
        isolation_level=int(config["isolation_level"] == "read_committed"),
        rack=config["client_rack"],
        sessions=config["enable_incremental_fetch_sessions"],
    )


def _reader_settings(config: Config, bound: Sequence[Bound | None]) -> ReaderSettings:
    with_headers = any(one is not None and not one.plain for one in bound)
    key_deserializer, value_deserializer = (_per_topic(one, with_headers=with_headers) for one in bound)
    return ReaderSettings(
        check_crcs=config["check_crcs"],
        read_committed=config["isolation_level"] == "read_committed",
        max_batch_bytes=config["max_decompressed_bytes"],
        key_deserializer=key_deserializer,
        value_deserializer=value_deserializer,
        with_headers=with_headers,
        skip_double_compressed=config["skip_double_compressed_messages"],
    )


def _per_topic(bound: Bound | None, *, with_headers: bool) -> Callable[[str], Any]:
    """Return what gives for a topic the function that a reader takes."""
    if bound is None:
        return lambda _topic: None
    call = bound.call
    if not bound.plain:
        return lambda topic: partial(call, topic)
    if with_headers:
        return lambda _topic: lambda _headers, data: call(data)
    return lambda _topic: call
