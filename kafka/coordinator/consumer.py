"""A consumer's side of its group: assignment, committed offsets, automatic commits. The classic protocol.

It derives from the member (`kafka.coordinator.base`) and says what the group is about: topics, partitions
and who assigns them. `kafka.coordinator.membership` puts it behind the seam that the consumer knows.

Two threads. What changes the subscription or calls the application runs in the application's thread
(`serve`); all else runs on the loop.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from kafka._runtime.application import complete
from kafka._runtime.tasks import wait_any
from kafka._text import printable
from kafka.config import Config, defaults
from kafka.coordinator import group_leader
from kafka.coordinator.assignors import common_protocol, make_assignors
from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.coordinator.base import BaseCoordinator
from kafka.coordinator.consumer_group_member import ConsumerGroupMember
from kafka.coordinator.group_leader import AssignorCalls
from kafka.coordinator.metrics import ConsumerCoordinatorMetrics
from kafka.coordinator.offset_commits import AutoCommitTask, OffsetCommitter, Tenures
from kafka.coordinator.offset_requests import Identity
from kafka.coordinator.protocol import (
    ConsumerProtocol,
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)
from kafka.coordinator.rebalance import Assignments, CallKind, RebalanceCall
from kafka.coordinator.states import Generation, MemberState
from kafka.errors import (
    CommitFailedError,
    FatalError,
    IllegalGenerationError,
    KafkaError,
    KafkaTimeoutError,
    RebalanceInProgressError,
    RejoinNeededError,
    StaleMemberEpochError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from kafka.future import Future
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata, SubscriptionPattern, TopicPartition

if TYPE_CHECKING:
    from kafka._core.client import Client
    from kafka._runtime.application import Application
    from kafka.cluster import ClusterMetadata
    from kafka.coordinator.rebalance import Subscription
    from kafka.metrics import Metrics

__all__ = ["AutoCommitTask", "ConsumerCoordinator", "ConsumerCoordinatorMetrics"]

log = logging.getLogger(__name__)

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
OnCommitted = Callable[..., object]

_GROUPS_SINCE: Final = (0, 9)
_KEPT_FOR_MEMBERS_SINCE: Final = (2, 1)
_API_TIMEOUT_MS: Final = 60_000.0
# No rebalance and no close() should wait for a topic that was deleted. The other partitions of the commit are stored.
_TOPIC_IS_GONE: Final = (UnknownTopicOrPartitionError,)
_LEAVE_GRACE: Final = 0.2  # seconds for the request to leave the group after Ctrl-C
# What close() takes at most, in seconds, and after how many it ends while no broker can be reached, by default.
_CLOSE_TIMEOUT: Final = 30.0
_UNREACHABLE_TIMEOUT: Final = 5.0
_LOOK_INTERVAL: Final = 0.5  # seconds between two looks at the connections meanwhile


class ConsumerCoordinator(BaseCoordinator):
    """A consumer in its group. Keyword arguments are the options in ``DEFAULT_CONFIG``."""

    DEFAULT_CONFIG: ClassVar[dict[str, Any]] = defaults("consumer_coordinator")
    _KIND: ClassVar[str] = "consumer_coordinator"

    def __init__(
        self,
        client: Client,
        subscription: Subscription,
        metrics: Metrics | None = None,
        *,
        config: Config | None = None,
        application: Application | None = None,
        **configs: Any,
    ) -> None:
        super().__init__(client, metrics, config=config, application=application, **configs)
        self.subscription = subscription
        self.assignors = make_assignors(self.config["partition_assignment_strategy"])
        self._assignor_calls = AssignorCalls(self.assignors, self.rendezvous)
        self.rebalance_protocol = common_protocol(self.assignors)
        self.consumer_sensors = ConsumerCoordinatorMetrics(metrics, self.config["metric_group_prefix"], subscription)
        self.auto_commit: AutoCommitTask | None = None
        if self.config["enable_auto_commit"]:
            self.auto_commit = AutoCommitTask(self, self.config.seconds("auto_commit_interval_ms"))
        self.assignments = Assignments(
            subscription, self.rendezvous, None if self.auto_commit is None else self._commit_consumed
        )
        self.committer = OffsetCommitter(
            client,
            self.group_id,
            self._identity,
            self._tenures,
            self._commit_refused,
            reader=self._reader,
            on_latency=self.consumer_sensors.committed,
        )
        if self.auto_commit is not None:
            self.committer.on_stored = self.auto_commit.stored
        self._committed: deque[tuple[OnCommitted | None, Offsets, Any]] = deque()
        self.joined_version = self._seen_version = -1
        self._picture: group_leader.Picture | None = None
        self._matching: RebalanceCall | None = None
        self.waiting_logged = False
        self._modern: ConsumerGroupMember | None = None
        if self.config["group_protocol"] != "classic":
            self._modern = ConsumerGroupMember(self)
        client.cluster.add_listener(self._metadata_changed)

    # What the group is about…

    def protocol_type(self) -> str:
        """The name that all kinds of consumers share."""
        return ConsumerProtocol.PROTOCOL_TYPE

    def group_protocols(self) -> list[tuple[str, Any]]:
        """Return the assignors' names with what this member wants and has."""
        self.joined_version = self.subscription.subscription_version
        topics = sorted(self.subscription.subscribed_topics)
        return [(str(assignor.name), self._metadata(assignor, topics)) for assignor in self.assignors]

    async def _offer(self) -> Sequence[tuple[str, Any]]:
        while True:
            before = self.generation
            offer = await self._assignor_calls.ask_all(self.group_protocols)
            if self.generation == before:
                return offer
            await self.assignments.lost()  # it was put out of the group meanwhile, and has nothing that it could keep

    def _metadata(self, assignor: Any, topics: list[str]) -> Any:
        ask = getattr(assignor, "metadata", None)
        metadata = ConsumerProtocolMemberMetadata(0, topics, b"") if ask is None else ask(topics)
        if not isinstance(metadata, ConsumerProtocolMemberMetadata):
            return metadata  # of a kind that the assignor alone knows
        rack = self.config["client_rack"] or None
        if self.rebalance_protocol is RebalanceProtocol.EAGER:
            # Nothing is owned at this moment. Without the generation a static member that restarts says
            # what it said before, and the group need not rebalance.
            return metadata._replace(rack_id=rack)
        return metadata._replace(
            owned_partitions=sorted(self.assignments.held()),
            generation_id=self.generation.generation_id,
            rack_id=rack,
        )

    def need_rejoin(self) -> bool:
        """Whether the group is to be joined, or joined again."""
        if not self.subscription.is_automatic:
            return False
        return super().need_rejoin() or self.joined_version != self.subscription.subscription_version

    async def _on_join_prepare(self, generation: int, member_id: str) -> None:  # noqa: ARG002
        self._check_groups_exist()
        await self.assignments.lost()
        held = self.assignments.held()
        if self.rebalance_protocol is RebalanceProtocol.EAGER:
            await self.assignments.give_up(held)
        else:
            wanted = set(self.subscription.subscribed_topics)
            await self.assignments.give_up({partition for partition in held if partition.topic not in wanted})
        await self.assignments.lost()
        self.log_waiting()

    def log_waiting(self) -> None:
        """Say once for each rebalance that poll() may return nothing, which looks like an empty topic."""
        if self.waiting_logged:
            return
        self.waiting_logged = True
        held = len(self.assignments.held())
        returned = f"only records of the {held} partitions that this member keeps" if held else "no records"
        log.info("Group %s: the group rebalances; until that has ended poll() returns %s", self.group_id, returned)

    def _check_groups_exist(self) -> None:
        versions = self.client.versions
        if versions is not None and versions.release < _GROUPS_SINCE:
            raise UnsupportedVersionError(
                f"brokers of {'.'.join(map(str, versions.release))} have no consumer groups, which came with 0.9: use "
                "assign() in place of subscribe(), or a newer broker"
            )

    async def _perform_assignment(self, leader_id: str, protocol: str, members: Sequence[Any]) -> Mapping[str, Any]:  # noqa: ARG002
        assignor = self._assignor_calls.named(protocol)
        wants = group_leader.read_members(members)
        await self._watch(group_leader.topics_of(wants))
        cooperative = self.rebalance_protocol is RebalanceProtocol.COOPERATIVE
        found = await self._assignor_calls.ask(
            assignor, lambda: group_leader.assign(assignor, self.client.cluster, wants, cooperative=cooperative)
        )
        empty = ConsumerProtocolMemberAssignment(0, [], b"")
        return {member: found.get(member, empty) for member in wants}

    async def _on_assignment_skipped(self, protocol: str, members: Sequence[Any]) -> None:  # noqa: ARG002
        await self._watch(group_leader.topics_of(group_leader.read_members(members)))

    async def _watch(self, topics: frozenset[str]) -> None:
        """Know the cluster as far as the whole group is concerned, and notice when that changes."""
        cluster = self.client.cluster
        if not topics <= set(self.subscription.subscribed_topics):
            self.rendezvous.post(
                RebalanceCall(CallKind.WATCH, (), lambda: self.subscription.watch_for_group(sorted(topics)))
            )
        if not cluster.need_all_topic_metadata and not topics <= cluster.wanted_topics:
            cluster.set_topics(cluster.wanted_topics | topics)
        if any(cluster.partitions_for_topic(topic) is None for topic in topics):
            await self.client.refresh(self.loop.time() + self.client.settings.request_timeout)
        self._picture = group_leader.take_picture(cluster, topics)

    async def _on_join_complete(self, generation: int, member_id: str, protocol: str, assignment: bytes) -> None:
        if self.generation.member_id != member_id or not self.subscription.is_automatic:
            return
        is_leader = self._picture is not None
        assignor = self._assignor_calls.named(protocol)
        given = ConsumerProtocolMemberAssignment.decode(assignment)
        partitions = set(given.partitions())
        wanted = set(self.subscription.subscribed_topics)
        if any(partition.topic not in wanted for partition in partitions):
            # It subscribed to something else while the round went on.
            self._request_rejoin("the subscription changed during the rebalance")
            return
        member = printable(member_id)
        log.info("Group %s: member %s is assigned %s (%s)", self.group_id, member, sorted(partitions), protocol)
        self.waiting_logged = False
        await self._assignor_calls.tell(assignor, given, generation)
        gone = self.assignments.held() - partitions
        if gone:
            await self.assignments.give_up(gone)
            self._request_rejoin("it gave up partitions that other members get")
        if self.generation.is_member:
            await self.assignments.take(partitions)
        if self.auto_commit is not None:
            self.auto_commit.reschedule()
        if is_leader:
            self._compare_picture()

    def _on_generation_lost(self) -> None:
        self._picture = None
        self.assignments.lose()

    # The other protocol…

    async def _stay_member(self) -> None:
        if self._modern is not None:
            await self._modern.run()
            if self.state is MemberState.FAILED:
                return
            self._modern = None  # the brokers have the classic protocol only
            if isinstance(self.subscription.pattern, SubscriptionPattern):
                self.stop_for(
                    UnsupportedVersionError(
                        "the brokers cannot match a SubscriptionPattern (KIP-848, since 4.0); "
                        "with subscribe(pattern='...') the consumer does"
                    )
                )
                return
        await super()._stay_member()

    def _stop_main(self) -> None:
        super()._stop_main()
        if self._modern is not None:
            self._modern.stop()

    async def _send_leave(self, leaving: Generation, reason: str, deadline: float | None = None) -> None:
        if self._modern is None:
            await super()._send_leave(leaving, reason, deadline)
        elif leaving.is_member:
            await self._modern.leave(deadline)

    # Metadata…

    def _metadata_changed(self, cluster: ClusterMetadata) -> None:
        pattern = self.subscription.pattern
        if (
            pattern is not None
            and hasattr(pattern, "match")
            # While the application is busy metadata comes again and again, and one call is enough.
            and (self._matching is None or self._matching.done.is_done)
            and self._matches(cluster) != set(self.subscription.subscribed_topics)
        ):
            self._matching = self.rendezvous.post(RebalanceCall(CallKind.WATCH, (), self.match_pattern))
        if self._modern is not None:
            self._modern.reconcile_if_needed()
        self._compare_picture()

    def _matches(self, cluster: ClusterMetadata) -> set[str]:
        pattern = self.subscription.pattern
        found = cluster.topics(exclude_internal_topics=self.config["exclude_internal_topics"])
        return {topic for topic in found if pattern.match(topic)}

    def match_pattern(self) -> None:
        """Subscribe to what the pattern matches now; in the application's thread."""
        self.subscription.match(self.client.cluster.topics(self.config["exclude_internal_topics"]))

    def _compare_picture(self) -> None:
        if self._picture is None or self.state is not MemberState.STABLE or self.rejoin.is_set():
            return
        if group_leader.take_picture(self.client.cluster, self._picture.keys()) != self._picture:
            self._picture = None
            self._request_rejoin("partitions were added, or moved to other racks")

    # The application's thread…

    def polled(self) -> None:
        """Record that the application called poll() (max_poll_interval_ms)."""
        super().polled()
        if not self.due and self.has_work:
            self.due = True

    async def serve(self) -> None:
        """Do what the application has to do: call listeners and callbacks of commits, begin an automatic commit.

        Joins when the subscription asks for it. Raises what the application must know. It does not wait for a
        rebalance to end: poll() waits, and serves when `due`.
        """
        self.due = False
        try:
            await self._serve()
        finally:
            # Never set to False here: the network thread may have set it to True meanwhile.
            if self.has_work:
                self.due = True

    async def _serve(self) -> None:
        await self.run_commit_callbacks()
        await self.serve_calls()
        version = self.subscription.subscription_version
        if self.subscription.is_automatic and version != self._seen_version:
            self._seen_version = version
            if self._main is None:
                self.start()
            elif version != self.joined_version:
                self.request_rejoin("the subscription changed")
        if self.auto_commit is not None and self.auto_commit.due(self.loop.time()):
            self._commit_automatically(self.auto_commit)

    @property
    def has_work(self) -> bool:
        """Whether `serve` has something to do."""
        return bool(
            self.rendezvous
            or self._committed
            or self._error is not None
            or self._asked_for_sign
            or (self.subscription.is_automatic and self.subscription.subscription_version != self._seen_version)
            or (self.auto_commit is not None and self.auto_commit.due(self.loop.time()))
        )

    async def run_commit_callbacks(self) -> None:
        """Call the callbacks of commits that were answered."""
        while self._committed:
            callback, offsets, outcome = self._committed.popleft()
            if callback is not None:
                await self.application.call(callback, offsets, outcome)

    def _commit_automatically(self, task: AutoCommitTask) -> None:
        offsets = self._not_stored(self._committable())
        task.reschedule()
        if not offsets:
            return
        task.under_way = True

        def ended(outcome: Any) -> None:
            task.under_way = False
            if not isinstance(outcome, KafkaError):
                return
            # KIP-848: the epoch moved on while the commit was under way; the next one is signed with the new one.
            stale = isinstance(outcome, StaleMemberEpochError)
            level = logging.INFO if stale else logging.WARNING
            log.log(level, "Group %s: an automatic commit failed, the next one covers it: %s", self.group_id, outcome)
            if stale or (outcome.retriable and not isinstance(outcome, _TOPIC_IS_GONE)):
                task.reschedule(self.loop.time() + self.retry_backoff)

        self.commit_async(offsets, self.config["default_offset_commit_callback"]).add_both(ended)

    def _committable(self) -> dict[TopicPartition, OffsetAndMetadata]:
        consumed = self.subscription.consumed()
        if not self.subscription.is_automatic:
            return dict(consumed)
        held = self.assignments.held()
        return {partition: offset for partition, offset in consumed.items() if partition in held}

    def _not_stored(self, offsets: Offsets) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return those offsets that an automatic commit has to store."""
        if self.auto_commit is None:
            return dict(offsets)
        versions = self.client.versions
        # Since 2.1 (KIP-211) offsets expire once a group has no members. Before, and for partitions that are assigned
        # by hand, which make no member, they expire some time after their commit.
        expiring = not self.subscription.is_automatic or versions is None or versions.release < _KEPT_FOR_MEMBERS_SINCE
        return self.auto_commit.changed(offsets, self.committer.stays(offsets), expiring=expiring)

    # Offsets…

    def _tenures(self) -> Tenures | None:
        return self.assignments.tenures if self.subscription.is_automatic else None

    def _identity(self) -> Identity:
        if not self.subscription.is_automatic:
            return Identity(self.group_id)
        generation = self.generation
        if not generation.is_member:
            raise CommitFailedError(
                "this consumer is not in its group now, so it has nothing to commit; it joins again in poll()"
            )
        return Identity(self.group_id, generation.generation_id, generation.member_id, self.group_instance_id)

    def _reader(self) -> Identity:
        # KIP-848: the broker checks that who reads is a member of now.
        modern = self._modern is not None and self.subscription.is_automatic and self.generation.is_member
        return self._identity() if modern else Identity(self.group_id)

    def _commit_refused(self, error: KafkaError, who: Identity) -> KafkaError:
        """Do what a refused commit calls for, and return what it means."""
        if self._modern is not None:
            self.rejoin.set()  # the next heartbeat goes out at once, and tells what is wrong
            return error
        if not self.subscription.is_automatic:
            return error
        if isinstance(error, IllegalGenerationError) and self._is_between_generations(who):
            return RebalanceInProgressError(f"the group took on a new generation meanwhile: {error}")
        if isinstance(error, (RejoinNeededError, FatalError)) and who.generation_id == self.generation.generation_id:
            self.heartbeat_refused(error, self.generation)
        return error

    def _is_between_generations(self, who: Identity) -> bool:
        """Whether this member is in the group all the same, in a newer generation or on its way into one.

        The coordinator has the new generation as soon as all have joined, this member when it hears of that. Who
        rebalances cooperatively holds partitions meanwhile, and may commit.
        """
        moved_on = self.generation.is_member and self.generation.generation_id != who.generation_id
        return moved_on or self.in_round

    async def _commit_consumed(self, offsets: Offsets) -> None:
        offsets = self._not_stored(offsets)
        deadline = self.loop.time() + min(self.client.settings.request_timeout, self.heartbeat.poll_interval / 2)
        await self.committer.commit(offsets, self.committer.stays(offsets), deadline, not_for=_TOPIC_IS_GONE)
        if self.auto_commit is not None:
            self.auto_commit.reschedule()

    def commit_async(self, offsets: Offsets, callback: OnCommitted | None = None) -> Future[Any]:
        """Commit without waiting, in one attempt; `callback(offsets, answer or error)` runs in `serve`."""
        return self._begin_commit(dict(offsets), self.committer.stays(offsets), callback)

    def _begin_commit(
        self, offsets: Offsets, stays: Mapping[TopicPartition, int] | None, callback: OnCommitted | None
    ) -> Future[Any]:
        future: Future[Any] = Future()

        def ended(outcome: Any) -> None:
            if callback is not None:
                self._committed.append((callback, offsets, outcome))
                self._set_due()

        future.add_both(ended)

        def begin() -> None:
            self.committer.begin(offsets, stays).chain(future)

        self.loop.call_soon(begin)
        return future

    def commit_offsets_async(self, offsets: Offsets, callback: OnCommitted | None = None) -> Future[Any]:
        """Commit without waiting. `callback` is called as ``callback(offsets, answer or error)``."""
        return self.commit_async(offsets, callback)

    def commit_offsets_sync(self, offsets: Offsets, timeout_ms: float | None = None) -> None:
        """Commit, and retry what may pass; raises what does not."""
        deadline = self._deadline(timeout_ms)
        complete(self.application.run(self.commit(offsets, deadline), None, "the commit"))

    async def commit(self, offsets: Offsets, deadline: float) -> None:
        """Commit, and retry what may pass until the deadline; on the loop.

        The commit is a separate task: it continues when its caller is cancelled, and `close` waits for it.
        """
        # While members wait for their assignments the coordinator takes no commits. That passes, and cooperative
        # members keep partitions meanwhile.
        stays = self.committer.stays(offsets)
        work = self.committer.commit(dict(offsets), stays, deadline, outlast=(RebalanceInProgressError,))
        await self.loop.spawn(work, "commit")

    async def committed(
        self, partitions: Collection[TopicPartition], deadline: float
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return what the group committed for each partition; None where there is nothing. On the loop."""
        return await self.committer.fetch(partitions, deadline)

    def fetch_committed_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return what the group committed, for those of the partitions for which it did."""
        reading = self.committer.fetch(list(partitions), self._deadline(timeout_ms))
        found = complete(self.application.run(reading, None, "reading offsets"))
        return {partition: offset for partition, offset in found.items() if offset is not None}

    def refresh_committed_offsets_if_needed(self, timeout_ms: float | None = None) -> None:
        """Put assigned partitions that have no position where the group committed last."""
        missing = list(self.subscription.without_position())
        if missing:
            for partition, offset in self.fetch_committed_offsets(missing, timeout_ms).items():
                self.subscription.seek(partition, offset.offset, offset.leader_epoch)

    def _deadline(self, timeout_ms: float | None) -> float:
        if timeout_ms is None:  # a bare KafkaClient has no such option
            timeout_ms = self.client.config.get("default_api_timeout_ms", _API_TIMEOUT_MS)
        return self.loop.time() + timeout_ms / 1000

    # Who it is…

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return who this consumer is within its group, or who it was as long as it is out of it.

        A coordinator takes offsets in a transaction that no member signs from anybody. A member that was removed, and
        has not heard of that in poll(), may hold records that others have processed meanwhile: who it was is refused.
        """
        generation = self.generation
        if not generation.is_member and self.subscription.is_automatic:
            generation = self.last_membership
        return ConsumerGroupMetadata(
            self.group_id,
            generation.generation_id,
            generation.member_id,
            self.group_instance_id,
            self.state.historic,
        )

    def health(self) -> dict[str, Any]:
        """Return its state and what it waits for, as plain values."""
        return {
            "group_id": self.group_id,
            "protocol": "classic" if self._modern is None else "consumer",
            "state": self.state.value,
            "generation": self.generation.generation_id,
            "member_id": self.generation.member_id,
            "coordinator": self.coordinator_id,
            "waiting_for": repr(self.rendezvous) if self.rendezvous else self.waiting_for,
        }

    # Leaving…

    async def unsubscribed(self, deadline: float) -> None:
        """Leave the group, after a commit if that is automatic and after the listener was called."""
        commit = self.auto_commit is not None
        try:
            await self._leave("the application unsubscribed", deadline, commit=commit, forever=False, patient=False)
        finally:
            self.due = True

    def close(  # type: ignore[override]
        self, autocommit: bool = True, timeout_ms: float | None = None, *, patient: bool | None = None
    ) -> None:
        """Commit if that is automatic, call the listener, leave the group, stop; may be called twice.

        Takes 30 seconds at most unless `timeout_ms` is given, and 5 while no broker can be reached unless it is
        `patient`, which it is by default with a timeout.
        """
        if patient is None:
            patient = timeout_ms is not None
        deadline = self.loop.time() + (_CLOSE_TIMEOUT if timeout_ms is None else timeout_ms / 1000)
        complete(self.finish(deadline, commit=autocommit, patient=patient))

    async def finish(self, deadline: float, *, commit: bool, patient: bool) -> None:
        """Commit if that is automatic, call the listener, leave the group; raises nothing that `deadline` causes.

        Only with `patient` it waits until the deadline also while no broker can be reached.
        """
        if self.state is MemberState.CLOSED or self.loop.closed:
            return
        commit = commit and self.auto_commit is not None
        try:
            await self._leave("the consumer is closed", deadline, commit=commit, forever=True, patient=patient)
        finally:
            self.state = MemberState.CLOSED
            self.client.cluster.remove_listener(self._metadata_changed)

    async def _leave(self, reason: str, deadline: float, *, commit: bool, forever: bool, patient: bool) -> None:
        offsets = self._not_stored(self._committable()) if commit else {}
        reached = _Reached(self.client, float("inf") if patient else _UNREACHABLE_TIMEOUT)
        try:
            await self._try(reached.during(lambda: self._quiesce(offsets, deadline)), deadline, "the last commit")
            await self.run_commit_callbacks()
        except Exception:
            raise
        except BaseException:  # Ctrl-C, or a cancelled task: the caller waits for no broker any more
            deadline = min(deadline, self.loop.time() + _LEAVE_GRACE)
            raise
        finally:  # callbacks and listeners are the application's: whatever they raise, the member leaves
            try:
                await self.assignments.revoke_all(self.application)
            finally:
                self._seen_version = -1
                self._picture = None
                leave = self._close if forever else self.leave_group
                await self._try(reached.during(lambda: leave(reason, deadline)), deadline, "leaving the group")

    async def _quiesce(self, offsets: Offsets, deadline: float) -> None:
        """Join no more, let commits come to an end, and commit what was consumed."""
        self._stop_main()
        self.rejoin.clear()
        await self.committer.settled(deadline)
        if offsets:
            try:
                await self.committer.commit(offsets, self.committer.stays(offsets), deadline, not_for=_TOPIC_IS_GONE)
            except KafkaError as error:
                log.warning(
                    "Group %s: the last offsets could not be committed; the records since the last commit will be "
                    "read again: %s",
                    self.group_id,
                    error,
                )

    async def _try(self, coro: Any, deadline: float, what: str) -> None:
        try:
            await self.application.run(coro, deadline, what)
        except KafkaTimeoutError as error:
            log.warning("Group %s: %s was given up: %s", self.group_id, what, error)


class _Reached:
    """Ends what waits for brokers when for some seconds there was a connection to none of them."""

    def __init__(self, client: Client, timeout: float) -> None:
        self._client = client
        self._timeout = timeout
        self._last = client.loop.time()

    async def during(self, begin: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Run a coroutine to its end; KafkaTimeoutError if no broker could be reached for too long."""
        client, loop = self._client, self._client.loop
        task = loop.spawn(begin())
        try:
            while not await wait_any(loop, task, deadline=loop.time() + _LOOK_INTERVAL):
                if any(link.ready for link in client.links()):
                    self._last = loop.time()
                elif loop.time() - self._last >= self._timeout:
                    raise KafkaTimeoutError(f"no broker could be reached for {self._timeout:.0f} seconds")
        finally:
            task.cancel()
        task.result()
