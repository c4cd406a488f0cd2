"""Fetches ahead: decides which partitions to ask which broker for, and puts the responses into the buffers.

Runs on the client's loop; only `kick`, `look_again`, `freed`, `drained` and reading `arrivals` and `errors` belong to
the application's thread. It acts only for a cause: a response, records that were taken, a change of the assignment or
of metadata, the end of a pause after an error.

A request costs what has changed. An assigned partition is in one of three places: with a connection that asks for it,
among the candidates of its broker, which are looked at before the next request, or in neither while it cannot be
fetched; what ends that looks at it again: `_again` for one partition (its buffer has room, the pause after an error is
over, a response brought something), `kick` for all (the application or the metadata changed something).

A consumer whose application does not poll costs nothing: no request follows a response that brought nothing, or when
as many records have come as one poll returns, until the application polls again or waits.

Bounds: a partition is fetched while less than max_partition_fetch_bytes of it are buffered (the response that is being
taken does not count, so the next one is under way meanwhile). The buffered bytes and the bytes that requests in flight
may bring fit into fetch_buffer_memory together, except that a broker returns a first batch whole even if it is larger.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Generator, Mapping
from typing import TYPE_CHECKING, Final

from kafka._text import printable
from kafka.consumer.fetch_connection import TOPIC_IDS_SINCE, FetchConnection, FetchSettings
from kafka.consumer.fetch_response import FetchTarget, ReaderSettings, open_reply, truncated
from kafka.consumer.partition_state import AssignedPartition, CompletedFetch, Cursor
from kafka.consumer.subscription_state import Mode, SubscriptionState
from kafka.errors import (
    FixNeededError,
    InvalidMetadataError,
    KafkaError,
    LogTruncationError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
    for_code,
)
from kafka.record.consumer_record import ConsumerRecord
from kafka.structs import BrokerMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka._core.client import Client
    from kafka.consumer.metrics import FetchMetrics
    from kafka.consumer.positions import Positions
    from kafka.protocol.fetch import FetchResponse

__all__ = ["ConsumerRecord", "Fetcher"]  # a historic path of ConsumerRecord

log = logging.getLogger(__name__)

# Looks at the metadata, with growing pauses between, after which a missing leader is logged: some seconds.
_TELL_AFTER: Final = 6
_SESSION_CLOSE_TIMEOUT: Final = 1.0  # seconds
# Problems of a partition that new metadata solves.
_UNKNOWN: Final = "the cluster does not know it"
_NO_LEADER: Final = "its leader is not known"
_NONE: Final[Mapping[TopicPartition, AssignedPartition]] = {}
_new = tuple.__new__


class Fetcher:
    """Keeps the buffers of all assigned partitions filled."""

    def __init__(
        self,
        client: Client,
        subscription: SubscriptionState,
        positions: Positions,
        settings: FetchSettings,
        reading: ReaderSettings,
        on_data: Callable[[], object],
    ) -> None:
        self.arrivals: deque[AssignedPartition] = deque()
        """Partitions with new data; the application's thread empties it."""
        self.errors: dict[int, KafkaError] = {}
        """By broker: the last error for the application to raise. A response of that broker removes it."""
        self.metrics: FetchMetrics | None = None
        self.starved = False
        """Whether fetching rests because the buffers are full."""
        self.resting = False
        """Whether a broker is not asked because the application does not poll."""
        self.polls = 0
        """How often the application has polled. Written by its thread."""
        self.callers = 0
        """How many calls of the application wait for records. Written by its thread."""
        self.awaited: list[Collection[TopicPartition]] = []
        """The partitions of the calls that wait for some partitions only."""
        self.client = client
        self.settings = settings
        self.in_flight = 0
        """The bytes that the requests under way may bring together."""
        self.busy_brokers = 0
        """How many main connections have a request under way."""
        self.reopened: deque[AssignedPartition] = deque()
        """Partitions to be candidates again. From any thread."""
        self._cluster = client.cluster
        self._loop = client.loop
        self._subscription = subscription
        self._positions = positions
        self._reading = reading
        self._on_data = on_data
        self._backoff = client.backoff
        self._replica_time = client.config.seconds("metadata_max_age_ms")
        self._connections: dict[int, tuple[FetchConnection, FetchConnection]] = {}
        self._by_node: dict[int, dict[TopicPartition, AssignedPartition]] = {}
        self._candidates: dict[int, dict[TopicPartition, AssignedPartition]] = {}
        self._changed: deque[AssignedPartition] = deque()
        self._everything = False
        self._grouped: Mapping[TopicPartition, AssignedPartition] | None = None
        self._metadata_key: object = None
        self._lost = 0
        self._due = False
        self._closed = False
        self._short = False  # a broker was not asked because requests to others may use up the memory
        self._received = 0
        self._drained = 0
        self._ahead = 0  # how many offsets have come since the application polled
        self._cluster.add_listener(self._metadata_changed)

    # On the application's thread…

    def kick(self) -> None:
        """Look at all partitions, in the next pass: something has changed. Safe from every thread."""
        self._everything = True  # first: a turn looks at it after it has lowered `_due`
        self.look_again()

    def changed(self, state: AssignedPartition) -> None:
        """Look at one partition: its position was moved, or it was paused or resumed."""
        if state.cursor.position is None:
            self.kick()  # it must be found
        else:
            self._changed.append(state)
            self.look_again()

    def look_again(self) -> None:
        """Look whether a request can be sent, in the next pass. Safe from every thread."""
        if not self._due:
            self._due = True
            try:
                self._loop.call_soon(self._turn)
            except BaseException:  # Ctrl-C: the call may not have been queued
                self._due = False
                raise

    def resume(self) -> None:
        """Ask again, as the application polls."""
        self.resting = False
        self.look_again()

    def freed(self, state: AssignedPartition) -> None:
        """Fetch on where a full buffer has kept from it: that of a partition that has room again, or the whole one."""
        if state.full:
            state.full = False
            self._again(state)
        elif self.starved:
            self.look_again()

    def _again(self, state: AssignedPartition) -> None:
        """Look at one partition again, in the next pass. Safe from every thread."""
        self.reopened.append(state)
        self.look_again()

    def take_error(self) -> KafkaError | None:
        """Return an error for the application to raise, once."""
        while self.errors:
            try:
                return self.errors.popitem()[1]
            except KeyError:  # noqa: PERF203 - the loop removed it between the two lines
                pass
        return None

    def drained(self, cursor: Cursor, fetched: CompletedFetch, records: int = 0, *, at_end: bool = True) -> None:
        """Record how many records of a cursor's present response were taken, and whether they were the last."""
        fetched.count += records
        size = fetched.size if at_end else 0
        if at_end:
            self._drained += size  # first: until the next line it is counted as held
            cursor.current = None
            if self.starved:
                self.look_again()
        if self.metrics is not None and fetched.reader is not None:
            self.metrics.taken(fetched.reader.topic, records, size, fetched.count)

    # On the loop: which partitions belong to which broker…

    def _metadata_changed(self, _cluster: object) -> None:
        self.errors.pop(-1, None)  # a refusal by the bootstrap servers
        self._grouped = None
        self.kick()

    def _turn(self) -> None:
        self._due = False
        if self._closed:
            return
        self._short = False
        subscription = self._subscription
        partitions = subscription.partitions
        if self._everything or partitions is not self._grouped:
            self._everything = False
            if partitions is not self._grouped:
                self._want_topics()
                self._group(partitions)
            elif subscription.metadata_key != self._metadata_key:
                self._want_topics()  # new topics are assigned once their metadata is known
            self._look_at_all()
            self._positions.look()
        while self._changed:
            state = self._changed.popleft()
            for connection in self._connections.get(state.node_id, ()):
                connection.drop(state.topic_partition)
            self.reopened.append(state)
        for node_id in self._by_node:
            self._pump(node_id)

    def _look_at_all(self) -> None:
        """Make candidates of all partitions; of a request under way when it is answered."""
        for pair in self._connections.values():
            for connection in pair:
                connection.drop_all()
        self.reopened.clear()
        self._candidates = {node_id: dict(states) for node_id, states in self._by_node.items()}

    def _want_topics(self) -> None:
        subscription, cluster = self._subscription, self._cluster
        everything = subscription.mode is Mode.PATTERN and hasattr(subscription.pattern, "match")
        newly = everything and not cluster.need_all_topic_metadata
        self._metadata_key = subscription.metadata_key
        topics = subscription.wanted_topics
        if self.client.metadata.awaited:
            # A call waits for the metadata of topics that are not subscribed to. The response leads here again.
            everything = everything or cluster.need_all_topic_metadata
            topics |= cluster.wanted_topics
        cluster.need_all_topic_metadata = everything
        # A topic that a pattern matched existed then; if it was deleted since, the request must not create it.
        cluster.creates_topics = subscription.mode is not Mode.PATTERN
        if topics != cluster.wanted_topics:
            cluster.set_topics(topics)
        if newly:
            cluster.request_update()

    def _group(self, partitions: Mapping[TopicPartition, AssignedPartition]) -> None:
        """Group the partitions by the broker that they are read from."""
        now = self._loop.time()
        self._by_node = {}
        lost = []
        for partition, state in partitions.items():
            leader = self._cluster.leader_for_partition(partition)
            if leader is None or leader < 0:
                lost.append(partition)
                state.problem = _UNKNOWN if leader is None else _NO_LEADER
                continue
            if state.problem in {_UNKNOWN, _NO_LEADER}:
                state.problem = None
            node_id = leader
            if state.replica is not None:
                if state.replica_until > now and self._cluster.is_replica_node(partition, state.replica):
                    node_id = state.replica
                else:
                    state.replica = None
            state.node_id = node_id
            self._by_node.setdefault(node_id, {})[partition] = state
        self._grouped = partitions
        for node_id in self._connections.keys() - self._by_node.keys() - self._cluster.topology.brokers.keys():
            for connection in self._connections.pop(node_id):  # the broker has left the cluster
                connection.stop()
            self.errors.pop(node_id, None)
        self._lost = self._lost + 1 if lost else 0
        if self._lost == _TELL_AFTER:
            names = ", ".join(f"{topic}-{number}" for topic, number in lost[:5])
            more = f" and {len(lost) - 5} more" if len(lost) > 5 else ""
            log.warning("%s%s: no leader, so no records come until one is elected", printable(names), more)
        if lost and not self._cluster.need_update:
            self._loop.call_later(self._backoff.delay(self._lost), self._cluster.request_update)

    # On the loop: choosing partitions…

    def _pump(self, node_id: int) -> None:  # noqa: C901, PLR0912 - hot
        """Fetch from a broker, if one of its connections is free and the application wants records."""
        now = self._loop.time()
        connections = self._connections.get(node_id)
        if connections is None:
            connections = FetchConnection(self, node_id, main=True), FetchConnection(self, node_id, main=False)
            self._connections[node_id] = connections
            connections[0].connect()
        main, side = connections
        connection = main if main.idle else side
        if not connection.idle or connection.retry_at > now or main.retry_at > now:
            return
        if connection.enough and connection.polls == self.polls and not self.callers:
            # Set the flag first and look again: poll() counts first and looks at the flag then.
            self.resting = True
            if connection.polls == self.polls and not self.callers:
                return
        while self.reopened:
            state = self.reopened.popleft()
            partition, leader = state.topic_partition, state.node_id
            if self._by_node.get(leader, _NONE).get(partition) is state:  # else it has another broker now, or is gone
                self._candidates[leader][partition] = state
        # From here on cursors are held: the application's thread may replace a partition's cursor at any time, and
        # facts about the old one do not hold for the new one.
        found: list[FetchTarget] = []
        candidates: dict[TopicPartition, AssignedPartition] = {}
        limit, read_committed = self.settings.max_partition_bytes, self._reading.read_committed
        for partition, state in self._candidates[node_id].items():
            cursor = state.cursor
            # Each of these ends with `kick` or `_again`.
            if (
                cursor.position is None
                or state.paused
                or state.leaving
                or cursor.connection is not None
                or cursor.blocked
                or state.retry_at > now
            ):
                continue
            if cursor.received - cursor.taken >= limit:
                # Set the flag first and look again: `freed` is called after the taking.
                state.full = True
                if cursor.received - cursor.taken >= limit:
                    continue
                state.full = False
            candidates[partition] = state
            if connection is side:  # only for what has records to fetch, by the last high watermark
                end = state.stable_offset if read_committed else state.high_watermark
                if cursor.side_empty or (end is not None and cursor.fetch_offset >= end):
                    continue
            found.append(FetchTarget(state, cursor))
        self._candidates[node_id] = candidates
        if not found and not connection.targets:
            return
        room = self.settings.buffer_memory - (self._received - self._drained)
        if room > 0:
            self.starved = False
        else:
            room = self._room()
        if self.awaited and room <= limit:
            found = [target for target in found if self._is_awaited(target.state)]
            others = [target for target in connection.targets.values() if not self._is_awaited(target.state)]
            connection.release(others)
        if room <= 0 or not (found or connection.targets):
            return
        # The bytes that the requests in flight leave are divided among the brokers without one: a broker that has no
        # new records holds its request for fetch_max_wait_ms, and the others are asked meanwhile.
        room -= self.in_flight
        if room <= 0:
            self._short = True
            return
        idle = len(self._by_node) - self.busy_brokers + (not connection.main)
        room = max(1, room // max(1, idle))
        for target in found:
            del candidates[target.state.topic_partition]
        connection.asked_in = self._by_node
        if connection.polls != self.polls:
            connection.polls, self._ahead = self.polls, 0
        connection.ask(found, min(self.settings.max_bytes, room))

    def _room(self) -> int:
        """Return how many bytes may be fetched, by what is held; at 0 `starved` is set, and `freed` looks again."""
        # Responses that seek() dropped are still counted as received. `_drained` is read after that and not written
        # here: a response that is drained just now may be counted as held once more, but is never lost.
        was_starved, self.starved = self.starved, True
        held = self._held()
        self._received = held + self._drained
        room = self.settings.buffer_memory - held
        self.starved = room <= 0
        if self.starved and not was_starved:
            self._on_data()  # a call that waits for other partitions makes room
        return room

    # On the loop: responses…

    def answered(  # noqa: C901, PLR0912, PLR0915 - hot
        self, connection: FetchConnection, response: FetchResponse, version: int
    ) -> Generator[None, None, None]:
        """Take the parts of partitions whose positions were not moved, send the next request, tell the application.

        It yields before each partition.
        """
        came, topology, targets, answered = False, self._cluster.topology, connection.targets, connection.answered
        now, is_main = self._loop.time(), connection.main
        if self.metrics is not None:
            self.metrics.answered(now - connection.asked_at, response.throttle_time_ms)
        if not is_main:
            for asked in targets.values():  # also if the response leaves it out
                asked.cursor.side_empty = True  # until data comes
        for topic in response.responses:
            name = topic.topic if version < TOPIC_IDS_SINCE else topology.names_by_id.get(topic.topic_id)
            if not name:
                continue
            topic_id = topology.topic_ids.get(name)
            for data in topic.partitions:
                yield
                target = targets.get(_new(TopicPartition, (name, data.partition_index)))
                if target is None:
                    continue
                state, cursor = target.state, target.cursor
                if state.cursor is not cursor or cursor.fetch_offset != target.offset:
                    connection.drop(state.topic_partition)  # it was moved, or another response was faster
                    continue
                if topic_id is not None and cursor.topic_id is not topic_id and cursor.topic_id not in {None, topic_id}:
                    continue  # fetched by name, and created again meanwhile: it may be of either topic
                if is_main:
                    cursor.side_empty = False
                if data.error_code:
                    answered.append(target)
                    came = self._partition_failed(target, data, response) or came
                elif not data.records and data.diverging_epoch.end_offset >= 0:  # then it reads nothing
                    answered.append(target)
                    cut = data.diverging_epoch
                    error = truncated(state.topic_partition, target.offset, cut.end_offset, cut.epoch)
                    came = self._deliver(target, CompletedFetch(None, 0, error, damaged=True))
                else:
                    state.failures, state.problem = 0, None
                    state.high_watermark, state.fetched_at = data.high_watermark, now
                    if data.last_stable_offset >= 0:
                        state.stable_offset = data.last_stable_offset
                    if data.preferred_read_replica >= 0 and data.preferred_read_replica != state.replica:
                        state.replica, self._grouped = data.preferred_read_replica, None
                        state.replica_until = now + self._replica_time
                    if data.records:
                        fetched = yield from open_reply(target, data, self._reading, version)
                        if fetched is not None:
                            answered.append(target)
                            came = self._deliver(target, fetched)
        connection.end()
        if self._closed:
            return
        if response.error_code:
            # Mostly the broker has dropped the session.
            problem = for_code(response.error_code)(node_id=connection.node_id)
            log.debug("Fetch from broker %s: %s", connection.node_id, problem)
            self._back_off(connection)
            if isinstance(problem, FixNeededError):
                self._report(connection, problem)
        else:
            self.errors.pop(connection.node_id, None)
        connection.enough = (
            not response.error_code
            and not connection.is_outdated  # else it may have brought nothing because the positions were moved
            and (not came or self._ahead >= self.settings.poll_records)
        )
        if (
            self._grouped is not self._subscription.partitions
            or connection.asked_in is not self._by_node  # partitions may have moved to other brokers
        ):
            self.kick()
        elif self._short:
            self.look_again()
        elif not self._due:
            self._pump(connection.node_id)
        if came:
            self._on_data()

    def _deliver(self, target: FetchTarget, fetched: CompletedFetch) -> bool:
        cursor = target.cursor
        cursor.blocked = fetched.damaged
        cursor.side_empty = False
        self._received += fetched.size
        self._ahead += cursor.fetch_offset - target.offset
        cursor.received += fetched.size
        cursor.fetched.append(fetched)
        self.arrivals.append(target.state)
        return True

    # On the loop: errors…

    def log_differs(self, target: FetchTarget, error: KafkaError) -> None:
        """Act on a log that is not the one that was read, or that could not be checked (brokers before 2.7)."""
        if target.stale:
            return
        if isinstance(error, LogTruncationError):
            self._deliver(target, CompletedFetch(None, 0, error, damaged=True))
            self._on_data()
            return
        self._pause(target.state, error)
        if error.invalid_metadata:
            self._cluster.request_update()

    def _partition_failed(
        self, target: FetchTarget, data: FetchResponse.PartitionData, response: FetchResponse
    ) -> bool:
        state = target.state
        error = for_code(data.error_code)(topic_partition=state.topic_partition)
        self._pause(state, error)
        if state.replica is not None:
            # A follower may be behind, or down: ask the leader.
            state.replica, self._grouped = None, None
        elif isinstance(error, (OffsetOutOfRangeError, TopicAuthorizationFailedError)):
            return self._deliver(target, CompletedFetch(None, 0, error, damaged=True))
        elif error.invalid_metadata and not self._take_hint(state, data, response):
            self._cluster.request_update()
        # The rest are passing troubles of the broker (a disk, a bug): the log and health() name them.
        return False

    def _take_hint(self, state: AssignedPartition, data: FetchResponse.PartitionData, response: FetchResponse) -> bool:
        """Take the new leader from the response (KIP-951); return whether it names one."""
        leader = data.current_leader
        if leader.leader_id < 0:
            return False
        brokers = [
            BrokerMetadata(node.node_id, node.host, node.port, node.rack) for node in response.node_endpoints or ()
        ]
        partition = state.topic_partition
        if not self._cluster.update_partition_leader(partition, leader.leader_id, leader.leader_epoch, brokers):
            return False
        self._grouped = None
        state.retry_at = 0.0
        return True

    def _pause(self, state: AssignedPartition, error: KafkaError) -> None:
        """Fetch nothing from a partition for the backoff after an error."""
        state.failures += 1
        state.problem = str(error)
        delay = self._backoff.delay(state.failures)
        state.retry_at = self._loop.time() + delay
        self._loop.call_later(delay, self._again, state)
        log.debug("Fetching %s-%s: %s", *state.topic_partition, error)

    def connection_failed(self, connection: FetchConnection, error: KafkaError) -> None:
        """Wait before the next request after the error of one."""
        if self._closed:
            return
        for state in self._by_node.get(connection.node_id, _NONE).values():
            state.problem = str(error)
        if isinstance(error, InvalidMetadataError) or error.invalid_metadata:
            self._cluster.request_update()
        elif not error.retriable:
            self._report(connection, error)
        self._back_off(connection)

    def _report(self, connection: FetchConnection, error: KafkaError) -> None:
        self.errors[connection.node_id] = error
        self._on_data()

    def _back_off(self, connection: FetchConnection) -> None:
        connection.failures += 1
        delay = self._backoff.delay(connection.failures)
        connection.retry_at = self._loop.time() + delay
        self._loop.call_later(delay, self.look_again)

    # On the application's thread: room for what a call waits for…

    def make_room(self, only: Collection[TopicPartition] | None) -> None:
        """Drop data that takes up all the memory while a call waits for other partitions; it is fetched again later.

        That is all data of paused partitions, and if the call waits for some partitions only, as much of the others'
        as one fetch needs.
        """
        states = self._subscription.partitions.values()
        for state in states:
            if state.paused:
                self._drop(state)
        if only is None:
            return
        enough = self.settings.buffer_memory - self.settings.max_partition_bytes
        held = self._held()
        for state in reversed(tuple(states)):
            if held <= max(0, enough):
                return
            if state.topic_partition not in only and not self._is_awaited(state):
                held -= state.cursor.held
                self._drop(state)

    def _drop(self, state: AssignedPartition) -> None:
        cursor = state.cursor
        if cursor.has_data and cursor.position is not None:
            self._subscription.move(state, Cursor(cursor.position, cursor.epoch))

    def _is_awaited(self, state: AssignedPartition) -> bool:
        return any(state.topic_partition in only for only in tuple(self.awaited))

    def _held(self) -> int:
        return sum(state.cursor.held for state in self._subscription.partitions.values())

    # Closing…

    def stop(self) -> None:
        """Ask for no more records and positions. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._cluster.remove_listener(self._metadata_changed)
        self._positions.stop()
        for pair in self._connections.values():
            for connection in pair:
                connection.stop()

    async def close(self, deadline: float) -> None:
        """Stop, and end the sessions at the brokers if that is possible by the deadline."""
        self.stop()
        connections = [connection for pair in self._connections.values() for connection in pair]
        # Optional: brokers drop unused sessions, so slow or silent ones are not waited for.
        deadline = min(deadline, self._loop.time() + _SESSION_CLOSE_TIMEOUT)
        closing = [self._loop.spawn(connection.close(deadline)) for connection in connections]
        for task in closing:
            await task
