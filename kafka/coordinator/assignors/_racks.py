"""The racks of the replicas of partitions, where they matter for an assignment (KIP-881)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.cluster import ClusterMetadata

__all__ = ["partition_racks", "racks_matter"]

Racks = dict[TopicPartition, frozenset[str]]


def partition_racks(cluster: ClusterMetadata, partitions: Iterable[TopicPartition]) -> Racks:
    """Return the racks of each partition's replicas."""
    found: Racks = {}
    by_broker: dict[int, str | None] = {}
    for partition in partitions:
        known = cluster.partition_metadata(partition)
        racks = set()
        for broker_id in known.replicas if known is not None else ():
            if broker_id not in by_broker:
                broker = cluster.broker_metadata(broker_id)
                by_broker[broker_id] = None if broker is None else broker.rack
            racks.add(by_broker[broker_id])
        found[partition] = frozenset(rack for rack in racks if rack is not None)
    return found


def racks_matter(readers: frozenset[str], racks: Racks) -> bool:
    """Whether the members' racks have different replicas, so that racks matter."""
    everywhere = frozenset().union(*racks.values()) if racks else frozenset()
    if not readers & everywhere:
        return False
    return any(found != everywhere for found in racks.values())
