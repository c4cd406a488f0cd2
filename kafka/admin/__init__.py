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
    )
    from kafka.admin.group_description import GroupDescription, MemberAssignment, MemberDescription, MemberMetadata
    from kafka.admin.group_offsets import ListedOffsets, ResetOffset, Shift
    from kafka.admin.groups import GroupState, GroupType, ListedGroup, ListedGroups, MemberToRemove
    from kafka.admin.offsets import IsolationLevel, OffsetSpec, OffsetTimestamp
    from kafka.admin.resources import ACLOperation, NewPartitions, NewTopic
    from kafka.admin.results import Outcome
    from kafka.admin.topic_outcomes import (
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
    "GroupState",
    "GroupType",
    "IsolationLevel",
    "KafkaAdminClient",
    "ListedGroup",
    "ListedGroups",
    "ListedOffsets",
    "MemberAssignment",
    "MemberDescription",
    "MemberMetadata",
    "MemberToRemove",
    "NewPartitions",
    "NewTopic",
    "OffsetSpec",
    "OffsetTimestamp",
    "Outcome",
    "PartitionDescription",
    "ResetOffset",
    "ResizedTopic",
    "Shift",
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
    "CreatePartitionsResult": "topic_outcomes",
    "CreateTopicsResult": "topic_outcomes",
    "CreatedTopic": "topic_outcomes",
    "DeleteTopicsResult": "topic_outcomes",
    "DeletedTopic": "topic_outcomes",
    "DescribeConfigsResult": "config_resource",
    "DescribedResource": "config_resource",
    "GroupDescription": "group_description",
    "GroupState": "groups",
    "GroupType": "groups",
    "IsolationLevel": "offsets",
    "KafkaAdminClient": "client",
    "ListedGroup": "groups",
    "ListedGroups": "groups",
    "ListedOffsets": "group_offsets",
    "MemberAssignment": "group_description",
    "MemberDescription": "group_description",
    "MemberMetadata": "group_description",
    "MemberToRemove": "groups",
    "NewPartitions": "resources",
    "NewTopic": "resources",
    "OffsetSpec": "offsets",
    "OffsetTimestamp": "offsets",
    "Outcome": "results",
    "PartitionDescription": "topic_outcomes",
    "ResetOffset": "group_offsets",
    "ResizedTopic": "topic_outcomes",
    "Shift": "group_offsets",
    "TopicDescription": "topic_outcomes",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
