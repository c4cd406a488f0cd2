"""A consumer as a member of a classic group: what it offers when it joins, does as the leader, and is assigned.

It derives from the member of any group (`kafka.coordinator.base`) and defines the protocol of consumers:
topics, partitions, and the assignor that distributes them. Its coroutines run on the loop; changes of the subscription
and calls of the application go through the `Rendezvous`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kafka._text import printable
from kafka.config import Config
from kafka.coordinator import group_leader
from kafka.coordinator.assignors import common_protocol, make_assignors
from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.coordinator.base import BaseCoordinator
from kafka.coordinator.group_leader import AssignorCalls
from kafka.coordinator.protocol import (
    ConsumerProtocol,
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)
from kafka.coordinator.rebalance import Assignments, CallKind, RebalanceCall
from kafka.coordinator.states import MemberState
from kafka.errors import RejoinNeededError, UnsupportedVersionError

if TYPE_CHECKING:
    from kafka._core.client import Client
    from kafka._runtime.application import Application
    from kafka.client_async import KafkaClient
    from kafka.cluster import ClusterMetadata
    from kafka.coordinator.rebalance import Subscription
    from kafka.metrics import Metrics
    from kafka.protocol.group import JoinGroupResponse

__all__ = ["ClassicMember"]

log = logging.getLogger(__name__)

_GROUPS_SINCE: Final = (0, 9)


class ClassicMember(BaseCoordinator):
    """A consumer in a classic group."""

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
        super().__init__(client, metrics, config=config, application=application, **configs)
        self.subscription = subscription
        self.assignors = make_assignors(self.config["partition_assignment_strategy"])
        self._assignor_calls = AssignorCalls(self.assignors, self.rendezvous)
        self.rebalance_protocol = common_protocol(self.assignors)
        self.assignments = Assignments(subscription, self.rendezvous)
        self.joined_version = -1
        """The version of the subscription that the group knows."""
        self.waiting_logged = False
        self._snapshot: group_leader.MetadataSnapshot | None = None
        self._matching: RebalanceCall | None = None
        client.cluster.add_listener(self._metadata_changed)

    # The protocol of consumers…

    def protocol_type(self) -> str:
        """The protocol type of consumers."""
        return ConsumerProtocol.PROTOCOL_TYPE

    def group_protocols(self) -> list[tuple[str, object]]:
        """Return the assignors' names, each with the metadata of this member: its topics and its partitions."""
        self.joined_version = self.subscription.subscription_version
        topics = sorted(self.subscription.subscribed_topics)
        return [(str(assignor.name), self._metadata(assignor, topics)) for assignor in self.assignors]

    async def _offer(self) -> Sequence[tuple[str, object]]:
        while True:
            before = self.generation
            offer = await self._assignor_calls.ask_all(self.group_protocols)
            if self.generation == before:
                return offer
            await self.assignments.wait_lost()  # it was removed meanwhile, and owns nothing now

    def _metadata(self, assignor: object, topics: list[str]) -> object:
        ask = getattr(assignor, "metadata", None)
        metadata = ConsumerProtocolMemberMetadata(0, topics, b"") if ask is None else ask(topics)
        if not isinstance(metadata, ConsumerProtocolMemberMetadata):
            return metadata  # in a form that only the assignor knows
        rack = self.config["client_rack"] or None
        if self.rebalance_protocol is RebalanceProtocol.EAGER:
            # Nothing is owned at this moment. Without the generation the metadata of a static member is the same
            # after a restart, and the group need not rebalance.
            return metadata._replace(rack_id=rack)
        return metadata._replace(
            owned_partitions=sorted(self.assignments.held()),
            generation_id=self.generation.generation_id,
            rack_id=rack,
        )

    def need_rejoin(self) -> bool:
        """Whether the member must join the group, or join it again."""
        if not self.subscription.is_automatic:
            return False
        return super().need_rejoin() or self.joined_version != self.subscription.subscription_version

    def _last_taken(self) -> object:
        return self.subscription.last_taken()

    async def _on_join_prepare(self, generation: int, member_id: str) -> None:  # noqa: ARG002
        self._check_groups_exist()
        await self.assignments.wait_lost()
        held = self.assignments.held()
        if self.rebalance_protocol is RebalanceProtocol.EAGER:
            await self.assignments.begin_eager_round()
        else:
            wanted = set(self.subscription.subscribed_topics)
            await self.assignments.revoke({partition for partition in held if partition.topic not in wanted})
        await self.assignments.wait_lost()
        self.log_waiting()

    def log_waiting(self) -> None:
        """Log once for each rebalance that poll() may return nothing, which looks like an empty topic."""
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

    async def _perform_assignment(
        self,
        leader_id: str,  # noqa: ARG002
        protocol: str,
        members: Sequence[JoinGroupResponse.JoinGroupResponseMember],
    ) -> Mapping[str, ConsumerProtocolMemberAssignment]:
        assignor = self._assignor_calls.named(protocol)
        wants = group_leader.read_members(members)
        await self._watch(group_leader.topics_of(wants))
        cooperative = self.rebalance_protocol is RebalanceProtocol.COOPERATIVE
        found = await self._assignor_calls.ask(
            assignor, lambda: group_leader.assign(assignor, self.client.cluster, wants, cooperative=cooperative)
        )
        empty = ConsumerProtocolMemberAssignment(0, [], b"")
        return {member: found.get(member, empty) for member in wants}

    async def _on_assignment_skipped(
        self,
        protocol: str,  # noqa: ARG002
        members: Sequence[JoinGroupResponse.JoinGroupResponseMember],
    ) -> None:
        await self._watch(group_leader.topics_of(group_leader.read_members(members)))

    async def _watch(self, topics: frozenset[str]) -> None:
        """Request metadata of all topics of the group, and remember it to notice changes."""
        cluster = self.client.cluster
        if not topics <= set(self.subscription.subscribed_topics):
            self.rendezvous.post(
                RebalanceCall(CallKind.WATCH, (), lambda: self.subscription.watch_for_group(sorted(topics)))
            )
        if not cluster.need_all_topic_metadata and not topics <= cluster.wanted_topics:
            cluster.set_topics(cluster.wanted_topics | topics)
        if any(cluster.partitions_for_topic(topic) is None for topic in topics):
            await self.client.refresh(self.loop.time() + self.client.settings.request_timeout)
        self._snapshot = group_leader.take_snapshot(cluster, topics)

    async def _on_join_complete(self, generation: int, member_id: str, protocol: str, assignment: bytes) -> None:
        if self.generation.member_id != member_id or not self.subscription.is_automatic:
            return
        is_leader = self._snapshot is not None
        assignor = self._assignor_calls.named(protocol)
        given = ConsumerProtocolMemberAssignment.decode(assignment)
        partitions = set(given.partitions())
        unwanted = {partition.topic for partition in partitions}.difference(self.subscription.subscribed_topics)
        if unwanted:
            if self.subscription.pattern is not None:  # the leader may know of topics that were created meanwhile
                await self.client.refresh(self.loop.time() + self.client.settings.request_timeout)
            raise RejoinNeededError(f"the leader assigned it topics that it does not subscribe to: {sorted(unwanted)}")
        member = printable(member_id)
        log.info("Group %s: member %s is assigned %s (%s)", self.group_id, member, sorted(partitions), protocol)
        self.waiting_logged = False
        await self._assignor_calls.tell(assignor, given, generation)
        gone = self.assignments.held() - partitions
        if gone:
            await self.assignments.revoke(gone)
            self._request_rejoin("it gave up partitions that other members get")
        if self.generation.is_member:
            await self.assignments.assign(partitions)
        self._on_assigned()
        if is_leader:
            self._compare_snapshot()

    def _on_generation_lost(self) -> None:
        self._snapshot = None
        self.assignments.mark_lost(self.left_because)

    def _on_assigned(self) -> None:
        """Called on the loop when an assignment was taken."""

    # Metadata…

    def _metadata_changed(self, cluster: ClusterMetadata) -> None:
        pattern = self.subscription.pattern  # once: the application may unsubscribe meanwhile
        if (
            isinstance(pattern, re.Pattern)
            # While the application is busy metadata comes repeatedly, and one call is enough.
            and (self._matching is None or self._matching.done.is_done)
            and self._matches(cluster, pattern) != set(self.subscription.subscribed_topics)
        ):
            self._matching = self.rendezvous.post(RebalanceCall(CallKind.WATCH, (), self.match_pattern))
        self._compare_snapshot()

    def _matches(self, cluster: ClusterMetadata, pattern: re.Pattern[str]) -> set[str]:
        found = cluster.topics(exclude_internal_topics=self.config["exclude_internal_topics"])
        return {topic for topic in found if pattern.match(topic)}

    def match_pattern(self) -> None:
        """Subscribe to the topics that the pattern matches now; the application calls it."""
        self.subscription.match(self.client.cluster.topics(self.config["exclude_internal_topics"]))

    def _compare_snapshot(self) -> None:
        if self._snapshot is None or self.state is not MemberState.STABLE or self.rejoin.is_set():
            return
        if group_leader.take_snapshot(self.client.cluster, self._snapshot.keys()) != self._snapshot:
            self._snapshot = None
            self._request_rejoin("partitions were added, or moved to other racks")
