"""Membership of consumer groups, in the classic protocol and in the one of KIP-848.

Written by tools/generate_protocol.py from Kafka's message specs; do not edit.
"""

from __future__ import annotations

from uuid import UUID

from kafka.protocol._historic import historic_names
from kafka.protocol.api import Request, Response
from kafka.protocol.fields import Array, field
from kafka.protocol.struct import Struct
from kafka.protocol.types import Boolean, Bytes, Int8, Int16, Int32, String, Uuid

__getattr__ = historic_names(__name__)


class JoinGroupRequest(Request["JoinGroupResponse"], api_key=11, versions="0-9", flexible="6+"):
    """Joins a classic group."""

    class JoinGroupRequestProtocol(Struct):
        name: str = field(String, "0+")
        metadata: bytes = field(Bytes, "0+")

    group_id: str = field(String, "0+")
    session_timeout_ms: int = field(Int32, "0+")
    rebalance_timeout_ms: int = field(Int32, "1+", default=-1, ignorable=True)
    member_id: str = field(String, "0+")
    group_instance_id: str | None = field(String, "5+", nullable="5+", default=None)
    protocol_type: str = field(String, "0+")
    protocols: list[JoinGroupRequestProtocol] = field(Array(JoinGroupRequestProtocol), "0+")
    reason: str | None = field(String, "8+", nullable="8+", default=None, ignorable=True)


class JoinGroupResponse(Response, api_key=11, versions="0-9", flexible="6+"):
    class JoinGroupResponseMember(Struct):
        member_id: str = field(String, "0+")
        group_instance_id: str | None = field(String, "5+", nullable="5+", default=None, ignorable=True)
        metadata: bytes = field(Bytes, "0+")

    throttle_time_ms: int = field(Int32, "2+", ignorable=True)
    error_code: int = field(Int16, "0+")
    generation_id: int = field(Int32, "0+", default=-1)
    protocol_type: str | None = field(String, "7+", nullable="7+", default=None, ignorable=True)
    protocol_name: str | None = field(String, "0+", nullable="7+")
    leader: str = field(String, "0+")
    skip_assignment: bool = field(Boolean, "9+")
    member_id: str = field(String, "0+")
    members: list[JoinGroupResponseMember] = field(Array(JoinGroupResponseMember), "0+")


