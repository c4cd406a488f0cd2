"""A cluster for tests of planning, which asks nobody."""

from __future__ import annotations

from collections.abc import Mapping

from kafka.spark.offsets import EARLIEST, Offsets
from kafka.structs import TopicPartition

__all__ = ["FakeCluster"]


class FakeCluster:
    """A cluster with two edges and times for each partition."""

    def __init__(self, edges: dict[TopicPartition, tuple[int, int]], times: dict[TopicPartition, int] | None = None):
        self.all = edges
        self.times = times or {}
        self.commits: list[tuple[str, Offsets]] = []
        self.commits_fail = False

    def commit(self, group: str, offsets: Offsets) -> bool:
        self.commits.append((group, dict(offsets)))
        return not self.commits_fail

    def close(self) -> None:
        pass

    def append(self, count: int, *partitions: TopicPartition) -> None:
        for tp in partitions or tuple(self.all):
            first, last = self.all[tp]
            self.all[tp] = first, last + count

    def partitions(self) -> set[TopicPartition]:
        return set(self.all)

    def everywhere(self, edge: int) -> Offsets:
        return self.edges(dict.fromkeys(self.all, edge))

    def edges(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        return {tp: self.all[tp][0 if edge == EARLIEST else 1] for tp, edge in wanted.items() if tp in self.all}

    def latest(self, _known: Mapping[TopicPartition, int]) -> Offsets:
        return {tp: last for tp, (_, last) in self.all.items()}

    def at_times(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        return {tp: self.times.get(tp) for tp in wanted}
