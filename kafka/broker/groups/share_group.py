"""A share group (KIP-932): members read partitions together, and the group has a start offset for each partition.

The coordinator's part of it: members, their assignments, and the offsets that administrators see and set. Several
members may have a partition, so nothing is revoked: a member has its assignment from one heartbeat to the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from kafka.broker.groups.assignors import Assignment
from kafka.broker.groups.epoch_group import JOIN, EpochGroup, EpochMember
from kafka.broker.groups.group import Commit
from kafka.broker.groups.share_offsets import ShareOffsets
from kafka.errors import GroupIdNotFoundError, NonEmptyGroupError


@dataclass(frozen=True)
class ShareAsk:
    """A ShareGroupHeartbeat request; None stands for a field that did not change."""

    member_id: str
    epoch: int
    rack_id: str | None = None
    names: tuple[str, ...] | None = None
    client_id: str = ""
    client_host: str = ""


@dataclass(eq=False, kw_only=True)
class ShareMember(EpochMember):
    """One member of a share group."""

    names: tuple[str, ...] = ()
    assigned: Assignment = field(default_factory=dict)


@dataclass(frozen=True)
class ShareGroupSnapshot:
    """The state of a share group that outlives the broker, besides its offsets."""

    epoch: int
    assignment_epoch: int
    members: list[ShareMember]


class ShareGroup(EpochGroup[ShareMember]):
    """One share group."""

    kind = "share"
    stays = True
    assignor = "simple"

    def __init__(self, *args: Any, offsets: ShareOffsets, **options: Any) -> None:
        super().__init__(*args, **options)
        self.offsets = offsets
        #: The topics that the members read, with their partitions, as the group was last changed for them.
        self._subscribed: dict[UUID, int] = {}
        self._targets: dict[str, Assignment] = {}

    @property
    def state(self) -> str:
        """Kafka's name of the group's state."""
        return "Stable" if self.members else "Empty"

    def expects(self, topic: str) -> bool:
        """Whether a member reads the topic."""
        return any(topic in member.names for member in self.members.values())

    # Heartbeats

    def heartbeat(self, ask: ShareAsk) -> tuple[ShareMember, bool]:
        """Serve a member that joins or is a member; return it, and whether the response has its assignment."""
        member = self._member(ask)
        before, epoch_before = member.assigned, self.epoch
        self._take_terms(member, ask)
        if self.is_assignment_due():
            self.assign_all()
        member.assigned = self._targets.get(member.member_id, {})
        member.at_epoch(self.assignment_epoch)
        self.watch(member)
        if ask.epoch == JOIN or self.epoch != epoch_before or member.assigned != before:
            self._on_change(self)
        return member, ask.epoch == JOIN or ask.names is not None or member.assigned != before

    def _member(self, ask: ShareAsk) -> ShareMember:
        if ask.epoch == JOIN:
            return self.members.get(ask.member_id) or self.add(ShareMember(ask.member_id))
        member = self.expect(ask.member_id)
        note = f", and it does not match the previous member epoch ({member.previous_epoch})"
        self.check_epoch(member, ask.epoch, is_previous_enough=True, note=note)
        return member

    def _take_terms(self, member: ShareMember, ask: ShareAsk) -> None:
        names_before = member.names
        member.client_id, member.client_host = ask.client_id, ask.client_host
        if ask.rack_id is not None:
            member.rack_id = ask.rack_id
        if ask.names is not None:
            member.names = ask.names
        subscribed = self._subscribed_topics()
        if set(member.names) != set(names_before) or subscribed != self._subscribed:
            self._subscribed = subscribed
            self.epoch += 1
        for topic_id, partitions in subscribed.items():
            self.offsets.initialize(topic_id, partitions)

    # Assignments

    def _subscribed_topics(self) -> dict[UUID, int]:
        found: dict[UUID, int] = {}
        for name in dict.fromkeys(name for member in self.members.values() for name in member.names):
            topic_id = self._topics.topic_id(name)
            if topic_id is not None:
                found[topic_id] = self._topics.partition_count(name) or 0
        return found

    def assign_all(self) -> None:
        """Compute the assignment of each member."""
        readers = {
            member.member_id: [
                topic_id for name in member.names if (topic_id := self._topics.topic_id(name)) is not None
            ]
            for member in self.members.values()
        }
        self._targets = assign(readers, self._subscribed_topics())
        self.assignment_epoch = self.epoch

    def remove(self, member_id: str) -> None:
        """Remove a member; the others are assigned its share at their next heartbeats."""
        super().remove(member_id)
        self._subscribed = self._subscribed_topics()

    # Administration

    def make_empty(self) -> None:
        """Begin as a group that has offsets and no member."""
        self.assignment_epoch = self.epoch
        self._on_change(self)

    def check_empty(self) -> None:
        """Raise unless administrators may change its offsets now."""
        if self.members:
            raise NonEmptyGroupError("The group is not empty.")

    def check_commit(self, _commit: Commit) -> None:
        """Raise GroupIdNotFoundError: members acknowledge records and do not commit."""
        raise GroupIdNotFoundError

    def check_deletion_of_offsets(self) -> None:
        """Raise GroupIdNotFoundError: there are none."""
        raise GroupIdNotFoundError

    def delete(self) -> None:
        """End, with all start offsets."""
        super().delete()
        self.offsets.clear()

    # On disk

    def snapshot(self) -> ShareGroupSnapshot:
        """Return the state of the group that outlives the broker."""
        return ShareGroupSnapshot(self.epoch, self.assignment_epoch, list(self.members.values()))

    def load(self, snapshot: ShareGroupSnapshot) -> None:
        """Take a fresh group to the state of a snapshot."""
        self.epoch, self.assignment_epoch = snapshot.epoch, snapshot.assignment_epoch
        for member in snapshot.members:
            self.add(member)
        self._subscribed = self._subscribed_topics()
        self._targets = {member.member_id: member.assigned for member in self.members.values()}
        self.resume()


def assign(readers: Mapping[str, Iterable[UUID]], partitions: Mapping[UUID, int]) -> dict[str, Assignment]:
    """Give each reader of a topic some partitions, each partition some reader, and both as evenly as that allows.

    >>> topic = UUID(int=1)
    >>> {member: sorted(found[topic]) for member, found in assign({"a": [topic], "b": [topic]}, {topic: 3}).items()}
    {'a': [0, 2], 'b': [1]}
    >>> [sorted(found[topic]) for found in assign({"a": [topic], "b": [topic], "c": [topic]}, {topic: 2}).values()]
    [[0], [1], [0]]
    """
    result: dict[str, Assignment] = {member: {} for member in readers}
    for topic, count in partitions.items():
        members = sorted(member for member, topics in readers.items() if topic in topics)
        shares: dict[str, set[int]] = {member: set() for member in members}
        for turn in range(max(count, len(members)) if count and members else 0):
            shares[members[turn % len(members)]].add(turn % count)
        for member, indexes in shares.items():
            if indexes:
                result[member][topic] = frozenset(indexes)
    return result
