"""The records of the topic __consumer_offsets.

Written by tools/generate_protocol.py from Kafka's message specs; do not edit.
"""

from __future__ import annotations

from uuid import UUID

from kafka.protocol.fields import Array, field
from kafka.protocol.struct import Struct
from kafka.protocol.types import Bytes, Int8, Int16, Int32, Int64, String, UInt16, Uuid


class LegacyOffsetCommitKey(Struct, record_type=0, versions="0", flexible="none"):
    """The key of a committed offset, as written by the oldest brokers."""

    group: str = field(String, "0+")
    topic: str = field(String, "0+")
    partition: int = field(Int32, "0+")


class LegacyOffsetCommitValue(Struct, record_type=0, versions="0", flexible="none"):
    """A committed offset, as written by the oldest brokers."""

    offset: int = field(Int64, "0+")
    metadata: str = field(String, "0+")
    commit_timestamp: int = field(Int64, "0+")


class OffsetCommitKey(Struct, record_type=1, versions="0", flexible="none"):
    """The key of a committed offset."""

    group: str = field(String, "0+")
    topic: str = field(String, "0+")
    partition: int = field(Int32, "0+")


class OffsetCommitValue(Struct, record_type=1, versions="0-4", flexible="4+"):
    """A committed offset."""

    offset: int = field(Int64, "0+")
    leader_epoch: int = field(Int32, "3+", default=-1, ignorable=True)
    metadata: str = field(String, "0+")
    commit_timestamp: int = field(Int64, "0+")
    expire_timestamp: int = field(Int64, "1", default=-1, ignorable=True)
    topic_id: UUID = field(Uuid, "4+", tag=0, ignorable=True)


class GroupMetadataKey(Struct, record_type=2, versions="0", flexible="none"):
    """The key of a classic group."""

    group: str = field(String, "0+")


