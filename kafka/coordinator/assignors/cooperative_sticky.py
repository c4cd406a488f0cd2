"""Sticky, and nobody stops reading what it keeps (KIP-429).

A partition that is to move is given to nobody in the first rebalance: its owner sees that it lost it,
gives it up and joins again, and in the second rebalance its new reader gets it. So at no time are
there two who read it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafka.coordinator.assignors.abstract import (
    AbstractPartitionAssignor,
    Members,
    RebalanceProtocol,
    answer,
    on_class_too,
)
from kafka.coordinator.assignors.sticky.balance import Claim, owners
from kafka.coordinator.assignors.sticky.sticky_assignor import assign_sticky
from kafka.coordinator.assignors.sticky.user_data import read_generation, write_generation
from kafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.cluster import ClusterMetadata

__all__ = ["CooperativeStickyAssignor"]


class CooperativeStickyAssignor(AbstractPartitionAssignor):
    """As even as can be, moving as little as can be, while everyone goes on reading what it keeps."""

    name = "cooperative-sticky"
    version = 0

    def __init__(self) -> None:
        self._generation = -1

    @on_class_too
    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """Return what to tell the leader; the consumer adds what it owns."""
        # Leaders that do not know KIP-792 look for the generation here.
        return ConsumerProtocolMemberMetadata(self.version, sorted(topics), write_generation(self._generation))

    def on_generation_assignment(self, generation: int) -> None:
        """Take note of the generation in which this member got what it owns."""
        self._generation = generation

    def supported_protocols(self) -> tuple[RebalanceProtocol, ...]:
        """Both, so that a group can change over one member at a time."""
        return (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    @on_class_too
    def assign(self, cluster: ClusterMetadata, members: Members) -> dict[str, ConsumerProtocolMemberAssignment]:
        """Return who reads what for now: nothing that another member still has."""
        claims = {}
        for member, metadata in members.items():
            generation = metadata.generation_id
            if generation < 0:
                generation = read_generation(metadata.user_data)
            claims[member] = Claim(metadata.owned_partitions, generation)
        targets = assign_sticky(cluster, members, claims)
        held = owners(claims)
        claimants: dict[TopicPartition, set[str]] = {}
        for member, claim in claims.items():
            for partition in claim.partitions:
                claimants.setdefault(partition, set()).add(member)
        return answer(
            self.version,
            {
                member: [
                    partition
                    for partition in partitions
                    # Its rightful owner keeps it; anyone else waits until all who claim it gave it up.
                    if held.get(partition) == member or not claimants.get(partition, set()) - {member}
                ]
                for member, partitions in targets.items()
            },
        )
