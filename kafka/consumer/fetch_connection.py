"""Fetching from one broker: two connections, at most one request under way on each.

The main connection has the fetch session and asks for all fetchable partitions. The broker holds that request back
while there is nothing new. Partitions that become fetchable meanwhile (after a seek, a resume, an emptied buffer) do
not wait for its end: the side connection asks for them, without a session and with max_wait_ms=0. If it waited too,
both could wait at the broker for partitions without new records while a third has plenty. It connects when first used.

A new leader may have another log than the one that was read (KIP-320). Since Fetch v12 (2.7) each fetch names the
epoch of the last record, and the response shows where the log was cut. Before that, since 2.1, the connection sends
OffsetForLeaderEpoch after each change of leader, before the next fetch.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from kafka._core.client import FETCH
from kafka.consumer.fetch_response import FetchTarget, topic_recreated, truncated
from kafka.consumer.fetch_session import NO_TOPIC_ID, FetchSession, Wanted
from kafka.errors import (
    ClusterAuthorizationFailedError,
    KafkaError,
    TopicAuthorizationFailedError,
    UnknownError,
    UnknownLeaderEpochError,
    for_code,
)
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Generator, Iterable
    from uuid import UUID

    from kafka._core.client import Client
    from kafka._runtime.tasks import Task
    from kafka.config import Config
    from kafka.consumer.partition_state import AssignedPartition
    from kafka.net.connection import Connection
    from kafka.protocol.fetch import FetchRequest, FetchResponse
    from kafka.protocol.offset import OffsetForLeaderEpochResponse

__all__ = [
    "TOPIC_IDS_SINCE",
    "FetchConnection",
    "FetchSettings",
    "check_new_leader",
    "unchecked",
]

log = logging.getLogger(__name__)
_new = tuple.__new__

SIDE: Final = "fetch-side"
_POLL_RECORDS: Final = 500  # where max_poll_records has no limit
TOPIC_IDS_SINCE: Final = 13
_MAX_BYTES_SINCE: Final = 3
_SESSIONS_SINCE: Final = 7
_LAST_EPOCH_SINCE: Final = 12


class FetchSettings(NamedTuple):
    """The fields of every request."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_partition_bytes: int
    buffer_memory: int
    isolation_level: int
    rack: str
    sessions: bool
    poll_records: int
    """How many records one poll() returns at most, about."""

    @classmethod
    def of(cls, config: Config) -> FetchSettings:
        """Return the settings that a configuration asks for."""
        return cls(
            max_wait_ms=config["fetch_max_wait_ms"],
            min_bytes=config["fetch_min_bytes"],
            max_bytes=config["fetch_max_bytes"],
            max_partition_bytes=max(1, config["max_partition_fetch_bytes"]),  # 0 means a batch at a time, as in Java
            buffer_memory=config["fetch_buffer_memory"],
            isolation_level=int(config["isolation_level"] == "read_committed"),
            rack=config["client_rack"],
            sessions=config["enable_incremental_fetch_sessions"],
            poll_records=config["max_poll_records"] or _POLL_RECORDS,
        )


class Owner(Protocol):
    """The fetcher, as far as its connections know it."""

    client: Client
    settings: FetchSettings
    in_flight: int
    busy_brokers: int
    reopened: deque[AssignedPartition]

    def answered(
        self, connection: FetchConnection, response: FetchResponse, version: int
    ) -> Generator[None, None, None]:
        """Take a response: yields where other work may come first, and calls `end` at its end."""

    def look_again(self) -> None:
        """Choose again what to fetch: no partition was left to ask for."""

    def connection_failed(self, connection: FetchConnection, error: KafkaError) -> None:
        """A request failed."""

    def log_differs(self, target: FetchTarget, error: KafkaError) -> None:
        """The log of a partition is not the one that was read."""


