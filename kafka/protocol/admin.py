"""Versions, topics, partitions, groups and the cluster.

Written by tools/generate_protocol.py from Kafka's message specs; do not edit.
"""

from __future__ import annotations

from uuid import UUID

from kafka.protocol._historic import historic_names
from kafka.protocol.api import Request, Response
from kafka.protocol.fields import Array, field
from kafka.protocol.struct import Struct
from kafka.protocol.types import Boolean, Bytes, Int8, Int16, Int32, Int64, String, Uuid

__getattr__ = historic_names(__name__)


class ApiVersionsRequest(Request["ApiVersionsResponse"], api_key=18, versions="0-4", flexible="3+"):
    """Asks which APIs a broker has, in which versions."""

    client_software_name: str = field(String, "3+", ignorable=True)
    client_software_version: str = field(String, "3+", ignorable=True)


class ApiVersionsResponse(Response, api_key=18, versions="0-4", flexible="3+"):
    class ApiVersion(Struct):
        api_key: int = field(Int16, "0+")
        min_version: int = field(Int16, "0+")
        max_version: int = field(Int16, "0+")

    class SupportedFeatureKey(Struct):
        name: str = field(String, "3+")
        min_version: int = field(Int16, "3+")
        max_version: int = field(Int16, "3+")

    class FinalizedFeatureKey(Struct):
        name: str = field(String, "3+")
        max_version_level: int = field(Int16, "3+")
        min_version_level: int = field(Int16, "3+")

    error_code: int = field(Int16, "0+")
    api_keys: list[ApiVersion] = field(Array(ApiVersion), "0+")
    throttle_time_ms: int = field(Int32, "1+", ignorable=True)
    supported_features: list[SupportedFeatureKey] = field(Array(SupportedFeatureKey), "3+", tag=0, ignorable=True)
    finalized_features_epoch: int = field(Int64, "3+", default=-1, tag=1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = field(Array(FinalizedFeatureKey), "3+", tag=2, ignorable=True)
    zk_migration_ready: bool = field(Boolean, "3+", tag=3, ignorable=True)


class CreateTopicsRequest(Request["CreateTopicsResponse"], api_key=19, versions="0-7", flexible="5+"):
    """Creates topics."""

    class CreatableReplicaAssignment(Struct):
        partition_index: int = field(Int32, "0+")
        broker_ids: list[int] = field(Array(Int32), "0+")

    class CreatableTopicConfig(Struct):
        name: str = field(String, "0+")
        value: str | None = field(String, "0+", nullable="0+")

    class CreatableTopic(Struct):
        name: str = field(String, "0+")
        num_partitions: int = field(Int32, "0+")
        replication_factor: int = field(Int16, "0+")
        assignments: list[CreateTopicsRequest.CreatableReplicaAssignment] = field(
            Array("CreatableReplicaAssignment"), "0+"
        )
        configs: list[CreateTopicsRequest.CreatableTopicConfig] = field(Array("CreatableTopicConfig"), "0+")

    topics: list[CreatableTopic] = field(Array(CreatableTopic), "0+")
    timeout_ms: int = field(Int32, "0+", default=60000)
    validate_only: bool = field(Boolean, "1+")


class CreateTopicsResponse(Response, api_key=19, versions="0-7", flexible="5+"):
    class CreatableTopicConfigs(Struct):
        name: str = field(String, "5+")
        value: str | None = field(String, "5+", nullable="5+")
        read_only: bool = field(Boolean, "5+")
        config_source: int = field(Int8, "5+", default=-1, ignorable=True)
        is_sensitive: bool = field(Boolean, "5+")

    class CreatableTopicResult(Struct):
        name: str = field(String, "0+")
        topic_id: UUID = field(Uuid, "7+", ignorable=True)
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "1+", nullable="1+", ignorable=True)
        topic_config_error_code: int = field(Int16, "5+", tag=0, ignorable=True)
        num_partitions: int = field(Int32, "5+", default=-1, ignorable=True)
        replication_factor: int = field(Int16, "5+", default=-1, ignorable=True)
        configs: list[CreateTopicsResponse.CreatableTopicConfigs] | None = field(
            Array("CreatableTopicConfigs"), "5+", nullable="5+", ignorable=True
        )

    throttle_time_ms: int = field(Int32, "2+", ignorable=True)
    topics: list[CreatableTopicResult] = field(Array(CreatableTopicResult), "0+")


class DeleteTopicsRequest(Request["DeleteTopicsResponse"], api_key=20, versions="0-6", flexible="4+"):
    """Deletes topics."""

    class DeleteTopicState(Struct):
        name: str | None = field(String, "6+", nullable="6+", default=None)
        topic_id: UUID = field(Uuid, "6+")

    topics: list[DeleteTopicState] = field(Array(DeleteTopicState), "6+")
    topic_names: list[str] = field(Array(String), "0-5", ignorable=True)
    timeout_ms: int = field(Int32, "0+")


