"""Pictures of clusters, as a broker would have told them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafka.cluster import ClusterMetadata
from kafka.protocol.metadata import MetadataResponse


def make_cluster(
    topics: Mapping[str, int],
    racks: Sequence[str] = (),
    replicas: Mapping[tuple[str, int], Sequence[int]] | None = None,
) -> ClusterMetadata:
    cluster = ClusterMetadata()
    cluster.update_metadata(metadata_response(topics, racks, replicas))
    return cluster


def metadata_response(
    topics: Mapping[str, int],
    racks: Sequence[str] = (),
    replicas: Mapping[tuple[str, int], Sequence[int]] | None = None,
) -> Any:
    replicas = replicas or {}
    brokers: Any = MetadataResponse.MetadataResponseBroker
    topic_type: Any = MetadataResponse.MetadataResponseTopic
    partition: Any = MetadataResponse.MetadataResponsePartition
    return MetadataResponse(
        brokers=[
            brokers(node_id=number, host="b", port=9092 + number, rack=rack)
            for number, rack in enumerate(racks or [None])
        ],
        topics=[
            topic_type(
                name=name,
                partitions=[
                    partition(
                        partition_index=number,
                        leader_id=0,
                        replica_nodes=list(replicas.get((name, number), [0])),
                        isr_nodes=list(replicas.get((name, number), [0])),
                    )
                    for number in range(count)
                ],
            )
            for name, count in topics.items()
        ],
    )
