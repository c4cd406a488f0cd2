"""A member of a group in the protocol of KIP-848: the broker assigns, and heartbeats carry everything.

A heartbeat has the fields of this member that changed (its topics, the partitions that it owns); the response has its
epoch and its target assignment. Going from the owned partitions to the target (`_reconcile`) involves the application
and may take long, so it is a separate task, and heartbeats continue meanwhile. When it has ended the next heartbeat
goes out at once; only then does the broker assign the revoked partitions to other members.

Partitions of the target count as owned from the response on, in which they came: this member may begin to read them
while its next heartbeat is on its way. And the broker waits until it has heard that a partition is given back, also one
that this member was assigned and lost again before it came to read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final
from uuid import UUID

from kafka._runtime.tasks import Task
from kafka._text import printable
from kafka.cluster import GROUP
from kafka.coordinator.group_coordinator import COMMITS
from kafka.coordinator.membership import REMOVED, Membership, new_member_id
from kafka.coordinator.rebalance import Assignments, CallKind, RebalanceCall
from kafka.coordinator.states import Generation, MemberEvent, MemberState
from kafka.errors import (
    FencedMemberEpochError,
    GroupIdNotFoundError,
    InvalidRegularExpressionError,
    KafkaError,
    UnknownMemberIdError,
    UnreleasedInstanceIdError,
    UnsupportedVersionError,
    for_code,
)
from kafka.protocol.group import ConsumerGroupHeartbeatRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.structs import SubscriptionPattern, TopicPartition

if TYPE_CHECKING:
    from kafka.config import Config
    from kafka.consumer.subscription_state import SubscriptionState
    from kafka.coordinator.metrics import GroupCoordinatorMetrics
    from kafka.protocol.group import ConsumerGroupHeartbeatResponse

_JOIN: Final = 0
_LEAVE: Final = -1
_LEAVE_STATIC: Final = -2  # a static member, whose place is kept
_CHOSEN_IDS_SINCE: Final = 1


class ConsumerGroupMember:
    """The heartbeats of a member, and its reactions to the responses."""

    protocol: ClassVar[str] = "consumer"
    reads_as_member: ClassVar[bool] = True

    def __init__(
        self,
        membership: Membership,
        subscription: SubscriptionState,
        assignments: Assignments,
        sensors: GroupCoordinatorMetrics,
        config: Config,
    ) -> None:
        self._membership = membership
        self._coordinator = membership.coordinator
        self._client = membership.coordinator.client
        self._loop = membership.loop
        self._group_id = membership.group_id
        self._log = membership.coordinator.log
        self._subscription = subscription
        self._assignments = assignments
        self._sensors = sensors
        self._rack: str | None = config["client_rack"] or None
        self._assignor: str | None = config["group_remote_assignor"]
        self._falls_back: bool = config["group_protocol"] == "auto"
        self._member_id = ""
        self._may_be_member = False
        """Whether the coordinator may have it as a member: a heartbeat was sent, and no response says otherwise."""
        self._interval = membership.heartbeat.interval
        self._target: dict[UUID, frozenset[int]] | None = None
        self._names: dict[UUID, str] = {}
        self._sent: dict[str, object] = {}
        self._pattern_sent = False
        """The coordinator may have a pattern of this member, which stays until another or none is sent."""
        self._reconciling: Task[object] | None = None
        self._looking_up = False
        self._failures = 0
        self._conflict_since: float | None = None

    # Heartbeats…

    async def run(self) -> None:
        """Join and stay; returns if the brokers do not have this protocol."""
        while True:
            try:
                await self._heartbeat_loop()
            except UnsupportedVersionError as error:  # noqa: PERF203 - each pass waits for the network
                self._unsupported(error)
                return
            except KafkaError as error:
                if not await self._recover(error):
                    return

    def _unsupported(self, error: KafkaError) -> None:
        membership = self._membership
        self._may_be_member = False
        if not self._falls_back:
            membership.fail_with(
                UnsupportedVersionError(
                    "the brokers do not have group_protocol='consumer' (KIP-848, since 4.0), or it is switched off "
                    f"there; 'auto' falls back to 'classic': {error}"
                )
            )
        elif isinstance(self._subscription.pattern, SubscriptionPattern):
            membership.fail_with(
                UnsupportedVersionError(
                    "the brokers cannot match a SubscriptionPattern (KIP-848, since 4.0); "
                    "with subscribe(pattern='...') the consumer does"
                )
            )
        else:
            self._log.info("the brokers have the classic protocol only, so it is used: %s", error)
            membership.move(MemberEvent.RETRY)
            membership.rejoin.set()

    async def _heartbeat_loop(self) -> None:
        """Send heartbeats when they are due or when a field has changed, until one fails."""
        membership = self._membership
        await self._coordinator.find()
        while True:
            membership.rejoin.clear()
            if not membership.generation.is_member:
                await self._prepare_to_join()
            await self._beat()
            self._coordinator.waiting_for = None
            await membership.rejoin.wait_until(self._loop, self._loop.time() + self._interval)

    async def _prepare_to_join(self) -> None:
        membership = self._membership
        membership.move(MemberEvent.START)
        await self._assignments.wait_lost()
        self._sent, self._target = {}, None
        if not self._member_id and await self._may_choose_id():
            self._member_id = new_member_id()
        self._assignments.log_rebalance(self._log)
        membership.move(MemberEvent.PREPARED)

    async def _may_choose_id(self) -> bool:
        deadline = self._loop.time() + self._client.settings.request_timeout
        node_id = await self._client.coordinator(GROUP, self._group_id, deadline)
        link = self._client.link(node_id, COMMITS)
        await self._client.open(link, deadline)
        assert link.versions is not None
        return link.versions.version_for(ConsumerGroupHeartbeatRequest()) >= _CHOSEN_IDS_SINCE

    async def _beat(self) -> None:
        membership = self._membership
        before = membership.generation
        fields = self._fields_to_send()
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            member_epoch=max(before.generation_id, _JOIN),
            **{name: value for name, value in fields.items() if name not in self._sent or self._sent[name] != value},
        )
        sent = self._loop.time()
        self._may_be_member = True
        response = await self._coordinator.ask(request, "heartbeat")
        self._sensors.heartbeat(self._loop.time() - sent)
        membership.heartbeat.received_heartbeat()
        if response.error_code:
            error = for_code(response.error_code)
            if (
                issubclass(error, InvalidRegularExpressionError)
                and self._assignments.joined_version != self._subscription.subscription_version
            ):
                await self._beat()  # the application has subscribed to something else meanwhile
                return
            raise error(response.error_message or "the coordinator refused a heartbeat")
        if membership.generation != before:
            return  # the member left meanwhile
        self._failures = 0
        self._conflict_since = None
        self._sent = fields
        if fields.get("subscribed_topic_regex") == "":
            self._pattern_sent = False
        self._take(response)

    def _fields_to_send(self) -> dict[str, object]:
        """Return the fields of a heartbeat; the request has only the changed ones."""
        subscription = self._subscription
        fields: dict[str, object] = {
            "instance_id": self._membership.group_instance_id,
            "rack_id": self._rack,
            "rebalance_timeout_ms": int(self._membership.rebalance_timeout * 1000),
            "server_assignor": self._assignor,
            "subscribed_topic_names": sorted(subscription.subscribed_topics),
            "topic_partitions": self._owned(),
        }
        if isinstance(subscription.pattern, SubscriptionPattern):
            fields["subscribed_topic_regex"] = subscription.pattern.pattern
            self._pattern_sent = True
        elif self._pattern_sent:
            fields["subscribed_topic_regex"] = ""  # no longer
        self._assignments.joined_version = subscription.subscription_version
        return fields

    def _owned(self) -> list[ConsumerGroupHeartbeatRequest.TopicPartitions]:
        """Return the partitions that no other member may get: those owned, and the target."""
        owned: dict[UUID, set[int]] = {topic_id: set(numbers) for topic_id, numbers in (self._target or {}).items()}
        ids = {name: topic_id for topic_id, name in self._names.items()}
        for topic, number in self._assignments.held():
            if topic in ids:
                owned.setdefault(ids[topic], set()).add(number)
        entry = ConsumerGroupHeartbeatRequest.TopicPartitions
        return [entry(topic_id=topic_id, partitions=sorted(numbers)) for topic_id, numbers in sorted(owned.items())]

    # Reconciling…

    def _take(self, response: ConsumerGroupHeartbeatResponse) -> None:
        membership = self._membership
        if membership.state is MemberState.JOINING:
            membership.move(MemberEvent.JOINED)
            self._assignments.rebalance_logged = False
            member = printable(response.member_id or "")
            self._log.info("member %s joined the group, epoch %d", member, response.member_epoch)
        self._member_id = response.member_id or self._member_id
        membership.generation = Generation(response.member_epoch, self._member_id, self._assignor)
        if response.heartbeat_interval_ms > 0:
            self._interval = response.heartbeat_interval_ms / 1000
        if response.assignment is not None:
            entries = response.assignment.topic_partitions
            self._target = {entry.topic_id: frozenset(entry.partitions) for entry in entries}
        self.reconcile_if_needed()

    def reconcile_if_needed(self) -> None:
        """Begin to reconcile with the target, unless that is under way or they are equal."""
        membership = self._membership
        if self._target is None or self._reconciling is not None or not membership.generation.is_member:
            return
        unknown = self._resolve()
        if unknown and not self._looking_up:
            self._looking_up = True
            self._loop.spawn_logged(self._look_up(unknown), "look up topics by id")
        if membership.state is MemberState.SYNCING or self._resolved() != self._assignments.held():
            if membership.state is not MemberState.COMPLETING:
                membership.move(MemberEvent.SYNCED)
            task = self._reconciling = self._loop.spawn_logged(self._reconcile(), "reconcile")
            task.add_both(lambda _: self._reconciled(task))
        elif self._sent.get("topic_partitions") != self._owned():
            membership.rejoin.set()  # the target has lost partitions that were never read

    async def _reconcile(self) -> None:
        """Take one step after the other, each towards the present target: the last one may have taken long."""
        membership = self._membership
        while (partitions := self._resolved()) != self._assignments.held() and membership.generation.is_member:
            self._log.info("member %s is assigned %s", printable(self._member_id), sorted(partitions))
            if surplus := self._assignments.held() - partitions:
                await self._assignments.revoke(surplus)
            else:
                await self._assignments.assign(partitions)
        if membership.state is MemberState.COMPLETING:
            membership.move(MemberEvent.COMPLETED if membership.generation.is_member else MemberEvent.RETRY)

    def _reconciled(self, task: Task[object]) -> None:
        if self._reconciling is not task:
            return
        self._reconciling = None
        if task.exception is not None:
            return  # cancelled, as the client ends; after an error the next heartbeat tries again
        if self._sent.get("topic_partitions") != self._owned():
            self._membership.rejoin.set()  # send it at once: another member waits for the revoked partitions
        self.reconcile_if_needed()

    def _resolve(self) -> set[UUID]:
        """Look up the names of the target's topics in metadata; return the ids without a name."""
        cluster = self._client.cluster
        for topic_id in self._target or ():
            name = cluster.topic_name_for_id(topic_id)
            if name is not None:
                self._names[topic_id] = name
        return set(self._target or ()) - self._names.keys()

    def _resolved(self) -> set[TopicPartition]:
        """Return the target's partitions whose names are known; the broker accepts a part of the target."""
        return {
            TopicPartition(self._names[topic_id], number)
            for topic_id, numbers in (self._target or {}).items()
            if topic_id in self._names
            for number in numbers
        }

    async def _look_up(self, unknown: set[UUID]) -> None:
        """Request topics by id: a pattern that the broker matches leads to topics that are not named here."""
        cluster = self._client.cluster
        topic = MetadataRequest.MetadataRequestTopic
        try:
            request = MetadataRequest(
                topics=[topic(topic_id=topic_id, name=None) for topic_id in sorted(unknown, key=lambda each: each.int)],
                allow_auto_topic_creation=False,
            )
            response = await self._client.request(request)
            found = {entry.topic_id: entry.name for entry in response.topics if entry.name and not entry.error_code}
            self._names.update(found)
            names = frozenset(found.values())
            if not cluster.need_all_topic_metadata:
                cluster.set_topics(cluster.wanted_topics | names)
            watched = sorted(self._names.values())
            self._membership.rendezvous.post(
                RebalanceCall(CallKind.WATCH, (), lambda: self._subscription.watch_for_group(watched))
            )
        except KafkaError as error:
            self._log.info("assigned topics could not be looked up by id, trying again: %s", error)
        finally:
            self._looking_up = False
        if unknown <= self._names.keys():
            self.reconcile_if_needed()
        # Otherwise the next heartbeat response, or the next metadata, tries again.

    def metadata_changed(self) -> None:
        """Reconcile with targets whose topics are known by now."""
        self.reconcile_if_needed()

    # Errors…

    async def _recover(self, error: KafkaError) -> bool:
        """Prepare another attempt; False after a fatal error."""
        membership = self._membership
        self._sent = {}  # the broker may not have received the fields
        if isinstance(error, GroupIdNotFoundError) and membership.generation.is_member:
            error = UnknownMemberIdError(*error.args)  # the last member's session ended, and the group with it
        if isinstance(error, (FencedMemberEpochError, UnknownMemberIdError, UnreleasedInstanceIdError)):
            self._may_be_member = False
        if isinstance(error, (FencedMemberEpochError, UnknownMemberIdError)):
            self._log.warning(
                "the coordinator removed member %s from the group, it joins again: %s",
                printable(self._member_id),
                error,
                extra={"kafka_error": type(error).__name__},
            )
            self.stop()
            membership.lose_generation(keep_id=True, why=f"{REMOVED}: {error}")
            membership.move(MemberEvent.RETRY)
        elif isinstance(error, UnreleasedInstanceIdError) and not self._instance_id_conflict():
            membership.move(MemberEvent.RETRY)
        elif not error.retriable:
            self.stop()
            self._may_be_member = False
            membership.fail_with(error)
            return False
        else:
            self._coordinator.forget(error)
            if membership.state in {MemberState.PREPARING, MemberState.JOINING}:
                membership.move(MemberEvent.RETRY)
        await self._coordinator.back_off(error, self._failures)
        self._failures += 1
        return True

    def _instance_id_conflict(self) -> bool:
        """Whether another member has had this group_instance_id for longer than a killed process would keep it.

        The broker does not tell the two cases apart: a process that was killed and started again, whose id is free when
        the old session ends, and two processes with the same group_instance_id by mistake.
        """
        now = self._loop.time()
        if self._conflict_since is None:
            self._conflict_since = now
        return now - self._conflict_since > self._membership.heartbeat.timeout

    def commit_refused(self, error: KafkaError, generation_id: int) -> KafkaError:  # noqa: ARG002
        """React to the refusal of a commit; return the error to raise."""
        self._membership.rejoin.set()  # the next heartbeat goes out at once; its response shows the cause
        return UnknownMemberIdError(*error.args) if isinstance(error, GroupIdNotFoundError) else error

    def generation_ended(self) -> None:
        """Nothing: the one task that sends heartbeats joins again, or has ended."""

    def stop(self) -> None:
        """Stop reconciling."""
        task, self._reconciling = self._reconciling, None
        if task is not None:
            task.cancel()
        self._target = None

    # Leaving…

    async def leave(self, leaving: Generation, reason: str, deadline: float | None) -> None:  # noqa: ARG002
        """Leave the group; a static member keeps its place."""
        membership = self._membership
        known, self._may_be_member = self._may_be_member, False
        if not known or not self._member_id:
            return
        static = membership.group_instance_id is not None
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            member_epoch=_LEAVE_STATIC if static else _LEAVE,
            instance_id=membership.group_instance_id,
        )
        await self._coordinator.leave(self._member_id, deadline, lambda _versions: request)
