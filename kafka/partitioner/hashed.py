"""The hashing partitioners of the legacy producers."""

# ruff: noqa: ARG002 - the interface names what it passes

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafka.partitioner.abc import KeyPartitioner
from kafka.partitioner.murmur2_hash import murmur2

__all__ = ["HashedPartitioner", "LegacyPartitioner", "Murmur2Partitioner"]


class Murmur2Partitioner(KeyPartitioner):
    """The key's hash as the Java client computes it.

    Unlike in 1.x the partitions that have no leader count too, so that a key stays where it is while one is down.

    >>> Murmur2Partitioner([0, 1, 2]).partition(b"foobar")
    0
    """

    def choose(self, topic: str | None, key: Any, all_partitions: Sequence[int], available: Sequence[int]) -> int:
        """The key's partition. A str counts as its UTF-8 bytes, None as no bytes."""
        data = key.encode() if isinstance(key, str) else key or b""
        return all_partitions[(murmur2(data) & 0x7FFFFFFF) % len(all_partitions)]


class LegacyPartitioner(KeyPartitioner):
    """Python's own ``hash()`` of the key.

    Python seeds the hash of str and bytes per process, so two processes disagree about a key's partition
    unless PYTHONHASHSEED is set. Prefer `Murmur2Partitioner`.

    >>> LegacyPartitioner([0, 1, 2]).partition(7)
    1
    """

    def choose(self, topic: str | None, key: Any, all_partitions: Sequence[int], available: Sequence[int]) -> int:
        """The key's partition in this process."""
        return all_partitions[hash(key) % len(all_partitions)]


HashedPartitioner = LegacyPartitioner
