"""Everyone keeps what it had as far as balance allows; the members' user data says what that was (KIP-54)."""

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
    """As even as can be, and as much as it was as can be.

    Members still give everything up before they join (see `CooperativeStickyAssignor` for the other
    way), but most of it comes back to them, with whatever they keep in memory for it.
    """

    name = "sticky"
    version = 0

    def __init__(self) -> None:
        self._had: list[TopicPartition] = []
        self._generation = -1

    @on_class_too
    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """Return what to tell the leader: topics, and what this member had last."""
        data = write_claim(self._had, self._generation)
        return ConsumerProtocolMemberMetadata(self.version, sorted(topics), data)

    def on_assignment(self, assignment: Any) -> None:
        """Take note of what this member got."""
        self._had = list(assignment.partitions())

    def on_generation_assignment(self, generation: int) -> None:
        """Take note of the generation that it belongs to."""
        self._generation = generation

    def supported_protocols(self) -> tuple[RebalanceProtocol, ...]:
        """Eager only: the leader believes the user data, and that is what was had before it was given up."""
        return (RebalanceProtocol.EAGER,)

    @on_class_too
    def assign(self, cluster: ClusterMetadata, members: Members) -> dict[str, ConsumerProtocolMemberAssignment]:
        """Return who reads what."""
        claims = {member: _claim(member, metadata) for member, metadata in members.items()}
        return answer(self.version, assign_sticky(cluster, members, claims))


def _claim(member: str, metadata: ConsumerProtocolMemberMetadata) -> Claim:
    try:
        return read_claim(metadata.user_data)
    except KafkaProtocolError as error:
        # What a member had is a hint. Without it the member takes part like a new one.
        sentence = "Member %s sent user data that cannot be read, it is taken to have had nothing: %s"
        log.warning(sentence, printable(member), error)
        return Claim([])


def assign_sticky(
    cluster: ClusterMetadata, members: Members, claims: Mapping[str, Claim]
) -> dict[str, set[TopicPartition]]:
    """Return who is to read what, given who says it had what."""
    readers = {
        topic: names for topic, names in readers_by_topic(members).items() if cluster.partitions_for_topic(topic)
    }
    partitions = {topic: sorted(cluster.partitions_for_topic(topic) or ()) for topic in readers}
    return balance(readers, partitions, owners(claims), members, _near(cluster, members, partitions))


def _near(
    cluster: ClusterMetadata, members: Members, partitions: Mapping[str, Iterable[int]]
) -> dict[str, frozenset[TopicPartition]]:
    """Return what has a copy in each member's rack; nothing where racks make no difference."""
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
