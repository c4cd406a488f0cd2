"""The partitioner that a producer has unless told otherwise."""

# ruff: noqa: ARG002 - the interface names what it passes

from __future__ import annotations

import random
from collections.abc import Sequence

from kafka.partitioner.abc import KeyPartitioner
from kafka.partitioner.murmur2_hash import murmur2

__all__ = ["DefaultPartitioner"]


class DefaultPartitioner(KeyPartitioner):
    """Records with a key by its hash, as the Java client does; records without one anywhere.

    `KafkaProducer` itself places records without a key, by bytes and by the brokers' load (KIP-794), where this is its
    partitioner. Called directly it picks one at random among the partitions that have a leader.

    >>> DefaultPartitioner()(b"foobar", [0, 1, 2], [0, 2])
    0
    """

    def __init__(self, partitions: Sequence[int] | None = None, *, rng: random.Random | None = None) -> None:
        super().__init__(partitions)
        self._choice = random.choice if rng is None else rng.choice  # spreads load, guards nothing

    def choose(
        self, topic: str | None, key: bytes | None, all_partitions: Sequence[int], available: Sequence[int]
    ) -> int:
        """The key's partition, whether it has a leader or not: a key never moves."""
        if key is None:
            return self._choice(available or all_partitions)
        return all_partitions[(murmur2(key) & 0x7FFFFFFF) % len(all_partitions)]
