"""The sticky assignor whose members keep reading the partitions that they keep (KIP-429).

A partition that must move is unassigned in the first rebalance: its owner revokes it and joins again, and the second
rebalance assigns it to its new owner. So it never has two owners.
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
    """Balances partitions with the fewest moves; members keep reading the partitions that they keep."""

    name = "cooperative-sticky"
    version = 0

    def __init__(self) -> None:
        self._generation = -1

    @on_class_too
    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """Return the metadata for the leader; the consumer adds the owned partitions."""
        # Leaders without KIP-792 look for the generation here.
        return ConsumerProtocolMemberMetadata(self.version, sorted(topics), write_generation(self._generation))

    @on_class_too
    def on_generation_assignment(self, generation: int) -> None:
        """Record the generation of the assignment."""
        self._generation = generation

    def supported_protocols(self) -> tuple[RebalanceProtocol, ...]:
        """Both, so that a group can change one member at a time."""
        return (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    @on_class_too
    def assign(self, cluster: ClusterMetadata, members: Members) -> dict[str, ConsumerProtocolMemberAssignment]:
        """Return the assignment for now, without partitions that another member still owns."""
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
                    # Its owner keeps it; another member waits until all that claim it have revoked it.
                    if held.get(partition) == member or not claimants.get(partition, set()) - {member}
                ]
                for member, partitions in targets.items()
            },
        )
