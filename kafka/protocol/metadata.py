"""Leaders, topics, partitions and brokers.

Written by tools/generate_protocol.py from Kafka's message specs; do not edit.
"""

from __future__ import annotations

from uuid import UUID

from kafka.protocol._historic import historic_names
from kafka.protocol.api import Request, Response
from kafka.protocol.fields import Array, field
from kafka.protocol.struct import Struct
from kafka.protocol.types import Boolean, Int8, Int16, Int32, String, Uuid

__getattr__ = historic_names(__name__)


class MetadataRequest(Request["MetadataResponse"], api_key=3, versions="0-13", flexible="9+"):
    """Asks for brokers, topics, partitions and their leaders."""

    class MetadataRequestTopic(Struct):
        topic_id: UUID = field(Uuid, "10+", ignorable=True)
        name: str | None = field(String, "0+", nullable="10+")

    topics: list[MetadataRequestTopic] | None = field(Array(MetadataRequestTopic), "0+", nullable="1+")
    allow_auto_topic_creation: bool = field(Boolean, "4+", default=True)
    include_cluster_authorized_operations: bool = field(Boolean, "8-10")
    include_topic_authorized_operations: bool = field(Boolean, "8+")


class MetadataResponse(Response, api_key=3, versions="0-13", flexible="9+"):
    class MetadataResponseBroker(Struct):
        node_id: int = field(Int32, "0+")
        host: str = field(String, "0+")
        port: int = field(Int32, "0+")
        rack: str | None = field(String, "1+", nullable="1+", default=None, ignorable=True)

    class MetadataResponsePartition(Struct):
        error_code: int = field(Int16, "0+")
        partition_index: int = field(Int32, "0+")
        leader_id: int = field(Int32, "0+")
        leader_epoch: int = field(Int32, "7+", default=-1, ignorable=True)
        replica_nodes: list[int] = field(Array(Int32), "0+")
        isr_nodes: list[int] = field(Array(Int32), "0+")
        offline_replicas: list[int] = field(Array(Int32), "5+", ignorable=True)

    class MetadataResponseTopic(Struct):
        error_code: int = field(Int16, "0+")
        name: str | None = field(String, "0+", nullable="12+")
        topic_id: UUID = field(Uuid, "10+", ignorable=True)
        is_internal: bool = field(Boolean, "1+", ignorable=True)
        partitions: list[MetadataResponse.MetadataResponsePartition] = field(Array("MetadataResponsePartition"), "0+")
        topic_authorized_operations: int = field(Int32, "8+", default=-2147483648)

    throttle_time_ms: int = field(Int32, "3+", ignorable=True)
    brokers: list[MetadataResponseBroker] = field(Array(MetadataResponseBroker), "0+")
    cluster_id: str | None = field(String, "2+", nullable="2+", default=None, ignorable=True)
    controller_id: int = field(Int32, "1+", default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = field(Array(MetadataResponseTopic), "0+")
    cluster_authorized_operations: int = field(Int32, "8-10", default=-2147483648)
    error_code: int = field(Int16, "13+", ignorable=True)


class DescribeClusterRequest(Request["DescribeClusterResponse"], api_key=60, versions="0-2", flexible="0+"):
    """Lists the brokers or controllers of the cluster."""

    include_cluster_authorized_operations: bool = field(Boolean, "0+")
    endpoint_type: int = field(Int8, "1+", default=1)
    include_fenced_brokers: bool = field(Boolean, "2+")


class DescribeClusterResponse(Response, api_key=60, versions="0-2", flexible="0+"):
    class DescribeClusterBroker(Struct):
        broker_id: int = field(Int32, "0+")
        host: str = field(String, "0+")
        port: int = field(Int32, "0+")
        rack: str | None = field(String, "0+", nullable="0+", default=None)
        is_fenced: bool = field(Boolean, "2+")

    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", nullable="0+", default=None)
    endpoint_type: int = field(Int8, "1+", default=1)
    cluster_id: str = field(String, "0+")
    controller_id: int = field(Int32, "0+", default=-1)
    brokers: list[DescribeClusterBroker] = field(Array(DescribeClusterBroker), "0+")
    cluster_authorized_operations: int = field(Int32, "0+", default=-2147483648)


class DescribeTopicPartitionsRequest(
    Request["DescribeTopicPartitionsResponse"], api_key=75, versions="0", flexible="0+"
):
    """Describes topics page by page."""

    class TopicRequest(Struct):
        name: str = field(String, "0+")

    class Cursor(Struct):
        topic_name: str = field(String, "0+")
        partition_index: int = field(Int32, "0+")

    topics: list[TopicRequest] = field(Array(TopicRequest), "0+")
    response_partition_limit: int = field(Int32, "0+", default=2000)
    cursor: Cursor | None = field(Cursor, "0+", nullable="0+", default=None)


class DescribeTopicPartitionsResponse(Response, api_key=75, versions="0", flexible="0+"):
    class DescribeTopicPartitionsResponsePartition(Struct):
        error_code: int = field(Int16, "0+")
        partition_index: int = field(Int32, "0+")
        leader_id: int = field(Int32, "0+")
        leader_epoch: int = field(Int32, "0+", default=-1, ignorable=True)
        replica_nodes: list[int] = field(Array(Int32), "0+")
        isr_nodes: list[int] = field(Array(Int32), "0+")
        eligible_leader_replicas: list[int] | None = field(Array(Int32), "0+", nullable="0+", default=None)
        last_known_elr: list[int] | None = field(Array(Int32), "0+", nullable="0+", default=None)
        offline_replicas: list[int] = field(Array(Int32), "0+", ignorable=True)

    class DescribeTopicPartitionsResponseTopic(Struct):
        error_code: int = field(Int16, "0+")
        name: str | None = field(String, "0+", nullable="0+")
        topic_id: UUID = field(Uuid, "0+", ignorable=True)
        is_internal: bool = field(Boolean, "0+", ignorable=True)
        partitions: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition] = field(
            Array("DescribeTopicPartitionsResponsePartition"), "0+"
        )
        topic_authorized_operations: int = field(Int32, "0+", default=-2147483648)

    class Cursor(Struct):
        topic_name: str = field(String, "0+")
        partition_index: int = field(Int32, "0+")

    throttle_time_ms: int = field(Int32, "0+", ignorable=True)
    topics: list[DescribeTopicPartitionsResponseTopic] = field(Array(DescribeTopicPartitionsResponseTopic), "0+")
    next_cursor: Cursor | None = field(Cursor, "0+", nullable="0+", default=None)
