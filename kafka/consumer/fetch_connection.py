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
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka._core.client import FETCH
from kafka._runtime.tasks import checkpoint
from kafka.consumer.fetch_response import FetchTarget
from kafka.consumer.fetch_session import NO_TOPIC_ID, FetchSession, Outgoing, Wanted
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
    from collections.abc import Callable, Coroutine, Mapping
    from uuid import UUID

    from kafka._core.client import Client
    from kafka._runtime.tasks import Task
    from kafka.config import Config
    from kafka.consumer.fetch_response import FetchTarget
    from kafka.consumer.fetch_session import Wanted
    from kafka.net.connection import Connection
    from kafka.protocol.fetch import FetchRequest, FetchResponse
    from kafka.protocol.offset import OffsetForLeaderEpochResponse

__all__ = [
    "TOPIC_IDS_SINCE",
    "EpochCheck",
    "FetchConnection",
    "FetchSettings",
    "InFlight",
    "check_new_leader",
    "unchecked",
]

log = logging.getLogger(__name__)

SIDE: Final = "fetch-side"
_SLICE: Final = 0.001  # how long a response may hold the loop, in seconds
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


class InFlight:
    """The requests of a consumer that are under way, and the bytes that they may bring together."""

    __slots__ = ("brokers", "size")

    def __init__(self) -> None:
        self.size = 0
        """The bytes that they may bring."""
        self.brokers = 0
        """How many main connections have a request under way."""


