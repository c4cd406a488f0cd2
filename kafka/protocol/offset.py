"""Finding offsets by time or by leader epoch.

Written by tools/generate_protocol.py from Kafka's message specs; do not edit.
"""

from __future__ import annotations

from kafka.protocol._historic import historic_names
from kafka.protocol.api import Request, Response
from kafka.protocol.fields import Array, field
from kafka.protocol.struct import Struct
from kafka.protocol.types import Int8, Int16, Int32, Int64, String

__getattr__ = historic_names(__name__)


class ListOffsetsRequest(Request["ListOffsetsResponse"], api_key=2, versions="0-11", flexible="6+"):
    """Finds offsets by timestamp, or the first and last."""

    class ListOffsetsPartition(Struct):
        partition_index: int = field(Int32, "0+")
        current_leader_epoch: int = field(Int32, "4+", default=-1, ignorable=True)
        timestamp: int = field(Int64, "0+")
        max_num_offsets: int = field(Int32, "0", default=1)

    class ListOffsetsTopic(Struct):
        name: str = field(String, "0+")
        partitions: list[ListOffsetsRequest.ListOffsetsPartition] = field(Array("ListOffsetsPartition"), "0+")

    replica_id: int = field(Int32, "0+")
    isolation_level: int = field(Int8, "2+")
    topics: list[ListOffsetsTopic] = field(Array(ListOffsetsTopic), "0+")
    timeout_ms: int = field(Int32, "10+", ignorable=True)


class ListOffsetsResponse(Response, api_key=2, versions="0-11", flexible="6+"):
    class ListOffsetsPartitionResponse(Struct):
        partition_index: int = field(Int32, "0+")
        error_code: int = field(Int16, "0+")
        old_style_offsets: list[int] = field(Array(Int64), "0")
        timestamp: int = field(Int64, "1+", default=-1)
        offset: int = field(Int64, "1+", default=-1)
        leader_epoch: int = field(Int32, "4+", default=-1)

    class ListOffsetsTopicResponse(Struct):
        name: str = field(String, "0+")
        partitions: list[ListOffsetsResponse.ListOffsetsPartitionResponse] = field(
            Array("ListOffsetsPartitionResponse"), "0+"
        )

    throttle_time_ms: int = field(Int32, "2+", ignorable=True)
    topics: list[ListOffsetsTopicResponse] = field(Array(ListOffsetsTopicResponse), "0+")


class OffsetForLeaderEpochRequest(Request["OffsetForLeaderEpochResponse"], api_key=23, versions="0-4", flexible="4+"):
    """Finds where the records of a leader epoch end."""

    class OffsetForLeaderPartition(Struct):
        partition: int = field(Int32, "0+")
        current_leader_epoch: int = field(Int32, "2+", default=-1, ignorable=True)
        leader_epoch: int = field(Int32, "0+")

    class OffsetForLeaderTopic(Struct):
        topic: str = field(String, "0+")
        partitions: list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition] = field(
            Array("OffsetForLeaderPartition"), "0+"
        )

    replica_id: int = field(Int32, "3+", default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = field(Array(OffsetForLeaderTopic), "0+")


class OffsetForLeaderEpochResponse(Response, api_key=23, versions="0-4", flexible="4+"):
    class EpochEndOffset(Struct):
        error_code: int = field(Int16, "0+")
        partition: int = field(Int32, "0+")
        leader_epoch: int = field(Int32, "1+", default=-1, ignorable=True)
        end_offset: int = field(Int64, "0+", default=-1)

    class OffsetForLeaderTopicResult(Struct):
        topic: str = field(String, "0+")
        partitions: list[OffsetForLeaderEpochResponse.EpochEndOffset] = field(Array("EpochEndOffset"), "0+")

    throttle_time_ms: int = field(Int32, "2+", ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = field(Array(OffsetForLeaderTopicResult), "0+")
