"""The topology of a streams group (KIP-1071): its subtopologies, the topics that they need, and the tasks that follow.

Pure questions: which topics are missing, and how many partitions each internal topic must have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

#: A subtopology's id and a partition.
Task = tuple[str, int]
PartitionCount = Callable[[str], "int | None"]


@dataclass(frozen=True)
class InternalTopic:
    """A changelog or repartition topic; 0 partitions mean as many as needed, 0 replicas the brokers' default."""

    name: str
    partitions: int = 0
    replication_factor: int = 0
    configs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Subtopology:
    """A part of the topology whose tasks run apart from the tasks of other parts."""

    subtopology_id: str
    source_topics: tuple[str, ...] = ()
    source_regexes: tuple[str, ...] = ()
    changelogs: tuple[InternalTopic, ...] = ()
    sinks: tuple[str, ...] = ()
    repartition_sources: tuple[InternalTopic, ...] = ()
    #: Groups of topics that must have the same number of partitions: names of source and repartition topics.
    copartitions: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Topology:
    """All subtopologies of an application.

    >>> topology = Topology(0, (Subtopology("0", ("orders",), changelogs=(InternalTopic("store"),)),))
    >>> counts = {"orders": 3}
    >>> topology.missing_sources(counts.get), topology.tasks(counts.get)
    ([], [('0', 0), ('0', 1), ('0', 2)])
    >>> [(topic.name, topic.partitions) for topic in topology.internal_topics(counts.get)]
    [('store', 3)]
    """

    epoch: int = 0
    subtopologies: tuple[Subtopology, ...] = ()

    def source_topics(self) -> list[str]:
        """Return the topics that come from outside, each once."""
        return list(dict.fromkeys(name for each in self.subtopologies for name in each.source_topics))

    def missing_sources(self, count: PartitionCount) -> list[str]:
        """Return the topics that come from outside and do not exist."""
        return [name for name in self.source_topics() if count(name) is None]

    def unequal(self, count: PartitionCount) -> dict[str, int]:
        """Return the topics of a copartition group that differ in their numbers of partitions, none if all agree."""
        for each in self.subtopologies:
            for names in each.copartitions:
                found = {name: partitions for name in names if (partitions := count(name)) is not None}
                if len(set(found.values())) > 1:
                    return found
        return {}

    def partitions_of(self, each: Subtopology, count: PartitionCount) -> int:
        """Return how many tasks a subtopology has: as many as its largest source has partitions."""
        own = [count(name) or 0 for name in each.source_topics]
        return max([*own, *(self._repartitions(topic, count, set()) for topic in each.repartition_sources)], default=0)

    def _repartitions(self, topic: InternalTopic, count: PartitionCount, seen: set[str]) -> int:
        """Return the partitions of a repartition topic: those given, or as many as its writers have."""
        if topic.partitions or topic.name in seen:
            return topic.partitions
        seen = seen | {topic.name}
        writers = [each for each in self.subtopologies if topic.name in each.sinks]
        counts = [count(name) or 0 for each in writers for name in each.source_topics]
        counts += [self._repartitions(one, count, seen) for each in writers for one in each.repartition_sources]
        return max(counts, default=0)

    def internal_topics(self, count: PartitionCount) -> list[InternalTopic]:
        """Return the changelog and repartition topics with their numbers of partitions."""
        return [
            topic
            for each in self.with_partitions(count).subtopologies
            for topic in (*each.repartition_sources, *each.changelogs)
        ]

    def with_partitions(self, count: PartitionCount) -> Topology:
        """Return the same with the numbers of partitions that internal topics have or need."""
        return replace(self, subtopologies=tuple(self._resolved(each, count) for each in self.subtopologies))

    def _resolved(self, each: Subtopology, count: PartitionCount) -> Subtopology:
        tasks = self.partitions_of(each, count)
        return replace(
            each,
            changelogs=tuple(replace(topic, partitions=topic.partitions or tasks) for topic in each.changelogs),
            repartition_sources=tuple(
                replace(topic, partitions=self._repartitions(topic, count, set())) for topic in each.repartition_sources
            ),
        )

    def tasks(self, count: PartitionCount) -> list[Task]:
        """Return all tasks."""
        return [
            (each.subtopology_id, index)
            for each in self.subtopologies
            for index in range(self.partitions_of(each, count))
        ]

    def stateful(self) -> set[str]:
        """Return the ids of the subtopologies with a changelog, whose tasks can have standbys."""
        return {each.subtopology_id for each in self.subtopologies if each.changelogs}

    def topics_of(self, subtopology_id: str) -> list[str]:
        """Return the topics that a subtopology reads."""
        for each in self.subtopologies:
            if each.subtopology_id == subtopology_id:
                return [*each.source_topics, *(topic.name for topic in each.repartition_sources)]
        return []
