"""Stay with one partition while a batch fills (KIP-480)."""

from __future__ import annotations

import random
from collections.abc import Sequence

from kafka.partitioner.abc import Cluster
from kafka.partitioner.default import DefaultPartitioner

__all__ = ["StickyPartitioner"]


class StickyPartitioner(DefaultPartitioner):
    """Records with a key by its hash; the others all to one partition of the topic until a new batch is opened.

    >>> p = StickyPartitioner()
    >>> len({p(None, [0, 1, 2], [0, 1, 2]) for _ in range(20)})
    1
    """

    def __init__(self, partitions: Sequence[int] | None = None, *, rng: random.Random | None = None) -> None:
        super().__init__(partitions, rng=rng)
        # One entry per topic, replaced as a whole: threads that race agree on one of their choices.
        self._stuck: dict[str | None, int] = {}

    def choose(
        self, topic: str | None, key: bytes | None, all_partitions: Sequence[int], available: Sequence[int]
    ) -> int:
        """The key's partition, or the one that the topic sticks to while it has a leader."""
        if key is not None:
            return super().choose(topic, key, all_partitions, available)
        pool = available or all_partitions
        stuck = self._stuck.get(topic)
        if stuck is None or stuck not in pool:
            stuck = self._stuck[topic] = self._choice(pool)
        return stuck

    def on_new_batch(self, topic: str, cluster: Cluster, prev_partition: int) -> None:
        """Move on to another partition, unless the topic has left this one already."""
        if self._stuck.get(topic, prev_partition) != prev_partition:
            return
        pool = cluster.available_partitions_for_topic(topic) or cluster.partitions_for_topic(topic) or set()
        others = sorted(pool - {prev_partition})
        if others:
            self._stuck[topic] = self._choice(others)
