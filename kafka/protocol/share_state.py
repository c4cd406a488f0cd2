"""The state of share groups, between brokers.

Written by tools/generate_protocol.py from Kafka's message specs; do not edit.
"""

from __future__ import annotations

from uuid import UUID

from kafka.protocol.api import Request, Response
from kafka.protocol.fields import Array, field
from kafka.protocol.struct import Struct
from kafka.protocol.types import Int8, Int16, Int32, Int64, String, Uuid


class InitializeShareGroupStateRequest(
    Request["InitializeShareGroupStateResponse"], api_key=83, versions="0", flexible="0+"
):
    """Creates the state of a share group."""

    class PartitionData(Struct):
        partition: int = field(Int32, "0+")
        state_epoch: int = field(Int32, "0+")
        start_offset: int = field(Int64, "0+")

    class InitializeStateData(Struct):
        topic_id: UUID = field(Uuid, "0+")
        partitions: list[InitializeShareGroupStateRequest.PartitionData] = field(Array("PartitionData"), "0+")

    group_id: str = field(String, "0+")
    topics: list[InitializeStateData] = field(Array(InitializeStateData), "0+")


class InitializeShareGroupStateResponse(Response, api_key=83, versions="0", flexible="0+"):
    class PartitionResult(Struct):
        partition: int = field(Int32, "0+")
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "0+", nullable="0+", default=None)

    class InitializeStateResult(Struct):
        topic_id: UUID = field(Uuid, "0+")
        partitions: list[InitializeShareGroupStateResponse.PartitionResult] = field(Array("PartitionResult"), "0+")

    results: list[InitializeStateResult] = field(Array(InitializeStateResult), "0+")


class ReadShareGroupStateRequest(Request["ReadShareGroupStateResponse"], api_key=84, versions="0", flexible="0+"):
    """Reads the state of a share group."""

    class PartitionData(Struct):
        partition: int = field(Int32, "0+")
        leader_epoch: int = field(Int32, "0+")

    class ReadStateData(Struct):
        topic_id: UUID = field(Uuid, "0+")
        partitions: list[ReadShareGroupStateRequest.PartitionData] = field(Array("PartitionData"), "0+")

    group_id: str = field(String, "0+")
    topics: list[ReadStateData] = field(Array(ReadStateData), "0+")


class ReadShareGroupStateResponse(Response, api_key=84, versions="0", flexible="0+"):
    class StateBatch(Struct):
        first_offset: int = field(Int64, "0+")
        last_offset: int = field(Int64, "0+")
        delivery_state: int = field(Int8, "0+")
        delivery_count: int = field(Int16, "0+")

    class PartitionResult(Struct):
        partition: int = field(Int32, "0+")
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "0+", nullable="0+", default=None)
        state_epoch: int = field(Int32, "0+")
        start_offset: int = field(Int64, "0+")
        state_batches: list[ReadShareGroupStateResponse.StateBatch] = field(Array("StateBatch"), "0+")

    class ReadStateResult(Struct):
        topic_id: UUID = field(Uuid, "0+")
        partitions: list[ReadShareGroupStateResponse.PartitionResult] = field(Array("PartitionResult"), "0+")

    results: list[ReadStateResult] = field(Array(ReadStateResult), "0+")


class WriteShareGroupStateRequest(Request["WriteShareGroupStateResponse"], api_key=85, versions="0-1", flexible="0+"):
    """Writes the state of a share group."""

    class StateBatch(Struct):
        first_offset: int = field(Int64, "0+")
        last_offset: int = field(Int64, "0+")
        delivery_state: int = field(Int8, "0+")
        delivery_count: int = field(Int16, "0+")

    class PartitionData(Struct):
        partition: int = field(Int32, "0+")
        state_epoch: int = field(Int32, "0+")
        leader_epoch: int = field(Int32, "0+")
        start_offset: int = field(Int64, "0+")
        delivery_complete_count: int = field(Int32, "1+", default=-1, ignorable=True)
        state_batches: list[WriteShareGroupStateRequest.StateBatch] = field(Array("StateBatch"), "0+")

    class WriteStateData(Struct):
        topic_id: UUID = field(Uuid, "0+")
        partitions: list[WriteShareGroupStateRequest.PartitionData] = field(Array("PartitionData"), "0+")

    group_id: str = field(String, "0+")
    topics: list[WriteStateData] = field(Array(WriteStateData), "0+")


class WriteShareGroupStateResponse(Response, api_key=85, versions="0-1", flexible="0+"):
    class PartitionResult(Struct):
        partition: int = field(Int32, "0+")
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "0+", nullable="0+", default=None)

    class WriteStateResult(Struct):
        topic_id: UUID = field(Uuid, "0+")
        partitions: list[WriteShareGroupStateResponse.PartitionResult] = field(Array("PartitionResult"), "0+")

    results: list[WriteStateResult] = field(Array(WriteStateResult), "0+")


class DeleteShareGroupStateRequest(Request["DeleteShareGroupStateResponse"], api_key=86, versions="0", flexible="0+"):
    """Deletes the state of a share group."""

    class PartitionData(Struct):
        partition: int = field(Int32, "0+")

    class DeleteStateData(Struct):
        topic_id: UUID = field(Uuid, "0+")
        partitions: list[DeleteShareGroupStateRequest.PartitionData] = field(Array("PartitionData"), "0+")

    group_id: str = field(String, "0+")
    topics: list[DeleteStateData] = field(Array(DeleteStateData), "0+")


class DeleteShareGroupStateResponse(Response, api_key=86, versions="0", flexible="0+"):
    class PartitionResult(Struct):
        partition: int = field(Int32, "0+")
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "0+", nullable="0+", default=None)

    class DeleteStateResult(Struct):
        topic_id: UUID = field(Uuid, "0+")
        partitions: list[DeleteShareGroupStateResponse.PartitionResult] = field(Array("PartitionResult"), "0+")

    results: list[DeleteStateResult] = field(Array(DeleteStateResult), "0+")


class ReadShareGroupStateSummaryRequest(
    Request["ReadShareGroupStateSummaryResponse"], api_key=87, versions="0-1", flexible="0+"
):
    """Reads the start offsets of a share group."""

    class PartitionData(Struct):
        partition: int = field(Int32, "0+")
        leader_epoch: int = field(Int32, "0+")

    class ReadStateSummaryData(Struct):
        topic_id: UUID = field(Uuid, "0+")
        partitions: list[ReadShareGroupStateSummaryRequest.PartitionData] = field(Array("PartitionData"), "0+")

    group_id: str = field(String, "0+")
    topics: list[ReadStateSummaryData] = field(Array(ReadStateSummaryData), "0+")


class ReadShareGroupStateSummaryResponse(Response, api_key=87, versions="0-1", flexible="0+"):
    class PartitionResult(Struct):
        partition: int = field(Int32, "0+")
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "0+", nullable="0+", default=None)
        state_epoch: int = field(Int32, "0+")
        leader_epoch: int = field(Int32, "0+")
        start_offset: int = field(Int64, "0+")
        delivery_complete_count: int = field(Int32, "1+", default=-1, ignorable=True)

    class ReadStateSummaryResult(Struct):
        topic_id: UUID = field(Uuid, "0+")
        partitions: list[ReadShareGroupStateSummaryResponse.PartitionResult] = field(Array("PartitionResult"), "0+")

    results: list[ReadStateSummaryResult] = field(Array(ReadStateSummaryResult), "0+")
