"""Committing offsets and reading committed ones: the attempts, their order, and when an automatic commit is due.

A commit covers partitions that the member owns at the moment when it is sent. Each ownership of a partition has an id
(`Ownership`), so an offset from an earlier ownership is not committed in a later one, when another member may have
committed further already: CommitFailedError names the partitions that were lost in between.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from kafka._runtime.tasks import wait_any
from kafka.cluster import GROUP
from kafka.coordinator.group_coordinator import COMMITS, COORDINATOR_LOST
from kafka.coordinator.offset_requests import (
    Identity,
    commit_request,
    committed_codes,
    fetch_request,
    fetched_entries,
    fetched_group_code,
)
from kafka.errors import (
    CommitFailedError,
    FencedMemberEpochError,
    IllegalGenerationError,
    KafkaError,
    KafkaTimeoutError,
    StaleMemberEpochError,
    TopicAuthorizationFailedError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
    for_code,
)
from kafka.future import Future
from kafka.protocol.commit import OffsetCommitRequest, OffsetFetchRequest
from kafka.structs import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from uuid import UUID

    from kafka.consumer.subscription_state import SubscriptionState
    from kafka.coordinator.group_coordinator import GroupCoordinator
    from kafka.coordinator.membership import Membership
    from kafka.coordinator.rebalance import Assignments, OwnershipIds
    from kafka.protocol.commit import OffsetCommitResponse
    from kafka.protocol.negotiation import ApiVersions

log = logging.getLogger(__name__)

T = TypeVar("T")

Offsets = Mapping[TopicPartition, OffsetAndMetadata]

_REMOVED: Final = (UnknownMemberIdError, IllegalGenerationError, FencedMemberEpochError)
# Kafka stores offsets since 0.8.2, which has the request that finds a coordinator.
_IN_KAFKA_SINCE: Final = (0, 8, 2)


class OffsetCommitter:
    """The committed offsets of one group."""

    def __init__(
        self,
        membership: Membership,
        subscription: SubscriptionState,
        assignments: Assignments,
        on_latency: Callable[[float], object],
    ) -> None:
        self._client = membership.coordinator.client
        self._loop = membership.loop
        self._group_id = membership.group_id
        self._membership = membership
        self._subscription = subscription
        self._assignments = assignments
        self._on_latency = on_latency
        self._under_way: set[Future[OffsetCommitResponse | None]] = set()
        self.on_committed: Callable[[Offsets], object] = lambda _offsets: None
        """Called on the loop after each commit that succeeded."""
        self.on_stored: Callable[[Mapping[TopicPartition, OffsetAndMetadata | None], OwnershipIds | None], object] = (
            lambda _offsets, _ids: None
        )
        """Called on the loop with offsets that the group has stored, after a commit or a read."""
        self._retried: set[Future[OffsetCommitResponse | None]] = set()
        """Commits under way that may be sent again: later commits must wait for them."""

    # As whom…

    @property
    def as_member(self) -> bool:
        """Whether offsets are committed by the member, and not for partitions that are assigned by hand."""
        return self._subscription.is_automatic or bool(self._subscription.departing)

    def ownership_ids(self, offsets: Iterable[TopicPartition]) -> dict[TopicPartition, int] | None:
        """Return the ownership ids of partitions; None for partitions assigned by hand. From any thread."""
        return self._assignments.ownership.ids(offsets) if self.as_member else None

    def _identity(self) -> Identity:
        membership = self._membership
        if not self.as_member:
            return Identity(self._group_id)
        generation = membership.generation
        if not generation.is_member:
            why = f" ({membership.left_because})" if membership.left_because else ""
            raise CommitFailedError(
                f"this consumer is not in its group now{why}, so it has nothing to commit; it joins again in poll()"
            )
        return Identity(self._group_id, generation.generation_id, generation.member_id, membership.group_instance_id)

    def _reading_identity(self) -> Identity:
        membership = self._membership
        checked = membership.member.reads_as_member and self._subscription.is_automatic
        return self._identity() if checked and membership.generation.is_member else Identity(self._group_id)

    # Committing…

    async def commit(
        self,
        offsets: Offsets,
        ids: OwnershipIds | None,
        deadline: float,
        *,
        also_retry: tuple[type[KafkaError], ...] = (),
        never_retry: tuple[type[KafkaError], ...] = (),
    ) -> OffsetCommitResponse | None:
        """Commit by the deadline, after all commits that were begun before; return the broker's response.

        It is retried after retriable errors except `never_retry`, and after those in `also_retry`.
        """
        if not offsets and not ids:
            return None
        earlier = tuple(self._under_way)
        ended: Future[OffsetCommitResponse | None] = Future()
        self._under_way.add(ended)
        self._retried.add(ended)
        try:
            await self._wait_for(earlier, deadline)
            response = await self._retry(
                lambda: self.commit_once(offsets, ids, deadline),
                deadline,
                lambda error: (
                    isinstance(error, (StaleMemberEpochError, *also_retry))
                    or (error.retriable and not isinstance(error, never_retry))
                ),
                f"offsets of {self._group_id} could not be committed",
            )
        except BaseException as error:
            self._count_end(type(error).__name__)
            raise
        finally:
            self._under_way.discard(ended)
            self._retried.discard(ended)
            ended.success(None)
        self._count_end("ok")
        return response

    def _count_end(self, result: str) -> None:
        if self._client.series is not None:
            self._client.series.count("kafka_consumer_commits_total", (self._group_id, result))

    async def _retry(
        self, call: Callable[[], Awaitable[T]], deadline: float, may_retry: Callable[[KafkaError], bool], what: str
    ) -> T:
        """Return the result of the first attempt that succeeds; KafkaTimeoutError at the deadline."""
        try:
            async for attempt in self._client.attempts(deadline, what, may_retry):
                with attempt:
                    return await call()
        except KafkaError as error:
            if may_retry(error):  # and no time is left for that
                raise KafkaTimeoutError(f"{what}: {error}") from error
            raise
        raise AssertionError("the attempts end with a result or an error")

    def begin(self, offsets: Offsets, ids: OwnershipIds | None) -> Future[OffsetCommitResponse | None]:
        """Begin a commit with one attempt; on the loop. The future has the broker's response or the error."""
        deadline = self._loop.time() + self._client.settings.request_timeout
        task = self._loop.spawn(self._commit_in_turn(tuple(self._retried), offsets, ids, deadline), "commit")
        self._under_way.add(task)
        task.add_both(lambda _: self._under_way.discard(task))
        task.add_callback(lambda _: self._count_end("ok"))
        task.add_errback(lambda error: self._count_end(type(error).__name__))
        return task

    async def _commit_in_turn(
        self,
        earlier: Iterable[Future[OffsetCommitResponse | None]],
        offsets: Offsets,
        ids: OwnershipIds | None,
        deadline: float,
    ) -> OffsetCommitResponse | None:
        await self._wait_for(earlier, deadline)
        return await self.commit_once(offsets, ids, deadline)

    async def settled(self, deadline: float) -> None:
        """Wait until no commit is under way."""
        await self._wait_for(tuple(self._under_way), deadline)

    async def _wait_for(self, earlier: Iterable[Future[OffsetCommitResponse | None]], deadline: float) -> None:
        """Wait for older commits: one that is sent again after a newer one would restore its older offsets."""
        for each in earlier:
            await wait_any(self._loop, each, deadline=deadline)

    async def commit_once(
        self, offsets: Offsets, ids: OwnershipIds | None, deadline: float
    ) -> OffsetCommitResponse | None:
        """Commit in one attempt; raises the error of a partition that was refused."""
        if not offsets:
            self._check_held(ids)
            return None
        use, node_id, versions = await self._connected(deadline)
        version = versions.version_for(OffsetCommitRequest(group_id=self._group_id))
        # No other step runs before the submission: partitions that are owned here are owned when it is sent.
        self._check_held(ids)
        who = self._identity()
        request = commit_request(version, who, offsets, self._client.cluster.topic_id)
        began = self._loop.time()
        try:
            response = await self._client.submit(node_id, request, use=use, deadline=deadline)
        except KafkaError as error:
            self._moved(error)
            raise
        seconds = self._loop.time() - began
        self._on_latency(seconds)
        if self._client.series is not None:
            self._client.series.count("kafka_consumer_commit_seconds_count", (self._group_id,))
            self._client.series.count("kafka_consumer_commit_seconds_sum", (self._group_id,), seconds)
        self._check_committed(response, who)
        self.on_stored(offsets, ids)
        self.on_committed(offsets)
        return response

    def _check_held(self, ids: OwnershipIds | None) -> None:
        if ids is None or not self.as_member:
            return
        ownership = self._assignments.ownership
        gone = ownership.ended(ids)
        if gone:
            names = ", ".join(f"{partition.topic}-{partition.partition}" for partition in gone)
            reasons = "; ".join(ownership.reasons(gone))
            raise CommitFailedError(
                "offsets of partitions that are no longer assigned to this consumer cannot be committed: "
                f"{names}{f' ({reasons})' if reasons else ''}"
            )

    def _check_committed(self, response: OffsetCommitResponse, who: Identity) -> None:
        unauthorized = set()
        for partition, code in committed_codes(response, self._client.cluster.topic_name_for_id):
            if not code:
                continue
            error: KafkaError = for_code(code)(f"committing {partition.topic}-{partition.partition}")
            if isinstance(error, TopicAuthorizationFailedError):
                unauthorized.add(partition.topic)
                continue
            self._moved(error)
            if self.as_member:
                error = self._membership.member.commit_refused(error, who.generation_id)
            if isinstance(error, _REMOVED):
                raise CommitFailedError(
                    "the coordinator removed this consumer from the group, because poll() was not called within "
                    f"max_poll_interval_ms or no heartbeat came within the session's timeout: {error}"
                )
            if isinstance(error, UnknownTopicOrPartitionError):
                self._client.cluster.request_update()
            raise error
        if unauthorized:
            raise TopicAuthorizationFailedError(f"committing {', '.join(sorted(unauthorized))}")

    # Reading…

    async def fetch(
        self, partitions: Iterable[TopicPartition], deadline: float
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offset of each partition, None without one."""
        wanted = list(partitions)
        if not wanted:
            return {}
        return await self._retry(
            lambda: self._fetch_once(wanted, deadline),
            deadline,
            lambda error: error.retriable or isinstance(error, (StaleMemberEpochError, UnknownMemberIdError)),
            f"committed offsets of {self._group_id} could not be read",
        )

    async def _fetch_once(
        self, partitions: list[TopicPartition], deadline: float
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        use, node_id, versions = await self._connected(deadline)
        cluster = self._client.cluster
        version = versions.version_for(OffsetFetchRequest())
        request = fetch_request(version, self._reading_identity(), partitions, cluster.topic_id, stable=True)
        ids = self.ownership_ids(partitions)
        try:
            response = await self._client.submit(node_id, request, use=use, deadline=deadline)
        except KafkaError as error:
            self._moved(error)
            raise
        self._raise_for(fetched_group_code(response), f"reading offsets of {self._group_id}")
        found: dict[TopicPartition, OffsetAndMetadata | None] = dict.fromkeys(partitions)
        for partition, code, offset in fetched_entries(response, cluster.topic_name_for_id):
            # Version 0 answers "unknown partition" for a partition without a committed offset.
            if code and not (version == 0 and code == UnknownTopicOrPartitionError.errno):
                self._raise_for(code, f"reading the offset of {partition.topic}-{partition.partition}")
            found[partition] = offset
        self.on_stored(found, ids)
        return found

    def _raise_for(self, code: int, what: str) -> None:
        if code:
            error: KafkaError = for_code(code)(what)
            self._moved(error)
            raise error

    # The coordinator…

    async def _connected(self, deadline: float) -> tuple[str, int | str, ApiVersions]:
        """Return the broker to ask, connected, and its API versions."""
        client = self._client
        release = client.versions.release if client.versions is not None else None
        if release is not None and release < _IN_KAFKA_SINCE:
            # ZooKeeper has the offsets, and every broker can read it.
            node_id: int | str = await client.some_node(deadline)
            use = "default"
        else:
            node_id = await client.coordinator(GROUP, self._group_id, deadline)
            use = COMMITS
        link = client.link(node_id, use)
        try:
            await client.open(link, deadline)
        except KafkaError as error:
            self._moved(error)
            raise
        assert link.versions is not None  # which an open connection begins with
        return use, node_id, link.versions

    def _moved(self, error: KafkaError) -> None:
        if isinstance(error, COORDINATOR_LOST):
            self._client.cluster.forget_coordinator(GROUP, self._group_id)


# Seconds after which unchanged offsets are committed again where the broker counts their retention from the commit;
# that is at least a day by default (offsets.retention.minutes).
_REFRESH_INTERVAL: Final = 3600.0


class AutoCommitTask:
    """The schedule of one consumer's automatic commits. No timer: without poll() there is nothing new to commit."""

    def __init__(
        self,
        coordinator: GroupCoordinator,
        interval: float,
        topic_id: Callable[[str], UUID | None] = lambda _topic: None,
    ) -> None:
        self._loop = coordinator.loop
        self._topic_id = topic_id
        self.interval = interval
        """Seconds between commits."""
        self.due_at = self._loop.time() + interval
        self.under_way = False
        self.is_revoking = False
        """Whether the commit before a revocation is under way: it covers what another one would."""
        # Partition -> offset, ownership id, topic id (the group forgets the offsets of a deleted topic, and another one
        # may have its name), time of the response. Written by the loop, read by the application.
        self._stored: dict[TopicPartition, tuple[int, int, UUID | None, float]] = {}

    def due(self, now: float) -> bool:
        """Whether the next commit should begin."""
        return now >= self.due_at and not self.under_way and not self.is_revoking

    def reschedule(self, at: float | None = None) -> None:
        """Commit next at a time of the loop's clock, or an interval from now."""
        self.due_at = self._loop.time() + self.interval if at is None else at

    def stored(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | None],
        ids: OwnershipIds | None,
    ) -> None:
        """Record offsets that the group has stored, during these ownerships."""
        now = self._loop.time()
        for partition, offset in offsets.items():
            if offset is not None:
                topic_id = self._topic_id(partition.topic)
                self._stored[partition] = (offset.offset, _ownership_id(ids, partition), topic_id, now)

    def changed(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        ids: OwnershipIds | None,
        *,
        expiring: bool,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets that the group has not stored; `expiring` if stored ones expire while a member lives."""
        oldest = self._loop.time() - _REFRESH_INTERVAL if expiring else float("-inf")
        for partition in tuple(self._stored):
            if partition not in offsets:
                self._stored.pop(partition, None)
        found = {}
        for partition, offset in offsets.items():
            stored, during, topic_id, at = self._stored.get(partition, (-1, -1, None, oldest))
            # Another member may have replaced an offset that was stored in an earlier ownership.
            is_stored = stored == offset.offset and during == _ownership_id(ids, partition) and at > oldest
            if not is_stored or (topic_id and self._topic_id(partition.topic) not in {None, topic_id}):
                found[partition] = offset
        return found


def _ownership_id(ids: OwnershipIds | None, partition: TopicPartition) -> int:
    return 0 if ids is None else ids.get(partition, 0)
