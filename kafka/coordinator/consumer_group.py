"""A consumer's side of its group: its membership, its offsets, the group's work in poll(), leaving.

The consumer's core knows its group as a `ConsumerGroup`, in either protocol. Application-side coroutines (`serve`,
`unsubscribed`, `finish`) change the subscription and call the application; the rest runs on the loop.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from kafka._runtime.tasks import wait_any
from kafka.coordinator.classic_assignment import ClassicAssignment
from kafka.coordinator.classic_member import ClassicMember
from kafka.coordinator.consumer_group_member import ConsumerGroupMember
from kafka.coordinator.group_offsets import GroupOffsets, Offsets
from kafka.coordinator.membership import Membership
from kafka.coordinator.metrics import GroupCoordinatorMetrics
from kafka.coordinator.rebalance import Assignments, CallKind, RebalanceCall
from kafka.coordinator.states import MemberState
from kafka.errors import InvalidRegularExpressionError, KafkaTimeoutError
from kafka.structs import ConsumerGroupMetadata

if TYPE_CHECKING:
    from kafka._core.client import Client
    from kafka._runtime.application import Application
    from kafka._runtime.tasks import Coro
    from kafka.cluster import ClusterMetadata
    from kafka.config import Config
    from kafka.consumer.subscription_state import SubscriptionState
    from kafka.metrics import Metrics

_LEAVE_GRACE: Final = 0.2  # seconds for the request to leave the group after Ctrl-C
# The longest time of close() without a connection to any broker, in seconds.
_UNREACHABLE_TIMEOUT: Final = 5.0
_LOOK_INTERVAL: Final = 0.5  # seconds between two looks at the connections meanwhile


class ConsumerGroup:
    """A consumer in its group: a `Membership`, what it is assigned, and its committed offsets."""

    def __init__(
        self,
        client: Client,
        subscription: SubscriptionState,
        metrics: Metrics | None,
        *,
        config: Config,
        application: Application,
    ) -> None:
        self.client = client
        self.loop = client.loop
        self.subscription = subscription
        self.application = application
        self.group_id: str = config["group_id"]
        self.due = True
        """Whether the application has something to do here. A plain attribute: each poll() reads it."""
        self.on_due: Callable[[], object] = lambda: None
        """Called, from any thread, when `due` has become true."""
        self._exclude_internal_topics: bool = config["exclude_internal_topics"]
        self._seen_version = -1
        """The version of the subscription that the membership knows of."""
        self._matching: RebalanceCall | None = None
        self.membership = Membership(client, config, application, last_taken=subscription.last_taken)
        self._log = self.membership.coordinator.log
        heartbeat = self.membership.heartbeat
        self.membership.on_due = self.set_due
        self.assignments = Assignments(subscription, self.membership.rendezvous)
        self.membership.on_lost = self.assignments.mark_lost
        sensors = GroupCoordinatorMetrics(heartbeat, metrics, config["metric_group_prefix"])
        self.membership.on_rebalanced = self._rebalanced
        self._sensors = sensors
        self.assignment = ClassicAssignment(self.membership, subscription, self.assignments, config)
        self.classic = ClassicMember(self.membership, self.assignment, sensors, config)
        self.membership.member = self.classic
        if config["group_protocol"] != "classic":
            self.membership.member = ConsumerGroupMember(
                self.membership, subscription, self.assignments, sensors, config
            )
            self.membership.fallback = self.classic
        self.offsets = GroupOffsets(self.membership, subscription, self.assignments, application, metrics, config)
        self.offsets.on_answered = self.set_due
        self.assignment.on_assigned = self.offsets.reschedule
        if client.series is not None:
            client.series.gauges(kafka_consumer_last_poll_seconds=lambda: self.loop.time() - heartbeat.last_poll)
        client.cluster.add_listener(self._metadata_changed)

    # The group's work in poll()…

    def set_due(self) -> None:
        """Have the application serve. From any thread."""
        self.due = True
        self.on_due()

    def polled(self) -> None:
        """Record that the application called poll() (max_poll_interval_ms)."""
        self.membership.polled()
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
        membership, subscription = self.membership, self.subscription
        await self.offsets.call_back()
        if subscription.subscription_version != self._seen_version and isinstance(
            membership.error, InvalidRegularExpressionError
        ):
            membership.error = None  # of the subscription before
        await membership.serve_calls()
        version = subscription.subscription_version
        if subscription.is_automatic and version != self._seen_version:
            if not membership.is_active():
                pass  # in asyncio another task serves: the member joins again when the application polls
            elif not membership.is_started:
                membership.start()
            elif version != self.assignments.joined_version:
                membership.request_rejoin("the subscription changed")
            self._seen_version = version  # last: where Ctrl-C comes before, the next poll() does it again
        if self.offsets.is_due:
            self.offsets.commit_automatically()

    @property
    def has_new_subscription(self) -> bool:
        """Whether `serve` has not seen the subscription as it is now."""
        return self.subscription.is_automatic and self.subscription.subscription_version != self._seen_version

    @property
    def has_work(self) -> bool:
        """Whether `serve` has something to do."""
        # Each poll() asks: attributes first, which are false as a rule.
        membership, offsets, subscription = self.membership, self.offsets, self.subscription
        return bool(
            (membership.rendezvous.waiting and membership.rendezvous)
            or offsets.answered
            or membership.error is not None
            or (membership.poll_timer.notified and membership.is_polling())
            or (subscription.subscription_version != self._seen_version and subscription.is_automatic)
            or offsets.is_due
        )

    def _rebalanced(self, seconds: float, why: str) -> None:
        self._sensors.rebalanced(seconds)
        held, cluster = self.assignments.held(), self.client.cluster
        topics = {*self.subscription.subscribed_topics, *(partition.topic for partition in held)}
        self._log.info(
            "rebalanced in %.1f s: this member has %d of %d partitions, because %s",
            seconds,
            len(held),
            sum(len(cluster.partitions_for_topic(topic) or ()) for topic in topics),
            why,
            extra={"kafka_client_id": self.client.config["client_id"]},
        )

    # Metadata…

    def _metadata_changed(self, cluster: ClusterMetadata) -> None:
        pattern = self.subscription.pattern  # once: the application may unsubscribe meanwhile
        if (
            isinstance(pattern, re.Pattern)
            # While the application is busy metadata comes repeatedly, and one call is enough.
            and (self._matching is None or self._matching.done.is_done)
            and self._matches(cluster, pattern) != set(self.subscription.subscribed_topics)
        ):
            self._matching = self.membership.rendezvous.post(RebalanceCall(CallKind.WATCH, (), self.match_pattern))
        self.membership.member.metadata_changed()

    def _matches(self, cluster: ClusterMetadata, pattern: re.Pattern[str]) -> set[str]:
        found = cluster.topics(exclude_internal_topics=self._exclude_internal_topics)
        return {topic for topic in found if pattern.match(topic)}

    def match_pattern(self) -> None:
        """Subscribe to the topics that the pattern matches now; the application calls it."""
        self.subscription.match(self.client.cluster.topics(self._exclude_internal_topics))

    # Identity and state…

    def metadata(self) -> ConsumerGroupMetadata:
        """Return the identity of this member: after its removal the last one, until it has joined again.

        A coordinator accepts offsets in a transaction without a member id from any producer. A removed member may hold
        records that other members have processed meanwhile, until poll() has told it so: its last identity is refused.
        """
        membership = self.membership
        generation = membership.generation
        if not generation.is_member and self.subscription.is_automatic:
            generation = membership.last_generation
        return ConsumerGroupMetadata(
            self.group_id,
            generation.generation_id,
            generation.member_id,
            membership.group_instance_id,
            membership.state.historic,
        )

    def health(self) -> dict[str, Any]:
        """Return its state and the reason of a wait, as plain values."""
        membership = self.membership
        return {
            "group_id": self.group_id,
            "protocol": membership.member.protocol,
            "state": membership.state.value,
            "generation": membership.generation.generation_id,
            "member_id": membership.generation.member_id,
            "coordinator": membership.coordinator.node_id,
            "waiting_for": membership.waits_for_application() or membership.coordinator.waiting_for,
        }

    # Leaving…

    def join_with_next_poll(self) -> None:
        """Have the next poll() join, after the member has left."""
        self._seen_version = -1
        self.set_due()

    async def unsubscribed(self, deadline: float) -> None:
        """Leave the group, after a commit if that is automatic and after the listener was called."""
        commit = self.offsets.auto_commit is not None
        try:
            await self._leave("the application unsubscribed", deadline, commit=commit, forever=False, patient=False)
        finally:
            self.due = True

    async def finish(self, deadline: float, *, commit: bool, patient: bool) -> None:
        """Commit if that is automatic, call the listener, leave the group; raises nothing that `deadline` causes.

        Without a connection to any broker only `patient` waits until the deadline.
        """
        membership = self.membership
        if membership.state is MemberState.CLOSED or self.loop.closed:
            return
        commit = commit and self.offsets.auto_commit is not None
        try:
            await self._leave("the consumer is closed", deadline, commit=commit, forever=True, patient=patient)
        finally:
            membership.state = MemberState.CLOSED
            self.client.cluster.remove_listener(self._metadata_changed)

    async def _leave(self, reason: str, deadline: float, *, commit: bool, forever: bool, patient: bool) -> None:
        last = self.offsets.to_store() if commit else {}
        self.membership.is_leaving = True
        reached = _BrokersReachable(self.client, float("inf") if patient else _UNREACHABLE_TIMEOUT)
        try:
            await self._try(reached.during(lambda: self._quiesce(last, deadline)), deadline, "the last commit")
            await self.offsets.call_back()
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
                leave = self.membership.close if forever else self.membership.leave
                try:
                    await self._try(reached.during(lambda: leave(reason, deadline)), deadline, "leaving the group")
                finally:
                    self.membership.is_leaving = False

    async def _quiesce(self, last: Offsets, deadline: float) -> None:
        """Stop joining, wait for the commits under way, and commit the consumed offsets."""
        self.membership.stop()
        await self.offsets.settle(last, deadline)

    async def _try(self, coro: Coro[None], deadline: float, what: str) -> None:
        try:
            await self.application.run(coro, deadline, what)
        except KafkaTimeoutError as error:
            self._log.warning("%s failed: %s", what, error)


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
