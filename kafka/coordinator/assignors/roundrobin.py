"""Assigns the partitions of all topics in turn, one to each member that subscribes to the topic."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

from kafka.coordinator.assignors.abstract import (
    AbstractPartitionAssignor,
    Members,
    answer,
    on_class_too,
    readers_by_topic,
)
from kafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.cluster import ClusterMetadata

__all__ = ["RoundRobinPartitionAssignor"]


class RoundRobinPartitionAssignor(AbstractPartitionAssignor):
    """Assigns all partitions in turn, across topics.

    With equal subscriptions the numbers of partitions of two members differ by one at most.
    """

    name = "roundrobin"
    version = 0

    @on_class_too
    def assign(self, cluster: ClusterMetadata, member_metadata: Members) -> dict[str, ConsumerProtocolMemberAssignment]:
        """Return the assignment."""
        members = member_metadata
        owned: dict[str, list[TopicPartition]] = {member: [] for member in members}
        wants = {member: frozenset(metadata.subscription) for member, metadata in members.items()}
        ranks = ((wanted.group_instance_id is None, wanted.group_instance_id or m, m) for m, wanted in members.items())
        turn = cycle([member for *_, member in sorted(ranks)])
        for topic in readers_by_topic(members):
            for number in sorted(cluster.partitions_for_topic(topic) or ()):
                member = next(candidate for candidate in turn if topic in wants[candidate])
                owned[member].append(TopicPartition(topic, number))
        return answer(self.version, owned)
