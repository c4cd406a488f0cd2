"""The parts of a share consumer put together, and what its public calls do on behalf of the application.

The ``async def`` methods are application-side coroutines (`kafka._runtime.application`): they wait through the
`Application` that the core was made with. One call at a time takes records, as it accepts the records of the call
before. A call that is cancelled while it waits has taken none: the next one returns what was acquired meanwhile.
"""

from __future__ import annotations

import logging
import math
from collections import Counter, deque
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafka import _hooks
from kafka._core.client import Facts
from kafka._runtime.tasks import Wakeup
from kafka.consumer.fetch_response import ReaderSettings
from kafka.consumer.topics import check_topics
from kafka.coordinator.share_group_member import ShareGroupMember
from kafka.errors import (
    ClientClosedError,
    CorruptRecordError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    RecordDeserializationError,
    WakeupError,
)
from kafka.serializer import bind_deserializer
from kafka.share.acknowledgements import Acknowledgements, AcknowledgeType, acknowledged_ranges
from kafka.share.acquired_records import as_one
from kafka.share.fetcher import ShareFetcher
from kafka.share.held_records import HeldRecords
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka._core.client import Client
    from kafka._hooks import ConsumerTracer
    from kafka._runtime.application import Application
    from kafka._runtime.tasks import Coro
    from kafka.config import Config
    from kafka.metrics import Metrics
    from kafka.share.acquired_records import AcquiredRecords
    from kafka.share.record import ShareRecord

log = logging.getLogger(__name__)

T = TypeVar("T")

Callback = Callable[[dict[TopicPartition, set[int]], "KafkaError | None"], object]
"""A function of the application that gets the outcome of acknowledgements."""

_CLOSE_TIMEOUT: Final = 30.0  # seconds
#: The seconds that close() takes while no broker can be reached.
_UNREACHABLE: Final = 5.0
# How often an iteration sends acknowledgements while it has records, in seconds.
_SEND_EVERY: Final = 1.0


