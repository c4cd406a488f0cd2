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
    by_replicas: dict[tuple[int, ...], frozenset[str]] = {}  # many partitions have the same
    for partition in partitions:
        known = cluster.partition_metadata(partition)
        replicas = () if known is None else tuple(known.replicas)
        racks = by_replicas.get(replicas)
        if racks is None:
            brokers = map(cluster.broker_metadata, replicas)
            racks = frozenset(broker.rack for broker in brokers if broker is not None and broker.rack is not None)
            by_replicas[replicas] = racks
        found[partition] = racks
    return found


def racks_matter(readers: frozenset[str], racks: Racks) -> bool:
    """Whether the members' racks have different replicas, so that racks matter."""
    everywhere = frozenset().union(*racks.values()) if racks else frozenset()
    if not readers & everywhere:
        return False
    return any(found != everywhere for found in racks.values())
