"""Share groups (KIP-932).

Written by tools/generate_protocol.py from Kafka's message specs; do not edit.
"""

from __future__ import annotations

from uuid import UUID

from kafka.protocol.api import Request, Response
from kafka.protocol.fields import Array, Buffer, field
from kafka.protocol.struct import Struct
from kafka.protocol.types import Boolean, Int8, Int16, Int32, Int64, Records, String, Uuid


class ShareGroupHeartbeatRequest(
    Request["ShareGroupHeartbeatResponse"], api_key=76, versions="0-1", flexible="0+", unstable="0"
):
    """Joins, keeps alive and leaves a share group."""

    group_id: str = field(String, "0+")
    member_id: str = field(String, "0+")
    member_epoch: int = field(Int32, "0+")
    rack_id: str | None = field(String, "0+", nullable="0+", default=None)
    subscribed_topic_names: list[str] | None = field(Array(String), "0+", nullable="0+", default=None)


class ShareGroupHeartbeatResponse(Response, api_key=76, versions="0-1", flexible="0+", unstable="0"):
    class TopicPartitions(Struct):
        topic_id: UUID = field(Uuid, "0+")
        partitions: list[int] = field(Array(Int32), "0+")

    class Assignment(Struct):
        topic_partitions: list[ShareGroupHeartbeatResponse.TopicPartitions] = field(Array("TopicPartitions"), "0+")

    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", nullable="0+", default=None)
    member_id: str | None = field(String, "0+", nullable="0+", default=None)
    member_epoch: int = field(Int32, "0+")
    heartbeat_interval_ms: int = field(Int32, "0+")
    assignment: Assignment | None = field(Assignment, "0+", nullable="0+", default=None)


class ShareGroupDescribeRequest(
    Request["ShareGroupDescribeResponse"], api_key=77, versions="0-1", flexible="0+", unstable="0"
):
    """Describes share groups."""

    group_ids: list[str] = field(Array(String), "0+")
    include_authorized_operations: bool = field(Boolean, "0+")


class ShareGroupDescribeResponse(Response, api_key=77, versions="0-1", flexible="0+", unstable="0"):
    class TopicPartitions(Struct):
        topic_id: UUID = field(Uuid, "0+")
        topic_name: str = field(String, "0+")
        partitions: list[int] = field(Array(Int32), "0+")

    class Assignment(Struct):
        topic_partitions: list[ShareGroupDescribeResponse.TopicPartitions] = field(Array("TopicPartitions"), "0+")

    class Member(Struct):
        member_id: str = field(String, "0+")
        rack_id: str | None = field(String, "0+", nullable="0+", default=None)
        member_epoch: int = field(Int32, "0+")
        client_id: str = field(String, "0+")
        client_host: str = field(String, "0+")
        subscribed_topic_names: list[str] = field(Array(String), "0+")
        assignment: ShareGroupDescribeResponse.Assignment = field("Assignment", "0+")

    class DescribedGroup(Struct):
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "0+", nullable="0+", default=None)
        group_id: str = field(String, "0+")
        group_state: str = field(String, "0+")
        group_epoch: int = field(Int32, "0+")
        assignment_epoch: int = field(Int32, "0+")
        assignor_name: str = field(String, "0+")
        members: list[ShareGroupDescribeResponse.Member] = field(Array("Member"), "0+")
        authorized_operations: int = field(Int32, "0+", default=-2147483648)

    throttle_time_ms: int = field(Int32, "0+")
    groups: list[DescribedGroup] = field(Array(DescribedGroup), "0+")


class ShareFetchRequest(Request["ShareFetchResponse"], api_key=78, versions="0-2", flexible="0+", unstable="0"):
    """Acquires records for a member of a share group, and acknowledges others."""

    class AcknowledgementBatch(Struct):
        first_offset: int = field(Int64, "0+")
        last_offset: int = field(Int64, "0+")
        acknowledge_types: list[int] = field(Array(Int8), "0+")

    class FetchPartition(Struct):
        partition_index: int = field(Int32, "0+")
        partition_max_bytes: int = field(Int32, "0")
        acknowledgement_batches: list[ShareFetchRequest.AcknowledgementBatch] = field(
            Array("AcknowledgementBatch"), "0+"
        )

    class FetchTopic(Struct):
        topic_id: UUID = field(Uuid, "0+", ignorable=True)
        partitions: list[ShareFetchRequest.FetchPartition] = field(Array("FetchPartition"), "0+")

    class ForgottenTopic(Struct):
        topic_id: UUID = field(Uuid, "0+", ignorable=True)
        partitions: list[int] = field(Array(Int32), "0+")

    group_id: str | None = field(String, "0+", nullable="0+", default=None)
    member_id: str | None = field(String, "0+", nullable="0+")
    share_session_epoch: int = field(Int32, "0+")
    max_wait_ms: int = field(Int32, "0+")
    min_bytes: int = field(Int32, "0+")
    max_bytes: int = field(Int32, "0+", default=2147483647, ignorable=True)
    max_records: int = field(Int32, "1+")
    batch_size: int = field(Int32, "1+")
    share_acquire_mode: int = field(Int8, "2+", ignorable=True)
    is_renew_ack: bool = field(Boolean, "2+")
    topics: list[FetchTopic] = field(Array(FetchTopic), "0+")
    forgotten_topics_data: list[ForgottenTopic] = field(Array(ForgottenTopic), "0+")