class GroupMetadataValue(Struct, record_type=2, versions="0-4", flexible="4+"):
    """A classic group and its members."""

    class MemberMetadata(Struct):
        member_id: str = field(String, "0+")
        group_instance_id: str | None = field(String, "3+", nullable="3+", default=None, ignorable=True)
        client_id: str = field(String, "0+")
        client_host: str = field(String, "0+")
        rebalance_timeout: int = field(Int32, "1+", default=-1, ignorable=True)
        session_timeout: int = field(Int32, "0+")
        subscription: bytes = field(Bytes, "0+")
        assignment: bytes = field(Bytes, "0+")

    protocol_type: str = field(String, "0+")
    generation: int = field(Int32, "0+")
    protocol: str | None = field(String, "0+", nullable="0+")
    leader: str | None = field(String, "0+", nullable="0+")
    current_state_timestamp: int = field(Int64, "2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = field(Array(MemberMetadata), "0+")


class ConsumerGroupMetadataKey(Struct, record_type=3, versions="0", flexible="none"):
    """The key of a consumer group."""

    group_id: str = field(String, "0+")


class ConsumerGroupMetadataValue(Struct, record_type=3, versions="0", flexible="0+"):
    """A consumer group."""

    epoch: int = field(Int32, "0+")
    metadata_hash: int = field(Int64, "0+", tag=0)


class ConsumerGroupPartitionMetadataKey(Struct, record_type=4, versions="0", flexible="none"):
    """The key of the topics that a consumer group knows."""

    group_id: str = field(String, "0+")


class ConsumerGroupPartitionMetadataValue(Struct, record_type=4, versions="0", flexible="0+"):
    """The topics that a consumer group knows."""

    class PartitionMetadata(Struct):
        partition: int = field(Int32, "0+")
        racks: list[str] = field(Array(String), "0+")

    class TopicMetadata(Struct):
        topic_id: UUID = field(Uuid, "0+")
        topic_name: str = field(String, "0+")
        num_partitions: int = field(Int32, "0+")
        partition_metadata: list[ConsumerGroupPartitionMetadataValue.PartitionMetadata] = field(
            Array("PartitionMetadata"), "0+"
        )

    topics: list[TopicMetadata] = field(Array(TopicMetadata), "0+")


class ConsumerGroupMemberMetadataKey(Struct, record_type=5, versions="0", flexible="none"):
    """The key of a member of a consumer group."""

    group_id: str = field(String, "0+")
    member_id: str = field(String, "0+")


class ConsumerGroupMemberMetadataValue(Struct, record_type=5, versions="0", flexible="0+"):
    """A member of a consumer group."""

    class ClassicProtocol(Struct):
        name: str = field(String, "0+")
        metadata: bytes = field(Bytes, "0+")

    class ClassicMemberMetadata(Struct):
        session_timeout_ms: int = field(Int32, "0+")
        supported_protocols: list[ConsumerGroupMemberMetadataValue.ClassicProtocol] = field(
            Array("ClassicProtocol"), "0+"
        )

    instance_id: str | None = field(String, "0+", nullable="0+")
    rack_id: str | None = field(String, "0+", nullable="0+")
    client_id: str = field(String, "0+")
    client_host: str = field(String, "0+")
    subscribed_topic_names: list[str] = field(Array(String), "0+")
    subscribed_topic_regex: str | None = field(String, "0+", nullable="0+")
    rebalance_timeout_ms: int = field(Int32, "0+", default=-1)
    server_assignor: str | None = field(String, "0+", nullable="0+")
    classic_member_metadata: ClassicMemberMetadata | None = field(ClassicMemberMetadata, "0+", nullable="0+", tag=0)


class ConsumerGroupTargetAssignmentMetadataKey(Struct, record_type=6, versions="0", flexible="none"):
    """The key of the target assignment of a consumer group."""

    group_id: str = field(String, "0+")


class ConsumerGroupTargetAssignmentMetadataValue(Struct, record_type=6, versions="0", flexible="0+"):
    """The epoch of the target assignment of a consumer group."""

    assignment_epoch: int = field(Int32, "0+")
    assignment_timestamp: int = field(Int64, "0+", tag=0, ignorable=True)


class ConsumerGroupTargetAssignmentMemberKey(Struct, record_type=7, versions="0", flexible="none"):
    """The key of what a member of a consumer group is to own."""

    group_id: str = field(String, "0+")
    member_id: str = field(String, "0+")


class ConsumerGroupTargetAssignmentMemberValue(Struct, record_type=7, versions="0", flexible="0+"):
    """The target assignment of a member of a consumer group."""

    class TopicPartition(Struct):
        topic_id: UUID = field(Uuid, "0+")
        partitions: list[int] = field(Array(Int32), "0+")

    topic_partitions: list[TopicPartition] = field(Array(TopicPartition), "0+")


class ConsumerGroupCurrentMemberAssignmentKey(Struct, record_type=8, versions="0", flexible="none"):
    """The key of what a member of a consumer group owns now."""

    group_id: str = field(String, "0+")
    member_id: str = field(String, "0+")


class ConsumerGroupCurrentMemberAssignmentValue(Struct, record_type=8, versions="0", flexible="0+"):
    """The current assignment of a member of a consumer group."""

    class TopicPartitions(Struct):
        topic_id: UUID = field(Uuid, "0+")
        partitions: list[int] = field(Array(Int32), "0+")
        assignment_epochs: list[int] | None = field(Array(Int32), "0+", nullable="0+", tag=0)

    member_epoch: int = field(Int32, "0+")
    previous_member_epoch: int = field(Int32, "0+")
    state: int = field(Int8, "0+")
    assigned_partitions: list[TopicPartitions] = field(Array(TopicPartitions), "0+")
    partitions_pending_revocation: list[TopicPartitions] = field(Array(TopicPartitions), "0+")


class ConsumerGroupRegularExpressionKey(Struct, record_type=16, versions="0", flexible="none"):
    """The key of a topic pattern of a consumer group."""

    group_id: str = field(String, "0+")
    regular_expression: str = field(String, "0+")


class ConsumerGroupRegularExpressionValue(Struct, record_type=16, versions="0", flexible="0+"):
    """The topics that a pattern of a consumer group stands for."""

    topics: list[str] = field(Array(String), "0+")
    version: int = field(Int64, "0+")
    timestamp: int = field(Int64, "0+")


class ShareGroupMemberMetadataKey(Struct, record_type=10, versions="0", flexible="none"):
    """The key of a member of a share group."""

    group_id: str = field(String, "0+")
    member_id: str = field(String, "0+")


class ShareGroupMemberMetadataValue(Struct, record_type=10, versions="0", flexible="0+"):
    """A member of a share group."""

    rack_id: str | None = field(String, "0+", nullable="0+")
    client_id: str = field(String, "0+")
    client_host: str = field(String, "0+")
    subscribed_topic_names: list[str] = field(Array(String), "0+")


class ShareGroupMetadataKey(Struct, record_type=11, versions="0", flexible="none"):
    """The key of a share group."""

    group_id: str = field(String, "0+")


class ShareGroupMetadataValue(Struct, record_type=11, versions="0", flexible="0+"):
    """A share group."""

    epoch: int = field(Int32, "0+")
    metadata_hash: int = field(Int64, "0+")


class ShareGroupTargetAssignmentMetadataKey(Struct, record_type=12, versions="0", flexible="none"):
    """The key of the target assignment of a share group."""

    group_id: str = field(String, "0+")


class ShareGroupTargetAssignmentMetadataValue(Struct, record_type=12, versions="0", flexible="0+"):
    """The epoch of the target assignment of a share group."""

    assignment_epoch: int = field(Int32, "0+")
    assignment_timestamp: int = field(Int64, "0+", tag=0, ignorable=True)


class ShareGroupTargetAssignmentMemberKey(Struct, record_type=13, versions="0", flexible="none"):
    """The key of what a member of a share group is to own."""

    group_id: str = field(String, "0+")
    member_id: str = field(String, "0+")


class ShareGroupTargetAssignmentMemberValue(Struct, record_type=13, versions="0", flexible="0+"):
    """The target assignment of a member of a share group."""

    class TopicPartition(Struct):
        topic_id: UUID = field(Uuid, "0+")
        partitions: list[int] = field(Array(Int32), "0+")

    topic_partitions: list[TopicPartition] = field(Array(TopicPartition), "0+")


class ShareGroupCurrentMemberAssignmentKey(Struct, record_type=14, versions="0", flexible="none"):
    """The key of what a member of a share group owns now."""

    group_id: str = field(String, "0+")
    member_id: str = field(String, "0+")


class ShareGroupCurrentMemberAssignmentValue(Struct, record_type=14, versions="0", flexible="0+"):
    """The current assignment of a member of a share group."""

    class TopicPartitions(Struct):
        topic_id: UUID = field(Uuid, "0+")
        partitions: list[int] = field(Array(Int32), "0+")

    member_epoch: int = field(Int32, "0+")
    previous_member_epoch: int = field(Int32, "0+")
    state: int = field(Int8, "0+")
    assigned_partitions: list[TopicPartitions] = field(Array(TopicPartitions), "0+")


class ShareGroupStatePartitionMetadataKey(Struct, record_type=15, versions="0", flexible="none"):
    """The key of the partitions that a share group has state for."""

    group_id: str = field(String, "0+")


class ShareGroupStatePartitionMetadataValue(Struct, record_type=15, versions="0", flexible="0+"):
    """The partitions that a share group has state for."""

    class TopicPartitionsInfo(Struct):
        topic_id: UUID = field(Uuid, "0+")
        topic_name: str = field(String, "0+")
        partitions: list[int] = field(Array(Int32), "0+")

    class TopicInfo(Struct):
        topic_id: UUID = field(Uuid, "0+")
        topic_name: str = field(String, "0+")

    initializing_topics: list[TopicPartitionsInfo] = field(Array(TopicPartitionsInfo), "0+")
    initialized_topics: list[TopicPartitionsInfo] = field(Array(TopicPartitionsInfo), "0+")
    deleting_topics: list[TopicInfo] = field(Array(TopicInfo), "0+")


class StreamsGroupMetadataKey(Struct, record_type=17, versions="0", flexible="none"):
    """The key of a streams group."""

    group_id: str = field(String, "0+")


class StreamsGroupMetadataValue(Struct, record_type=17, versions="0", flexible="0+"):
    """A streams group."""

    class LastAssignmentConfig(Struct):
        key: str = field(String, "0+")
        value: str = field(String, "0+")

    epoch: int = field(Int32, "0+")
    metadata_hash: int = field(Int64, "0+")
    validated_topology_epoch: int = field(Int32, "0+", default=-1, tag=0)
    last_assignment_configs: list[LastAssignmentConfig] | None = field(
        Array(LastAssignmentConfig), "0+", nullable="0+", tag=1
    )


class StreamsGroupMemberMetadataKey(Struct, record_type=19, versions="0", flexible="none"):
    """The key of a member of a streams group."""

    group_id: str = field(String, "0+")
    member_id: str = field(String, "0+")


class StreamsGroupMemberMetadataValue(Struct, record_type=19, versions="0", flexible="0+"):
    """A member of a streams group."""

    class Endpoint(Struct):
        host: str = field(String, "0+")
        port: int = field(UInt16, "0+")

    class KeyValue(Struct):
        key: str = field(String, "0+")
        value: str = field(String, "0+")

    instance_id: str | None = field(String, "0+", nullable="0+")
    rack_id: str | None = field(String, "0+", nullable="0+")
    client_id: str = field(String, "0+")
    client_host: str = field(String, "0+")
    rebalance_timeout_ms: int = field(Int32, "0+", default=-1)
    topology_epoch: int = field(Int32, "0+")
    process_id: str = field(String, "0+")
    user_endpoint: Endpoint | None = field(Endpoint, "0+", nullable="0+", default=None)
    client_tags: list[KeyValue] = field(Array(KeyValue), "0+")


class StreamsGroupTargetAssignmentMetadataKey(Struct, record_type=20, versions="0", flexible="none"):
    """The key of the target assignment of a streams group."""

    group_id: str = field(String, "0+")


class StreamsGroupTargetAssignmentMetadataValue(Struct, record_type=20, versions="0", flexible="0+"):
    """The epoch of the target assignment of a streams group."""

    assignment_epoch: int = field(Int32, "0+")
    assignment_timestamp: int = field(Int64, "0+", tag=0, ignorable=True)


class StreamsGroupTargetAssignmentMemberKey(Struct, record_type=21, versions="0", flexible="none"):
    """The key of what a member of a streams group is to run."""

    group_id: str = field(String, "0+")
    member_id: str = field(String, "0+")


class StreamsGroupTargetAssignmentMemberValue(Struct, record_type=21, versions="0", flexible="0+"):
    """The target tasks of a member of a streams group."""

    class TaskIds(Struct):
        subtopology_id: str = field(String, "0+")
        partitions: list[int] = field(Array(Int32), "0+")

    active_tasks: list[TaskIds] = field(Array(TaskIds), "0+")
    standby_tasks: list[TaskIds] = field(Array(TaskIds), "0+")
    warmup_tasks: list[TaskIds] = field(Array(TaskIds), "0+")


class StreamsGroupCurrentMemberAssignmentKey(Struct, record_type=22, versions="0", flexible="none"):
    """The key of what a member of a streams group runs now."""

    group_id: str = field(String, "0+")
    member_id: str = field(String, "0+")


class StreamsGroupCurrentMemberAssignmentValue(Struct, record_type=22, versions="0", flexible="0+"):
    """The current tasks of a member of a streams group."""

    class TaskIds(Struct):
        subtopology_id: str = field(String, "0+")
        partitions: list[int] = field(Array(Int32), "0+")
        assignment_epochs: list[int] | None = field(Array(Int32), "0+", nullable="0+", tag=0)

    member_epoch: int = field(Int32, "0+")
    previous_member_epoch: int = field(Int32, "0+")
    state: int = field(Int8, "0+")
    active_tasks: list[TaskIds] = field(Array(TaskIds), "0+")
    standby_tasks: list[TaskIds] = field(Array(TaskIds), "0+")
    warmup_tasks: list[TaskIds] = field(Array(TaskIds), "0+")
    active_tasks_pending_revocation: list[TaskIds] = field(Array(TaskIds), "0+")
    standby_tasks_pending_revocation: list[TaskIds] = field(Array(TaskIds), "0+")
    warmup_tasks_pending_revocation: list[TaskIds] = field(Array(TaskIds), "0+")


class StreamsGroupTopologyKey(Struct, record_type=23, versions="0", flexible="none"):
    """The key of the topology of a streams group."""

    group_id: str = field(String, "0+")


class StreamsGroupTopologyValue(Struct, record_type=23, versions="0", flexible="0+"):
    """The topology of a streams group."""

    class TopicConfig(Struct):
        key: str = field(String, "0+")
        value: str = field(String, "0+")

    class TopicInfo(Struct):
        name: str = field(String, "0+")
        partitions: int = field(Int32, "0+")
        replication_factor: int = field(Int16, "0+")
        topic_configs: list[StreamsGroupTopologyValue.TopicConfig] = field(Array("TopicConfig"), "0+")

    class CopartitionGroup(Struct):
        source_topics: list[int] = field(Array(Int16), "0+")
        source_topic_regex: list[int] = field(Array(Int16), "0+")
        repartition_source_topics: list[int] = field(Array(Int16), "0+")

    class Subtopology(Struct):
        subtopology_id: str = field(String, "0+")
        source_topics: list[str] = field(Array(String), "0+")
        source_topic_regex: list[str] = field(Array(String), "0+")
        state_changelog_topics: list[StreamsGroupTopologyValue.TopicInfo] = field(Array("TopicInfo"), "0+")
        repartition_sink_topics: list[str] = field(Array(String), "0+")
        repartition_source_topics: list[StreamsGroupTopologyValue.TopicInfo] = field(Array("TopicInfo"), "0+")
        copartition_groups: list[StreamsGroupTopologyValue.CopartitionGroup] = field(Array("CopartitionGroup"), "0+")

    epoch: int = field(Int32, "0+")
    subtopologies: list[Subtopology] = field(Array(Subtopology), "0+")
