"""Streams groups (KIP-1071).

Written by tools/generate_protocol.py from Kafka's message specs; do not edit.
"""

from __future__ import annotations

from kafka.protocol.api import Request, Response
from kafka.protocol.fields import Array, field
from kafka.protocol.struct import Struct
from kafka.protocol.types import Boolean, Int8, Int16, Int32, Int64, String, UInt16


class StreamsGroupHeartbeatRequest(Request["StreamsGroupHeartbeatResponse"], api_key=88, versions="0", flexible="0+"):
    """Joins, keeps alive and leaves a streams group."""

    class KeyValue(Struct):
        key: str = field(String, "0+")
        value: str = field(String, "0+")

    class TopicInfo(Struct):
        name: str = field(String, "0+")
        partitions: int = field(Int32, "0+")
        replication_factor: int = field(Int16, "0+")
        topic_configs: list[StreamsGroupHeartbeatRequest.KeyValue] = field(Array("KeyValue"), "0+")

    class CopartitionGroup(Struct):
        source_topics: list[int] = field(Array(Int16), "0+")
        source_topic_regex: list[int] = field(Array(Int16), "0+")
        repartition_source_topics: list[int] = field(Array(Int16), "0+")

    class Subtopology(Struct):
        subtopology_id: str = field(String, "0+")
        source_topics: list[str] = field(Array(String), "0+")
        source_topic_regex: list[str] = field(Array(String), "0+")
        state_changelog_topics: list[StreamsGroupHeartbeatRequest.TopicInfo] = field(Array("TopicInfo"), "0+")
        repartition_sink_topics: list[str] = field(Array(String), "0+")
        repartition_source_topics: list[StreamsGroupHeartbeatRequest.TopicInfo] = field(Array("TopicInfo"), "0+")
        copartition_groups: list[StreamsGroupHeartbeatRequest.CopartitionGroup] = field(Array("CopartitionGroup"), "0+")

    class Topology(Struct):
        epoch: int = field(Int32, "0+")
        subtopologies: list[StreamsGroupHeartbeatRequest.Subtopology] = field(Array("Subtopology"), "0+")

    class TaskIds(Struct):
        subtopology_id: str = field(String, "0+")
        partitions: list[int] = field(Array(Int32), "0+")

    class Endpoint(Struct):
        host: str = field(String, "0+")
        port: int = field(UInt16, "0+")

    class TaskOffset(Struct):
        subtopology_id: str = field(String, "0+")
        partition: int = field(Int32, "0+")
        offset: int = field(Int64, "0+")

    group_id: str = field(String, "0+")
    member_id: str = field(String, "0+")
    member_epoch: int = field(Int32, "0+")
    endpoint_information_epoch: int = field(Int32, "0+")
    instance_id: str | None = field(String, "0+", nullable="0+", default=None)
    rack_id: str | None = field(String, "0+", nullable="0+", default=None)
    rebalance_timeout_ms: int = field(Int32, "0+", default=-1)
    topology: Topology | None = field(Topology, "0+", nullable="0+", default=None)
    active_tasks: list[TaskIds] | None = field(Array(TaskIds), "0+", nullable="0+", default=None)
    standby_tasks: list[TaskIds] | None = field(Array(TaskIds), "0+", nullable="0+", default=None)
    warmup_tasks: list[TaskIds] | None = field(Array(TaskIds), "0+", nullable="0+", default=None)
    process_id: str | None = field(String, "0+", nullable="0+", default=None)
    user_endpoint: Endpoint | None = field(Endpoint, "0+", nullable="0+", default=None)
    client_tags: list[KeyValue] | None = field(Array(KeyValue), "0+", nullable="0+", default=None)
    task_offsets: list[TaskOffset] | None = field(Array(TaskOffset), "0+", nullable="0+", default=None)
    task_end_offsets: list[TaskOffset] | None = field(Array(TaskOffset), "0+", nullable="0+", default=None)
    shutdown_application: bool = field(Boolean, "0+")


class StreamsGroupHeartbeatResponse(Response, api_key=88, versions="0", flexible="0+"):
    class Status(Struct):
        status_code: int = field(Int8, "0+")
        status_detail: str = field(String, "0+")

    class TaskIds(Struct):
        subtopology_id: str = field(String, "0+")
        partitions: list[int] = field(Array(Int32), "0+")

    class Endpoint(Struct):
        host: str = field(String, "0+")
        port: int = field(UInt16, "0+")

    class TopicPartition(Struct):
        topic: str = field(String, "0+")
        partitions: list[int] = field(Array(Int32), "0+")

    class EndpointToPartitions(Struct):
        user_endpoint: StreamsGroupHeartbeatResponse.Endpoint = field("Endpoint", "0+")
        active_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition] = field(Array("TopicPartition"), "0+")
        standby_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition] = field(Array("TopicPartition"), "0+")

    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", nullable="0+", default=None)
    member_id: str = field(String, "0+")
    member_epoch: int = field(Int32, "0+")
    heartbeat_interval_ms: int = field(Int32, "0+")
    acceptable_recovery_lag: int = field(Int32, "0+")
    task_offset_interval_ms: int = field(Int32, "0+")
    status: list[Status] | None = field(Array(Status), "0+", nullable="0+")
    active_tasks: list[TaskIds] | None = field(Array(TaskIds), "0+", nullable="0+", default=None)
    standby_tasks: list[TaskIds] | None = field(Array(TaskIds), "0+", nullable="0+", default=None)
    warmup_tasks: list[TaskIds] | None = field(Array(TaskIds), "0+", nullable="0+", default=None)
    endpoint_information_epoch: int = field(Int32, "0+")
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = field(
        Array(EndpointToPartitions), "0+", nullable="0+", default=None
    )