class FetchConnection:
    """The fetches of one connection.

    Its partitions stay with it from one response to the next, until records or an error of them come, or the fetcher
    takes them back: so a request costs what has changed, as in its session.
    """

    def __init__(self, fetcher: Owner, node_id: int, *, main: bool) -> None:
        from kafka.protocol.fetch import FetchRequest

        self.node_id = node_id
        self.failures = 0
        self.retry_at = 0.0
        self.asked_at = 0.0
        self.asked_in: object = None
        """The grouping of partitions by broker when it asked last."""
        self.polls = -1
        """How often the application had polled when it asked last."""
        self.enough = False
        """Whether the last response leaves nothing to ask for until the application polls."""
        self.session = FetchSession(enabled=main and fetcher.settings.sessions)
        self.main = main
        self.idle = True
        """Whether no request is under way."""
        self.targets: dict[TopicPartition, FetchTarget] = {}
        """The partitions of the request that is under way, or of the next one."""
        self.answered: list[FetchTarget] = []
        """The targets of which a response has brought records or an error."""
        self.is_outdated = False
        """Whether the application has changed something since the request was sent."""
        self._fetcher = fetcher
        self._client = client = fetcher.client
        self._settings = settings = fetcher.settings
        self._timeout = client.settings.request_timeout + settings.max_wait_ms / 1000
        self._use = FETCH if main else SIDE
        self._reserved = 0
        self._drops_all = False  # as the request is answered
        self._turns: list[TopicPartition] = []  # the one asked for longest ago is the first; for old brokers
        self._wanted: dict[TopicPartition, Wanted] = {}
        self._without_id: set[TopicPartition] = set()
        self._touched: set[TopicPartition] = set()  # since the last request
        self._max_bytes = 0
        self._version = 0
        self._request_type = FetchRequest
        self._request_types: dict[tuple[int, int], type[FetchRequest]] = {}
        self._link: Connection | None = None
        self._linked_in: object = None  # the topology with the broker's address
        self._task: Task[object] | None = None  # connects, and checks logs
        self._stopped = False

    def connect(self) -> None:
        """Begin to connect, while the positions are looked up."""
        client = self._client
        if client.cluster.broker_metadata(self.node_id) is not None:
            link = client.link(self.node_id, self._use)
            if not link.backing_off():
                link.open()

    # Its partitions…

    def release(self, targets: Iterable[FetchTarget]) -> None:
        """Ask for these no more."""
        for target in targets:
            state, cursor = target.state, target.cursor
            partition = state.topic_partition
            if self.targets.get(partition) is target:
                del self.targets[partition], self._wanted[partition]
                self._touched.add(partition)
                self._without_id.discard(partition)
            if cursor.connection is self:
                cursor.connection = None
            self._fetcher.reopened.append(state)

    def drop(self, partition: TopicPartition) -> None:
        """Ask for a partition no more, once the request that is under way is answered."""
        target = self.targets.get(partition)
        if target is None:
            return
        if self.idle:
            self.release((target,))
        else:
            self.is_outdated = True
            self.answered.append(target)

    def drop_all(self) -> None:
        """Ask for nothing of this any more, once the request that is under way is answered."""
        if self.idle:
            self.release(tuple(self.targets.values()))
        else:
            self.is_outdated = self._drops_all = True

    # A request…

    def ask(self, targets: list[FetchTarget], max_bytes: int) -> None:
        """Ask for these, and for what it asked for before."""
        self.idle = self.is_outdated = self._drops_all = False
        self._max_bytes = max_bytes
        self._reserved = min(max_bytes, (len(self.targets) + len(targets)) * self._settings.max_partition_bytes)
        self._fetcher.in_flight += self._reserved
        self._fetcher.busy_brokers += self.main
        for target in targets:
            target.cursor.connection = self
        self._run(self._asking(targets))

    def _run(self, steps: Generator[None, None, None]) -> None:
        """Take steps for a slice of time, and then let the loop do everything else that is ready."""
        if self._stopped:
            return
        loop = self._client.loop
        time, ends = loop.time, loop.slice_end()
        try:
            for _ in steps:
                if time() >= ends:
                    loop.call_soon(self._run, steps)
                    break
        except Exception as error:
            self._fail(error)

    def _asking(self, targets: list[FetchTarget]) -> Generator[None, None, None]:
        """Send a request, if a connection is ready; else connect first. It yields where other work may come first."""
        client, max_bytes = self._client, self._settings.max_partition_bytes
        for target in targets:
            state, cursor, topology = target.state, target.cursor, client.cluster.topology
            if self._drops_all or state.cursor is not cursor:
                self.release((target,))
                continue
            partition = state.topic_partition
            topic_id, known = topology.topic_ids.get(partition.topic), topology.partition(*partition)
            if topic_id is not None and topic_id is not cursor.topic_id and topic_id != cursor.topic_id:
                if cursor.topic_id is not None:
                    state.answered = None
                    self._fetcher.log_differs(target, topic_recreated(target))
                    self.release((target,))
                    continue
                cursor.topic_id = topic_id
            self.targets[partition] = target
            epoch = -1 if known is None else known.leader_epoch
            fields = target.offset, epoch, cursor.fetch_epoch, max_bytes, topic_id or NO_TOPIC_ID
            self._wanted[partition] = _new(Wanted, fields)
            self._touched.add(partition)
            if topic_id is None:
                self._without_id.add(partition)
            yield
        if self._drops_all or not self.targets:
            self.end()
            self._fetcher.look_again()
            return
        link, topology = self._link, client.cluster.topology
        if link is None or not link.ready or self._linked_in is not topology:
            link = self._link = client.link(self.node_id, self._use)
            self._linked_in = topology
        if link.ready and link.versions is not None:
            version = link.versions.version_for(self._request_type)
            if version >= _LAST_EPOCH_SINCE:
                yield from self._sending(link, self._wanted, version)
                return
        self._task = client.loop.spawn_logged(self._prepare(link), f"fetch from broker {self.node_id}")

    async def _prepare(self, link: Connection) -> None:
        """Connect, and check the logs at old brokers, before a request."""
        client, timeout = self._client, self._timeout
        try:
            if not link.ready:
                await client.open(link, client.loop.time() + timeout)
            assert link.versions is not None
            version = link.versions.version_for(self._request_type)
            wanted: Mapping[TopicPartition, Wanted] = self._wanted
            if version < _SESSIONS_SINCE:
                self.session.enabled = False
            if version < _LAST_EPOCH_SINCE:
                wanted = await self._checked(link, wanted, timeout)
            if wanted:
                self._run(self._sending(link, wanted, version))
            else:
                self.end()
                self._fetcher.look_again()
        except Exception as error:
            self._fail(error)

    def _sending(
        self, link: Connection, wanted: Mapping[TopicPartition, Wanted], version: int
    ) -> Generator[None, None, None]:
        best, max_wait_ms = version, self._settings.max_wait_ms if self.main else 0
        if version >= TOPIC_IDS_SINCE and self._without_id:
            version = TOPIC_IDS_SINCE - 1
        if version < TOPIC_IDS_SINCE:
            wanted = {partition: entry._replace(topic_id=NO_TOPIC_ID) for partition, entry in wanted.items()}
        if version < _MAX_BYTES_SINCE:
            number = len(wanted)
            wanted = self._limited(wanted, self._max_bytes)
            max_wait_ms = -(-max_wait_ms * len(wanted) // number)  # all have had their turn when max_wait_ms are over
        outgoing = self.session.next(wanted, self._touched)
        self._touched.clear()
        self._version, self.asked_at = version, self._client.loop.time()
        # The encoder looks at each struct that is not of its version: with many partitions that is a third of the work.
        names = self._request_types.get((version, best))
        if names is None:
            kind = self._request_type
            names = kind if version == best and version < TOPIC_IDS_SINCE else kind[version]
            self._request_types[version, best] = names
        partition_type, topic_type, forgotten_type = names.FetchPartition, names.FetchTopic, names.ForgottenTopic
        has_epochs, has_ids = version >= _LAST_EPOCH_SINCE, version >= TOPIC_IDS_SINCE
        topics: dict[tuple[str, UUID], list[FetchRequest.FetchPartition]] = {}
        of: tuple[str | None, UUID | None] = None, None
        for partition, entry in outgoing.wanted.items():
            if of[1] is not entry.topic_id or of[0] != partition.topic:  # a UUID's hash is a call
                of = partition.topic, entry.topic_id
                partitions = topics.setdefault(of, [])
            partitions.append(
                partition_type(
                    partition=partition.partition,
                    current_leader_epoch=entry.leader_epoch,
                    fetch_offset=entry.offset,
                    last_fetched_epoch=entry.last_epoch if has_epochs else -1,
                    partition_max_bytes=entry.max_bytes,
                )
            )
            yield
        forgotten: dict[tuple[str, UUID], list[int]] = {}
        for partition, topic_id in outgoing.forgotten:
            forgotten.setdefault((partition.topic, topic_id), []).append(partition.partition)
        request = names(
            max_wait_ms=max_wait_ms,
            min_bytes=self._settings.min_bytes,
            max_bytes=self._max_bytes,
            isolation_level=self._settings.isolation_level,
            session_id=outgoing.session_id,
            session_epoch=outgoing.epoch,
            rack_id=self._settings.rack,
            topics=[
                topic_type(topic_id=tid, partitions=parts) if has_ids else topic_type(topic=name, partitions=parts)
                for (name, tid), parts in topics.items()
            ],
            forgotten_topics_data=[
                forgotten_type(topic_id=tid, partitions=parts)
                if has_ids
                else forgotten_type(topic=name, partitions=parts)
                for (name, tid), parts in forgotten.items()
            ],
        )
        link.submit(request, self._timeout).add_both(self._arrived)

    def _arrived(self, outcome: FetchResponse | BaseException) -> None:
        """Take the response or the error. The next request leaves in the pass that the response came in."""
        if self._stopped:
            return
        if isinstance(outcome, BaseException):
            self._fail(outcome)
            return
        if outcome.error_code:
            self.session.refused(outcome.error_code)
        else:
            self.failures = 0
            self.session.answered(outcome.session_id)
        self._run(self._fetcher.answered(self, outcome, self._version))

    def _fail(self, error: BaseException) -> None:
        if not isinstance(error, KafkaError):
            # A consumer must not stop in silence because of a bug: log it, and try again.
            log.exception(
                "Fetching from broker %s failed; this is a bug, please report it", self.node_id, exc_info=error
            )
            error = UnknownError(f"fetching failed: {error!r}")
        self.session.failed()
        self._drops_all = True
        self.end()
        self._fetcher.connection_failed(self, error)

    def end(self) -> None:
        """Record that no request is under way: the next one may be sent."""
        # The side connection is for what the main one cannot ask for now.
        everything = self._drops_all or not self.main
        self.release(tuple(self.targets.values()) if everything else self.answered)
        self.answered = []
        if not self.idle:
            self.idle = True
            self._fetcher.in_flight -= self._reserved
            self._fetcher.busy_brokers -= self.main

    def _limited(self, wanted: Mapping[TopicPartition, Wanted], max_bytes: int) -> Mapping[TopicPartition, Wanted]:
        """Return as many partitions as `max_bytes` has room for, first the ones asked for longest ago.

        Brokers before 0.10.1 know no limit for a response: it may have max_partition_fetch_bytes of each partition.
        """
        limit = self._settings.max_partition_bytes
        most = max(1, max_bytes // limit)
        known = set(self._turns)
        turns = [partition for partition in self._turns if partition in wanted]
        turns += [partition for partition in wanted if partition not in known]
        self._turns = turns[most:] + turns[:most]
        self.release([self.targets[partition] for partition in turns[most:]])
        self._fetcher.in_flight -= self._reserved
        self._reserved = len(turns[:most]) * limit
        self._fetcher.in_flight += self._reserved
        return {partition: wanted[partition] for partition in turns[:most]}

    async def _checked(
        self, link: Connection, wanted: Mapping[TopicPartition, Wanted], timeout: float
    ) -> Mapping[TopicPartition, Wanted]:
        """Return the partitions whose leader has the log that was read."""
        unchecked_partitions = unchecked(wanted, self.targets)
        if not unchecked_partitions:
            return wanted
        asked = {partition: self.targets[partition] for partition in unchecked_partitions}
        checks = await check_new_leader(link, unchecked_partitions, timeout)
        for partition, entry in unchecked_partitions.items():
            if partition not in checks:
                asked[partition].cursor.checked_epoch = entry.leader_epoch
        for partition, error in checks.items():
            self._fetcher.log_differs(asked[partition], error)
        self.release([asked[partition] for partition in checks])
        return self._wanted

    def stop(self) -> None:
        """Send no more requests; the response under way is dropped."""
        self._stopped = self._drops_all = True
        self.end()
        if self._task is not None:
            self._task.cancel()

    async def close(self, deadline: float) -> None:
        """End the session at the broker, if a connection is free for the request."""
        outgoing = self.session.closing()
        link = self._free_link() if outgoing is not None else None
        if outgoing is None or link is None:
            return
        self.session = FetchSession(enabled=False)
        request = self._request_type(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1,
            session_id=outgoing.session_id,
            session_epoch=outgoing.epoch,
            rack_id=self._settings.rack,
        )
        try:
            with self._client.loop.timeout_at(deadline, "closing the fetch session"):
                await link.submit(request, deadline=deadline)
        except KafkaError as error:
            log.debug("The fetch session at broker %s was not closed: %s", self.node_id, error)

    def _free_link(self) -> Connection | None:
        """Return a connection to the broker with no request under way: behind a long poll the request would wait."""
        for link in self._client.links(self.node_id):
            if link.ready and not link.in_flight_requests:
                return link
        return None


# The first version that has current_leader_epoch, the epoch of the leader as the client knows it.
_EPOCHS_CHECKED_SINCE: Final = 2
# Brokers before 2.3 with an authorizer allow the request to other brokers only: the log cannot be checked then.
_NOT_ALLOWED: Final = (TopicAuthorizationFailedError, ClusterAuthorizationFailedError)


def unchecked(
    wanted: Mapping[TopicPartition, Wanted], targets: Mapping[TopicPartition, FetchTarget]
) -> dict[TopicPartition, Wanted]:
    """Return the partitions whose leader changed since their log was last checked; mark the others as checked."""
    found = {}
    for partition, entry in wanted.items():
        cursor = targets[partition].cursor
        if entry.leader_epoch <= cursor.checked_epoch:
            continue
        if entry.last_epoch < 0:  # no record was read yet
            cursor.checked_epoch = entry.leader_epoch
        else:
            found[partition] = entry
    return found


async def check_new_leader(
    link: Connection, unchecked_partitions: Mapping[TopicPartition, Wanted], timeout: float
) -> dict[TopicPartition, KafkaError]:
    """Return the errors of partitions whose log differs, or could not be checked."""
    from kafka.protocol.offset import OffsetForLeaderEpochRequest

    assert link.versions is not None
    if not link.versions.reaches(OffsetForLeaderEpochRequest.API_KEY, _EPOCHS_CHECKED_SINCE):
        return {}
    part = OffsetForLeaderEpochRequest.OffsetForLeaderPartition
    topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    topics: dict[str, list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition]] = {}
    for partition, entry in unchecked_partitions.items():
        topics.setdefault(partition.topic, []).append(
            part(
                partition=partition.partition,
                current_leader_epoch=entry.leader_epoch,
                leader_epoch=entry.last_epoch,
            )
        )
    request = OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[topic(topic=name, partitions=parts) for name, parts in topics.items()]
    )
    return _read(await link.submit(request, timeout), unchecked_partitions)


def _read(
    response: OffsetForLeaderEpochResponse, unchecked_partitions: Mapping[TopicPartition, Wanted]
) -> dict[TopicPartition, KafkaError]:
    left = dict(unchecked_partitions)
    checks: dict[TopicPartition, KafkaError] = {}
    for topic in response.topics:
        for told in topic.partitions:
            partition = TopicPartition(topic.topic, told.partition)
            entry = left.pop(partition, None)
            if entry is None:
                continue
            if told.error_code:
                error = for_code(told.error_code)(topic_partition=partition)
                if not isinstance(error, _NOT_ALLOWED):
                    checks[partition] = error
            elif told.end_offset < entry.offset:  # also -1: the leader does not know that epoch
                checks[partition] = truncated(partition, entry.offset, told.end_offset, told.leader_epoch)
    for partition in left:
        checks[partition] = UnknownLeaderEpochError("not answered", topic_partition=partition)
    return checks