class DeleteTopicsResponse(Response, api_key=20, versions="0-6", flexible="4+"):
    class DeletableTopicResult(Struct):
        name: str | None = field(String, "0+", nullable="6+")
        topic_id: UUID = field(Uuid, "6+", ignorable=True)
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "5+", nullable="5+", default=None, ignorable=True)

    throttle_time_ms: int = field(Int32, "1+", ignorable=True)
    responses: list[DeletableTopicResult] = field(Array(DeletableTopicResult), "0+")


class CreatePartitionsRequest(Request["CreatePartitionsResponse"], api_key=37, versions="0-3", flexible="2+"):
    """Adds partitions to topics."""

    class CreatePartitionsAssignment(Struct):
        broker_ids: list[int] = field(Array(Int32), "0+")

    class CreatePartitionsTopic(Struct):
        name: str = field(String, "0+")
        count: int = field(Int32, "0+")
        assignments: list[CreatePartitionsRequest.CreatePartitionsAssignment] | None = field(
            Array("CreatePartitionsAssignment"), "0+", nullable="0+"
        )

    topics: list[CreatePartitionsTopic] = field(Array(CreatePartitionsTopic), "0+")
    timeout_ms: int = field(Int32, "0+")
    validate_only: bool = field(Boolean, "0+")


class CreatePartitionsResponse(Response, api_key=37, versions="0-3", flexible="2+"):
    class CreatePartitionsTopicResult(Struct):
        name: str = field(String, "0+")
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "0+", nullable="0+", default=None)

    throttle_time_ms: int = field(Int32, "0+")
    results: list[CreatePartitionsTopicResult] = field(Array(CreatePartitionsTopicResult), "0+")


class DeleteRecordsRequest(Request["DeleteRecordsResponse"], api_key=21, versions="0-2", flexible="2+"):
    """Deletes the records of partitions up to an offset."""

    class DeleteRecordsPartition(Struct):
        partition_index: int = field(Int32, "0+")
        offset: int = field(Int64, "0+")

    class DeleteRecordsTopic(Struct):
        name: str = field(String, "0+")
        partitions: list[DeleteRecordsRequest.DeleteRecordsPartition] = field(Array("DeleteRecordsPartition"), "0+")

    topics: list[DeleteRecordsTopic] = field(Array(DeleteRecordsTopic), "0+")
    timeout_ms: int = field(Int32, "0+")


class DeleteRecordsResponse(Response, api_key=21, versions="0-2", flexible="2+"):
    class DeleteRecordsPartitionResult(Struct):
        partition_index: int = field(Int32, "0+")
        low_watermark: int = field(Int64, "0+")
        error_code: int = field(Int16, "0+")

    class DeleteRecordsTopicResult(Struct):
        name: str = field(String, "0+")
        partitions: list[DeleteRecordsResponse.DeleteRecordsPartitionResult] = field(
            Array("DeleteRecordsPartitionResult"), "0+"
        )

    throttle_time_ms: int = field(Int32, "0+")
    topics: list[DeleteRecordsTopicResult] = field(Array(DeleteRecordsTopicResult), "0+")


class ElectLeadersRequest(Request["ElectLeadersResponse"], api_key=43, versions="0-2", flexible="2+"):
    """Elects leaders of partitions."""

    class TopicPartitions(Struct):
        topic: str = field(String, "0+")
        partitions: list[int] = field(Array(Int32), "0+")

    election_type: int = field(Int8, "1+")
    topic_partitions: list[TopicPartitions] | None = field(Array(TopicPartitions), "0+", nullable="0+")
    timeout_ms: int = field(Int32, "0+", default=60000)


class ElectLeadersResponse(Response, api_key=43, versions="0-2", flexible="2+"):
    class PartitionResult(Struct):
        partition_id: int = field(Int32, "0+")
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "0+", nullable="0+")

    class ReplicaElectionResult(Struct):
        topic: str = field(String, "0+")
        partition_result: list[ElectLeadersResponse.PartitionResult] = field(Array("PartitionResult"), "0+")

    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "1+")
    replica_election_results: list[ReplicaElectionResult] = field(Array(ReplicaElectionResult), "0+")


class AlterPartitionReassignmentsRequest(
    Request["AlterPartitionReassignmentsResponse"], api_key=45, versions="0-1", flexible="0+"
):
    """Starts or cancels moves of partitions to other brokers."""

    class ReassignablePartition(Struct):
        partition_index: int = field(Int32, "0+")
        replicas: list[int] | None = field(Array(Int32), "0+", nullable="0+", default=None)

    class ReassignableTopic(Struct):
        name: str = field(String, "0+")
        partitions: list[AlterPartitionReassignmentsRequest.ReassignablePartition] = field(
            Array("ReassignablePartition"), "0+"
        )

    timeout_ms: int = field(Int32, "0+", default=60000)
    allow_replication_factor_change: bool = field(Boolean, "1+", default=True)
    topics: list[ReassignableTopic] = field(Array(ReassignableTopic), "0+")