class ShareFetchResponse(Response, api_key=78, versions="0-2", flexible="0+", unstable="0"):
    class LeaderIdAndEpoch(Struct):
        leader_id: int = field(Int32, "0+")
        leader_epoch: int = field(Int32, "0+")

    class AcquiredRecords(Struct):
        first_offset: int = field(Int64, "0+")
        last_offset: int = field(Int64, "0+")
        delivery_count: int = field(Int16, "0+")

    class PartitionData(Struct):
        partition_index: int = field(Int32, "0+")
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "0+", nullable="0+", default=None)
        acknowledge_error_code: int = field(Int16, "0+")
        acknowledge_error_message: str | None = field(String, "0+", nullable="0+", default=None)
        current_leader: ShareFetchResponse.LeaderIdAndEpoch = field("LeaderIdAndEpoch", "0+")
        records: Buffer | None = field(Records, "0+", nullable="0")
        acquired_records: list[ShareFetchResponse.AcquiredRecords] = field(Array("AcquiredRecords"), "0+")

    class ShareFetchableTopicResponse(Struct):
        topic_id: UUID = field(Uuid, "0+", ignorable=True)
        partitions: list[ShareFetchResponse.PartitionData] = field(Array("PartitionData"), "0+")

    class NodeEndpoint(Struct):
        node_id: int = field(Int32, "0+")
        host: str = field(String, "0+")
        port: int = field(Int32, "0+")
        rack: str | None = field(String, "0+", nullable="0+", default=None)

    throttle_time_ms: int = field(Int32, "0+", ignorable=True)
    error_code: int = field(Int16, "0+", ignorable=True)
    error_message: str | None = field(String, "0+", nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = field(Int32, "1+")
    responses: list[ShareFetchableTopicResponse] = field(Array(ShareFetchableTopicResponse), "0+")
    node_endpoints: list[NodeEndpoint] = field(Array(NodeEndpoint), "0+")


class ShareAcknowledgeRequest(
    Request["ShareAcknowledgeResponse"], api_key=79, versions="0-2", flexible="0+", unstable="0"
):
    """Acknowledges records of a share group."""

    class AcknowledgementBatch(Struct):
        first_offset: int = field(Int64, "0+")
        last_offset: int = field(Int64, "0+")
        acknowledge_types: list[int] = field(Array(Int8), "0+")

    class AcknowledgePartition(Struct):
        partition_index: int = field(Int32, "0+")
        acknowledgement_batches: list[ShareAcknowledgeRequest.AcknowledgementBatch] = field(
            Array("AcknowledgementBatch"), "0+"
        )

    class AcknowledgeTopic(Struct):
        topic_id: UUID = field(Uuid, "0+")
        partitions: list[ShareAcknowledgeRequest.AcknowledgePartition] = field(Array("AcknowledgePartition"), "0+")

    group_id: str | None = field(String, "0+", nullable="0+", default=None)
    member_id: str | None = field(String, "0+", nullable="0+")
    share_session_epoch: int = field(Int32, "0+")
    is_renew_ack: bool = field(Boolean, "2+")
    topics: list[AcknowledgeTopic] = field(Array(AcknowledgeTopic), "0+")


class ShareAcknowledgeResponse(Response, api_key=79, versions="0-2", flexible="0+", unstable="0"):
    class LeaderIdAndEpoch(Struct):
        leader_id: int = field(Int32, "0+")
        leader_epoch: int = field(Int32, "0+")

    class PartitionData(Struct):
        partition_index: int = field(Int32, "0+")
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "0+", nullable="0+", default=None)
        current_leader: ShareAcknowledgeResponse.LeaderIdAndEpoch = field("LeaderIdAndEpoch", "0+")

    class ShareAcknowledgeTopicResponse(Struct):
        topic_id: UUID = field(Uuid, "0+", ignorable=True)
        partitions: list[ShareAcknowledgeResponse.PartitionData] = field(Array("PartitionData"), "0+")

    class NodeEndpoint(Struct):
        node_id: int = field(Int32, "0+")
        host: str = field(String, "0+")
        port: int = field(Int32, "0+")
        rack: str | None = field(String, "0+", nullable="0+", default=None)

    throttle_time_ms: int = field(Int32, "0+", ignorable=True)
    error_code: int = field(Int16, "0+", ignorable=True)
    error_message: str | None = field(String, "0+", nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = field(Int32, "2+", ignorable=True)
    responses: list[ShareAcknowledgeTopicResponse] = field(Array(ShareAcknowledgeTopicResponse), "0+")
    node_endpoints: list[NodeEndpoint] = field(Array(NodeEndpoint), "0+")


class DescribeShareGroupOffsetsRequest(
    Request["DescribeShareGroupOffsetsResponse"], api_key=90, versions="0-1", flexible="0+"
):
    """Lists the offsets of share groups."""

    class DescribeShareGroupOffsetsRequestTopic(Struct):
        topic_name: str = field(String, "0+")
        partitions: list[int] = field(Array(Int32), "0+")

    class DescribeShareGroupOffsetsRequestGroup(Struct):
        group_id: str = field(String, "0+")
        topics: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic] | None = field(
            Array("DescribeShareGroupOffsetsRequestTopic"), "0+", nullable="0+"
        )

    groups: list[DescribeShareGroupOffsetsRequestGroup] = field(Array(DescribeShareGroupOffsetsRequestGroup), "0+")


