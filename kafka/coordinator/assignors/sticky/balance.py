"""The balance of both sticky assignors: as even as the subscriptions allow, then with the fewest moves.

With equal subscriptions each member gets the floor or the ceiling of the average, and keeps that many of its
partitions: no other assignment that is as even moves fewer.

Otherwise members first keep their partitions, free partitions go to the member with the fewest, and then single
partitions move along chains of members, from one that has at least two more than the member at the end of the chain,
until there is no such chain. (Moves between two members alone stop too early: with loads of 2, 1 and 0, where the first
shares topics with the second only and the second with the third, each single move is useless and both together are
not.) Each chain lowers the sum of squares, so this ends.

Nothing here depends on the order of sets: the same members always get the same partitions.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from kafka.structs import TopicPartition

__all__ = ["Claim", "balance", "owners"]


class Claim(NamedTuple):
    """The partitions that a member claims to have owned, and the generation of that."""

    partitions: Sequence[TopicPartition]
    generation: int = -1


def owners(claims: Mapping[str, Claim]) -> dict[TopicPartition, str]:
    """Return the previous owner of each partition: the member with the claim of the highest generation.

    Two claims of the same generation cannot both be right: then the partition has no previous owner.

    >>> p = TopicPartition("events", 0)
    >>> owners({"a": Claim([p], 4), "b": Claim([p], 5)})
    {TopicPartition(topic='events', partition=0): 'b'}
    >>> owners({"a": Claim([p], 5), "b": Claim([p], 5)})
    {}
    """
    best: dict[TopicPartition, tuple[int, str | None]] = {}
    for member in sorted(claims):
        claim = claims[member]
        for partition in claim.partitions:
            generation, owner = best.get(partition, (-2, None))
            if claim.generation > generation:
                best[partition] = (claim.generation, member)
            elif claim.generation == generation and owner != member:
                best[partition] = (generation, None)
    return {partition: owner for partition, (_, owner) in best.items() if owner is not None}


def balance(
    readers: Mapping[str, Sequence[str]],
    partitions: Mapping[str, Sequence[int]],
    previous: Mapping[TopicPartition, str],
    members: Iterable[str],
    near: Mapping[str, frozenset[TopicPartition]] | None = None,
) -> dict[str, set[TopicPartition]]:
    """Return the partitions of each member.

    `readers` has the subscribers of each topic, `previous` the former owner of each partition, `near` the partitions
    with a replica in a member's rack: of the partitions that must move, these go there first.
    """
    spread = _Spread(readers, partitions, previous, sorted(members), near or {})
    if len({tuple(names) for names in readers.values()}) <= 1 and all(
        len(names) == len(spread.owned) for names in readers.values()
    ):
        spread.keep_share()
        spread.fill_shares()
    else:
        spread.keep_all()
        spread.fill_least()
        spread.level()
    return spread.owned


class _Spread:
    """An assignment that is being computed."""

    def __init__(
        self,
        readers: Mapping[str, Sequence[str]],
        partitions: Mapping[str, Sequence[int]],
        previous: Mapping[TopicPartition, str],
        members: list[str],
        near: Mapping[str, frozenset[TopicPartition]],
    ) -> None:
        self._readers = readers
        self._previous = previous
        self._near = near
        self.owned: dict[str, set[TopicPartition]] = {member: set() for member in members}
        self._all = [TopicPartition(topic, number) for topic in sorted(readers) for number in partitions.get(topic, ())]
        self._kept: dict[str, list[TopicPartition]] = defaultdict(list)
        wanted = {topic: frozenset(names) for topic, names in readers.items()}
        for partition in self._all:
            owner = previous.get(partition)
            if owner is not None and owner in wanted[partition.topic]:
                self._kept[owner].append(partition)

    # Equal subscriptions…

    def keep_share(self) -> None:
        """Keep up to its share at each member; the remainder lets some keep one more."""
        floor, spare = divmod(len(self._all), max(1, len(self.owned)))
        self._targets: dict[str, int] = {}
        # The member with the most partitions is first to get the larger share: it then gives up the fewest.
        for member in sorted(self.owned, key=lambda member: -len(self._kept[member])):
            target = floor + (spare > 0)
            spare -= 1
            self._targets[member] = target
            kept = self._kept[member]
            if len(kept) > target:  # partitions without a near replica go first
                near = self._near.get(member, frozenset())
                kept = sorted(kept, key=lambda partition: partition not in near)[:target]
            self.owned[member].update(kept)

    def fill_shares(self) -> None:
        """Assign the free partitions, first to members with a replica in their rack."""
        free = self._free()
        hungry = [member for member in self.owned if len(self.owned[member]) < self._targets[member]]
        for member in hungry:
            if not self._near.get(member):
                continue
            for partition in [partition for partition in free if partition in self._near[member]]:
                if len(self.owned[member]) < self._targets[member]:
                    self.owned[member].add(partition)
                    del free[partition]
        rest = iter(free)
        # One each in turn, so that neighbouring partitions, which are often busy together, are spread.
        turn = deque(member for member in hungry if len(self.owned[member]) < self._targets[member])
        while turn:
            member = turn.popleft()
            self.owned[member].add(next(rest))
            if len(self.owned[member]) < self._targets[member]:
                turn.append(member)

    # Different subscriptions…

    def keep_all(self) -> None:
        """Keep the partitions at their members."""
        for member, kept in self._kept.items():
            self.owned[member].update(kept)

    def fill_least(self) -> None:
        """Assign free partitions to the member with the fewest; topics with few subscribers come first."""
        # One heap for each set of readers: most topics have the same few sets.
        heaps: dict[tuple[str, ...], list[tuple[int, str]]] = {}
        for partition in sorted(self._free(), key=lambda free: (len(self._readers[free.topic]), free)):
            names = tuple(self._readers[partition.topic])
            heap = heaps.setdefault(names, [])
            if not heap:
                heap += [(len(self.owned[name]), name) for name in names]
                heapify(heap)
            member = self._least(heap, partition)
            self.owned[member].add(partition)
            heappush(heap, (len(self.owned[member]), member))

    def _least(self, heap: list[tuple[int, str]], partition: TopicPartition) -> str:
        """Pop the member with the fewest partitions; among equals one with a near replica."""
        tied: list[str] = []
        level = -1
        while heap:
            load, name = heap[0]
            if load != len(self.owned[name]):  # it got a partition through another heap
                heappop(heap)
                heappush(heap, (len(self.owned[name]), name))
                continue
            if level >= 0 and load > level:
                break
            level = load
            tied.append(name)
            heappop(heap)
            if partition in self._near.get(name, ()) or not self._near:
                break
        near = [name for name in tied if partition in self._near.get(name, ())]
        chosen = near[0] if near else tied[0]
        for name in tied:
            if name != chosen:
                heappush(heap, (level, name))
        return chosen

    def level(self) -> None:
        """Move partitions along chains, to members that have at least two fewer."""
        settled: set[str] = set()
        while True:
            givers = [member for member in self.owned if member not in settled]
            if not givers:
                return
            giver = max(givers, key=lambda member: (len(self.owned[member]), member))
            chain = self._chain(giver)
            if chain is None:
                # No member within its reach has two fewer, and no later chain can change that: loads within reach
                # only approach each other.
                settled.add(giver)
                continue
            for source, target, topic in chain:
                partition = min(
                    (owned for owned in self.owned[source] if owned.topic == topic),
                    key=lambda owned: self._cost(owned, source, target),
                )
                self.owned[source].discard(partition)
                self.owned[target].add(partition)
            settled.clear()

    def _chain(self, giver: str) -> list[tuple[str, str, str]] | None:
        """Return the shortest chain from a member to one with at least two fewer, as (source, target, topic)."""
        limit = len(self.owned[giver]) - 2
        came: dict[str, tuple[str, str]] = {}
        queue = deque([giver])
        while queue:
            source = queue.popleft()
            for topic in sorted({partition.topic for partition in self.owned[source]}):
                fresh = [name for name in self._readers[topic] if name != giver and name not in came]
                for target in sorted(fresh, key=lambda name: len(self.owned[name])):
                    came[target] = (source, topic)
                    if len(self.owned[target]) <= limit:
                        return self._way(giver, target, came)
                    queue.append(target)
        return None

    @staticmethod
    def _way(giver: str, end: str, came: Mapping[str, tuple[str, str]]) -> list[tuple[str, str, str]]:
        way = []
        while end != giver:
            source, topic = came[end]
            way.append((source, end, topic))
            end = source
        return way[::-1]

    def _cost(self, partition: TopicPartition, source: str, target: str) -> tuple[int, bool, TopicPartition]:
        """The cost of moving a partition: none if its owner changes anyway."""
        before = self._previous.get(partition)
        moved = (before != target) - (before != source)
        return moved, partition not in self._near.get(target, ()), partition

    def _free(self) -> dict[TopicPartition, None]:
        taken = set().union(*self.owned.values())
        return dict.fromkeys(partition for partition in self._all if partition not in taken)
