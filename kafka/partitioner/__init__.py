"""Partitioners: which partition a record goes to.

A producer takes a callable ``f(key_bytes, all_partitions, available_partitions)``, the form of 1.x and 2.x, or an
object with ``partition(topic, key, serialized_key, value, serialized_value, cluster)``, the form of 3.x. The
partitioners of this package have both forms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka._lazy import lazy_names

if TYPE_CHECKING:
    from kafka.partitioner.abc import Partitioner
    from kafka.partitioner.bind import bind_partitioner
    from kafka.partitioner.default import DefaultPartitioner
    from kafka.partitioner.hashed import HashedPartitioner, LegacyPartitioner, Murmur2Partitioner
    from kafka.partitioner.murmur2_hash import murmur2
    from kafka.partitioner.roundrobin import RoundRobinPartitioner
    from kafka.partitioner.sticky import StickyPartitioner

__all__ = [
    "DefaultPartitioner",
    "HashedPartitioner",
    "LegacyPartitioner",
    "Murmur2Partitioner",
    "Partitioner",
    "RoundRobinPartitioner",
    "StickyPartitioner",
    "bind_partitioner",
    "murmur2",
]

_MODULES = {
    "abc": "Partitioner",
    "bind": "bind_partitioner",
    "default": "DefaultPartitioner",
    "hashed": "HashedPartitioner LegacyPartitioner Murmur2Partitioner",
    "murmur2_hash": "murmur2",
    "roundrobin": "RoundRobinPartitioner",
    "sticky": "StickyPartitioner",
}

if not TYPE_CHECKING:  # checkers report a name that is not here
    __getattr__, __dir__ = lazy_names(__name__, _MODULES)
