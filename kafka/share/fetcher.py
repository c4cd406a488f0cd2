"""Acquires records from the leaders of the assigned partitions, and brings acknowledgements to them.

Runs on the client's loop; only `arrivals`, `errors` and `results` are read by the application's thread or task. Each
broker gets one request at a time, because the requests of a share session are numbered. Records are acquired only while
the application waits in a poll: the locks of records that no call takes would run out. A fetch therefore waits at
the broker no longer than the poll will. With share_acquire_mode='record_limit' one broker is asked at a time, so that
no more records are acquired than one poll returns.

Acknowledgements go with the next fetch if there is one for their partition, otherwise with a ShareAcknowledge.
Acknowledgements for a session that has ended fail with the reason: the broker has released the records, or will.
"""

from __future__ import annotations

import contextlib
import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafka._core.attempts import pause_after
from kafka._core.client import FETCH
from kafka._text import printable
from kafka.coordinator.share_group_member import share_groups_unsupported
from kafka.errors import (
    ClientClosedError,
    Code,
    CorruptRecordError,
    FixNeededError,
    KafkaConnectionError,
    KafkaError,
    ShareSessionNotFoundError,
    TopicAuthorizationFailedError,
    UnknownError,
    UnsupportedVersionError,
    for_code,
)
from kafka.future import Future
from kafka.protocol.share import ShareFetchRequest, ShareFetchResponse
from kafka.share.acknowledgements import Acknowledgements
from kafka.share.acquired_records import AcquiredRange, AcquiredRecords
from kafka.share.session import ShareRequests, ShareSession
from kafka.structs import BrokerMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka._core.client import Client
    from kafka._core.topology import Topology
    from kafka.config import Config
    from kafka.consumer.fetch_response import ReaderSettings
    from kafka.coordinator.share_group_member import ShareGroupMember
    from kafka.protocol.share import ShareAcknowledgeRequest, ShareAcknowledgeResponse
    from kafka.share.metrics import ShareFetchMetrics
    from kafka.share.session import Place

_RECORD_LIMIT_SINCE: Final = 2
# A fetch is answered this much before the poll ends that waits for it, in seconds: else its records wait for the next.
_MARGIN: Final = 0.01
# For how long after a poll(0) its one fetch may still be sent, in seconds.
_LATE: Final = 0.1
# After that many unknown errors of a session in a row a poll raises.
_STALE: Final = 5
# Codes of a partition after which its leader is looked up; 6 and 74 name the new one.
_LEADER_MOVED: Final = frozenset({Code.NOT_LEADER_OR_FOLLOWER, Code.FENCED_LEADER_EPOCH})


class _Node:
    """One broker: its session, and what waits to be sent to it."""

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.session = ShareSession()
        self.waiting: list[Acknowledgements] = []
        self.request: Future[Any] | None = None
        """The one that is under way."""
        self.fetching = False
        self.checked = False
        """Whether it knows record limits, as far as this session is concerned."""
        self.fetched_at = -math.inf
        self.asked_in = 0
        """The number of the poll that it was asked for last."""
        self.retry_at = 0.0
        self.failures = 0

    def end_session(self) -> None:
        """Open another session with the next fetch: the broker does not have this one, or its epoch is unknown."""
        self.session.ended = True
        self.session = ShareSession()