class ShareConsumerCore:
    """A share consumer without the checks of its arguments."""

    def __init__(self, config: Config, client: Client, application: Application) -> None:
        self.config = config
        self.client = client
        self.application = application
        self.loop = client.loop
        self.waiting = Wakeup()
        self.topics: frozenset[str] = frozenset()
        self.callback: Callback | None = None
        self.held = HeldRecords()
        self.is_explicit = config["share_acknowledgement_mode"] == "explicit"
        self.member = ShareGroupMember(client, config, lambda: self.fetcher.look())  # noqa: PLW0108 - it is made below
        key = bind_deserializer(config["key_deserializer"], "key_deserializer")
        value = bind_deserializer(config["value_deserializer"], "value_deserializer")
        self._deserializers = [key, value]
        self.fetcher = ShareFetcher(
            client, config, self.member, ReaderSettings.of(config, key, value), self.waiting.notify
        )
        self.metrics: Metrics | None = None
        if config["metrics_enabled"]:
            from kafka._core.metrics import make_metrics
            from kafka.share.metrics import ShareFetchMetrics, ShareHeartbeatMetrics

            prefix = config["metric_group_prefix"]
            self.metrics = make_metrics(config, client)
            assert client.series is not None
            client.series.gauge("kafka_consumer_assigned_partitions", self._assigned)
            self.fetcher.metrics = ShareFetchMetrics(self.metrics, client.series, prefix)
            heartbeats = ShareHeartbeatMetrics(self.metrics, prefix, lambda: len(self.fetcher.assigned))
            self.member.on_heartbeat = heartbeats.heartbeat
            if client.telemetry is not None:
                client.telemetry.member_id = lambda: self.member.member_id
        self.tracer: ConsumerTracer | None = None
        if _hooks.tracer is not None:
            self.tracer = _hooks.tracer.consumer(Facts(client, "KafkaShareConsumer"))
        self.closed_error: type[Exception] = ClientClosedError
        """The error of a call that waits while the consumer is closed."""
        self.closed = False
        self._closing = False
        self._woken = False
        self._is_taking = False
        self._is_fetching = False
        self.callback_thread = 0
        """The thread in which the callback of acknowledgements runs; 0: it does not run."""
        self._rows: deque[ShareRecord] = deque()
        self._source: AcquiredRecords | None = None
        """Where `_rows`, which no call has returned yet, come from."""
        self._current: ShareRecord | None = None
        """The record that an iteration returned last, in the implicit mode."""
        self._sent_at = -math.inf
        self._seen_topology: object = None
        self._missed: frozenset[str] = frozenset()
        self.client.cluster.add_listener(lambda _cluster: self.waiting.notify())

    def _assigned(self) -> dict[tuple[str, ...], float]:
        counts = Counter(partition.topic for partition in tuple(self.fetcher.assigned))
        return {(topic,): count for topic, count in counts.items()}

    async def start(self) -> None:
        """Find the cluster, for bootstrap_timeout_ms at most."""
        try:
            await self.application.run(self.client.begin(), what="looking for a broker")
        except BaseException:
            await self.close(0.0)
            raise

    # Waiting…

    def deadline(self, timeout: float) -> float:
        """Return the deadline of a call that may take this many seconds."""
        return self.loop.time() + timeout

    def wakeup(self) -> None:
        """End the call that takes records with WakeupError: this one, or the next. Safe from every thread."""
        self._woken = True
        self.waiting.notify()
        self.loop.wakeup()

    def check_not_in_callback(self) -> None:
        """Raise IllegalStateError if the callback of acknowledgements calls."""
        if self.callback_thread == get_ident():
            raise IllegalStateError("the callback of acknowledgements cannot call this consumer: do it after the call")

    # Subscription…

    def subscribe(self, topics: frozenset[str]) -> None:
        """Read these topics from the next poll on; unreturned records of others are released. With none, leave."""
        self.topics = topics
        self._seen_topology = None
        self._release(lambda topic: topic not in topics)
        released = self.held.take() if not topics else []
        self.loop.call_soon(self._subscribed, topics, released)

    def _subscribed(self, topics: frozenset[str], released: list[Acknowledgements]) -> None:
        self.fetcher.subscribe(topics)
        self.fetcher.send(released)
        if not topics:
            self.member.subscribe(topics)

    def _release(self, is_left: Callable[[str], bool]) -> None:
        """Release what was acquired of topics that are left, and was not returned."""
        if self._source is not None and is_left(self._source.partition.topic):
            release = dict.fromkeys((row.offset for row in self._rows), AcknowledgeType.RELEASE.value)
            self.held.add_ready(self._source, acknowledged_ranges(release))
            self._rows.clear()
        for _ in range(len(self.fetcher.arrivals)):
            arrival = self.fetcher.arrivals.popleft()
            if is_left(arrival.partition.topic):
                self.held.add_ready(arrival, arrival.released())
            else:
                self.fetcher.arrivals.append(arrival)

    # Taking records…

    async def poll(self, deadline: float) -> dict[TopicPartition, list[ShareRecord]]:
        """Return records as soon as there are some; {} at the deadline."""
        self._begin_call()
        tracer = self.tracer
        began = 0 if tracer is None else tracer.now()
        try:
            self._end_last_call()
            if not await self._wait_for_rows(deadline):
                return {}
            # Nothing is awaited from here on, so no cancellation can lose records.
            found: dict[TopicPartition, list[ShareRecord]] = {}
            left: int = self.config["max_poll_records"]
            while left > 0 and (self._rows or self._open_next(is_first=False)):
                rows = self._take_rows()
                found.setdefault(TopicPartition(rows[0].topic, rows[0].partition), []).extend(rows)
                left -= len(rows)
            self.member.last_count = self.config["max_poll_records"] - left
            if tracer is not None:
                tracer.received(began, found)
            return found
        except KafkaError as error:
            if tracer is not None and not isinstance(error, (WakeupError, self.closed_error)):
                tracer.failed(began, error)
            raise
        finally:
            self._end_call()

    async def next(self, deadline: float) -> ShareRecord | None:
        """Return one record for an iteration; None at the deadline. In the implicit mode the last one is accepted."""
        self._begin_call()
        try:
            self.end_current(AcknowledgeType.ACCEPT)
            self._raise_woken()
            if not self._has_fresh_rows():
                began = 0 if self.tracer is None else self.tracer.now()
                self._end_last_call()
                if not await self._wait_for_rows(deadline):
                    return None
                if self.tracer is not None and self._source is not None:
                    self.tracer.received(began, {self._source.partition: tuple(self._rows)})
            elif self.loop.time() - self._sent_at > _SEND_EVERY:
                self.send()
                await self.tell()
            record = self._rows.popleft()
            self.member.last_count = 1
            assert self._source is not None
            self.held.add(self._source, (record.offset,))
            if not self.is_explicit:
                self._current = record
            return record
        finally:
            self._end_call()

    def end_current(self, kind: AcknowledgeType) -> None:
        """Acknowledge the record that an iteration returned last, in the implicit mode."""
        record, self._current = self._current, None
        if record is not None:
            # It is not, if a commit() in between has accepted it.
            self.held.acknowledge_if_open(record[:2], record.offset, kind.value)

    def _begin_call(self) -> None:
        self.check_not_in_callback()
        if self._is_taking:
            raise IllegalStateError(
                "Another task takes records from this consumer, and one at a time may: make a consumer for each"
            )
        self._is_taking = True
        self.member.began_poll()

    def _end_call(self) -> None:
        self._is_taking = False
        self.member.ended_poll()

    def _end_last_call(self) -> None:
        """Say what becomes of the records that were returned before: accept them, or insist on acknowledgements."""
        self.held.release_unreadable()
        if not self.is_explicit:
            self._current = None
            self.held.accept_open()
        elif open_records := self.held.unacknowledged():
            partition, offsets = next(iter(open_records.items()))
            raise IllegalStateError(
                f"{sum(map(len, open_records.values()))} records are not acknowledged, the first one at offset "
                f"{offsets[0]} of {partition.topic}-{partition.partition}: with share_acknowledgement_mode='explicit' "
                "acknowledge() each record before more are taken"
            )
        if not self.topics:
            raise IllegalStateError("There is nothing to read: call subscribe() first")

    def _has_fresh_rows(self) -> bool:
        """Return whether there are records to return that this member has still."""
        if self._rows and self._source is not None and self._is_lost(self._source, len(self._rows)):
            self._rows.clear()
        return bool(self._rows)

    def _is_lost(self, source: AcquiredRecords, count: int) -> bool:
        """Whether others may have records that were not returned yet.

        Where their locks have run out, a warning says of how many, as each delivery is counted.
        """
        if self.loop.time() < source.lock_deadline:
            return self.fetcher.has_lost(source)
        self.member.coordinator.log.warning(
            "%d records of %s-%d were not returned before their acquisition locks ran out: set max_poll_records lower",
            count,
            *source.partition,
            extra={"kafka_topic": source.partition.topic},
        )
        return True

    async def _wait_for_rows(self, deadline: float) -> bool:
        """Wait until there are records to return; False at the deadline."""
        await self.tell()
        self._raise_woken()
        begun = self._is_fetching = False
        try:
            while True:
                future = self.waiting.armed()
                if self._has_fresh_rows() or self._open_next(is_first=True):
                    if not begun:
                        self.send()
                    return True
                self._raise_pending()
                begin = None
                if not self._is_fetching:
                    begun = self._is_fetching = True
                    begin = self._fetching(deadline)
                if not await self._wait(future, deadline, begin):
                    return False
                await self.tell()
        except BaseException:
            self.fetcher.rest()
            if not begun:
                self.send()
            raise

    def _open_next(self, *, is_first: bool) -> bool:
        """Decode what was acquired until there are records in `_rows`; return whether there are some.

        The error of a record that cannot be returned is raised if it `is_first`; otherwise it comes again.
        """
        arrivals = self.fetcher.arrivals
        while arrivals:
            self.fetcher.rest()  # first: no more is acquired than is returned
            self._is_fetching = False
            arrival = arrivals[0]
            if self._is_lost(arrival, arrival.left):
                arrivals.popleft()
                continue
            try:
                self._rows.extend(arrival.take())
            except Exception as error:
                if not is_first:  # the records before it are returned first
                    return False
                if isinstance(error, (RecordDeserializationError, CorruptRecordError)):
                    self._refuse(arrival, error)
                raise
            self._source = arrival
            self._close_arrival(arrival)
            if self._rows:
                return True
        return False

    def _refuse(self, arrival: AcquiredRecords, error: RecordDeserializationError | CorruptRecordError) -> None:
        """Reject damaged records; have the one that a deserializer refused until the application says what becomes."""
        refused = arrival.skip(error)
        if refused.is_damaged:
            self.held.add_ready(arrival, as_one(refused.ranges, AcknowledgeType.REJECT))
        else:
            self.held.add(arrival, [one.first for one in refused.ranges], unreadable=True)
        self._close_arrival(arrival)

    def _close_arrival(self, arrival: AcquiredRecords) -> None:
        if arrival.exhausted:
            self.fetcher.arrivals.popleft()
            self.held.add_ready(arrival, arrival.gaps())

    def _take_rows(self) -> list[ShareRecord]:
        rows = list(self._rows)
        self._rows.clear()
        assert self._source is not None
        self.held.add(self._source, [row.offset for row in rows])
        return rows

    def _fetching(self, deadline: float) -> Callable[[], None]:
        """Return what begins to fetch, on the loop."""
        topics, ready = self.topics, self.held.take()
        self._sent_at = self.loop.time()

        def begin() -> None:
            if self.member.needs(topics):
                self.member.subscribe(topics)
            self.fetcher.begin(deadline, ready)

        return begin

    def send(self) -> None:
        """Send the acknowledgements that there are, without waiting."""
        self._sent_at = self.loop.time()
        if ready := self.held.take():
            self.loop.call_soon(self.fetcher.send, ready)

    def _raise_woken(self) -> None:
        if self._woken:
            self._woken = False
            raise WakeupError("wakeup() was called")

    def _raise_pending(self) -> None:
        self._raise_woken()
        if self.closed or self._closing:
            raise self.closed_error("This consumer is closed.")
        member, errors = self.member, self.fetcher.errors
        if member.error is not None:
            error, member.error = member.error, None
            raise error
        if errors:
            raise errors.popleft()
        if self.client.cluster.topology is not self._seen_topology:
            self._topology_changed()

    def _topology_changed(self) -> None:
        self._seen_topology = topology = self.client.cluster.topology
        self._missed = check_topics(topology.errors, self.topics, self._missed)

    async def _wait(self, future: Any, deadline: float, begin: Callable[[], object] | None) -> bool:
        """Wait until there may be something to do; False at the deadline."""
        self.loop.check_usable()
        if self.loop.time() >= deadline:
            if begin is not None:
                self.loop.call_soon(begin)
            await self.application.turn()
            return bool(future.is_done)
        await self.application.wait(future, None if deadline == math.inf else deadline, begin)
        self.loop.check_usable()
        return True

    # Acknowledging…

    async def commit(self, deadline: float) -> dict[TopicPartition, KafkaError | None]:
        """Send the acknowledgements and wait for the answers."""
        with nullcontext() if self.tracer is None else self.tracer.settling("commit"):
            return await self._commit(deadline)

    async def _commit(self, deadline: float) -> dict[TopicPartition, KafkaError | None]:
        ready = self._take_all(deadline)
        found: dict[TopicPartition, KafkaError | None] = {}
        begin: Callable[[], object] | None = partial(self.fetcher.send, ready)
        for entry in ready:
            await self.application.wait(entry.done, deadline, begin)
            begin = None
            error: KafkaError | None
            if entry.done.is_done:
                error = entry.done.value
            else:
                error = KafkaTimeoutError(
                    f"broker {entry.node_id} did not answer for {entry.partition.topic}-{entry.partition.partition}"
                )
            found[entry.partition] = found.get(entry.partition) or error
        await self.tell()
        return found

    def commit_async(self) -> None:
        """Send the acknowledgements; the callback gets the outcome."""
        ready = self._take_all(self.deadline(self.config.seconds("default_api_timeout_ms")))
        if ready:
            self.loop.call_soon(self.fetcher.send, ready)

    def _take_all(self, deadline: float) -> list[Acknowledgements]:
        """Return the acknowledgements of a commit, which may be sent again until a deadline."""
        self.check_not_in_callback()
        if not self.is_explicit:
            self.held.accept_open()
        ready = self.held.take()
        for entry in ready:
            entry.deadline = deadline
        self._sent_at = self.loop.time()
        return ready

    async def tell(self) -> None:
        """Call the callback with what has become of acknowledgements."""
        results = self.fetcher.results
        while results:
            entry, error = results.popleft()
            partition = entry.partition
            if self.callback is None:
                if error is not None:
                    self.member.coordinator.log.warning(
                        "acknowledgements of %d records of %s-%d failed, so they may be delivered again: %s",
                        entry.count,
                        *partition,
                        error,
                        extra={"kafka_topic": partition.topic},
                    )
                continue
            self.callback_thread = get_ident()
            try:
                self.callback({partition: set(entry.types)}, error)
            except Exception:
                log.exception("The callback of acknowledgements of group %s failed", self.config["group_id"])
            finally:
                self.callback_thread = 0

    # Health…

    def health(self) -> dict[str, Any]:
        """Return what works and what keeps records from coming, as plain values."""
        partitions: dict[str, Any] = {
            f"{topic}-{number}": {
                "leader": leader,
                "problem": None if leader is not None else "its leader is not known",
            }
            for (topic, number), leader in self.fetcher.assigned.items()
        }
        group = self.member.health()
        problems = [f"group {group['group_id']!r}: {group['waiting_for']}"] if group["waiting_for"] else []
        if self.topics and self._seen_topology is None and not self.closed:
            problems.append("the application has not called poll() since it chose topics")
        return self.client.health_with(
            partitions,
            problems,
            closed=self.closed,
            subscription=sorted(self.topics),
            unacknowledged=sum(map(len, self.held.unacknowledged().values())),
            group=group,
        )

    # Closing…

    async def close(self, timeout: float | None) -> None:
        """Commit what was acknowledged, release the rest, leave the group, and free everything. Idempotent."""
        if self.closed or self._closing:
            return
        if self.loop.forked:
            self.closed = True
            return
        self._closing = True
        if timeout is None:
            timeout = min(_CLOSE_TIMEOUT, self.config.seconds("default_api_timeout_ms"))
            if not any(link.ready for link in self.client.links()):
                timeout = min(timeout, _UNREACHABLE)
        deadline = self.deadline(timeout)
        self.waiting.notify()
        self.held.release_unreadable()
        ready = self.held.take()
        try:
            if not self.loop.closed:
                await self.application.run(self._end(ready, deadline), max(deadline, self.deadline(0.25)), "closing")
        except (KafkaError, IllegalStateError):
            pass  # a broker that does not answer does not keep the consumer from closing
        finally:
            self.closed = True
            try:
                await self.tell()
            finally:
                self._close_what_was_given()
                if self.metrics is not None:
                    self.metrics.close()
                await self.application.close(max(0.1, deadline - self.loop.time()))

    async def _end(self, ready: Iterable[Acknowledgements], deadline: float) -> None:
        try:
            await self.fetcher.close(ready, deadline)
            await self.member.end("the consumer is closed", deadline)
        finally:
            await self.client.end(deadline)

    def _close_what_was_given(self) -> None:
        for bound in self._deserializers:
            if bound is not None and bound.close is not None:
                try:
                    bound.close()
                except Exception:
                    log.exception("A deserializer could not be closed")

    async def run(self, coro: Coro[T], deadline: float, what: str) -> T:
        """Run a library-side coroutine to its end."""
        if self.closed:
            coro.close()
            raise ClientClosedError("This consumer is closed.")
        return await self.application.run(coro, deadline, what)
