"""Committed offsets and the coordinators that keep them.

Written by tools/generate_protocol.py from Kafka's message specs; do not edit.
"""

from __future__ import annotations

from uuid import UUID

from kafka.protocol._historic import historic_names
from kafka.protocol.api import Request, Response
from kafka.protocol.fields import Array, field
from kafka.protocol.struct import Struct
from kafka.protocol.types import Boolean, Int8, Int16, Int32, Int64, String, Uuid

__getattr__ = historic_names(__name__)


class OffsetCommitRequest(Request["OffsetCommitResponse"], api_key=8, versions="0-10", flexible="8+"):
    """Commits offsets of a group."""

    class OffsetCommitRequestPartition(Struct):
        partition_index: int = field(Int32, "0+")
        committed_offset: int = field(Int64, "0+")
        committed_leader_epoch: int = field(Int32, "6+", default=-1, ignorable=True)
        commit_timestamp: int = field(Int64, "1", default=-1)
        committed_metadata: str | None = field(String, "0+", nullable="0+")

    class OffsetCommitRequestTopic(Struct):
        name: str = field(String, "0-9", ignorable=True)
        topic_id: UUID = field(Uuid, "10+", ignorable=True)
        partitions: list[OffsetCommitRequest.OffsetCommitRequestPartition] = field(
            Array("OffsetCommitRequestPartition"), "0+"
        )

    group_id: str = field(String, "0+")
    generation_id_or_member_epoch: int = field(Int32, "1+", default=-1, ignorable=True)
    member_id: str = field(String, "1+", ignorable=True)
    group_instance_id: str | None = field(String, "7+", nullable="7+", default=None)
    retention_time_ms: int = field(Int64, "2-4", default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = field(Array(OffsetCommitRequestTopic), "0+")


class OffsetCommitResponse(Response, api_key=8, versions="0-10", flexible="8+"):
    class OffsetCommitResponsePartition(Struct):
        partition_index: int = field(Int32, "0+")
        error_code: int = field(Int16, "0+")

    class OffsetCommitResponseTopic(Struct):
        name: str = field(String, "0-9", ignorable=True)
        topic_id: UUID = field(Uuid, "10+", ignorable=True)
        partitions: list[OffsetCommitResponse.OffsetCommitResponsePartition] = field(
            Array("OffsetCommitResponsePartition"), "0+"
        )

    throttle_time_ms: int = field(Int32, "3+", ignorable=True)
    topics: list[OffsetCommitResponseTopic] = field(Array(OffsetCommitResponseTopic), "0+")


class OffsetFetchRequest(Request["OffsetFetchResponse"], api_key=9, versions="0-10", flexible="6+"):
    """Reads committed offsets of groups."""

    class OffsetFetchRequestTopic(Struct):
        name: str = field(String, "0-7")
        partition_indexes: list[int] = field(Array(Int32), "0-7")

    class OffsetFetchRequestTopics(Struct):
        name: str = field(String, "8-9", ignorable=True)
        topic_id: UUID = field(Uuid, "10+", ignorable=True)
        partition_indexes: list[int] = field(Array(Int32), "8+")

    class OffsetFetchRequestGroup(Struct):
        group_id: str = field(String, "8+")
        member_id: str | None = field(String, "9+", nullable="9+", default=None, ignorable=True)
        member_epoch: int = field(Int32, "9+", default=-1, ignorable=True)
        topics: list[OffsetFetchRequest.OffsetFetchRequestTopics] | None = field(
            Array("OffsetFetchRequestTopics"), "8+", nullable="8+"
        )

    group_id: str = field(String, "0-7")
    topics: list[OffsetFetchRequestTopic] | None = field(Array(OffsetFetchRequestTopic), "0-7", nullable="2-7")
    groups: list[OffsetFetchRequestGroup] = field(Array(OffsetFetchRequestGroup), "8+")
    require_stable: bool = field(Boolean, "7+")


class OffsetFetchResponse(Response, api_key=9, versions="0-10", flexible="6+"):
    class OffsetFetchResponsePartition(Struct):
        partition_index: int = field(Int32, "0-7")
        committed_offset: int = field(Int64, "0-7")
        committed_leader_epoch: int = field(Int32, "5-7", default=-1, ignorable=True)
        metadata: str | None = field(String, "0-7", nullable="0-7")
        error_code: int = field(Int16, "0-7")

    class OffsetFetchResponseTopic(Struct):
        name: str = field(String, "0-7")
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartition] = field(
            Array("OffsetFetchResponsePartition"), "0-7"
        )

    class OffsetFetchResponsePartitions(Struct):
        partition_index: int = field(Int32, "8+")
        committed_offset: int = field(Int64, "8+")
        committed_leader_epoch: int = field(Int32, "8+", default=-1, ignorable=True)
        metadata: str | None = field(String, "8+", nullable="8+")
        error_code: int = field(Int16, "8+")

    class OffsetFetchResponseTopics(Struct):
        name: str = field(String, "8-9", ignorable=True)
        topic_id: UUID = field(Uuid, "10+", ignorable=True)
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartitions] = field(
            Array("OffsetFetchResponsePartitions"), "8+"
        )

    class OffsetFetchResponseGroup(Struct):
        group_id: str = field(String, "8+")
        topics: list[OffsetFetchResponse.OffsetFetchResponseTopics] = field(Array("OffsetFetchResponseTopics"), "8+")
        error_code: int = field(Int16, "8+")

    throttle_time_ms: int = field(Int32, "3+", ignorable=True)
    topics: list[OffsetFetchResponseTopic] = field(Array(OffsetFetchResponseTopic), "0-7")
    error_code: int = field(Int16, "2-7", ignorable=True)
    groups: list[OffsetFetchResponseGroup] = field(Array(OffsetFetchResponseGroup), "8+")