class ShareFetcher:
    """The share sessions of one consumer."""

    def __init__(
        self,
        client: Client,
        config: Config,
        member: ShareGroupMember,
        reading: ReaderSettings,
        on_event: Callable[[], object],
    ) -> None:
        self.arrivals: deque[AcquiredRecords] = deque()
        """Records that were acquired and not taken; the application empties it."""
        self.errors: deque[KafkaError] = deque(maxlen=16)
        """For the application to raise."""
        self.results: deque[tuple[Acknowledgements, KafkaError | None]] = deque()
        """What became of acknowledgements, for the application's callback."""
        self.lock_timeout: float | None = None
        """Seconds that a member has a record, as of the last response."""
        self.metrics: ShareFetchMetrics | None = None
        self._client = client
        self._cluster = client.cluster
        self._loop = client.loop
        self._group_id: str = config["group_id"]
        self._member = member
        self._log = member.coordinator.log
        self._reading = reading
        self._on_event = on_event
        self._backoff = client.backoff
        self._max_wait: float = config["fetch_max_wait_ms"] / 1000
        self._requests = ShareRequests(config, member.member_id)
        self._exactly = config["share_acquire_mode"] == "record_limit"
        self._nodes: dict[int, _Node] = {}
        self._by_node: dict[int, list[Place]] = {}
        self._names: dict[Place, TopicPartition] = {}
        self._not_before: dict[Place, float] = {}
        self._failures: dict[Place, int] = {}
        self._topics: frozenset[str] = frozenset()
        self._poll = 0
        self._wanted_until = -math.inf
        self._refreshing = False
        self._closed = False
        self._timers: set[float] = set()
        self._retrying: set[Acknowledgements] = set()
        """Acknowledgements in the pause before they are sent again."""
        self._cluster.add_listener(lambda _cluster: self.look())

    # Calls of the application…

    def subscribe(self, topics: frozenset[str]) -> None:
        """Read these topics: know where their partitions are."""
        self._topics = topics
        self._cluster.set_topics(topics)
        self.look()

    def begin(self, until: float, acknowledgements: Iterable[Acknowledgements]) -> None:
        """Acquire records for a poll that waits until a time, and send these acknowledgements."""
        self._poll += 1
        self._wanted_until = until
        self._enter(acknowledgements)
        self._pump()

    def rest(self) -> None:
        """Acquire nothing more: the poll has returned."""
        self._wanted_until = -math.inf

    def send(self, acknowledgements: Iterable[Acknowledgements]) -> None:
        """Send acknowledgements now."""
        self._enter(acknowledgements)
        self._pump()

    def _enter(self, acknowledgements: Iterable[Acknowledgements]) -> None:
        for entry in acknowledgements:
            if self._closed:
                self._resolve(entry, ClientClosedError("The consumer was closed."))
            else:
                self._node(entry.node_id).waiting.append(entry)

    def _node(self, node_id: int) -> _Node:
        node = self._nodes.get(node_id)
        if node is None:
            node = self._nodes[node_id] = _Node(node_id)
        return node

    # Which partitions are read from which broker…

    def look(self) -> None:
        """Compare the assignment with the metadata, as one of them has changed."""
        if self._closed:
            return
        by_node: dict[int, list[Place]] = {}
        self._names = {}
        is_unknown = False
        for topic_id, numbers in self._member.assigned.items():
            name = self._cluster.topic_name_for_id(topic_id)
            if name is None or name not in self._topics:
                is_unknown = is_unknown or name is None
                continue
            for number in sorted(numbers):
                place, partition = (topic_id, number), TopicPartition(name, number)
                leader = self._cluster.leader_for_partition(partition)
                self._names[place] = partition
                if leader is None or leader < 0:
                    is_unknown = True
                else:
                    by_node.setdefault(leader, []).append(place)
        self._by_node = by_node
        for node_id in by_node:
            self._node(node_id)
        if is_unknown:
            self._refresh()
        self._on_event()
        self._pump()

    def _refresh(self) -> None:
        """Ask for metadata, after a pause."""
        if not self._refreshing:
            self._refreshing = True
            self._loop.call_later(self._backoff.delay(1), self._request_metadata)

    def _request_metadata(self) -> None:
        self._refreshing = False
        if not self._closed:
            self._cluster.request_update()

    @property
    def assigned(self) -> dict[TopicPartition, int | None]:
        """The partitions that are read, with their leaders."""
        leaders = {place: node_id for node_id, places in self._by_node.items() for place in places}
        return {partition: leaders.get(place) for place, partition in self._names.items()}

    # Choosing the next request…

    def _pump(self) -> None:
        """Send each broker that has none its next request, if there is something to send."""
        if self._closed:
            return
        for node in sorted(self._nodes.values(), key=lambda node: node.fetched_at):
            if node.request is None:
                self._pump_node(node)

    def _pump_node(self, node: _Node) -> None:
        if node.waiting and not node.session.is_open:
            error = ShareSessionNotFoundError(
                f"the share session with broker {node.node_id} has ended, and the broker has released the records"
            )
            sent, node.waiting = node.waiting, []
            self._finish(sent, error)
        now = self._loop.time()
        places = self._fetchable(node, now)
        wants = bool(places) and self._wants(node, now)
        if not wants and not node.waiting:
            return
        if node.retry_at > now:
            self._pump_at(node.retry_at)
            return
        sent, node.waiting = node.waiting, []
        if wants and all(
            entry.deadline is None and not entry.renews and (entry.topic_id, entry.partition.partition) in places
            for entry in sent
        ):
            if self._exactly and not node.checked:
                self._check_record_limit(node)  # nothing is to be sent: the session is not open
            else:
                self._fetch(node, places, sent, now)
        else:
            self._submit(node, self._requests.acknowledge(node.session, sent), sent)

    def _wants(self, node: _Node, now: float) -> bool:
        """Whether a poll waits for records that this broker may have."""
        if self.arrivals:
            return False
        if node.asked_in == self._poll:
            if self._wanted_until - now <= _MARGIN:
                return False
        elif now > self._wanted_until + _LATE:
            return False
        if not self._exactly:
            return True
        return not any(other.fetching for other in self._nodes.values() if other is not node)

    def _fetchable(self, node: _Node, now: float) -> list[Place]:
        """Return the partitions to read from a broker."""
        places = self._by_node.get(node.node_id, [])
        if self._not_before:
            waiting = [place for place in places if self._not_before.get(place, 0.0) > now]
            if waiting:
                self._pump_at(min(self._not_before[place] for place in waiting))
                return [place for place in places if place not in waiting]
        return places

    def _pump_at(self, when: float) -> None:
        if when not in self._timers and self._wanted_until > when:
            self._timers.add(when)

            def due() -> None:
                self._timers.discard(when)
                self._pump()

            self._loop.call_at(when, due)

    def _submit(
        self,
        node: _Node,
        request: ShareFetchRequest | ShareAcknowledgeRequest,
        sent: list[Acknowledgements],
        timeout: float | None = None,
    ) -> None:
        """Send a request to a broker, which has no other one."""
        try:
            node.request = self._client.submit(node.node_id, request, use=FETCH, timeout=timeout)
        except KafkaError as error:
            node.request = Future[Any]().failure(error)
        node.request.add_both(partial(self._answered, node, sent, self._loop.time(), self._cluster.topology))

    def _answered(
        self,
        node: _Node,
        sent: list[Acknowledgements],
        sent_at: float,
        topology: Topology,
        result: ShareFetchResponse | ShareAcknowledgeResponse | BaseException,
    ) -> None:
        node.request, node.fetching = None, False
        if isinstance(result, BaseException):
            # A broker releases what a member has when its connection ends.
            self._refused(node, _as_kafka_error(result), sent)
        elif result.error_code:
            message = result.error_message or f"broker {node.node_id} refused a request of its share session"
            self._refused(node, for_code(result.error_code)(message), sent)
        else:
            node.session.answered()
            node.failures = 0
            is_fetch = isinstance(result, ShareFetchResponse)
            if is_fetch and self.metrics is not None:
                self.metrics.answered(self._loop.time() - sent_at, result.throttle_time_ms)
            if result.acquisition_lock_timeout_ms > 0:
                self.lock_timeout = result.acquisition_lock_timeout_ms / 1000
            codes: dict[Place, tuple[int, str | None]] = {}
            data: Any
            for topic in result.responses:
                for data in topic.partitions:
                    place = (topic.topic_id, data.partition_index)
                    if is_fetch:
                        codes[place] = data.acknowledge_error_code, data.acknowledge_error_message
                        self._take_partition(node, place, data, result.API_VERSION, topology)
                    else:
                        codes[place] = data.error_code, data.error_message
                    if data.error_code in _LEADER_MOVED:
                        self._adopt_leader(place, data.current_leader, result.node_endpoints)
            self._settle(sent, codes)
            self._on_event()
            self._pump()

    def _refused(self, node: _Node, error: KafkaError, sent: Iterable[Acknowledgements]) -> None:
        """React to an error of the whole request."""
        node.end_session()
        node.checked = False
        self._finish(sent, error)
        self._failed(node, error)
        self._loop.call_soon(self._pump)  # not now: what fails at once would come back here

    def _failed(self, node: _Node, error: KafkaError) -> None:
        node.failures += 1
        node.retry_at = self._loop.time() + pause_after(error, node.failures, self._backoff)
        if isinstance(error, UnsupportedVersionError):
            error = share_groups_unsupported(error)
        # Kafka 4.3.1 has no better answer for a session with a topic that was deleted; another session is without it.
        is_stale = isinstance(error, UnknownError) and node.failures <= _STALE
        if isinstance(error, FixNeededError) or not (error.retriable or is_stale):
            self.errors.append(error)
        else:
            self._log.info("share session with broker %s: %s", node.node_id, error)
            if error.invalid_metadata or is_stale:
                self._refresh()
        self._on_event()

    # Fetching…

    def _fetch(self, node: _Node, places: list[Place], sent: list[Acknowledgements], now: float) -> None:
        node.fetching, node.asked_in, node.fetched_at = True, self._poll, now
        max_wait = max(0.0, min(self._max_wait, self._wanted_until - now - _MARGIN))
        request = self._requests.fetch(node.session, places, sent, max_wait)
        self._submit(node, request, sent, self._client.settings.request_timeout + max_wait)

    def _check_record_limit(self, node: _Node) -> None:
        """Connect, and continue if the broker knows record limits: an older one would acquire more."""
        node.fetching = True
        node.request = self._loop.spawn(self._connected(node), f"connect to broker {node.node_id}")
        node.request.add_both(partial(self._checked, node))

    async def _connected(self, node: _Node) -> None:
        link = self._client.link(node.node_id, FETCH)
        await self._client.open(link, self._loop.time() + self._client.settings.request_timeout)
        assert link.versions is not None
        if link.versions.version_for(ShareFetchRequest()) < _RECORD_LIMIT_SINCE:
            raise UnsupportedVersionError("share_acquire_mode='record_limit' needs ShareFetch 2 of Kafka 4.2")
        node.checked = True

    def _checked(self, node: _Node, error: BaseException | None) -> None:
        node.request, node.fetching = None, False
        if error is not None:
            self._failed(node, _as_kafka_error(error))
        self._pump()

    def _take_partition(
        self, node: _Node, place: Place, data: ShareFetchResponse.PartitionData, version: int, topology: Topology
    ) -> None:
        if data.error_code:
            self._partition_failed(place, data)
            return
        self._not_before.pop(place, None)
        self._failures.pop(place, None)
        if data.acquired_records:
            self._acquired(node, place, data, version, topology)

    def _acquired(
        self, node: _Node, place: Place, data: ShareFetchResponse.PartitionData, version: int, topology: Topology
    ) -> None:
        partition = self._names.get(place)
        if partition is None:  # the assignment has changed while the fetch was under way: the member has them
            partition = TopicPartition(self._cluster.topic_name_for_id(place[0]) or "", place[1])
        found = AcquiredRecords(
            partition,
            place[0],
            node.node_id,
            version,
            [AcquiredRange(one.first_offset, one.last_offset, one.delivery_count) for one in data.acquired_records],
            data.records,
            self._reading,
            self._loop.time() + (self.lock_timeout or math.inf),
            node.session,
            topology,
        )
        if self.metrics is not None:
            self.metrics.taken(partition.topic, found.count, found.size, found.count)
        # The subscription has changed; or the leader has moved, and perhaps come back, while the broker held the
        # response until the acknowledgements failed: the records were acquired before, and others may have them.
        if partition.topic not in self._topics or data.acknowledge_error_code in _LEADER_MOVED:
            node.waiting.append(Acknowledgements(found.partition, place[0], node.node_id, found.released()))
        else:
            self.arrivals.append(found)

    def _partition_failed(self, place: Place, data: ShareFetchResponse.PartitionData) -> None:
        """React to the error of one partition."""
        partition = self._names.get(place)
        failures = self._failures[place] = self._failures.get(place, 0) + 1
        kind = for_code(data.error_code)
        self._not_before[place] = self._loop.time() + self._backoff.delay(failures)
        if kind.invalid_metadata or data.error_code == Code.UNKNOWN_TOPIC_ID:
            self._refresh()
            return
        name = "a partition" if partition is None else f"{partition.topic}-{partition.partition}"
        if issubclass(kind, (TopicAuthorizationFailedError, CorruptRecordError)):
            error = kind(data.error_message or f"{name} cannot be read by share group {self._group_id!r}")
            if isinstance(error, CorruptRecordError):
                error.topic_partition = partition
            self.errors.append(error)
        elif failures == 1:
            self._log.warning("%s: %s", printable(name), kind(data.error_message))

    def _adopt_leader(self, place: Place, leader: Any, endpoints: Iterable[Any]) -> None:
        partition = self._names.get(place)
        if partition is not None and leader.leader_id >= 0:
            brokers = [BrokerMetadata(one.node_id, one.host, one.port, one.rack) for one in endpoints]
            if self._cluster.update_partition_leader(partition, leader.leader_id, leader.leader_epoch, brokers):
                self._loop.call_soon(self.look)

    def has_lost(self, source: AcquiredRecords) -> bool:
        """Whether others may have these records: the session has ended, or the leader moved. From any thread."""
        topology, partition = self._cluster.topology, source.partition
        if source.session.ended:
            return True
        if topology is source.topology:
            return False
        before, now = source.topology.partition(*partition), topology.partition(*partition)
        if before is not None and now is not None and before.leader_epoch != now.leader_epoch:
            return True
        link = self._client.known_link(source.node_id, FETCH)
        if link is None or not link.ready:  # the broker releases them when the connection ends
            return True
        source.topology = topology
        return False

    # Acknowledging…

    def _settle(self, sent: Iterable[Acknowledgements], codes: Mapping[Place, tuple[int, str | None]]) -> None:
        for entry in sent:
            code, message = codes.get((entry.topic_id, entry.partition.partition), (None, None))
            name = f"{entry.partition.topic}-{entry.partition.partition}"
            if code is None:
                self._resolve(entry, UnknownError(f"broker {entry.node_id} did not answer for {name}"))
            elif not code:
                self._resolve(entry, None)
            else:
                error = for_code(code)(message or f"broker {entry.node_id} refused acknowledgements of {name}")
                if error.invalid_metadata:
                    self._refresh()
                if not self._again(entry, error):
                    self._resolve(entry, error)

    def _again(self, entry: Acknowledgements, error: KafkaError) -> bool:
        """Have acknowledgements sent again after an error that may pass; whether that is so."""
        if entry.deadline is None or not error.retriable or error.invalid_metadata or self._closed:
            return False
        entry.failures += 1
        when = self._loop.time() + pause_after(error, entry.failures, self._backoff)
        if when >= entry.deadline:
            return False
        self._retrying.add(entry)
        self._loop.call_at(when, self._retry, entry)
        return True

    def _retry(self, entry: Acknowledgements) -> None:
        if entry in self._retrying:  # close() has not sent it
            self._retrying.discard(entry)
            self.send([entry])

    def _finish(self, entries: Iterable[Acknowledgements], error: KafkaError) -> None:
        for entry in entries:
            self._resolve(entry, error)
        self._on_event()

    def _resolve(self, entry: Acknowledgements, error: KafkaError | None) -> None:
        if entry.done.try_success(error):
            self.results.append((entry, error))
            if self.metrics is not None:
                self.metrics.acknowledged(entry.partition.topic, entry.count, error)

    # Closing…

    async def close(self, acknowledgements: Iterable[Acknowledgements], deadline: float) -> None:
        """Send what is left and close the sessions, which releases everything else that this member has."""
        self._enter([*self._retrying, *acknowledgements])
        self._retrying.clear()
        self._closed = True
        self.arrivals.clear()
        closing = [
            self._loop.spawn_logged(self._close_session(node, deadline), f"close the session with {node.node_id}")
            for node in self._nodes.values()
        ]
        for task in closing:
            await task

    async def _close_session(self, node: _Node, deadline: float) -> None:
        loop = self._loop
        try:
            # A fetch may wait at the broker, which takes one request after another. Half of the time is for the rest:
            # when the connection ends, the broker closes the session as well.
            with loop.timeout_at((loop.time() + deadline) / 2, "closing a share session"):
                if node.request is not None:
                    await node.request
        except KafkaError:
            node.end_session()
        sent, node.waiting = node.waiting, []
        link = self._client.known_link(node.node_id, FETCH)
        if not node.session.is_open or link is None or not link.ready:
            self._finish(sent, KafkaConnectionError(f"broker {node.node_id} cannot be reached as the consumer closes"))
            return
        request = self._requests.acknowledge(node.session, sent, closing=True)
        self._submit(node, request, sent, timeout=max(0.0, deadline - loop.time()))
        if node.request is not None:
            with contextlib.suppress(KafkaError):
                await node.request


def _as_kafka_error(error: BaseException) -> KafkaError:
    return error if isinstance(error, KafkaError) else ClientClosedError(f"The consumer was closed: {error!r}")