class SyncGroupRequest(Request["SyncGroupResponse"], api_key=14, versions="0-5", flexible="4+"):
    """Hands out or gets the assignment of a classic group."""

    class SyncGroupRequestAssignment(Struct):
        member_id: str = field(String, "0+")
        assignment: bytes = field(Bytes, "0+")

    group_id: str = field(String, "0+")
    generation_id: int = field(Int32, "0+")
    member_id: str = field(String, "0+")
    group_instance_id: str | None = field(String, "3+", nullable="3+", default=None)
    protocol_type: str | None = field(String, "5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = field(String, "5+", nullable="5+", default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = field(Array(SyncGroupRequestAssignment), "0+")


class SyncGroupResponse(Response, api_key=14, versions="0-5", flexible="4+"):
    throttle_time_ms: int = field(Int32, "1+", ignorable=True)
    error_code: int = field(Int16, "0+")
    protocol_type: str | None = field(String, "5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = field(String, "5+", nullable="5+", default=None, ignorable=True)
    assignment: bytes = field(Bytes, "0+")


class HeartbeatRequest(Request["HeartbeatResponse"], api_key=12, versions="0-4", flexible="4+"):
    """Keeps a member of a classic group alive."""

    group_id: str = field(String, "0+")
    generation_id: int = field(Int32, "0+")
    member_id: str = field(String, "0+")
    group_instance_id: str | None = field(String, "3+", nullable="3+", default=None)


class HeartbeatResponse(Response, api_key=12, versions="0-4", flexible="4+"):
    throttle_time_ms: int = field(Int32, "1+", ignorable=True)
    error_code: int = field(Int16, "0+")


class LeaveGroupRequest(Request["LeaveGroupResponse"], api_key=13, versions="0-5", flexible="4+"):
    """Leaves a classic group."""

    class MemberIdentity(Struct):
        member_id: str = field(String, "3+")
        group_instance_id: str | None = field(String, "3+", nullable="3+", default=None)
        reason: str | None = field(String, "5+", nullable="5+", default=None, ignorable=True)

    group_id: str = field(String, "0+")
    member_id: str = field(String, "0-2")
    members: list[MemberIdentity] = field(Array(MemberIdentity), "3+")


class LeaveGroupResponse(Response, api_key=13, versions="0-5", flexible="4+"):
    class MemberResponse(Struct):
        member_id: str = field(String, "3+")
        group_instance_id: str | None = field(String, "3+", nullable="3+")
        error_code: int = field(Int16, "3+")

    throttle_time_ms: int = field(Int32, "1+", ignorable=True)
    error_code: int = field(Int16, "0+")
    members: list[MemberResponse] = field(Array(MemberResponse), "3+")


class ConsumerGroupHeartbeatRequest(
    Request["ConsumerGroupHeartbeatResponse"], api_key=68, versions="0-1", flexible="0+"
):
    """Joins, keeps alive and leaves a consumer group in the protocol of KIP-848."""

    class TopicPartitions(Struct):
        topic_id: UUID = field(Uuid, "0+")
        partitions: list[int] = field(Array(Int32), "0+")

    group_id: str = field(String, "0+")
    member_id: str = field(String, "0+")
    member_epoch: int = field(Int32, "0+")
    instance_id: str | None = field(String, "0+", nullable="0+", default=None)
    rack_id: str | None = field(String, "0+", nullable="0+", default=None)
    rebalance_timeout_ms: int = field(Int32, "0+", default=-1)
    subscribed_topic_names: list[str] | None = field(Array(String), "0+", nullable="0+", default=None)
    subscribed_topic_regex: str | None = field(String, "1+", nullable="1+", default=None)
    server_assignor: str | None = field(String, "0+", nullable="0+", default=None)
    topic_partitions: list[TopicPartitions] | None = field(Array(TopicPartitions), "0+", nullable="0+", default=None)


class ConsumerGroupHeartbeatResponse(Response, api_key=68, versions="0-1", flexible="0+"):
    class TopicPartitions(Struct):
        topic_id: UUID = field(Uuid, "0+")
        partitions: list[int] = field(Array(Int32), "0+")

    class Assignment(Struct):
        topic_partitions: list[ConsumerGroupHeartbeatResponse.TopicPartitions] = field(Array("TopicPartitions"), "0+")

    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", nullable="0+", default=None)
    member_id: str | None = field(String, "0+", nullable="0+", default=None)
    member_epoch: int = field(Int32, "0+")
    heartbeat_interval_ms: int = field(Int32, "0+")
    assignment: Assignment | None = field(Assignment, "0+", nullable="0+", default=None)


class ConsumerGroupDescribeRequest(Request["ConsumerGroupDescribeResponse"], api_key=69, versions="0-1", flexible="0+"):
    """Describes consumer groups of the protocol of KIP-848."""

    group_ids: list[str] = field(Array(String), "0+")
    include_authorized_operations: bool = field(Boolean, "0+")


class ConsumerGroupDescribeResponse(Response, api_key=69, versions="0-1", flexible="0+"):
    class TopicPartitions(Struct):
        topic_id: UUID = field(Uuid, "0+")
        topic_name: str = field(String, "0+")
        partitions: list[int] = field(Array(Int32), "0+")

    class Assignment(Struct):
        topic_partitions: list[ConsumerGroupDescribeResponse.TopicPartitions] = field(Array("TopicPartitions"), "0+")

    class Member(Struct):
        member_id: str = field(String, "0+")
        instance_id: str | None = field(String, "0+", nullable="0+", default=None)
        rack_id: str | None = field(String, "0+", nullable="0+", default=None)
        member_epoch: int = field(Int32, "0+")
        client_id: str = field(String, "0+")
        client_host: str = field(String, "0+")
        subscribed_topic_names: list[str] = field(Array(String), "0+")
        subscribed_topic_regex: str | None = field(String, "0+", nullable="0+", default=None)
        assignment: ConsumerGroupDescribeResponse.Assignment = field("Assignment", "0+")
        target_assignment: ConsumerGroupDescribeResponse.Assignment = field("Assignment", "0+")
        member_type: int = field(Int8, "1+", default=-1, ignorable=True)

    class DescribedGroup(Struct):
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "0+", nullable="0+", default=None)
        group_id: str = field(String, "0+")
        group_state: str = field(String, "0+")
        group_epoch: int = field(Int32, "0+")
        assignment_epoch: int = field(Int32, "0+")
        assignor_name: str = field(String, "0+")
        members: list[ConsumerGroupDescribeResponse.Member] = field(Array("Member"), "0+")
        authorized_operations: int = field(Int32, "0+", default=-2147483648)

    throttle_time_ms: int = field(Int32, "0+")
    groups: list[DescribedGroup] = field(Array(DescribedGroup), "0+")