class OffsetDeleteRequest(Request["OffsetDeleteResponse"], api_key=47, versions="0", flexible="none"):
    """Deletes committed offsets of a group."""

    class OffsetDeleteRequestPartition(Struct):
        partition_index: int = field(Int32, "0+")

    class OffsetDeleteRequestTopic(Struct):
        name: str = field(String, "0+")
        partitions: list[OffsetDeleteRequest.OffsetDeleteRequestPartition] = field(
            Array("OffsetDeleteRequestPartition"), "0+"
        )

    group_id: str = field(String, "0+")
    topics: list[OffsetDeleteRequestTopic] = field(Array(OffsetDeleteRequestTopic), "0+")


class OffsetDeleteResponse(Response, api_key=47, versions="0", flexible="none"):
    class OffsetDeleteResponsePartition(Struct):
        partition_index: int = field(Int32, "0+")
        error_code: int = field(Int16, "0+")

    class OffsetDeleteResponseTopic(Struct):
        name: str = field(String, "0+")
        partitions: list[OffsetDeleteResponse.OffsetDeleteResponsePartition] = field(
            Array("OffsetDeleteResponsePartition"), "0+"
        )

    error_code: int = field(Int16, "0+")
    throttle_time_ms: int = field(Int32, "0+", ignorable=True)
    topics: list[OffsetDeleteResponseTopic] = field(Array(OffsetDeleteResponseTopic), "0+")


class FindCoordinatorRequest(Request["FindCoordinatorResponse"], api_key=10, versions="0-6", flexible="3+"):
    """Finds the broker that coordinates a group, a transaction or a share group."""

    key: str = field(String, "0-3")
    key_type: int = field(Int8, "1+")
    coordinator_keys: list[str] = field(Array(String), "4+")


class FindCoordinatorResponse(Response, api_key=10, versions="0-6", flexible="3+"):
    class Coordinator(Struct):
        key: str = field(String, "4+")
        node_id: int = field(Int32, "4+")
        host: str = field(String, "4+")
        port: int = field(Int32, "4+")
        error_code: int = field(Int16, "4+")
        error_message: str | None = field(String, "4+", nullable="4+", ignorable=True)

    throttle_time_ms: int = field(Int32, "1+", ignorable=True)
    error_code: int = field(Int16, "0-3")
    error_message: str | None = field(String, "1-3", nullable="1-3", ignorable=True)
    node_id: int = field(Int32, "0-3")
    host: str = field(String, "0-3")
    port: int = field(Int32, "0-3")
    coordinators: list[Coordinator] = field(Array(Coordinator), "4+")
