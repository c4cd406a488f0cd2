"""Administration of a cluster: `KafkaAdminClient`, what its calls take and what they return."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka._lazy import lazy_names

if TYPE_CHECKING:
    from kafka.acl import ACLOperation as ACLOperation
    from kafka.acl import ACLPermissionType as ACLPermissionType
    from kafka.acl import ACLResourcePatternType as ACLResourcePatternType
    from kafka.acl import ResourceType as ResourceType
    from kafka.admin.acls import ACL as ACL
    from kafka.admin.acls import ACLFilter as ACLFilter
    from kafka.admin.acls import CreateAclsResult as CreateAclsResult
    from kafka.admin.acls import ResourcePattern as ResourcePattern
    from kafka.admin.acls import ResourcePatternFilter as ResourcePatternFilter
    from kafka.admin.acls import acl_bindings as acl_bindings
    from kafka.admin.acls import consumer_acls as consumer_acls
    from kafka.admin.acls import producer_acls as producer_acls
    from kafka.admin.client import KafkaAdminClient as KafkaAdminClient
    from kafka.admin.client_metrics import TelemetrySubscription as TelemetrySubscription
    from kafka.admin.cluster import BrokerDescription as BrokerDescription
    from kafka.admin.cluster import ClusterDescription as ClusterDescription
    from kafka.admin.config_resource import AlterConfigOp as AlterConfigOp
    from kafka.admin.config_resource import AlterConfigsResult as AlterConfigsResult
    from kafka.admin.config_resource import AlteredResource as AlteredResource
    from kafka.admin.config_resource import ConfigEntry as ConfigEntry
    from kafka.admin.config_resource import ConfigFilterType as ConfigFilterType
    from kafka.admin.config_resource import ConfigResource as ConfigResource
    from kafka.admin.config_resource import ConfigResourceType as ConfigResourceType
    from kafka.admin.config_resource import ConfigSourceType as ConfigSourceType
    from kafka.admin.config_resource import ConfigType as ConfigType
    from kafka.admin.config_resource import DescribeConfigsResult as DescribeConfigsResult
    from kafka.admin.config_resource import DescribedResource as DescribedResource
    from kafka.admin.features import FeaturesDescription as FeaturesDescription
    from kafka.admin.features import UpdateFeatureType as UpdateFeatureType
    from kafka.admin.features import VersionRange as VersionRange
    from kafka.admin.group_description import GroupDescription as GroupDescription
    from kafka.admin.group_description import MemberAssignment as MemberAssignment
    from kafka.admin.group_description import MemberDescription as MemberDescription
    from kafka.admin.group_description import MemberMetadata as MemberMetadata
    from kafka.admin.group_lag import GroupLag as GroupLag
    from kafka.admin.group_lag import Lags as Lags
    from kafka.admin.group_lag import PartitionLag as PartitionLag
    from kafka.admin.group_offsets import ListedOffsets as ListedOffsets
    from kafka.admin.group_offsets import ResetOffset as ResetOffset
    from kafka.admin.group_offsets import Shift as Shift
    from kafka.admin.groups import GroupState as GroupState
    from kafka.admin.groups import GroupType as GroupType
    from kafka.admin.groups import ListedGroup as ListedGroup
    from kafka.admin.groups import ListedGroups as ListedGroups
    from kafka.admin.groups import MemberToRemove as MemberToRemove
    from kafka.admin.log_dirs import BrokerLogDirs as BrokerLogDirs
    from kafka.admin.log_dirs import DescribedLogDirs as DescribedLogDirs
    from kafka.admin.log_dirs import LogDir as LogDir
    from kafka.admin.log_dirs import ReplicaLogDir as ReplicaLogDir
    from kafka.admin.offsets import IsolationLevel as IsolationLevel
    from kafka.admin.offsets import OffsetSpec as OffsetSpec
    from kafka.admin.offsets import OffsetTimestamp as OffsetTimestamp
    from kafka.admin.quorum import QuorumDescription as QuorumDescription
    from kafka.admin.quorum import QuorumNode as QuorumNode
    from kafka.admin.quorum import QuorumReplica as QuorumReplica
    from kafka.admin.quorum import RaftVoterEndpoint as RaftVoterEndpoint
    from kafka.admin.quotas import AlteredQuota as AlteredQuota
    from kafka.admin.quotas import ClientQuota as ClientQuota
    from kafka.admin.records import DeletedRecords as DeletedRecords
    from kafka.admin.records import RecordsToDelete as RecordsToDelete
    from kafka.admin.replicas import ElectedPartition as ElectedPartition
    from kafka.admin.replicas import ElectionType as ElectionType
    from kafka.admin.replicas import ElectLeadersResult as ElectLeadersResult
    from kafka.admin.replicas import Reassignment as Reassignment
    from kafka.admin.resources import NewPartitions as NewPartitions
    from kafka.admin.resources import NewTopic as NewTopic
    from kafka.admin.results import Outcome as Outcome
    from kafka.admin.share_groups import ShareGroupDescription as ShareGroupDescription
    from kafka.admin.share_groups import ShareGroupOffset as ShareGroupOffset
    from kafka.admin.share_groups import ShareMember as ShareMember
    from kafka.admin.streams_groups import InternalTopic as InternalTopic
    from kafka.admin.streams_groups import StreamsGroupDescription as StreamsGroupDescription
    from kafka.admin.streams_groups import StreamsMember as StreamsMember
    from kafka.admin.streams_groups import Subtopology as Subtopology
    from kafka.admin.streams_groups import TaskAssignment as TaskAssignment
    from kafka.admin.streams_groups import TaskOffset as TaskOffset
    from kafka.admin.tokens import DelegationToken as DelegationToken
    from kafka.admin.topic_outcomes import CreatedTopic as CreatedTopic
    from kafka.admin.topic_outcomes import CreatePartitionsResult as CreatePartitionsResult
    from kafka.admin.topic_outcomes import CreateTopicsResult as CreateTopicsResult
    from kafka.admin.topic_outcomes import DeletedTopic as DeletedTopic
    from kafka.admin.topic_outcomes import DeleteTopicsResult as DeleteTopicsResult
    from kafka.admin.topic_outcomes import PartitionDescription as PartitionDescription
    from kafka.admin.topic_outcomes import ResizedTopic as ResizedTopic
    from kafka.admin.topic_outcomes import TopicDescription as TopicDescription
    from kafka.admin.topic_outcomes import TopicPartitionsPage as TopicPartitionsPage
    from kafka.admin.topic_setup import EnsuredTopic as EnsuredTopic
    from kafka.admin.transactions import AbortTransactionSpec as AbortTransactionSpec
    from kafka.admin.transactions import FencedProducer as FencedProducer
    from kafka.admin.transactions import HangingTransaction as HangingTransaction
    from kafka.admin.transactions import ListedTransactions as ListedTransactions
    from kafka.admin.transactions import PartitionProducerState as PartitionProducerState
    from kafka.admin.transactions import ProducerState as ProducerState
    from kafka.admin.transactions import TransactionDescription as TransactionDescription
    from kafka.admin.transactions import TransactionListing as TransactionListing
    from kafka.admin.transactions import TransactionState as TransactionState
    from kafka.admin.users import CredentialInfo as CredentialInfo
    from kafka.admin.users import ScramMechanism as ScramMechanism
    from kafka.admin.users import UserScramCredentialDeletion as UserScramCredentialDeletion
    from kafka.admin.users import UserScramCredentials as UserScramCredentials
    from kafka.admin.users import UserScramCredentialUpsertion as UserScramCredentialUpsertion

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

__all__ = [name for names in _MODULES.values() for name in names.split()]

if not TYPE_CHECKING:  # checkers report a name that is not here
    __getattr__, __dir__ = lazy_names(__name__, _MODULES, {"AdminClient": "KafkaAdminClient"})
