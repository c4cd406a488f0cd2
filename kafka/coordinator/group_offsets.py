"""The committed offsets of a consumer in its group: commits of the application, automatic commits, reading.

`OffsetCommitter` exchanges the requests, on the loop; `GroupOffsets` decides when, and which offsets.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

from kafka.coordinator.metrics import ConsumerCoordinatorMetrics
from kafka.coordinator.offset_commits import AutoCommitTask, OffsetCommitter
from kafka.coordinator.rebalance import Assignments, OwnershipIds
from kafka.errors import (
    CommitFailedError,
    KafkaError,
    RebalanceInProgressError,
    StaleMemberEpochError,
    UnknownTopicOrPartitionError,
)
from kafka.future import Future
from kafka.structs import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka._hooks import ConsumerTracer
    from kafka._runtime.application import Application
    from kafka._runtime.tasks import Coro
    from kafka.config import Config
    from kafka.consumer.subscription_state import SubscriptionState
    from kafka.coordinator.membership import Membership
    from kafka.metrics import Metrics
    from kafka.protocol.commit import OffsetCommitResponse

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
OnCommitted = Callable[..., object]

_KEPT_FOR_MEMBERS_SINCE: Final = (2, 1)
# Neither a rebalance nor close() waits for a deleted topic. The broker stores the other partitions of the commit.
_TOPIC_IS_GONE: Final = (UnknownTopicOrPartitionError,)


class GroupOffsets:
    """What one consumer commits and has committed."""

    def __init__(
        self,
        membership: Membership,
        subscription: SubscriptionState,
        assignments: Assignments,
        application: Application,
        metrics: Metrics | None,
        config: Config,
    ) -> None:
        self._membership = membership
        self._client = membership.coordinator.client
        self._loop = membership.loop
        self._group_id = membership.group_id
        self._log = membership.coordinator.log
        self._subscription = subscription
        self._assignments = assignments
        self._application = application
        self._automatic_callback: OnCommitted = config["default_offset_commit_callback"]
        self.answered: deque[tuple[OnCommitted, Offsets, object]] = deque()
        """Callbacks of the application to call, with the outcome of the commit."""
        self.on_answered: Callable[[], object] = lambda: None
        """Called on the loop when a callback waits for the application."""
        self.auto_commit: AutoCommitTask | None = None
        if config["enable_auto_commit"]:
            self.auto_commit = AutoCommitTask(
                membership.coordinator, config.seconds("auto_commit_interval_ms"), self._client.cluster.topic_id
            )
            assignments.commit = self._commit_before_revocation
        assignments.settle = self._settle_before_revocation
        self.sensors = ConsumerCoordinatorMetrics(metrics, config["metric_group_prefix"], subscription)
        self.committer = OffsetCommitter(membership, subscription, assignments, self.sensors.committed)
        self.committer.on_stored = self._stored
        self.tracer: ConsumerTracer | None = None

    # What to commit…

    def _committable(self) -> Offsets:
        """Return the offsets behind the records that were returned, of partitions that this consumer has."""
        consumed = self._subscription.consumed()
        if not self.committer.as_member:
            return dict(consumed)
        held = self._assignments.held()
        return {partition: offset for partition, offset in consumed.items() if partition in held}

    def _chosen(self, offsets: Offsets | None) -> tuple[Offsets, OwnershipIds | None]:
        """Return the offsets of a commit, with None those behind all returned records, and the ids of the ownerships.

        Records of a partition that was taken away before they were committed come again: without offsets the commit
        fails, once, and names it.
        """
        chosen = dict(self._subscription.consumed() if offsets is None else offsets)
        ids = self.committer.ownership_ids(chosen)
        if offsets is None:
            unstored = self._subscription.take_unstored()
            if ids is not None:
                ids.update(dict.fromkeys(unstored, 0))
        return chosen, ids

    def _stored(self, offsets: Mapping[TopicPartition, OffsetAndMetadata | None], ids: OwnershipIds | None) -> None:
        self._subscription.note_answered(offsets)
        if self.auto_commit is not None:
            self.auto_commit.stored(offsets, ids)

    # Commits of the application…

    def commit_async(
        self, offsets: Offsets | None, callback: OnCommitted | None = None
    ) -> Future[OffsetCommitResponse | None]:
        """Commit without waiting, in one attempt; `call_back` calls `callback(offsets, response or error)`.

        With None commit the offsets behind all returned records.
        """
        chosen, ids = self._chosen(offsets)
        future: Future[OffsetCommitResponse | None] = Future()
        span = None if self.tracer is None else self.tracer.settling("commit")

        def ended(outcome: object) -> None:
            if span is not None:
                span.ended(outcome if isinstance(outcome, BaseException) else None)
            if isinstance(outcome, CommitFailedError):
                self._subscription.note_answered(chosen)
            if callback is not None:
                self.answered.append((callback, chosen, outcome))
                self.on_answered()

        future.add_both(ended)
        self._loop.call_soon(lambda: self.committer.begin(chosen, ids).chain(future))
        return future

    def commit(self, offsets: Offsets | None, deadline: float) -> Coro[None]:
        """Commit, and retry after retriable errors until the deadline; with None behind all returned records.

        The offsets are read during the call, in the application; the coroutine runs on the loop.
        """
        return self._commit(*self._chosen(offsets), deadline)

    async def _commit(self, offsets: Offsets, ids: OwnershipIds | None, deadline: float) -> None:
        """Commit on the loop.

        The commit is a separate task: it continues when its caller is cancelled, and close() waits for it.
        """
        # The coordinator refuses commits while members wait for their assignments. That ends, and cooperative members
        # keep partitions meanwhile.
        work = self.committer.commit(offsets, ids, deadline, also_retry=(RebalanceInProgressError,))
        try:
            await self._loop.spawn(work, "commit")
        except CommitFailedError:
            self._subscription.note_answered(offsets)
            raise

    async def call_back(self) -> None:
        """Call the callbacks of commits that were answered, in the application."""
        while self.answered:
            callback, offsets, outcome = self.answered.popleft()
            await self._application.call(callback, offsets, outcome)

    # Automatic commits…

    @property
    def is_due(self) -> bool:
        """Whether it is time for an automatic commit."""
        return self.auto_commit is not None and self.auto_commit.due(self._loop.time())

    def commit_automatically(self) -> None:
        """Begin an automatic commit of the offsets that have changed."""
        task = self.auto_commit
        assert task is not None
        offsets = self.to_store()
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
            self._log.log(level, "an automatic commit failed, the next one covers it: %s", outcome)
            if stale or (outcome.retriable and not isinstance(outcome, _TOPIC_IS_GONE)):
                task.reschedule(self._loop.time() + self._membership.coordinator.retry_backoff)

        try:
            task.under_way = True
            self.commit_async(offsets, self._automatic_callback).add_both(ended)
        except BaseException:  # Ctrl-C: it may not have begun, and no later one begins while it is under way
            task.under_way = False
            raise

    def to_store(self, offsets: Offsets | None = None) -> Offsets:
        """Return the offsets that an automatic commit must store: of all that may be committed, or of these."""
        if offsets is None:
            offsets = self._committable()
        if self.auto_commit is None:
            return offsets
        versions = self._client.versions
        # Since 2.1 (KIP-211) offsets expire after a group has lost its members. Before, and for partitions that are
        # assigned by hand, without a member, they expire some time after their commit.
        expiring = not self._subscription.is_automatic or versions is None or versions.release < _KEPT_FOR_MEMBERS_SINCE
        return self.auto_commit.changed(offsets, self.committer.ownership_ids(offsets), expiring=expiring)

    async def _commit_before_revocation(self, offsets: Offsets) -> None:
        task = self.auto_commit
        assert task is not None
        task.is_revoking = True
        try:
            await self._store(self.to_store(offsets), self._deadline_of_revocation(1 / 2))
        finally:
            task.is_revoking = False
            task.reschedule()

    async def _settle_before_revocation(self) -> None:
        await self._loop.sleep(0)  # commits that the listener asked for begin on the loop
        await self.committer.settled(self._deadline_of_revocation(1 / 4))

    def _deadline_of_revocation(self, share: float) -> float:
        """Return when a wait for commits ends: a share of the time after which the group continues without a member."""
        poll_interval = self._membership.heartbeat.poll_interval
        return self._loop.time() + min(self._client.settings.request_timeout, poll_interval * share)

    def reschedule(self) -> None:
        """Commit automatically an interval from now, as after an assignment."""
        if self.auto_commit is not None:
            self.auto_commit.reschedule()

    async def _store(self, offsets: Offsets, deadline: float) -> None:
        ids = self.committer.ownership_ids(offsets)
        with nullcontext() if self.tracer is None or not offsets else self.tracer.settling("commit"):
            await self.committer.commit(offsets, ids, deadline, never_retry=_TOPIC_IS_GONE)

    async def settle(self, last: Offsets, deadline: float) -> None:
        """Wait for the commits under way, then commit the last offsets; a failure is logged."""
        await self.committer.settled(deadline)
        if last:
            try:
                await self._store(last, deadline)
            except KafkaError as error:
                self._log.warning(
                    "the last offsets could not be committed; the records since the last commit will be read again: %s",
                    error,
                )
