"""The assignors of the consumer protocol: which member reads which partition. Pure functions.

*range* gives each member of a topic a run of neighbouring partitions, the same run in all topics that have as many
partitions and the same readers. *uniform* gives everyone as many partitions as anyone else, plus or minus one where
subscriptions allow it, and moves as few of them as it can.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

__all__ = ["ASSIGNORS", "Assignment", "Subscriber", "range_assignor", "uniform_assignor"]

#: Topic id -> partitions.
Assignment = dict[UUID, frozenset[int]]


@dataclass(frozen=True)
class Subscriber:
    """A member, as an assignor knows it."""

    topics: frozenset[UUID]
    instance_id: str | None = None
    #: The partitions of its last target assignment.
    target: Mapping[UUID, frozenset[int]] = field(default_factory=dict)


Assignor = Callable[[Mapping[str, Subscriber], Mapping[UUID, int]], dict[str, Assignment]]


def range_assignor(members: Mapping[str, Subscriber], partitions: Mapping[UUID, int]) -> dict[str, Assignment]:
    """Hand out runs of neighbouring partitions.

    Members come in the order of their instance ids, then of their member ids, so that a restart changes nothing.
    """
    result: dict[str, Assignment] = {member: {} for member in members}
    ordered = sorted(
        members, key=lambda member: (members[member].instance_id is None, members[member].instance_id or member)
    )
    for topic in _topics(members):
        count = partitions.get(topic, 0)
        readers = [member for member in ordered if topic in members[member].topics]
        share, extra = divmod(count, len(readers))
        start = 0
        for position, member in enumerate(readers):
            end = start + share + (position < extra)
            if end > start:
                result[member][topic] = frozenset(range(start, end))
            start = end
    return result


def uniform_assignor(members: Mapping[str, Subscriber], partitions: Mapping[UUID, int]) -> dict[str, Assignment]:
    """Hand out equal numbers of partitions and move few.

    >>> topic = UUID(int=1)
    >>> plan = uniform_assignor({"a": Subscriber(frozenset([topic])), "b": Subscriber(frozenset([topic]))}, {topic: 3})
    >>> sorted(len(each[topic]) for each in plan.values())
    [1, 2]
    """
    if not members:
        return {}
    spread = _Spread(members, partitions)
    if len({member.topics for member in members.values()}) == 1:
        spread.keep_up_to_quota()
        spread.fill()
    else:
        spread.keep_all()
        spread.fill()
        spread.level()
    return {member: _by_topic(owned) for member, owned in spread.owned.items()}


class _Spread:
    """A uniform assignment that is being computed."""

    def __init__(self, members: Mapping[str, Subscriber], partitions: Mapping[UUID, int]) -> None:
        self.members = members
        topics = sorted(_topics(members), key=lambda topic: topic.int)
        self.all = [(topic, index) for topic in topics for index in range(partitions.get(topic, 0))]
        self.owned: dict[str, set[tuple[UUID, int]]] = {member: set() for member in sorted(members)}
        self.free = set(self.all)

    def keep_up_to_quota(self) -> None:
        """Let members keep what they have, up to an equal share; as many as need be may have one more."""
        quota, spare = divmod(len(self.all), len(self.members))
        for member, owned in self.owned.items():
            kept = self._still_valid(member)
            room = quota
            if len(kept) > quota and spare:
                spare -= 1
                room = quota + 1
            owned.update(kept[:room])
            self.free.difference_update(kept[:room])

    def keep_all(self) -> None:
        """Let members keep all that they may."""
        for member, owned in self.owned.items():
            kept = self._still_valid(member)
            owned.update(kept)
            self.free.difference_update(kept)

    def _still_valid(self, member: str) -> list[tuple[UUID, int]]:
        subscriber = self.members[member]
        return [
            (topic, index)
            for topic in sorted(subscriber.target, key=lambda topic: topic.int)
            for index in sorted(subscriber.target[topic])
            if topic in subscriber.topics and (topic, index) in self.free
        ]

    def fill(self) -> None:
        """Give free partitions to the members that have least; topics that few can read come first."""
        readers = {topic: self._readers(topic) for topic in _topics(self.members)}
        waiting = [each for each in self.all if each in self.free]
        waiting.sort(key=lambda each: len(readers[each[0]]))
        for each in waiting:
            self.owned[min(readers[each[0]], key=lambda member: len(self.owned[member]))].add(each)
        self.free.clear()

    def level(self) -> None:
        """Move partitions from members that have two more than another member that could read them."""
        # Each move makes the sum of squares smaller, so this ends.
        moved = True
        while moved:
            moved = False
            for giver in sorted(self.owned, key=lambda member: -len(self.owned[member])):
                for each in sorted(self.owned[giver], key=lambda one: (one[0].int, one[1])):
                    taker = min(self._readers(each[0]), key=lambda member: len(self.owned[member]))
                    if len(self.owned[giver]) - len(self.owned[taker]) >= 2:
                        self.owned[giver].discard(each)
                        self.owned[taker].add(each)
                        moved = True

    def _readers(self, topic: UUID) -> list[str]:
        return [member for member in self.owned if topic in self.members[member].topics]


def _topics(members: Mapping[str, Subscriber]) -> set[UUID]:
    return {topic for member in members.values() for topic in member.topics}


def _by_topic(owned: set[tuple[UUID, int]]) -> Assignment:
    found: dict[UUID, set[int]] = defaultdict(set)
    for topic, index in owned:
        found[topic].add(index)
    return {topic: frozenset(indexes) for topic, indexes in found.items()}


ASSIGNORS: Final[dict[str, Assignor]] = {"uniform": uniform_assignor, "range": range_assignor}
