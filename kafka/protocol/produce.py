"""Appending records.

Written by tools/generate_protocol.py from Kafka's message specs; do not edit.
"""

from __future__ import annotations

from uuid import UUID

from kafka.protocol._historic import historic_names
from kafka.protocol.api import Request, Response
from kafka.protocol.fields import Array, Buffer, field
from kafka.protocol.struct import Struct
from kafka.protocol.types import Int16, Int32, Int64, Records, String, Uuid

__getattr__ = historic_names(__name__)


class ProduceRequest(Request["ProduceResponse"], api_key=0, versions="0-13", flexible="9+"):
    """Appends record batches to partitions."""

    class PartitionProduceData(Struct):
        index: int = field(Int32, "0+")
        records: Buffer | None = field(Records, "0+", nullable="0+")

    class TopicProduceData(Struct):
        name: str = field(String, "0-12", ignorable=True)
        topic_id: UUID = field(Uuid, "13+", ignorable=True)
        partition_data: list[ProduceRequest.PartitionProduceData] = field(Array("PartitionProduceData"), "0+")

    transactional_id: str | None = field(String, "3+", nullable="3+", default=None)
    acks: int = field(Int16, "0+")
    timeout_ms: int = field(Int32, "0+")
    topic_data: list[TopicProduceData] = field(Array(TopicProduceData), "0+")


class ProduceResponse(Response, api_key=0, versions="0-13", flexible="9+"):
    class BatchIndexAndErrorMessage(Struct):
        batch_index: int = field(Int32, "8+")
        batch_index_error_message: str | None = field(String, "8+", nullable="8+", default=None)

    class LeaderIdAndEpoch(Struct):
        leader_id: int = field(Int32, "10+", default=-1)
        leader_epoch: int = field(Int32, "10+", default=-1)

    class PartitionProduceResponse(Struct):
        index: int = field(Int32, "0+")
        error_code: int = field(Int16, "0+")
        base_offset: int = field(Int64, "0+")
        log_append_time_ms: int = field(Int64, "2+", default=-1, ignorable=True)
        log_start_offset: int = field(Int64, "5+", default=-1, ignorable=True)
        record_errors: list[ProduceResponse.BatchIndexAndErrorMessage] = field(
            Array("BatchIndexAndErrorMessage"), "8+", ignorable=True
        )
        error_message: str | None = field(String, "8+", nullable="8+", default=None, ignorable=True)
        current_leader: ProduceResponse.LeaderIdAndEpoch = field("LeaderIdAndEpoch", "10+", tag=0)

    class TopicProduceResponse(Struct):
        name: str = field(String, "0-12", ignorable=True)
        topic_id: UUID = field(Uuid, "13+", ignorable=True)
        partition_responses: list[ProduceResponse.PartitionProduceResponse] = field(
            Array("PartitionProduceResponse"), "0+"
        )

    class NodeEndpoint(Struct):
        node_id: int = field(Int32, "10+")
        host: str = field(String, "10+")
        port: int = field(Int32, "10+")
        rack: str | None = field(String, "10+", nullable="10+", default=None)

    responses: list[TopicProduceResponse] = field(Array(TopicProduceResponse), "0+")
    throttle_time_ms: int = field(Int32, "1+", ignorable=True)
    node_endpoints: list[NodeEndpoint] = field(Array(NodeEndpoint), "10+", tag=0)