class AlterPartitionReassignmentsResponse(Response, api_key=45, versions="0-1", flexible="0+"):
    class ReassignablePartitionResponse(Struct):
        partition_index: int = field(Int32, "0+")
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "0+", nullable="0+")

    class ReassignableTopicResponse(Struct):
        name: str = field(String, "0+")
        partitions: list[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse] = field(
            Array("ReassignablePartitionResponse"), "0+"
        )

    throttle_time_ms: int = field(Int32, "0+")
    allow_replication_factor_change: bool = field(Boolean, "1+", default=True, ignorable=True)
    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", nullable="0+")
    responses: list[ReassignableTopicResponse] = field(Array(ReassignableTopicResponse), "0+")


class ListPartitionReassignmentsRequest(
    Request["ListPartitionReassignmentsResponse"], api_key=46, versions="0", flexible="0+"
):
    """Lists the moves of partitions under way."""

    class ListPartitionReassignmentsTopics(Struct):
        name: str = field(String, "0+")
        partition_indexes: list[int] = field(Array(Int32), "0+")

    timeout_ms: int = field(Int32, "0+", default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = field(
        Array(ListPartitionReassignmentsTopics), "0+", nullable="0+", default=None
    )


class ListPartitionReassignmentsResponse(Response, api_key=46, versions="0", flexible="0+"):
    class OngoingPartitionReassignment(Struct):
        partition_index: int = field(Int32, "0+")
        replicas: list[int] = field(Array(Int32), "0+")
        adding_replicas: list[int] = field(Array(Int32), "0+")
        removing_replicas: list[int] = field(Array(Int32), "0+")

    class OngoingTopicReassignment(Struct):
        name: str = field(String, "0+")
        partitions: list[ListPartitionReassignmentsResponse.OngoingPartitionReassignment] = field(
            Array("OngoingPartitionReassignment"), "0+"
        )

    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", nullable="0+")
    topics: list[OngoingTopicReassignment] = field(Array(OngoingTopicReassignment), "0+")


class DescribeLogDirsRequest(Request["DescribeLogDirsResponse"], api_key=35, versions="0-5", flexible="2+"):
    """Lists log directories and what they hold."""

    class DescribableLogDirTopic(Struct):
        topic: str = field(String, "0+")
        partitions: list[int] = field(Array(Int32), "0+")

    topics: list[DescribableLogDirTopic] | None = field(Array(DescribableLogDirTopic), "0+", nullable="0+")


class DescribeLogDirsResponse(Response, api_key=35, versions="0-5", flexible="2+"):
    class DescribeLogDirsPartition(Struct):
        partition_index: int = field(Int32, "0+")
        partition_size: int = field(Int64, "0+")
        offset_lag: int = field(Int64, "0+")
        is_future_key: bool = field(Boolean, "0+")

    class DescribeLogDirsTopic(Struct):
        name: str = field(String, "0+")
        partitions: list[DescribeLogDirsResponse.DescribeLogDirsPartition] = field(
            Array("DescribeLogDirsPartition"), "0+"
        )

    class DescribeLogDirsResult(Struct):
        error_code: int = field(Int16, "0+")
        log_dir: str = field(String, "0+")
        topics: list[DescribeLogDirsResponse.DescribeLogDirsTopic] = field(Array("DescribeLogDirsTopic"), "0+")
        total_bytes: int = field(Int64, "4+", default=-1, ignorable=True)
        usable_bytes: int = field(Int64, "4+", default=-1, ignorable=True)
        is_cordoned: bool = field(Boolean, "5+", ignorable=True)

    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "3+", ignorable=True)
    results: list[DescribeLogDirsResult] = field(Array(DescribeLogDirsResult), "0+")


class AlterReplicaLogDirsRequest(Request["AlterReplicaLogDirsResponse"], api_key=34, versions="0-2", flexible="2+"):
    """Moves replicas to another log directory of their broker."""

    class AlterReplicaLogDirTopic(Struct):
        name: str = field(String, "0+")
        partitions: list[int] = field(Array(Int32), "0+")

    class AlterReplicaLogDir(Struct):
        path: str = field(String, "0+")
        topics: list[AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic] = field(Array("AlterReplicaLogDirTopic"), "0+")

    dirs: list[AlterReplicaLogDir] = field(Array(AlterReplicaLogDir), "0+")


