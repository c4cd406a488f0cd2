"""Each subscriber of a topic gets a range of neighbouring partitions; equal topics are split equally.

With racks (KIP-881) subscribers first get partitions that have a replica in their rack, in the same order and up to the
same share, and only then the rest. Topics with equally many partitions and the same subscribers are co-partitioned: a
member has the same partitions of each, so all of them must match its rack.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING

from kafka.coordinator.assignors._racks import Racks, partition_racks, racks_matter
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

__all__ = ["RangePartitionAssignor"]


class RangePartitionAssignor(AbstractPartitionAssignor):
    """Splits each topic into ranges, one for each of its subscribers.

    Members come in the order of their instance ids, then of their member ids, so that the restart of a static member
    changes nothing.
    """

    name = "range"
    version = 0

    @on_class_too
    def assign(self, cluster: ClusterMetadata, member_metadata: Members) -> dict[str, ConsumerProtocolMemberAssignment]:
        """Return the assignment."""
        members = member_metadata
        topics = []
        for topic, readers in readers_by_topic(members).items():
            numbers = sorted(cluster.partitions_for_topic(topic) or ())
            if numbers:
                topics.append(_Topic(topic, numbers, sorted(readers, key=lambda reader: _rank(reader, members))))
        racks = {member: wants.rack_id for member, wants in members.items() if wants.rack_id is not None}
        if racks:
            _match_racks(cluster, topics, racks)
        owned: dict[str, list[TopicPartition]] = {member: [] for member in members}
        for state in topics:
            state.hand_out(lambda _reader, _partition: True)
            for reader, partitions in state.owned.items():
                owned[reader] += partitions
        return answer(self.version, owned)


def _rank(member: str, members: Members) -> tuple[bool, str]:
    instance = members[member].group_instance_id
    return instance is None, instance or member


class _Topic:
    """One topic during the assignment."""

    def __init__(self, name: str, numbers: list[int], readers: list[str]) -> None:
        self.name = name
        self.numbers = tuple(numbers)
        self.readers = readers
        self.owned: dict[str, list[TopicPartition]] = {reader: [] for reader in readers}
        self._share, self._spare = divmod(len(numbers), len(readers))
        self._left = dict.fromkeys(TopicPartition(name, number) for number in numbers)  # a set with an order

    def room(self, reader: str) -> int:
        """The number of partitions that a member may still get: its share, and one of the remainder."""
        return max(0, self._share + (self._spare > 0) - len(self.owned[reader]))

    def give(self, reader: str, partitions: list[TopicPartition]) -> None:
        """Assign partitions to a member."""
        owned = self.owned[reader]
        owned += partitions
        for partition in partitions:
            del self._left[partition]
        if len(owned) > self._share:
            self._spare -= 1

    def hand_out(self, fits: Callable[[str, TopicPartition], bool]) -> None:
        """Assign to each member in turn the partitions that fit, up to its share."""
        for reader in self.readers:
            found = [partition for partition in self._left if fits(reader, partition)][: self.room(reader)]
            if found:
                self.give(reader, found)


def _match_racks(cluster: ClusterMetadata, topics: list[_Topic], members: dict[str, str]) -> None:
    """Assign partitions with a replica in a member's rack."""
    near: Racks = {}
    alike: dict[tuple[tuple[str, ...], tuple[int, ...]], list[_Topic]] = defaultdict(list)
    matter: set[str] = set()
    for topic in topics:
        racks = partition_racks(cluster, [TopicPartition(topic.name, number) for number in topic.numbers])
        near |= racks
        alike[tuple(topic.readers), topic.numbers].append(topic)
        if racks_matter(frozenset(members[reader] for reader in topic.readers if reader in members), racks):
            matter.add(topic.name)

    def fits(reader: str, partition: TopicPartition) -> bool:
        return reader not in members or members[reader] in near[partition]

    for group in alike.values():
        if len(group) > 1 and matter:
            _hand_out_together(group, fits)
        elif group[0].name in matter:
            group[0].hand_out(fits)


def _hand_out_together(group: list[_Topic], fits: Callable[[str, TopicPartition], bool]) -> None:
    """Assign the same partitions of all topics of a co-partitioned set."""
    for number in group[0].numbers:
        for reader in group[0].readers:
            if all(topic.room(reader) and fits(reader, TopicPartition(topic.name, number)) for topic in group):
                for topic in group:
                    topic.give(reader, [TopicPartition(topic.name, number)])
                break
