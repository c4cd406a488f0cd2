"""The parts of a consumer put together, and what its public calls do on behalf of the application.

The faces (`KafkaConsumer`, and the one of asyncio) check arguments; the parts below exchange requests with the brokers.
The ``async def`` methods here are application-side coroutines (`kafka._runtime.application`): they wait through the
`Application` that the core was made with, in the application's thread or task, and call user code there. A call that
is cancelled while it waits has taken no records.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, TypeVar

from kafka import _hooks
from kafka._core.client import Facts
from kafka._core.offset_lookup import OffsetLookup
from kafka._runtime.signals import SignalsDeferred
from kafka._runtime.tasks import Wakeup
from kafka.consumer.fetch_collector import FetchCollector
from kafka.consumer.fetch_connection import FetchSettings
from kafka.consumer.fetch_response import ReaderSettings, keep_freed_memory
from kafka.consumer.fetcher import Fetcher
from kafka.consumer.partition_state import Chunk
from kafka.consumer.positions import Positions
from kafka.consumer.subscription_state import Mode
from kafka.consumer.topics import ConsumerTopics
from kafka.consumer.tracing import traced_poll
from kafka.errors import (
    ClientClosedError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    WakeupError,
)
from kafka.record.batch_reader import TAKEN_BYTES
from kafka.record.consumer_record import ConsumerRecord
from kafka.serializer import bind_deserializer
from kafka.structs import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka._core.client import Client
    from kafka._core.offset_lookup import Found
    from kafka._hooks import ConsumerTracer
    from kafka._runtime.application import Application
    from kafka._runtime.tasks import Coro
    from kafka.config import Config
    from kafka.consumer.partition_state import AssignedPartition
    from kafka.consumer.subscription_state import SubscriptionState
    from kafka.coordinator.consumer_group import ConsumerGroup
    from kafka.future import Future
    from kafka.interceptors import Interceptors
    from kafka.metrics import Metrics
    from kafka.record.columns import Columns

__all__ = ["ConsumerCore", "Only"]

log = logging.getLogger(__name__)

T = TypeVar("T")

# The partitions to take records from; None for all that are assigned.
Only: TypeAlias = Collection[TopicPartition] | None

_CLOSE_TIMEOUT: Final = 30.0  # seconds


class ConsumerCore:
    """A consumer without the checks of its arguments."""

    record_type: ClassVar[type[ConsumerRecord]] = ConsumerRecord
    """The class of the records that the application gets."""
    face: ClassVar[str] = "KafkaConsumer"
    """The name of the application's class."""

    def __init__(
        self, config: Config, client: Client, application: Application, subscription: SubscriptionState
    ) -> None:
        keep_freed_memory()
        self.config = config
        self.client = client
        self.application = application
        self.loop = client.loop
        self.waiting = Wakeup()
        self.subscription = subscription
        read_committed = config["isolation_level"] == "read_committed"
        self.lookup = OffsetLookup(self.client, committed_only=read_committed)
        self.positions = Positions(
            client,
            subscription,
            self.lookup,
            config["auto_offset_reset"],
            self._position_found,
            self._position_failed,
        )
        key = bind_deserializer(config["key_deserializer"], "key_deserializer")
        value = bind_deserializer(config["value_deserializer"], "value_deserializer")
        self._deserializers = [key, value]
        self.fetcher = Fetcher(
            self.client,
            self.subscription,
            self.positions,
            FetchSettings.of(config),
            ReaderSettings.of(config, key, value, self.record_type),
            self.waiting.notify,
        )
        self.collector = FetchCollector(self.subscription, self.fetcher, self.positions, self.loop.time)
        self.subscription.on_change = self.fetcher.kick
        self.subscription.on_change_of = self.fetcher.changed
        self.subscription.topic_ids = lambda: client.cluster.topology.topic_ids
        self.subscription.on_ready = self.fetcher.arrivals.append
        client.metadata.on_refusal = self._refused
        self.metrics: Metrics | None = None
        if config["metrics_enabled"]:
            from kafka._core.metrics import make_metrics
            from kafka.consumer.metrics import FetchMetrics

            self.metrics = make_metrics(config, self.client)
            if self.client.telemetry is not None:
                self.client.telemetry.member_id = self._member_id
            assert self.client.series is not None
            self.fetcher.metrics = FetchMetrics(
                self.metrics,
                self.client.series,
                config["metric_group_prefix"],
                self.subscription,
                committed_only=read_committed,
            )
        self.interceptors: Interceptors | None = None
        self._committed: deque[Mapping[TopicPartition, OffsetAndMetadata]] = deque()
        if config["interceptors"]:
            from kafka.interceptors import Interceptors

            self.interceptors = Interceptors(config["interceptors"], config)
        self.tracer: ConsumerTracer | None = None
        if _hooks.tracer is not None:
            self.tracer = _hooks.tracer.consumer(Facts(client, self.face))
            if self.tracer is not None:
                # In place of the method, so that a poll without a tracer takes no call more.
                self.poll = partial(traced_poll, self.poll, self.tracer)  # type: ignore[method-assign]
        self.group = self._make_group() if config["group_id"] is not None else None
        self.positions.group = self.group
        self.topics = ConsumerTopics(
            client,
            subscription,
            application,
            exclude_internal=config["exclude_internal_topics"],
            assigns_all=self.group is None,
        )
        self.closed = False
        self._closing = self._unsubscribing = False
        self._woken = False
        self._commit_scheduled = False
        self.client.cluster.add_listener(lambda _cluster: self.waiting.notify())
        self.loop.on_fork(self._end_iteration)

    def _end_iteration(self) -> None:
        chunk = self.subscription.chunk
        if chunk is not None:
            chunk.interrupted = True

    def _make_group(self) -> ConsumerGroup:
        """Return this consumer's side of the group that it names; for assign() it keeps committed offsets."""
        from kafka.coordinator.consumer_group import ConsumerGroup

        group = ConsumerGroup(
            self.client,
            self.subscription,
            self.metrics,
            config=self.config,
            application=self.application,
        )
        if self.interceptors is not None and self.interceptors.has("on_commit"):
            group.offsets.committer.on_committed = self._committed.append
        group.offsets.tracer = self.tracer
        group.membership.last_count = self.collector.last_count
        group.on_due = self._notify_application
        return group

    async def start(self) -> None:
        """Find the cluster, for bootstrap_timeout_ms at most."""
        try:
            await self.application.run(self.begin(), what="looking for a broker")
        except BaseException:
            await self.close(0.0)
            raise

    async def begin(self) -> None:
        """Find the cluster, or look for one that comes later, if the configuration says so."""
        await self.client.begin()
        if self.client.cluster.update_age() is None:
            self.loop.spawn_logged(self._watch_for_refusal(), "watch for a refusal")

    async def _watch_for_refusal(self) -> None:
        """Let poll() raise why a broker that has come refuses this client: no other request may ask that broker."""
        client = self.client
        while client.cluster.update_age() is None and not client.closed:
            try:
                await client.refresh(self.deadline(client.settings.request_timeout))
            except KafkaError as error:  # noqa: PERF203 - one try for each round trip
                if not error.retriable and not client.closed:
                    self._refused(error)
        self.fetcher.errors.pop(-1, None)

    def _refused(self, error: KafkaError) -> None:
        self.fetcher.errors[-1] = error
        self.waiting.notify()

    # Waiting…

    def deadline(self, timeout: float) -> float:
        """Return the deadline of a call that may take this many seconds."""
        return self.loop.time() + timeout

    async def run(self, coro: Coro[T], deadline: float, what: str) -> T:
        """Run a library-side coroutine to its end."""
        if self.closed:
            coro.close()
            raise ClientClosedError("This consumer is closed.")
        return await self.application.run(coro, deadline, what)

    def wakeup(self) -> None:
        """End the call that takes records with WakeupError: this one, or the next. Safe from every thread."""
        self._woken = True
        self._notify_application()
        self.loop.wakeup()  # the waiting thread turns the loop, and may be asleep in it

    def _notify_application(self) -> None:
        """Let the application look for work: end its wait, and its iteration before the next record."""
        self._end_iteration()
        self.waiting.notify()

    async def wait_until(self, ready: Callable[[], bool], deadline: float, what: str) -> None:
        """Wait until something holds that the loop brings about; KafkaTimeoutError at the deadline."""
        while True:
            future = self.waiting.armed()
            if ready():
                return
            self._raise_fetch_error()  # wakeup() is for the calls that take records
            if self.loop.time() >= deadline:
                raise KafkaTimeoutError(f"{what} took too long")
            await self.application.wait(future, deadline)

    # Polling…

    async def poll(  # noqa: C901 - hot
        self, take: Callable[[int, Only], T | None], limit: int, deadline: float, nothing: T, only: Only = None
    ) -> T:
        """Return what is taken, of some partitions if they are named, as soon as there is some; else `nothing`."""
        # Records are taken right before the return: nothing is awaited after that, so no cancellation can lose them.
        collector, group, fetcher = self.collector, self.group, self.fetcher
        taking = False
        try:
            fetcher.polls += 1
            if fetcher.resting:
                fetcher.resume()
            while True:
                future = self.waiting.armed()  # first: what changes after the looks below completes it
                if group is not None:
                    group.polled()
                is_held = self._is_held()
                if is_held and not await self._serve_first():
                    future = self.waiting.armed()
                else:
                    if collector.may_have_data:
                        collector.begun.clear()
                        taking = True
                        found = take(limit, only)
                        if found is not None:
                            self._taken()
                            return found
                        taking = False
                    if is_held and self._is_due():
                        continue
                if not await self._wait(future, deadline, only):
                    return nothing
        except BaseException as error:
            if taking and not isinstance(error, KafkaError):  # Ctrl-C: the records do not reach the application
                with SignalsDeferred(self.loop):
                    collector.take_back()
            raise

    async def _serve_first(self) -> bool:
        """Do what comes before records are returned; return whether they may be returned now."""
        await self._serve()
        return True

    def _taken(self) -> None:
        """Called right before records are returned."""

    def _is_due(self) -> bool:
        """Return whether there is something to do before records are returned."""
        group = self.group
        return bool(
            self._woken
            or self.fetcher.errors
            or self._committed
            or self.client.cluster.topology is not self.topics.seen
            or (group is not None and group.due)
        )

    _is_held = _is_due
    """Whether something comes before records are returned. An attribute, as each poll() asks."""

    async def _serve(self) -> None:
        """Do what only the application can do: raise, reassign, let the group work."""
        self._raise_pending()
        self.tell_interceptors()
        if self.group is not None and self.group.due:
            await self.group.serve()
        if self.client.cluster.topology is not self.topics.seen:
            await self.topics.follow()

    def tell_interceptors(self) -> None:
        """Pass the commits that have succeeded to the interceptors."""
        while self._committed and self.interceptors is not None:
            self.interceptors.tell("on_commit", self._committed.popleft())

    def _raise_pending(self) -> None:
        if self._woken:
            self._woken = False
            raise WakeupError("wakeup() was called")
        self._raise_fetch_error()

    def _raise_fetch_error(self) -> None:
        if self.fetcher.errors and (error := self.fetcher.take_error()) is not None:
            raise error

    async def _wait(self, future: Future[None], deadline: float, only: Only) -> bool:
        """Wait until there may be something to do; False at the deadline."""
        if self.loop.closed:
            self.loop.check_usable()
        if self.loop.time() >= deadline:
            # poll(0) in a loop must not keep the network from the interpreter: make a pass here.
            await self.application.turn()
            return future.is_done
        fetcher = self.fetcher
        if fetcher.starved:
            fetcher.make_room(only)
        if only is not None:
            fetcher.awaited.append(only)
        began = self.loop.time()
        try:
            fetcher.callers += 1
            if fetcher.resting:
                fetcher.resume()
            await self.application.wait(future, None if deadline == math.inf else deadline)
        finally:
            fetcher.callers -= 1
            if only is not None:
                fetcher.awaited.remove(only)
            if fetcher.metrics is not None:
                fetcher.metrics.waited(self.loop.time() - began)
        if self.loop.closed:
            self.loop.check_usable()
        return True

    # What `poll` takes records out of the buffers with…

    def take(
        self, limit: int, only: Only, *, room: int = TAKEN_BYTES, ends: float = math.inf, defer_errors: bool = False
    ) -> dict[TopicPartition, list[ConsumerRecord]] | None:
        """Take records by partition."""
        records = self.collector.take(limit, only, room=room, ends=ends, defer_errors=defer_errors)
        if not records:
            return None
        if self.interceptors is not None:
            # Records that an iteration gave back have passed the interceptors before; they pass each record once.
            seen = {partition: records.pop(partition) for partition in self.collector.given_back & records.keys()}
            if records:
                seen.update(self.interceptors.through("on_consume", records))
            return seen
        return records

    def peek(self, limit: int, only: Only) -> dict[TopicPartition, list[ConsumerRecord]] | None:
        """Take records by partition, and stay where they are."""
        records = self.take(limit, only)
        for partition, rows in (records or {}).items():
            if rows:
                self.subscription.seek(partition, rows[0].offset)
        return records

    def take_columns(self, at_least: int, _only: Only) -> dict[TopicPartition, Columns] | None:
        """Take columns by partition."""
        return self.collector.take_columns(at_least) or None

    def take_chunk(self, limit: int, _only: Only) -> Chunk | None:
        """Take records of one partition for an iteration."""
        chunk = self.collector.take_chunk(limit)
        if chunk is None:
            return None
        if self.interceptors is not None and not self.collector.given_back:
            chunk.pass_through(self.interceptors)
        self.subscription.chunk = chunk
        if self._woken:
            chunk.interrupted = True  # wakeup() was called before it could see the chunk
        if self.group is not None and (self.group.due or not self._commit_scheduled):
            self._schedule_commit()
        return chunk

    def _schedule_commit(self) -> None:
        """Interrupt slow iterations so that automatic commits keep to their interval."""
        if self.group is not None and self.group.due:
            self._notify_application()  # it became due before there was a chunk to interrupt
        if self.config["enable_auto_commit"] and not self._commit_scheduled:
            self._commit_scheduled = True
            interval = self.config.seconds("auto_commit_interval_ms")
            self.loop.call_soon(lambda: self.loop.call_later(interval, self._commit_is_due))

    def _commit_is_due(self) -> None:
        self._commit_scheduled = False
        self._notify_application()

    # Positions…

    def _position_found(self) -> None:
        self.fetcher.kick()
        self.waiting.notify()

    def _position_failed(self, state: AssignedPartition) -> None:
        self.fetcher.arrivals.append(state)
        self.waiting.notify()

    async def position(self, partition: TopicPartition, deadline: float) -> int:
        """Return the position of a partition, waiting until it is known."""
        subscription = self.subscription

        def known() -> bool:
            cursor = subscription.get(partition).cursor
            if cursor.position is None and cursor.fetched and cursor.fetched[0].error is not None:
                raise cursor.fetched[0].error.with_traceback(None)
            return cursor.position is not None

        await self.wait_until(known, deadline, f"finding the position of {partition.topic}-{partition.partition}")
        position = subscription.get(partition).cursor.position
        assert position is not None
        return position

    async def find_offsets(self, wanted: Mapping[TopicPartition, int], deadline: float) -> Found:
        """Look offsets up by timestamps, or by the protocol's marks for the beginning and the end."""
        if not wanted:
            return {}
        return await self.run(self.lookup.find(wanted, deadline), deadline, "looking up offsets")

    # The group…

    def check_group(self) -> ConsumerGroup:
        """Return the group; IllegalStateError without one."""
        if self.group is None:
            raise IllegalStateError("This needs a group: make the consumer with group_id=...")
        return self.group

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None, deadline: float) -> None:
        """Commit, and wait until the broker has stored the offsets. If the wait is cancelled the commit continues.

        With None commit the offsets behind all returned records.
        """
        committing = self.check_group().offsets.commit(offsets, deadline)
        with nullcontext() if self.tracer is None else self.tracer.settling("commit"):
            await self.run(committing, deadline, "the commit")
        self.tell_interceptors()

    async def committed(
        self, partitions: Collection[TopicPartition], deadline: float
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offsets; None where there is none."""
        reading = self.check_group().offsets.committer.fetch(partitions, deadline)
        return await self.run(reading, deadline, "looking up committed offsets")

    async def unsubscribe(self) -> None:
        """Leave the group, and read nothing."""
        if self._unsubscribing:  # by a listener that it has called
            return
        self._unsubscribing = True
        try:
            if self.group is not None:
                await self.group.unsubscribed(self.deadline(self.close_timeout))
        finally:  # also if a listener or the callback of a commit raises
            self._unsubscribing = False
            self.subscription.unsubscribe()

    # Topics…

    async def refresh_metadata(self, deadline: float) -> None:
        """Ask for metadata and wait for the response."""
        await self.run(self.topics.refresh(deadline), deadline, "asking for metadata")

    async def list_topics(self, deadline: float) -> set[str]:
        """Return all topics that this client may see."""
        return await self.run(self.topics.list(deadline), deadline, "listing topics")

    async def partitions_for_topic(self, topic: str, deadline: float) -> set[int] | None:
        """Return the partitions of a topic; None if there is no such topic."""
        known = self.client.cluster.partitions_for_topic(topic)
        if known is not None:
            return known
        return await self.run(self.topics.partitions(topic, deadline), deadline, "asking for a topic")

    # Health…

    def health(self) -> dict[str, Any]:
        """Return what works and what keeps records from coming, as plain values."""
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
        group = None if self.group is None else self.group.health()
        waiting_for = group and group["waiting_for"]
        problems = [f"group {group['group_id']!r}: {waiting_for}"] if group and waiting_for else []
        if self.topics.seen is None and self.subscription.mode is not Mode.NONE and not self.closed:
            problems.append("the application has not called poll() since it chose topics or partitions")
        return self.client.health_with(
            partitions,
            problems,
            closed=self.closed,
            subscription=self.subscription.mode.value,
            group=group,
        )

    # Closing…

    @property
    def close_timeout(self) -> float:
        """The seconds that close() takes at most unless timeout_ms is given."""
        return min(_CLOSE_TIMEOUT, self.config.seconds("default_api_timeout_ms"))

    async def close(self, timeout: float | None, *, commit: bool = True) -> None:
        """Free everything, in about `timeout` seconds also when brokers do not answer. Idempotent.

        With None that is `close_timeout`, and a few seconds while no broker can be reached.
        """
        if self.closed or self._closing:
            return
        if self.loop.forked:
            self.closed = True
            return
        self._closing = True
        patient = timeout is not None
        if timeout is None:
            timeout = self.close_timeout
        deadline = self.deadline(timeout)
        try:
            # The listener is called once more, and may commit: the consumer is not closed yet.
            if self.group is not None and timeout > 0:
                await self.group.finish(deadline, commit=commit, patient=patient)
        finally:
            self.closed = True
            try:
                await self._shut_down(deadline)
            finally:
                self._close_what_was_given()

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

    def _member_id(self) -> str:
        return "" if self.group is None else self.group.membership.generation.member_id

    async def _shut_down(self, deadline: float) -> None:
        try:
            if not self.loop.closed:
                await self.application.run(self._end(deadline), max(deadline, self.deadline(0.25)), "closing")
        except (KafkaError, IllegalStateError):
            pass  # a broker that does not answer does not keep the consumer from closing
        finally:
            if self.metrics is not None:
                self.metrics.close()
            await self.application.close(max(0.1, deadline - self.loop.time()))

    async def _end(self, deadline: float) -> None:
        try:
            await self.fetcher.close(deadline)
        finally:
            await self.client.end(deadline)
