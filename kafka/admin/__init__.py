"""Administration of a cluster: `KafkaAdminClient`, what its calls take and what they return."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka._lazy import lazy_names

if TYPE_CHECKING:
    from kafka.acl import ACLOperation, ACLPermissionType, ACLResourcePatternType, ResourceType
    from kafka.admin.acls import (
        ACL,
        ACLFilter,
        CreateAclsResult,
        ResourcePattern,
        ResourcePatternFilter,
        acl_bindings,
        consumer_acls,
        producer_acls,
    )
    from kafka.admin.client import KafkaAdminClient
    from kafka.admin.client_metrics import TelemetrySubscription
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
    from kafka.admin.features import FeaturesDescription, UpdateFeatureType, VersionRange
    from kafka.admin.group_description import GroupDescription, MemberAssignment, MemberDescription, MemberMetadata
    from kafka.admin.group_lag import GroupLag, Lags, PartitionLag
    from kafka.admin.group_offsets import ListedOffsets, ResetOffset, Shift
    from kafka.admin.groups import GroupState, GroupType, ListedGroup, ListedGroups, MemberToRemove
    from kafka.admin.log_dirs import BrokerLogDirs, DescribedLogDirs, LogDir, ReplicaLogDir
    from kafka.admin.offsets import IsolationLevel, OffsetSpec, OffsetTimestamp
    from kafka.admin.quorum import QuorumDescription, QuorumNode, QuorumReplica, RaftVoterEndpoint
    from kafka.admin.quotas import AlteredQuota, ClientQuota
    from kafka.admin.records import DeletedRecords, RecordsToDelete
    from kafka.admin.replicas import ElectedPartition, ElectLeadersResult, Reassignment
    from kafka.admin.resources import NewPartitions, NewTopic
    from kafka.admin.results import Outcome
    from kafka.admin.share_groups import ShareGroupDescription, ShareGroupOffset, ShareMember
    from kafka.admin.streams_groups import (
        InternalTopic,
        StreamsGroupDescription,
        StreamsMember,
        Subtopology,
        TaskAssignment,
        TaskOffset,
    )
    from kafka.admin.tokens import DelegationToken
    from kafka.admin.topic_outcomes import (
        CreatedTopic,
        CreatePartitionsResult,
        CreateTopicsResult,
        DeletedTopic,
        DeleteTopicsResult,
        PartitionDescription,
        ResizedTopic,
        TopicDescription,
        TopicPartitionsPage,
    )
    from kafka.admin.topic_setup import EnsuredTopic
    from kafka.admin.transactions import (
        AbortTransactionSpec,
        FencedProducer,
        HangingTransaction,
        ListedTransactions,
        PartitionProducerState,
        ProducerState,
        TransactionDescription,
        TransactionListing,
        TransactionState,
    )
    from kafka.admin.users import (
        CredentialInfo,
        ScramMechanism,
        UserScramCredentialDeletion,
        UserScramCredentials,
        UserScramCredentialUpsertion,
    )
    from kafka.protocol.admin import ElectionType

__all__ = [
    "ACL",
    "ACLFilter",
    "ACLOperation",
    "ACLPermissionType",
    "ACLResourcePatternType",
    "AbortTransactionSpec",
    "AlterConfigOp",
    "AlterConfigsResult",
    "AlteredQuota",
    "AlteredResource",
    "BrokerDescription",
    "BrokerLogDirs",
    "ClientQuota",
    "ClusterDescription",
    "ConfigEntry",
    "ConfigFilterType",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSourceType",
    "ConfigType",
    "CreateAclsResult",
    "CreatePartitionsResult",
    "CreateTopicsResult",
    "CreatedTopic",
    "CredentialInfo",
    "DelegationToken",
    "DeleteTopicsResult",
    "DeletedRecords",
    "DeletedTopic",
    "DescribeConfigsResult",
    "DescribedLogDirs",
    "DescribedResource",
    "ElectLeadersResult",
    "ElectedPartition",
    "ElectionType",
    "EnsuredTopic",
    "FeaturesDescription",
    "FencedProducer",
    "GroupDescription",
    "GroupLag",
    "GroupState",
    "GroupType",
    "HangingTransaction",
    "InternalTopic",
    "IsolationLevel",
    "KafkaAdminClient",
    "Lags",
    "ListedGroup",
    "ListedGroups",
    "ListedOffsets",
    "ListedTransactions",
    "LogDir",
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
    "PartitionLag",
    "PartitionProducerState",
    "ProducerState",
    "QuorumDescription",
    "QuorumNode",
    "QuorumReplica",
    "RaftVoterEndpoint",
    "Reassignment",
    "RecordsToDelete",
    "ReplicaLogDir",
    "ResetOffset",
    "ResizedTopic",
    "ResourcePattern",
    "ResourcePatternFilter",
    "ResourceType",
    "ScramMechanism",
    "ShareGroupDescription",
    "ShareGroupOffset",
    "ShareMember",
    "Shift",
    "StreamsGroupDescription",
    "StreamsMember",
    "Subtopology",
    "TaskAssignment",
    "TaskOffset",
    "TelemetrySubscription",
    "TopicDescription",
    "TopicPartitionsPage",
    "TransactionDescription",
    "TransactionListing",
    "TransactionState",
    "UpdateFeatureType",
    "UserScramCredentialDeletion",
    "UserScramCredentialUpsertion",
    "UserScramCredentials",
    "VersionRange",
    "acl_bindings",
    "consumer_acls",
    "producer_acls",
]

_MODULES = {
    "acls": "ACL ACLFilter ACLOperation ACLPermissionType ACLResourcePatternType CreateAclsResult ResourcePattern "
    "ResourcePatternFilter ResourceType acl_bindings consumer_acls producer_acls",
    "client": "KafkaAdminClient",
    "client_metrics": "TelemetrySubscription",
    "cluster": "BrokerDescription ClusterDescription",
    "config_resource": "AlterConfigOp AlterConfigsResult AlteredResource ConfigEntry ConfigFilterType ConfigResource "
    "ConfigResourceType ConfigSourceType ConfigType DescribeConfigsResult DescribedResource",
    "features": "FeaturesDescription UpdateFeatureType VersionRange",
    "group_description": "GroupDescription MemberAssignment MemberDescription MemberMetadata",
    "group_lag": "GroupLag Lags PartitionLag",
    "group_offsets": "ListedOffsets ResetOffset Shift",
    "groups": "GroupState GroupType ListedGroup ListedGroups MemberToRemove",
    "log_dirs": "BrokerLogDirs DescribedLogDirs LogDir ReplicaLogDir",
    "offsets": "IsolationLevel OffsetSpec OffsetTimestamp",
    "quorum": "QuorumDescription QuorumNode QuorumReplica RaftVoterEndpoint",
    "quotas": "AlteredQuota ClientQuota",
    "records": "DeletedRecords RecordsToDelete",
    "replicas": "ElectLeadersResult ElectedPartition ElectionType Reassignment",
    "resources": "NewPartitions NewTopic",
    "results": "Outcome",
    "share_groups": "ShareGroupDescription ShareGroupOffset ShareMember",
    "streams_groups": "InternalTopic StreamsGroupDescription StreamsMember Subtopology TaskAssignment TaskOffset",
    "tokens": "DelegationToken",
    "topic_outcomes": "CreatePartitionsResult CreateTopicsResult CreatedTopic DeleteTopicsResult DeletedTopic "
    "PartitionDescription ResizedTopic TopicDescription TopicPartitionsPage",
    "topic_setup": "EnsuredTopic",
    "transactions": "AbortTransactionSpec FencedProducer HangingTransaction ListedTransactions PartitionProducerState "
    "ProducerState TransactionDescription TransactionListing TransactionState",
    "users": "CredentialInfo ScramMechanism UserScramCredentialDeletion UserScramCredentialUpsertion "
    "UserScramCredentials",
}

__getattr__, __dir__ = lazy_names(
    __name__,
    {name: module for module, names in _MODULES.items() for name in names.split()},
    {"AdminClient": "KafkaAdminClient"},
)
