"""The balance that both sticky assignors strike: as even as subscriptions allow, then as few moves as possible.

Where all members want the same topics everyone gets the floor or the ceiling of the average, and keeps
as much as that of what it had: no assignment that is as even moves less.

Otherwise members first keep what they had, free partitions go to whoever has least, and then single
partitions are passed on along chains of members, from one that has at least two more than the one at
the chain's end, until there is no such chain. (A pass to a neighbour alone stops too early: with loads of
2, 1 and 0, where the first shares topics with the second only and the second with the third, every
single pass is useless and the chain of both is not.) Each chain makes the sum of squares smaller, so it ends.

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
    """What a member says it had, and in which generation."""

    partitions: Sequence[TopicPartition]
    generation: int = -1


def owners(claims: Mapping[str, Claim]) -> dict[TopicPartition, str]:
    """Return who is believed to have had each partition: the claim of the highest generation.

    Two claims of the same generation cannot both be right, so then nobody had it.

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
    """Return what each member is to read.

    `readers` says for each topic who wants it, `previous` who had what, and `near` which partitions have
    a copy in a member's rack: among those that must move, these go there first.
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
    """An assignment in the making."""

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

    # Where all want the same…

    def keep_share(self) -> None:
        """Let everyone keep up to its share; as many as need be may keep one more."""
        floor, spare = divmod(len(self._all), max(1, len(self.owned)))
        self._targets: dict[str, int] = {}
        # Who had most is first to get the larger share: it then gives up least.
        for member in sorted(self.owned, key=lambda member: -len(self._kept[member])):
            target = floor + (spare > 0)
            spare -= 1
            self._targets[member] = target
            kept = self._kept[member]
            if len(kept) > target:  # what is far away goes first
                near = self._near.get(member, frozenset())
                kept = sorted(kept, key=lambda partition: partition not in near)[:target]
            self.owned[member].update(kept)

    def fill_shares(self) -> None:
        """Hand out what is free, to those near to it first."""
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

    # Where they differ…

    def keep_all(self) -> None:
        """Let everyone keep what it had."""
        for member, kept in self._kept.items():
            self.owned[member].update(kept)

    def fill_least(self) -> None:
        """Give what is free to who has least; topics that few can read come first."""
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
        """Take who has least off the heap; among equals one that is near."""
        tied: list[str] = []
        level = -1
        while heap:
            load, name = heap[0]
            if load != len(self.owned[name]):  # it got something through another heap
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
        """Pass partitions on along chains from those that have two more to those that have two less."""
        settled: set[str] = set()
        while True:
            givers = [member for member in self.owned if member not in settled]
            if not givers:
                return
            giver = max(givers, key=lambda member: (len(self.owned[member]), member))
            chain = self._chain(giver)
            if chain is None:
                # Nobody within its reach has two less, and no later chain can change that: loads
                # within reach only move towards each other.
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
        """Return the shortest way from a member to one that has at least two less, as (source, target, topic)."""
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
        """How much it costs to pass a partition on: nothing if its reader changes anyway."""
        before = self._previous.get(partition)
        moved = (before != target) - (before != source)
        return moved, partition not in self._near.get(target, ()), partition

    def _free(self) -> dict[TopicPartition, None]:
        taken = set().union(*self.owned.values())
        return dict.fromkeys(partition for partition in self._all if partition not in taken)