class FetchConnection:
    """The fetches of one connection."""

    def __init__(
        self,
        client: Client,
        node_id: int,
        settings: FetchSettings,
        take: Callable[
            [FetchConnection, Mapping[TopicPartition, FetchTarget], FetchResponse, int], Coroutine[Any, Any, bool]
        ],
        done: Callable[[FetchConnection, FetchResponse | None, bool], None],
        failed: Callable[[FetchConnection, KafkaError], None],
        doubted: Callable[[FetchTarget, EpochCheck], None],
        in_flight: InFlight,
        *,
        main: bool,
    ) -> None:
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
        self.session = FetchSession(enabled=main and settings.sessions)
        self._client = client
        self._settings = settings
        self.main = main
        self._use = FETCH if main else SIDE
        self._take = take
        self._done = done
        self._failed = failed
        self._log_checked = doubted
        self._in_flight = in_flight
        self._reserved = 0
        self._turns: list[TopicPartition] = []  # the one asked for longest ago is the first; for old brokers
        self._wanted: Mapping[TopicPartition, Wanted] | None = None
        self.idle = True
        """Whether no request is under way."""
        self._targets: dict[TopicPartition, FetchTarget] = {}
        self._max_bytes = 0
        self._slice_ends = 0.0
        self._request_type = FetchRequest
        self._request_types: dict[tuple[int, bool], type[FetchRequest]] = {}
        self._task: Task[object] | None = None

    def connect(self) -> None:
        """Begin to connect, while the positions are looked up."""
        client = self._client
        if client.cluster.broker_metadata(self.node_id) is not None:
            link = client.link(self.node_id, self._use)
            if not link.backing_off():
                link.open()

    def ask(
        self, wanted: Mapping[TopicPartition, Wanted], targets: dict[TopicPartition, FetchTarget], max_bytes: int
    ) -> None:
        """Send a request for these partitions; `failed` is called with an error.

        A response is given to `take`, which returns whether data came. Then, as the next request may be sent, `done` is
        called.
        """
        self.idle = False
        self._wanted, self._targets, self._max_bytes = wanted, targets, max_bytes
        self._reserved = min(max_bytes, len(wanted) * self._settings.max_partition_bytes)
        self._in_flight.size += self._reserved
        self._in_flight.brokers += self.main
        for entry in targets.values():
            entry.cursor.connection = self
        if self._task is None:
            self._task = self._client.loop.spawn_logged(self._fetch_repeatedly(), f"fetch from broker {self.node_id}")

    async def _fetch_repeatedly(self) -> None:
        """Fetch until `done` or `failed` returns without another call of `ask`.

        The next request leaves in the pass that the response came in: in a separate task it would leave in the next
        one, for which another thread is woken where poll() returns with the records.
        """
        try:
            while (wanted := self._wanted) is not None:
                came = False
                try:
                    try:
                        response, version = await self._exchange(wanted, self._max_bytes)
                        if response is None:
                            self.failures = 0
                        else:
                            if response.error_code:
                                self.session.refused(response.error_code)
                            else:
                                self.failures = 0
                                self.session.answered(response.session_id)
                            self._slice_ends = self._client.loop.time() + _SLICE
                            came = await self._take(self, self._targets, response, version)
                    finally:
                        self._release()
                except KafkaError as error:
                    self.session.failed()
                    self._failed(self, error)
                except Exception as error:
                    # A consumer must not stop in silence because of a bug: log it, and try again.
                    log.exception("Fetching from broker %s failed; this is a bug, please report it", self.node_id)
                    self.session.failed()
                    self._failed(self, UnknownError(f"fetching failed: {error!r}"))
                else:
                    self._done(self, response, came)
        finally:
            self._task = None
            self._release()

    def _release(self) -> None:
        """Record that no request is under way."""
        asked, self._targets = self._targets, {}
        if self._wanted is not None:
            self._wanted, self.idle = None, True
            self._in_flight.size -= self._reserved
            self._in_flight.brokers -= self.main
        for entry in asked.values():
            if entry.cursor.connection is self:
                entry.cursor.connection = None

    async def pause(self) -> None:
        """Let the loop do everything else that is ready, once a response has taken a slice of time."""
        if self._client.loop.time() >= self._slice_ends:
            await checkpoint()
            self._slice_ends = self._client.loop.time() + _SLICE

    async def _exchange(
        self, wanted: Mapping[TopicPartition, Wanted], max_bytes: int
    ) -> tuple[FetchResponse | None, int]:
        """Return the response and its version; None for the response if no partition was left to ask for."""
        client, settings, kind = self._client, self._settings, self._request_type
        timeout = client.settings.request_timeout + settings.max_wait_ms / 1000
        deadline = client.loop.time() + timeout
        link = client.link(self.node_id, self._use)
        if not link.ready:
            await client.open(link, deadline)
        assert link.versions is not None
        version = best = link.versions.version_for(kind)
        if version < _SESSIONS_SINCE:
            self.session.enabled = False
        if version >= TOPIC_IDS_SINCE and any(entry.topic_id is NO_TOPIC_ID for entry in wanted.values()):
            version = TOPIC_IDS_SINCE - 1
        if version < TOPIC_IDS_SINCE:
            wanted = {partition: entry._replace(topic_id=NO_TOPIC_ID) for partition, entry in wanted.items()}
        if version < _LAST_EPOCH_SINCE:
            wanted = await self._checked(link, wanted, timeout)
            if not wanted:
                return None, version
        max_wait_ms = settings.max_wait_ms if self.main else 0
        if version < _MAX_BYTES_SINCE:
            number = len(wanted)
            wanted = self._limited(wanted, max_bytes)
            max_wait_ms = -(-max_wait_ms * len(wanted) // number)  # all have had their turn when max_wait_ms are over
        outgoing = self.session.next(wanted)
        self.asked_at = client.loop.time()
        request = self._request(outgoing, max_bytes, max_wait_ms, version, best=version == best)
        return await link.submit(request, timeout), version

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
        for partition in turns[most:]:
            cursor = self._targets.pop(partition).cursor
            if cursor.connection is self:
                cursor.connection = None
        self._in_flight.size -= self._reserved
        self._reserved = len(turns[:most]) * limit
        self._in_flight.size += self._reserved
        return {partition: wanted[partition] for partition in turns[:most]}

    async def _checked(
        self, link: Connection, wanted: Mapping[TopicPartition, Wanted], timeout: float
    ) -> Mapping[TopicPartition, Wanted]:
        """Return the partitions whose leader has the log that was read."""
        unchecked_partitions = unchecked(wanted, self._targets)
        if not unchecked_partitions:
            return wanted
        checks = await check_new_leader(link, unchecked_partitions, timeout)
        for partition, entry in unchecked_partitions.items():
            if partition not in checks:
                self._targets[partition].cursor.checked_epoch = entry.leader_epoch
        for partition, check in checks.items():
            self._log_checked(self._targets[partition], check)
        return {partition: entry for partition, entry in wanted.items() if partition not in checks}

    def _request(
        self, outgoing: Outgoing, max_bytes: int, max_wait_ms: int, version: int, *, best: bool
    ) -> FetchRequest:
        settings = self._settings
        # The encoder looks at each struct that is not of its version: with many partitions that is a third of the work.
        names = self._request_types.get((version, best))
        if names is None:
            kind = self._request_type
            names = kind if best and version < TOPIC_IDS_SINCE else kind[version]
            self._request_types[version, best] = names
        partition_type, topic_type, forgotten_type = names.FetchPartition, names.FetchTopic, names.ForgottenTopic
        has_epochs, has_ids = version >= _LAST_EPOCH_SINCE, version >= TOPIC_IDS_SINCE
        topics: dict[tuple[str, UUID], list[FetchRequest.FetchPartition]] = {}
        for partition, entry in outgoing.wanted.items():
            topics.setdefault((partition.topic, entry.topic_id), []).append(
                partition_type(
                    partition=partition.partition,
                    current_leader_epoch=entry.leader_epoch,
                    fetch_offset=entry.offset,
                    last_fetched_epoch=entry.last_epoch if has_epochs else -1,
                    partition_max_bytes=entry.max_bytes,
                )
            )
        forgotten: dict[tuple[str, UUID], list[int]] = {}
        for partition, topic_id in outgoing.forgotten:
            forgotten.setdefault((partition.topic, topic_id), []).append(partition.partition)
        return names(
            max_wait_ms=max_wait_ms,
            min_bytes=settings.min_bytes,
            max_bytes=max_bytes,
            isolation_level=settings.isolation_level,
            session_id=outgoing.session_id,
            session_epoch=outgoing.epoch,
            rack_id=settings.rack,
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

    def stop(self) -> None:
        """Send no more requests; the response under way is dropped."""
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
        with self._client.loop.timeout_at(deadline, "closing the fetch session"):
            await link.submit(request, deadline=deadline)

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


class EpochCheck(NamedTuple):
    """A leader's answer for a partition whose log differs: where it diverges, or the error."""

    epoch: int
    end_offset: int
    error: KafkaError | None = None


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
) -> dict[TopicPartition, EpochCheck]:
    """Return the partitions whose log differs, or could not be checked."""
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
) -> dict[TopicPartition, EpochCheck]:
    left = dict(unchecked_partitions)
    checks: dict[TopicPartition, EpochCheck] = {}
    for topic in response.topics:
        for told in topic.partitions:
            partition = TopicPartition(topic.topic, told.partition)
            entry = left.pop(partition, None)
            if entry is None:
                continue
            if told.error_code:
                error = for_code(told.error_code)(topic_partition=partition)
                if not isinstance(error, _NOT_ALLOWED):
                    checks[partition] = EpochCheck(-1, -1, error)
            elif told.end_offset < entry.offset:  # also -1: the leader does not know that epoch
                checks[partition] = EpochCheck(told.leader_epoch, told.end_offset)
    for partition in left:
        checks[partition] = EpochCheck(-1, -1, UnknownLeaderEpochError("not answered", topic_partition=partition))
    return checks
