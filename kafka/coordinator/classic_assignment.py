"""A consumer in the rounds of a classic group: what it offers, does as the leader, and is assigned.

Its coroutines run on the loop; changes of the subscription and calls of the application go through the `Rendezvous`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kafka._runtime.tasks import checkpoint
from kafka._text import printable
from kafka.coordinator import group_leader
from kafka.coordinator.assignors import common_protocol, make_assignors
from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.coordinator.group_leader import AssignorCalls
from kafka.coordinator.protocol import (
    ConsumerProtocol,
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)
from kafka.coordinator.rebalance import Assignments, CallKind, RebalanceCall
from kafka.coordinator.states import Generation, MemberState
from kafka.errors import RejoinNeededError, UnsupportedVersionError

if TYPE_CHECKING:
    from kafka.config import Config
    from kafka.consumer.subscription_state import SubscriptionState
    from kafka.coordinator.membership import Membership
    from kafka.protocol.group import JoinGroupResponse

_GROUPS_SINCE: Final = (0, 9)


class ClassicAssignment:
    """The `GroupProtocol` of consumers: topics, partitions, and the assignor that distributes them."""

    def __init__(
        self, membership: Membership, subscription: SubscriptionState, assignments: Assignments, config: Config
    ) -> None:
        self._membership = membership
        self._client = membership.coordinator.client
        self._loop = membership.loop
        self._log = membership.coordinator.log
        self._subscription = subscription
        self._assignments = assignments
        self._rack: str | None = config["client_rack"] or None
        self.assignors = make_assignors(config["partition_assignment_strategy"])
        self._assignor_calls = AssignorCalls(self.assignors, membership.rendezvous)
        self.rebalance_protocol = common_protocol(self.assignors)
        self._snapshot: group_leader.MetadataSnapshot | None = None
        """The metadata that the last assignment was made from; None unless this member is the leader."""
        self.on_assigned: Callable[[], object] = lambda: None
        """Called on the loop when an assignment was taken."""

    def protocol_type(self) -> str:
        """The protocol type of consumers."""
        return ConsumerProtocol.PROTOCOL_TYPE

    # Joining…

    async def prepare(self, generation: Generation) -> None:  # noqa: ARG002
        """Give up what must not be owned while the member joins."""
        self.check_groups_exist()
        assignments, subscription = self._assignments, self._subscription
        await assignments.wait_lost()
        held = assignments.held()
        if self.rebalance_protocol is RebalanceProtocol.EAGER:
            await assignments.begin_eager_round()
        else:
            wanted = set(subscription.subscribed_topics)
            await assignments.revoke({partition for partition in held if partition.topic not in wanted})
        await assignments.wait_lost()
        assignments.log_rebalance(self._log)

    def check_groups_exist(self) -> None:
        """Raise if the brokers have no groups."""
        versions = self._client.versions
        if versions is not None and versions.release < _GROUPS_SINCE:
            raise UnsupportedVersionError(
                f"brokers of {'.'.join(map(str, versions.release))} have no consumer groups, which came with 0.9: use "
                "assign() in place of subscribe(), or a newer broker"
            )

    async def offer(self) -> Sequence[tuple[str, object]]:
        """Return the assignors' names, each with the metadata of this member."""
        return await self.offer_from(self.group_protocols)

    async def offer_from(
        self, group_protocols: Callable[[], Sequence[tuple[str, object]]]
    ) -> Sequence[tuple[str, object]]:
        """Return what a method offers: it may call the application's assignors."""
        while True:
            before = self._membership.generation
            offer = await self._assignor_calls.ask(None, group_protocols)
            if self._membership.generation == before:
                return offer
            await self._assignments.wait_lost()  # it was removed meanwhile, and owns nothing now

    def group_protocols(self) -> list[tuple[str, object]]:
        """Return the assignors' names, each with the metadata of this member: its topics and its partitions."""
        self._assignments.joined_version = self._subscription.subscription_version
        topics = sorted(self._subscription.subscribed_topics)
        return [(str(assignor.name), self._metadata(assignor, topics)) for assignor in self.assignors]

    def _metadata(self, assignor: object, topics: list[str]) -> object:
        ask = getattr(assignor, "metadata", None)
        metadata = ConsumerProtocolMemberMetadata(0, topics, b"") if ask is None else ask(topics)
        if not isinstance(metadata, ConsumerProtocolMemberMetadata):
            return metadata  # in a form that only the assignor knows
        if self.rebalance_protocol is RebalanceProtocol.EAGER:
            # Nothing is owned at this moment. Without the generation the metadata of a static member is the same
            # after a restart, and the group need not rebalance.
            return metadata._replace(rack_id=self._rack)
        return metadata._replace(
            owned_partitions=sorted(self._assignments.held()),
            generation_id=self._membership.generation.generation_id,
            rack_id=self._rack,
        )

    # As leader…

    async def assign(
        self, protocol: str, members: Sequence[JoinGroupResponse.JoinGroupResponseMember]
    ) -> Mapping[str, ConsumerProtocolMemberAssignment]:
        """Return the assignment of each member."""
        assignor = self._assignor_calls.named(protocol)
        wants = group_leader.read_members(members)
        await self._watch(group_leader.topics_of(wants))
        await checkpoint()  # each of these takes milliseconds with a thousand topics
        cooperative = self.rebalance_protocol is RebalanceProtocol.COOPERATIVE
        found = await self._assignor_calls.ask(
            assignor, lambda: group_leader.assign(assignor, self._client.cluster, wants, cooperative=cooperative)
        )
        await checkpoint()
        empty = ConsumerProtocolMemberAssignment(0, [], b"")
        return {member: found.get(member, empty) for member in wants}

    async def assignment_skipped(self, members: Sequence[JoinGroupResponse.JoinGroupResponseMember]) -> None:
        """Watch the topics of the group, which has the assignment of before."""
        await self._watch(group_leader.topics_of(group_leader.read_members(members)))

    async def _watch(self, topics: frozenset[str]) -> None:
        """Request metadata of all topics of the group, and remember it to notice changes."""
        client, cluster, subscription = self._client, self._client.cluster, self._subscription
        if not topics <= set(subscription.subscribed_topics):
            self._membership.rendezvous.post(
                RebalanceCall(CallKind.WATCH, (), lambda: subscription.watch_for_group(sorted(topics)))
            )
        if not cluster.need_all_topic_metadata and not topics <= cluster.wanted_topics:
            cluster.set_topics(cluster.wanted_topics | topics)
        unknown = {topic for topic in topics if cluster.partitions_for_topic(topic) is None}
        if unknown:
            await client.refresh(self._loop.time() + client.settings.request_timeout, unknown)
        self._snapshot = group_leader.take_snapshot(cluster, topics)

    def metadata_changed(self) -> None:
        """As leader: join again if the assignment would be another one now."""
        membership = self._membership
        if self._snapshot is None or membership.state is not MemberState.STABLE or membership.rejoin.is_set():
            return
        if group_leader.take_snapshot(self._client.cluster, self._snapshot.keys()) != self._snapshot:
            self._snapshot = None
            membership.join_again("partitions were added, or moved to other racks")

    def generation_ended(self) -> None:
        """Lead no more."""
        self._snapshot = None

    # The assignment…

    async def take(self, generation: Generation, assignment: bytes) -> None:
        """Own the partitions that the leader gave to this member."""
        membership, subscription = self._membership, self._subscription
        if membership.generation.member_id != generation.member_id or not subscription.is_automatic:
            return
        is_leader = self._snapshot is not None
        assignor = self._assignor_calls.named(str(generation.protocol))
        given = ConsumerProtocolMemberAssignment.decode(assignment)
        partitions = set(given.partitions())
        unwanted = {partition.topic for partition in partitions}.difference(subscription.subscribed_topics)
        if unwanted:
            if subscription.pattern is not None:  # the leader may know of topics that were created meanwhile
                await self._client.refresh(self._loop.time() + self._client.settings.request_timeout)
            raise RejoinNeededError(f"the leader assigned it topics that it does not subscribe to: {sorted(unwanted)}")
        self._log.info(
            "member %s is assigned %s (%s)", printable(generation.member_id), sorted(partitions), generation.protocol
        )
        self._assignments.rebalance_logged = False
        await self._assignor_calls.tell(assignor, given, generation.generation_id)
        gone = self._assignments.held() - partitions
        if gone:
            await self._assignments.revoke(gone)
            membership.join_again("it gave up partitions that other members get")
        if membership.generation.is_member:
            await self._assignments.assign(partitions)
        self.on_assigned()
        if is_leader:
            self.metadata_changed()