class DescribeShareGroupOffsetsResponse(Response, api_key=90, versions="0-1", flexible="0+"):
    class DescribeShareGroupOffsetsResponsePartition(Struct):
        partition_index: int = field(Int32, "0+")
        start_offset: int = field(Int64, "0+")
        leader_epoch: int = field(Int32, "0+")
        lag: int = field(Int64, "1+", default=-1, ignorable=True)
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "0+", nullable="0+", default=None)

    class DescribeShareGroupOffsetsResponseTopic(Struct):
        topic_name: str = field(String, "0+")
        topic_id: UUID = field(Uuid, "0+")
        partitions: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition] = field(
            Array("DescribeShareGroupOffsetsResponsePartition"), "0+"
        )

    class DescribeShareGroupOffsetsResponseGroup(Struct):
        group_id: str = field(String, "0+")
        topics: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic] = field(
            Array("DescribeShareGroupOffsetsResponseTopic"), "0+"
        )
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "0+", nullable="0+", default=None)

    throttle_time_ms: int = field(Int32, "0+")
    groups: list[DescribeShareGroupOffsetsResponseGroup] = field(Array(DescribeShareGroupOffsetsResponseGroup), "0+")


class AlterShareGroupOffsetsRequest(Request["AlterShareGroupOffsetsResponse"], api_key=91, versions="0", flexible="0+"):
    """Sets the start offsets of a share group."""

    class AlterShareGroupOffsetsRequestPartition(Struct):
        partition_index: int = field(Int32, "0+")
        start_offset: int = field(Int64, "0+")

    class AlterShareGroupOffsetsRequestTopic(Struct):
        topic_name: str = field(String, "0+")
        partitions: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition] = field(
            Array("AlterShareGroupOffsetsRequestPartition"), "0+"
        )

    group_id: str = field(String, "0+")
    topics: list[AlterShareGroupOffsetsRequestTopic] = field(Array(AlterShareGroupOffsetsRequestTopic), "0+")


class AlterShareGroupOffsetsResponse(Response, api_key=91, versions="0", flexible="0+"):
    class AlterShareGroupOffsetsResponsePartition(Struct):
        partition_index: int = field(Int32, "0+")
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "0+", nullable="0+", default=None)

    class AlterShareGroupOffsetsResponseTopic(Struct):
        topic_name: str = field(String, "0+")
        topic_id: UUID = field(Uuid, "0+")
        partitions: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition] = field(
            Array("AlterShareGroupOffsetsResponsePartition"), "0+"
        )

    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", nullable="0+", default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic] = field(Array(AlterShareGroupOffsetsResponseTopic), "0+")


class DeleteShareGroupOffsetsRequest(
    Request["DeleteShareGroupOffsetsResponse"], api_key=92, versions="0", flexible="0+"
):
    """Deletes the offsets of a share group."""

    class DeleteShareGroupOffsetsRequestTopic(Struct):
        topic_name: str = field(String, "0+")

    group_id: str = field(String, "0+")
    topics: list[DeleteShareGroupOffsetsRequestTopic] = field(Array(DeleteShareGroupOffsetsRequestTopic), "0+")


class DeleteShareGroupOffsetsResponse(Response, api_key=92, versions="0", flexible="0+"):
    class DeleteShareGroupOffsetsResponseTopic(Struct):
        topic_name: str = field(String, "0+")
        topic_id: UUID = field(Uuid, "0+")
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "0+", nullable="0+", default=None)

    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", nullable="0+", default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = field(Array(DeleteShareGroupOffsetsResponseTopic), "0+")
