"""A consumer's side of its group: committed offsets, automatic commits, the group's work in poll(), leaving.

The consumer's core knows its group as a `ConsumerCoordinator`, in either protocol: the classic one (`ClassicMember`,
its base) or that of KIP-848 (`ConsumerGroupMember`, which it holds). Application-side coroutines (`serve`,
`unsubscribed`, `finish`) change the subscription and call the application; the rest runs on the loop.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from kafka._historic import historic_names
from kafka._runtime.application import complete
from kafka._runtime.tasks import wait_any
from kafka.config import Config, part_of_defaults
from kafka.coordinator.classic_member import ClassicMember
from kafka.coordinator.consumer_group_member import ConsumerGroupMember
from kafka.coordinator.metrics import ConsumerCoordinatorMetrics
from kafka.coordinator.offset_commits import AutoCommitTask, OffsetCommitter
from kafka.coordinator.offset_requests import Identity
from kafka.coordinator.rebalance import Ownership, OwnershipIds
from kafka.coordinator.states import Generation, MemberState
from kafka.errors import (
    CommitFailedError,
    FatalError,
    IllegalGenerationError,
    InvalidRegularExpressionError,
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
    from kafka._runtime.tasks import Coro
    from kafka.client_async import KafkaClient
    from kafka.cluster import ClusterMetadata
    from kafka.coordinator.rebalance import Subscription
    from kafka.metrics import Metrics
    from kafka.protocol.commit import OffsetCommitResponse

__all__ = ["AutoCommitTask", "ConsumerCoordinator", "ConsumerCoordinatorMetrics"]

log = logging.getLogger(__name__)

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
OnCommitted = Callable[..., object]

_KEPT_FOR_MEMBERS_SINCE: Final = (2, 1)
_API_TIMEOUT_MS: Final = 60_000.0
# Neither a rebalance nor close() waits for a deleted topic. The broker stores the other partitions of the commit.
_TOPIC_IS_GONE: Final = (UnknownTopicOrPartitionError,)
_LEAVE_GRACE: Final = 0.2  # seconds for the request to leave the group after Ctrl-C
# The longest time of close() by default, and without a connection to any broker, in seconds.
_CLOSE_TIMEOUT: Final = 30.0
_UNREACHABLE_TIMEOUT: Final = 5.0
_LOOK_INTERVAL: Final = 0.5  # seconds between two looks at the connections meanwhile


@historic_names("kafka.legacy.private_names:ConsumerCoordinatorNames")
class ConsumerCoordinator(ClassicMember):
    """A consumer in its group. Keyword arguments are the options in ``DEFAULT_CONFIG``."""

    DEFAULT_CONFIG: ClassVar[dict[str, Any]] = {
        **ClassicMember.DEFAULT_CONFIG,
        **part_of_defaults(
            "consumer",
            "client_rack",
            "metric_group_prefix",
            "group_protocol",
            "group_remote_assignor",
            "partition_assignment_strategy",
            "assignors",
            "enable_auto_commit",
            "auto_commit_interval_ms",
            "default_offset_commit_callback",
            "exclude_internal_topics",
        ),
    }
    _kip848: ConsumerGroupMember | None = None

    def __init__(
        self,
        client: Client | KafkaClient,
        subscription: Subscription,
        metrics: Metrics | None = None,
        *,
        config: Config | None = None,
        application: Application | None = None,
        **configs: Any,
    ) -> None:
        super().__init__(client, subscription, metrics, config=config, application=application, **configs)
        self.consumer_sensors = ConsumerCoordinatorMetrics(metrics, self.config["metric_group_prefix"], subscription)
        if client_series := self.client.series:
            client_series.gauges(
                kafka_consumer_last_poll_seconds=lambda: self.loop.time() - self.heartbeat.last_poll,
            )
        self.auto_commit: AutoCommitTask | None = None
        if self.config["enable_auto_commit"]:
            self.auto_commit = AutoCommitTask(self, self.config.seconds("auto_commit_interval_ms"))
        self.committer = OffsetCommitter(
            self.client,
            self.group_id,
            self._identity,
            self._ownership,
            self._commit_refused,
            reader=self._reading_identity,
            on_latency=self.consumer_sensors.committed,
        )
        if self.auto_commit is not None:
            self.assignments.commit = self._commit_consumed
        self.committer.on_stored = self._stored
        self._committed: deque[tuple[OnCommitted | None, Offsets, object]] = deque()
        self._seen_version = -1
        if self.config["group_protocol"] != "classic":
            self._kip848 = ConsumerGroupMember(self)

    # The protocol of KIP-848…

    async def _stay_member(self) -> None:
        if self._kip848 is not None:
            await self._kip848.run()
            if self.state is MemberState.FAILED:
                return
            self._kip848 = None  # the brokers have the classic protocol only
            if isinstance(self.subscription.pattern, SubscriptionPattern):
                self.fail_with(
                    UnsupportedVersionError(
                        "the brokers cannot match a SubscriptionPattern (KIP-848, since 4.0); "
                        "with subscribe(pattern='...') the consumer does"
                    )
                )
                return
        await super()._stay_member()

    def _metadata_changed(self, cluster: ClusterMetadata) -> None:
        super()._metadata_changed(cluster)
        if self._kip848 is not None:
            self._kip848.reconcile_if_needed()

    def _on_assigned(self) -> None:
        if self.auto_commit is not None:
            self.auto_commit.reschedule()

    def _stop_main(self) -> None:
        super()._stop_main()
        if self._kip848 is not None:
            self._kip848.stop()

    async def _send_leave(self, leaving: Generation, reason: str, deadline: float | None = None) -> None:
        if self._kip848 is None:
            await super()._send_leave(leaving, reason, deadline)
        else:
            await self._kip848.leave(deadline)

    # Called by the application…

    def poll(self, timeout_ms: float | None = None) -> bool:
        """Do the group's work, and wait for the assignment where the subscription needs one; False after the timeout.

        `KafkaConsumer` does not call it: its poll() serves the group and reads meanwhile.
        """
        complete(self.serve())
        return not self.subscription.is_automatic or self.ensure_active_group(timeout_ms)

    def maybe_leave_group(self, timeout_ms: float | None = None) -> None:
        """Leave the group until the next poll(), without a commit and without a call of the listener."""
        try:
            super().maybe_leave_group(timeout_ms)
        finally:
            self._seen_version = -1
            self._set_due()

    def polled(self) -> None:
        """Record that the application called poll() (max_poll_interval_ms)."""
        super().polled()
        if not self.due and self.has_work:
            self.due = True

    async def serve(self) -> None:
        """Do the group's work in the application: call listeners and callbacks of commits, begin an automatic commit.

        Joins when the subscription asks for it. Raises errors of the application's code, and fatal ones. It does not
        wait for the end of a rebalance: poll() waits, and serves when `due`.
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
        version = self.subscription.subscription_version
        if version != self._seen_version and isinstance(self._error, InvalidRegularExpressionError):
            self._error = None  # of the subscription before
        await self.serve_calls()
        version = self.subscription.subscription_version
        if self.subscription.is_automatic and version != self._seen_version:
            if not self._is_active():
                pass  # in asyncio another task serves: the member joins again when the application polls
            elif self._main is None:
                self.start()
            elif version != self.joined_version:
                self.request_rejoin("the subscription changed")
            self._seen_version = version  # last: where Ctrl-C comes before, the next poll() does it again
        if self.auto_commit is not None and self.auto_commit.due(self.loop.time()):
            self._commit_automatically(self.auto_commit)

    @property
    def has_work(self) -> bool:
        """Whether `serve` has something to do."""
        return bool(
            self.rendezvous
            or self._committed
            or self._error is not None
            or (self.poll_timer.notified and self.is_polling())
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

        def ended(outcome: object) -> None:
            task.under_way = False
            if not isinstance(outcome, KafkaError):
                return
            # KIP-848: the epoch changed while the commit was under way; the next commit has the new one.
            stale = isinstance(outcome, StaleMemberEpochError)
            level = logging.INFO if stale else logging.WARNING
            log.log(level, "Group %s: an automatic commit failed, the next one covers it: %s", self.group_id, outcome)
            if stale or (outcome.retriable and not isinstance(outcome, _TOPIC_IS_GONE)):
                task.reschedule(self.loop.time() + self.retry_backoff)

        try:
            task.under_way = True
            self.commit_async(offsets, self.config["default_offset_commit_callback"]).add_both(ended)
        except BaseException:  # Ctrl-C: it may not have begun, and no later one begins while it is under way
            task.under_way = False
            raise

    def _committable(self) -> dict[TopicPartition, OffsetAndMetadata]:
        consumed = self.subscription.consumed()
        if not self._as_member:
            return dict(consumed)
        held = self.assignments.held()
        return {partition: offset for partition, offset in consumed.items() if partition in held}

    def _not_stored(self, offsets: Offsets) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets that an automatic commit must store."""
        if self.auto_commit is None:
            return dict(offsets)
        versions = self.client.versions
        # Since 2.1 (KIP-211) offsets expire after a group has lost its members. Before, and for partitions that are
        # assigned by hand, without a member, they expire some time after their commit.
        expiring = not self.subscription.is_automatic or versions is None or versions.release < _KEPT_FOR_MEMBERS_SINCE
        return self.auto_commit.changed(offsets, self.committer.ownership_ids(offsets), expiring=expiring)

    # Offsets…

    @property
    def _as_member(self) -> bool:
        """Whether offsets are committed by the member, and not for partitions that are assigned by hand."""
        return self.subscription.is_automatic or bool(self.subscription.departing)

    def _ownership(self) -> Ownership | None:
        return self.assignments.ownership if self._as_member else None

    def _identity(self) -> Identity:
        if not self._as_member:
            return Identity(self.group_id)
        generation = self.generation
        if not generation.is_member:
            why = f" ({self.left_because})" if self.left_because else ""
            raise CommitFailedError(
                f"this consumer is not in its group now{why}, so it has nothing to commit; it joins again in poll()"
            )
        return Identity(self.group_id, generation.generation_id, generation.member_id, self.group_instance_id)

    def _reading_identity(self) -> Identity:
        # KIP-848: the broker checks the member and its epoch.
        modern = self._kip848 is not None and self.subscription.is_automatic and self.generation.is_member
        return self._identity() if modern else Identity(self.group_id)

    def _commit_refused(self, error: KafkaError, who: Identity) -> KafkaError:
        """React to a refused commit, and return the error to raise."""
        if self._kip848 is not None:
            self.rejoin.set()  # the next heartbeat goes out at once; its response shows the cause
            return error
        if not self._as_member:
            return error
        if isinstance(error, IllegalGenerationError) and self._is_between_generations(who):
            return RebalanceInProgressError(f"the group took on a new generation meanwhile: {error}")
        if isinstance(error, (RejoinNeededError, FatalError)) and who.generation_id == self.generation.generation_id:
            self.heartbeat_refused(error, self.generation)
        return error

    def _is_between_generations(self, who: Identity) -> bool:
        """Whether this member is still in the group, in a newer generation or on its way into one.

        The coordinator has the new generation when all members have joined, this member when it has the response. With
        the cooperative protocol it owns partitions meanwhile, and may commit.
        """
        moved_on = self.generation.is_member and self.generation.generation_id != who.generation_id
        return moved_on or self.in_round

    async def _commit_consumed(self, offsets: Offsets) -> None:
        offsets = self._not_stored(offsets)
        deadline = self.loop.time() + min(self.client.settings.request_timeout, self.heartbeat.poll_interval / 2)
        await self.committer.commit(
            offsets, self.committer.ownership_ids(offsets), deadline, never_retry=_TOPIC_IS_GONE
        )
        if self.auto_commit is not None:
            self.auto_commit.reschedule()

    def _stored(self, offsets: Mapping[TopicPartition, OffsetAndMetadata | None], ids: OwnershipIds | None) -> None:
        self.subscription.note_answered(offsets)
        if self.auto_commit is not None:
            self.auto_commit.stored(offsets, ids)

    def _to_commit(self, offsets: Offsets | None) -> tuple[Offsets, OwnershipIds | None]:
        """Return the offsets of a commit, with None those behind all returned records, and the ids of the ownerships.

        Records of a partition that was taken away before they were committed come again: without offsets the commit
        fails, once, and names it.
        """
        chosen = dict(self.subscription.consumed() if offsets is None else offsets)
        ids = self.committer.ownership_ids(chosen)
        if offsets is None:
            unstored = self.subscription.take_unstored()
            if ids is not None:
                ids.update(dict.fromkeys(unstored, 0))
        return chosen, ids

    def commit_async(
        self, offsets: Offsets | None, callback: OnCommitted | None = None
    ) -> Future[OffsetCommitResponse | None]:
        """Commit without waiting, in one attempt; `serve` calls `callback(offsets, response or error)`.

        With None commit the offsets behind all returned records.
        """
        return self._begin_commit(*self._to_commit(offsets), callback)

    def _begin_commit(
        self, offsets: Offsets, ids: OwnershipIds | None, callback: OnCommitted | None
    ) -> Future[OffsetCommitResponse | None]:
        future: Future[OffsetCommitResponse | None] = Future()

        def ended(outcome: object) -> None:
            if isinstance(outcome, CommitFailedError):
                self.subscription.note_answered(offsets)
            if callback is not None:
                self._committed.append((callback, offsets, outcome))
                self._set_due()

        future.add_both(ended)

        def begin() -> None:
            self.committer.begin(offsets, ids).chain(future)

        self.loop.call_soon(begin)
        return future

    def commit_offsets_async(
        self, offsets: Offsets, callback: OnCommitted | None = None
    ) -> Future[OffsetCommitResponse | None]:
        """Commit without waiting. `callback` is called as ``callback(offsets, response or error)``."""
        return self.commit_async(offsets, callback)

    def commit_offsets_sync(self, offsets: Offsets, timeout_ms: float | None = None) -> None:
        """Commit, and retry after retriable errors; raises others."""
        deadline = self._deadline(timeout_ms)
        complete(self.application.run(self.commit(offsets, deadline), None, "the commit"))

    def commit(self, offsets: Offsets | None, deadline: float) -> Coro[None]:
        """Commit, and retry after retriable errors until the deadline; with None behind all returned records.

        The offsets are read during the call, in the application; the coroutine runs on the loop.
        """
        return self._commit(*self._to_commit(offsets), deadline)

    async def _commit(self, offsets: Offsets, ids: OwnershipIds | None, deadline: float) -> None:
        """Commit on the loop.

        The commit is a separate task: it continues when its caller is cancelled, and `close` waits for it.
        """
        # The coordinator refuses commits while members wait for their assignments. That ends, and cooperative members
        # keep partitions meanwhile.
        work = self.committer.commit(offsets, ids, deadline, also_retry=(RebalanceInProgressError,))
        try:
            await self.loop.spawn(work, "commit")
        except CommitFailedError:
            self.subscription.note_answered(offsets)
            raise

    async def committed(
        self, partitions: Collection[TopicPartition], deadline: float
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offset of each partition, None without one; on the loop."""
        return await self.committer.fetch(partitions, deadline)

    def fetch_committed_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets, without partitions that have none."""
        reading = self.committer.fetch(list(partitions), self._deadline(timeout_ms))
        found = complete(self.application.run(reading, None, "reading offsets"))
        return {partition: offset for partition, offset in found.items() if offset is not None}

    def refresh_committed_offsets_if_needed(self, timeout_ms: float | None = None) -> None:
        """Move assigned partitions without a position to their committed offsets."""
        missing = list(self.subscription.without_position())
        if missing:
            for partition, offset in self.fetch_committed_offsets(missing, timeout_ms).items():
                self.subscription.seek(partition, offset.offset, offset.leader_epoch)

    def _deadline(self, timeout_ms: float | None) -> float:
        if timeout_ms is None:  # a bare KafkaClient has no such option
            timeout_ms = self.client.config.get("default_api_timeout_ms", _API_TIMEOUT_MS)
        return self.loop.time() + timeout_ms / 1000

    # Identity and state…

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return the identity of this member: after its removal the last one, until it has joined again.

        A coordinator accepts offsets in a transaction without a member id from any producer. A removed member may hold
        records that other members have processed meanwhile, until poll() has told it so: its last identity is refused.
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
        """Return its state and the reason of a wait, as plain values."""
        return {
            "group_id": self.group_id,
            "protocol": "classic" if self._kip848 is None else "consumer",
            "state": self.state.value,
            "generation": self.generation.generation_id,
            "member_id": self.generation.member_id,
            "coordinator": self.coordinator_id,
            "waiting_for": self._waits_for_application() or self.waiting_for,
        }

    def _waits_for_application(self) -> str | None:
        """Say that a rebalance waits for poll(), if it does: a member that is out of the group has its own reason."""
        if not self.rendezvous or not self._is_active():
            return None
        seconds = self.heartbeat.poll_interval - self.heartbeat.poll_left()
        return f"the application: a rebalance waits for its next poll(), the last one was {seconds:.0f} s ago"

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

        Takes 30 seconds at most unless `timeout_ms` is given, and 5 without a connection to any broker unless it is
        `patient`, the default with a timeout.
        """
        if patient is None:
            patient = timeout_ms is not None
        deadline = self.loop.time() + (_CLOSE_TIMEOUT if timeout_ms is None else timeout_ms / 1000)
        complete(self.finish(deadline, commit=autocommit, patient=patient))

    async def finish(self, deadline: float, *, commit: bool, patient: bool) -> None:
        """Commit if that is automatic, call the listener, leave the group; raises nothing that `deadline` causes.

        Without a connection to any broker only `patient` waits until the deadline.
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
        reached = _BrokersReachable(self.client, float("inf") if patient else _UNREACHABLE_TIMEOUT)
        try:
            await self._try(reached.during(lambda: self._quiesce(offsets, deadline)), deadline, "the last commit")
            await self.run_commit_callbacks()
        except Exception:
            raise
        except BaseException:  # Ctrl-C, or a cancelled task: the caller waits for no broker any more
            deadline = min(deadline, self.loop.time() + _LEAVE_GRACE)
            raise
        finally:  # whatever callbacks and listeners raise, the member leaves
            try:
                await self.assignments.revoke_all(self.application)
            finally:
                self._seen_version = -1
                self._snapshot = None
                leave = self._close if forever else self.leave_group
                await self._try(reached.during(lambda: leave(reason, deadline)), deadline, "leaving the group")

    async def _quiesce(self, offsets: Offsets, deadline: float) -> None:
        """Stop joining, wait for the commits under way, and commit the consumed offsets."""
        self._stop_main()
        self.rejoin.clear()
        await self.committer.settled(deadline)
        if offsets:
            try:
                await self.committer.commit(
                    offsets, self.committer.ownership_ids(offsets), deadline, never_retry=_TOPIC_IS_GONE
                )
            except KafkaError as error:
                log.warning(
                    "Group %s: the last offsets could not be committed; the records since the last commit will be "
                    "read again: %s",
                    self.group_id,
                    error,
                )

    async def _try(self, coro: Coro[None], deadline: float, what: str) -> None:
        try:
            await self.application.run(coro, deadline, what)
        except KafkaTimeoutError as error:
            log.warning("Group %s: %s failed: %s", self.group_id, what, error)


class _BrokersReachable:
    """Ends a wait for brokers when there was no connection to any of them for some seconds."""

    def __init__(self, client: Client, timeout: float) -> None:
        self._client = client
        self._timeout = timeout
        self._last = client.loop.time()

    async def during(self, begin: Callable[[], Coro[object]]) -> None:
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
