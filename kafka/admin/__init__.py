"""Administration of a cluster: `KafkaAdminClient`, what its calls take and what they return."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka._lazy import lazy_names

if TYPE_CHECKING:
    from kafka.admin.client import KafkaAdminClient
    from kafka.admin.cluster import BrokerDescription, ClusterDescription
    from kafka.admin.resources import ACLOperation, NewPartitions, NewTopic
    from kafka.admin.topics import (
        CreatedTopic,
        CreatePartitionsResult,
        CreateTopicsResult,
        DeletedTopic,
        DeleteTopicsResult,
        PartitionDescription,
        ResizedTopic,
        TopicDescription,
    )

__all__ = [
    "ACLOperation",
    "BrokerDescription",
    "ClusterDescription",
    "CreatePartitionsResult",
    "CreateTopicsResult",
    "CreatedTopic",
    "DeleteTopicsResult",
    "DeletedTopic",
    "KafkaAdminClient",
    "NewPartitions",
    "NewTopic",
    "PartitionDescription",
    "ResizedTopic",
    "TopicDescription",
]

_HOMES = {
    "ACLOperation": "resources",
    "BrokerDescription": "cluster",
    "ClusterDescription": "cluster",
    "CreatePartitionsResult": "topics",
    "CreateTopicsResult": "topics",
    "CreatedTopic": "topics",
    "DeleteTopicsResult": "topics",
    "DeletedTopic": "topics",
    "KafkaAdminClient": "client",
    "NewPartitions": "resources",
    "NewTopic": "resources",
    "PartitionDescription": "topics",
    "ResizedTopic": "topics",
    "TopicDescription": "topics",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