class AlterReplicaLogDirsResponse(Response, api_key=34, versions="0-2", flexible="2+"):
    class AlterReplicaLogDirPartitionResult(Struct):
        partition_index: int = field(Int32, "0+")
        error_code: int = field(Int16, "0+")

    class AlterReplicaLogDirTopicResult(Struct):
        topic_name: str = field(String, "0+")
        partitions: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult] = field(
            Array("AlterReplicaLogDirPartitionResult"), "0+"
        )

    throttle_time_ms: int = field(Int32, "0+")
    results: list[AlterReplicaLogDirTopicResult] = field(Array(AlterReplicaLogDirTopicResult), "0+")


class DescribeGroupsRequest(Request["DescribeGroupsResponse"], api_key=15, versions="0-6", flexible="5+"):
    """Describes classic groups."""

    groups: list[str] = field(Array(String), "0+")
    include_authorized_operations: bool = field(Boolean, "3+")


class DescribeGroupsResponse(Response, api_key=15, versions="0-6", flexible="5+"):
    class DescribedGroupMember(Struct):
        member_id: str = field(String, "0+")
        group_instance_id: str | None = field(String, "4+", nullable="4+", default=None, ignorable=True)
        client_id: str = field(String, "0+")
        client_host: str = field(String, "0+")
        member_metadata: bytes = field(Bytes, "0+")
        member_assignment: bytes = field(Bytes, "0+")

    class DescribedGroup(Struct):
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "6+", nullable="6+", default=None)
        group_id: str = field(String, "0+")
        group_state: str = field(String, "0+")
        protocol_type: str = field(String, "0+")
        protocol_data: str = field(String, "0+")
        members: list[DescribeGroupsResponse.DescribedGroupMember] = field(Array("DescribedGroupMember"), "0+")
        authorized_operations: int = field(Int32, "3+", default=-2147483648)

    throttle_time_ms: int = field(Int32, "1+", ignorable=True)
    groups: list[DescribedGroup] = field(Array(DescribedGroup), "0+")


class ListGroupsRequest(Request["ListGroupsResponse"], api_key=16, versions="0-5", flexible="3+"):
    """Lists the groups of a broker."""

    states_filter: list[str] = field(Array(String), "4+")
    types_filter: list[str] = field(Array(String), "5+")


class ListGroupsResponse(Response, api_key=16, versions="0-5", flexible="3+"):
    class ListedGroup(Struct):
        group_id: str = field(String, "0+")
        protocol_type: str = field(String, "0+")
        group_state: str = field(String, "4+", ignorable=True)
        group_type: str = field(String, "5+", ignorable=True)

    throttle_time_ms: int = field(Int32, "1+", ignorable=True)
    error_code: int = field(Int16, "0+")
    groups: list[ListedGroup] = field(Array(ListedGroup), "0+")


class DeleteGroupsRequest(Request["DeleteGroupsResponse"], api_key=42, versions="0-2", flexible="2+"):
    """Deletes empty groups."""

    groups_names: list[str] = field(Array(String), "0+")


class DeleteGroupsResponse(Response, api_key=42, versions="0-2", flexible="2+"):
    class DeletableGroupResult(Struct):
        group_id: str = field(String, "0+")
        error_code: int = field(Int16, "0+")

    throttle_time_ms: int = field(Int32, "0+")
    results: list[DeletableGroupResult] = field(Array(DeletableGroupResult), "0+")


class UpdateFeaturesRequest(Request["UpdateFeaturesResponse"], api_key=57, versions="0-2", flexible="0+"):
    """Raises or lowers the levels of features."""

    class FeatureUpdateKey(Struct):
        feature: str = field(String, "0+")
        max_version_level: int = field(Int16, "0+")
        allow_downgrade: bool = field(Boolean, "0")
        upgrade_type: int = field(Int8, "1+", default=1)

    timeout_ms: int = field(Int32, "0+", default=60000)
    feature_updates: list[FeatureUpdateKey] = field(Array(FeatureUpdateKey), "0+")
    validate_only: bool = field(Boolean, "1+")


class UpdateFeaturesResponse(Response, api_key=57, versions="0-2", flexible="0+"):
    class UpdatableFeatureResult(Struct):
        feature: str = field(String, "0+")
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "0+", nullable="0+")

    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", nullable="0+")
    results: list[UpdatableFeatureResult] = field(Array(UpdatableFeatureResult), "0-1", ignorable=True)


class UnregisterBrokerRequest(Request["UnregisterBrokerResponse"], api_key=64, versions="0", flexible="0+"):
    """Removes a broker that is gone from the cluster."""

    broker_id: int = field(Int32, "0+")


class UnregisterBrokerResponse(Response, api_key=64, versions="0", flexible="0+"):
    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", nullable="0+")
