"""One partition after the other."""

# ruff: noqa: ARG002 - the interface names what it passes

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from kafka.partitioner.abc import KeyPartitioner

__all__ = ["RoundRobinPartitioner"]


class RoundRobinPartitioner(KeyPartitioner):
    """Each topic's partitions in turn, whatever the key (KIP-369); those without a leader are left out.

    >>> p = RoundRobinPartitioner()
    >>> [p(None, [0, 1, 2], [0, 2]) for _ in range(4)]
    [0, 2, 0, 2]
    """

    def __init__(self, partitions: Sequence[int] | None = None) -> None:
        super().__init__(partitions)
        # setdefault and next are atomic, so threads may share the partitioner.
        self._turns: dict[str | None, count[int]] = {}

    def choose(self, topic: str | None, key: Any, all_partitions: Sequence[int], available: Sequence[int]) -> int:
        """The next partition of the topic."""
        turns = self._turns.get(topic) or self._turns.setdefault(topic, count())
        pool = available or all_partitions
        return pool[next(turns) % len(pool)]
