"""Members keep their partitions as far as balance allows; their user data has what they owned (KIP-54)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kafka._text import printable
from kafka.coordinator.assignors._racks import partition_racks, racks_matter
from kafka.coordinator.assignors.abstract import (
    AbstractPartitionAssignor,
    Members,
    RebalanceProtocol,
    answer,
    on_class_too,
    readers_by_topic,
)
from kafka.coordinator.assignors.sticky.balance import Claim, balance, owners
from kafka.coordinator.assignors.sticky.user_data import read_claim, write_claim
from kafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from kafka.errors import KafkaProtocolError
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.cluster import ClusterMetadata

__all__ = ["StickyPartitionAssignor", "assign_sticky"]

log = logging.getLogger(__name__)


class StickyPartitionAssignor(AbstractPartitionAssignor):
    """Balances partitions with the fewest moves.

    Members still revoke everything before they join (`CooperativeStickyAssignor` avoids that), but most partitions come
    back to them, where caches and state for them are.
    """

    name = "sticky"
    version = 0

    def __init__(self) -> None:
        self._had: list[TopicPartition] = []
        self._generation = -1

    @on_class_too
    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """Return the metadata for the leader: topics, and the partitions that this member owned last."""
        data = write_claim(self._had, self._generation)
        return ConsumerProtocolMemberMetadata(self.version, sorted(topics), data)

    @on_class_too
    def on_assignment(self, assignment: Any) -> None:
        """Record the assignment of this member."""
        self._had = list(assignment.partitions())

    @on_class_too
    def on_generation_assignment(self, generation: int) -> None:
        """Record the generation of the assignment."""
        self._generation = generation

    def supported_protocols(self) -> tuple[RebalanceProtocol, ...]:
        """Eager only: the user data has the partitions that were owned before the revocation."""
        return (RebalanceProtocol.EAGER,)

    @on_class_too
    def assign(self, cluster: ClusterMetadata, members: Members) -> dict[str, ConsumerProtocolMemberAssignment]:
        """Return the assignment."""
        claims = {member: _claim(member, metadata) for member, metadata in members.items()}
        return answer(self.version, assign_sticky(cluster, members, claims))


def _claim(member: str, metadata: ConsumerProtocolMemberMetadata) -> Claim:
    try:
        return read_claim(metadata.user_data)
    except KafkaProtocolError as error:
        # The claim is a hint. Without one the member is treated as a new one.
        sentence = "Member %s sent user data that cannot be read, it is taken to have had nothing: %s"
        log.warning(sentence, printable(member), error)
        return Claim([])


def assign_sticky(
    cluster: ClusterMetadata, members: Members, claims: Mapping[str, Claim]
) -> dict[str, set[TopicPartition]]:
    """Return the partitions of each member, from the claims of the members."""
    readers = {
        topic: names for topic, names in readers_by_topic(members).items() if cluster.partitions_for_topic(topic)
    }
    partitions = {topic: sorted(cluster.partitions_for_topic(topic) or ()) for topic in readers}
    return balance(readers, partitions, owners(claims), members, _near(cluster, members, partitions))


def _near(
    cluster: ClusterMetadata, members: Members, partitions: Mapping[str, Iterable[int]]
) -> dict[str, frozenset[TopicPartition]]:
    """Return the partitions with a replica in each member's rack; empty where racks do not matter."""
    where = {member: metadata.rack_id for member, metadata in members.items() if metadata.rack_id is not None}
    if not where:
        return {}
    racks = partition_racks(
        cluster, [TopicPartition(topic, n) for topic, numbers in partitions.items() for n in numbers]
    )
    if not racks_matter(frozenset(where.values()), racks):
        return {}
    return {
        member: frozenset(partition for partition, found in racks.items() if rack in found)
        for member, rack in where.items()
    }
