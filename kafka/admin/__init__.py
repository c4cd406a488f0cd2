"""Administration of a cluster: `KafkaAdminClient`, what its calls take and what they return."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka._lazy import lazy_names

if TYPE_CHECKING:
    from kafka.admin.client import KafkaAdminClient
    from kafka.admin.cluster import BrokerDescription, ClusterDescription
    from kafka.admin.config_resource import (
        AlterConfigOp,
        AlterConfigsResult,
        AlteredResource,
        ConfigEntry,
        ConfigFilterType,
        ConfigResource,
        ConfigResourceType,
        ConfigSourceType,
        ConfigType,
        DescribeConfigsResult,
        DescribedResource,
        Outcome,
    )
    from kafka.admin.group_description import GroupDescription, MemberAssignment, MemberDescription, MemberMetadata
    from kafka.admin.groups import ListedGroup, ListedGroups
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
    "AlterConfigOp",
    "AlterConfigsResult",
    "AlteredResource",
    "BrokerDescription",
    "ClusterDescription",
    "ConfigEntry",
    "ConfigFilterType",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSourceType",
    "ConfigType",
    "CreatePartitionsResult",
    "CreateTopicsResult",
    "CreatedTopic",
    "DeleteTopicsResult",
    "DeletedTopic",
    "DescribeConfigsResult",
    "DescribedResource",
    "GroupDescription",
    "KafkaAdminClient",
    "ListedGroup",
    "ListedGroups",
    "MemberAssignment",
    "MemberDescription",
    "MemberMetadata",
    "NewPartitions",
    "NewTopic",
    "Outcome",
    "PartitionDescription",
    "ResizedTopic",
    "TopicDescription",
]

_HOMES = {
    "ACLOperation": "resources",
    "AlterConfigOp": "config_resource",
    "AlterConfigsResult": "config_resource",
    "AlteredResource": "config_resource",
    "BrokerDescription": "cluster",
    "ClusterDescription": "cluster",
    "ConfigEntry": "config_resource",
    "ConfigFilterType": "config_resource",
    "ConfigResource": "config_resource",
    "ConfigResourceType": "config_resource",
    "ConfigSourceType": "config_resource",
    "ConfigType": "config_resource",
    "CreatePartitionsResult": "topics",
    "CreateTopicsResult": "topics",
    "CreatedTopic": "topics",
    "DeleteTopicsResult": "topics",
    "DeletedTopic": "topics",
    "DescribeConfigsResult": "config_resource",
    "DescribedResource": "config_resource",
    "GroupDescription": "group_description",
    "KafkaAdminClient": "client",
    "ListedGroup": "groups",
    "ListedGroups": "groups",
    "MemberAssignment": "group_description",
    "MemberDescription": "group_description",
    "MemberMetadata": "group_description",
    "NewPartitions": "resources",
    "NewTopic": "resources",
    "Outcome": "config_resource",
    "PartitionDescription": "topics",
    "ResizedTopic": "topics",
    "TopicDescription": "topics",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