class StreamsGroupDescribeRequest(Request["StreamsGroupDescribeResponse"], api_key=89, versions="0", flexible="0+"):
    """Describes streams groups."""

    group_ids: list[str] = field(Array(String), "0+")
    include_authorized_operations: bool = field(Boolean, "0+")


class StreamsGroupDescribeResponse(Response, api_key=89, versions="0", flexible="0+"):
    class KeyValue(Struct):
        key: str = field(String, "0+")
        value: str = field(String, "0+")

    class TopicInfo(Struct):
        name: str = field(String, "0+")
        partitions: int = field(Int32, "0+")
        replication_factor: int = field(Int16, "0+")
        topic_configs: list[StreamsGroupDescribeResponse.KeyValue] = field(Array("KeyValue"), "0+")

    class Subtopology(Struct):
        subtopology_id: str = field(String, "0+")
        source_topics: list[str] = field(Array(String), "0+")
        repartition_sink_topics: list[str] = field(Array(String), "0+")
        state_changelog_topics: list[StreamsGroupDescribeResponse.TopicInfo] = field(Array("TopicInfo"), "0+")
        repartition_source_topics: list[StreamsGroupDescribeResponse.TopicInfo] = field(Array("TopicInfo"), "0+")

    class Topology(Struct):
        epoch: int = field(Int32, "0+")
        subtopologies: list[StreamsGroupDescribeResponse.Subtopology] | None = field(
            Array("Subtopology"), "0+", nullable="0+", default=None
        )

    class Endpoint(Struct):
        host: str = field(String, "0+")
        port: int = field(UInt16, "0+")

    class TaskOffset(Struct):
        subtopology_id: str = field(String, "0+")
        partition: int = field(Int32, "0+")
        offset: int = field(Int64, "0+")

    class TaskIds(Struct):
        subtopology_id: str = field(String, "0+")
        partitions: list[int] = field(Array(Int32), "0+")

    class Assignment(Struct):
        active_tasks: list[StreamsGroupDescribeResponse.TaskIds] = field(Array("TaskIds"), "0+")
        standby_tasks: list[StreamsGroupDescribeResponse.TaskIds] = field(Array("TaskIds"), "0+")
        warmup_tasks: list[StreamsGroupDescribeResponse.TaskIds] = field(Array("TaskIds"), "0+")

    class Member(Struct):
        member_id: str = field(String, "0+")
        member_epoch: int = field(Int32, "0+")
        instance_id: str | None = field(String, "0+", nullable="0+", default=None)
        rack_id: str | None = field(String, "0+", nullable="0+", default=None)
        client_id: str = field(String, "0+")
        client_host: str = field(String, "0+")
        topology_epoch: int = field(Int32, "0+")
        process_id: str = field(String, "0+")
        user_endpoint: StreamsGroupDescribeResponse.Endpoint | None = field(
            "Endpoint", "0+", nullable="0+", default=None
        )
        client_tags: list[StreamsGroupDescribeResponse.KeyValue] = field(Array("KeyValue"), "0+")
        task_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = field(Array("TaskOffset"), "0+")
        task_end_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = field(Array("TaskOffset"), "0+")
        assignment: StreamsGroupDescribeResponse.Assignment = field("Assignment", "0+")
        target_assignment: StreamsGroupDescribeResponse.Assignment = field("Assignment", "0+")
        is_classic: bool = field(Boolean, "0+")

    class DescribedGroup(Struct):
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "0+", nullable="0+", default=None)
        group_id: str = field(String, "0+")
        group_state: str = field(String, "0+")
        group_epoch: int = field(Int32, "0+")
        assignment_epoch: int = field(Int32, "0+")
        topology: StreamsGroupDescribeResponse.Topology | None = field("Topology", "0+", nullable="0+", default=None)
        members: list[StreamsGroupDescribeResponse.Member] = field(Array("Member"), "0+")
        authorized_operations: int = field(Int32, "0+", default=-2147483648)

    throttle_time_ms: int = field(Int32, "0+")
    groups: list[DescribedGroup] = field(Array(DescribedGroup), "0+")
