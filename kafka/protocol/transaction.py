"""Producer ids and transactions.

Written by tools/generate_protocol.py from Kafka's message specs; do not edit.
"""

from __future__ import annotations

from kafka.protocol.api import Request, Response
from kafka.protocol.fields import Array, field
from kafka.protocol.struct import Struct
from kafka.protocol.types import Boolean, Int8, Int16, Int32, Int64, String


class InitProducerIdRequest(Request["InitProducerIdResponse"], api_key=22, versions="0-6", flexible="2+", unstable="6"):
    """Gets a producer id, and ends what an older producer of the same transactional id left open."""

    transactional_id: str | None = field(String, "0+", nullable="0+")
    transaction_timeout_ms: int = field(Int32, "0+")
    producer_id: int = field(Int64, "3+", default=-1)
    producer_epoch: int = field(Int16, "3+", default=-1)
    enable2_pc: bool = field(Boolean, "6+")
    keep_prepared_txn: bool = field(Boolean, "6+")


class InitProducerIdResponse(Response, api_key=22, versions="0-6", flexible="2+", unstable="6"):
    throttle_time_ms: int = field(Int32, "0+", ignorable=True)
    error_code: int = field(Int16, "0+")
    producer_id: int = field(Int64, "0+", default=-1)
    producer_epoch: int = field(Int16, "0+")
    ongoing_txn_producer_id: int = field(Int64, "6+", default=-1)
    ongoing_txn_producer_epoch: int = field(Int16, "6+", default=-1)


class AddPartitionsToTxnRequest(Request["AddPartitionsToTxnResponse"], api_key=24, versions="0-5", flexible="3+"):
    """Adds partitions to a transaction before its first write to them."""

    class AddPartitionsToTxnTopic(Struct):
        name: str = field(String, "0+")
        partitions: list[int] = field(Array(Int32), "0+")

    class AddPartitionsToTxnTransaction(Struct):
        transactional_id: str = field(String, "4+")
        producer_id: int = field(Int64, "4+")
        producer_epoch: int = field(Int16, "4+")
        verify_only: bool = field(Boolean, "4+")
        topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = field(Array("AddPartitionsToTxnTopic"), "4+")

    transactions: list[AddPartitionsToTxnTransaction] = field(Array(AddPartitionsToTxnTransaction), "4+")
    v3_and_below_transactional_id: str = field(String, "0-3")
    v3_and_below_producer_id: int = field(Int64, "0-3")
    v3_and_below_producer_epoch: int = field(Int16, "0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = field(Array(AddPartitionsToTxnTopic), "0-3")


class AddPartitionsToTxnResponse(Response, api_key=24, versions="0-5", flexible="3+"):
    class AddPartitionsToTxnPartitionResult(Struct):
        partition_index: int = field(Int32, "0+")
        partition_error_code: int = field(Int16, "0+")

    class AddPartitionsToTxnTopicResult(Struct):
        name: str = field(String, "0+")
        results_by_partition: list[AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult] = field(
            Array("AddPartitionsToTxnPartitionResult"), "0+"
        )

    class AddPartitionsToTxnResult(Struct):
        transactional_id: str = field(String, "4+")
        topic_results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = field(
            Array("AddPartitionsToTxnTopicResult"), "4+"
        )

    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "4+", ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = field(Array(AddPartitionsToTxnResult), "4+")
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = field(
        Array(AddPartitionsToTxnTopicResult), "0-3"
    )


class AddOffsetsToTxnRequest(Request["AddOffsetsToTxnResponse"], api_key=25, versions="0-4", flexible="3+"):
    """Announces that a transaction will commit offsets of a group."""

    transactional_id: str = field(String, "0+")
    producer_id: int = field(Int64, "0+")
    producer_epoch: int = field(Int16, "0+")
    group_id: str = field(String, "0+")


class AddOffsetsToTxnResponse(Response, api_key=25, versions="0-4", flexible="3+"):
    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")


class EndTxnRequest(Request["EndTxnResponse"], api_key=26, versions="0-5", flexible="3+"):
    """Commits or aborts a transaction."""

    transactional_id: str = field(String, "0+")
    producer_id: int = field(Int64, "0+")
    producer_epoch: int = field(Int16, "0+")
    committed: bool = field(Boolean, "0+")


class EndTxnResponse(Response, api_key=26, versions="0-5", flexible="3+"):
    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    producer_id: int = field(Int64, "5+", default=-1, ignorable=True)
    producer_epoch: int = field(Int16, "5+", default=-1, ignorable=True)


class TxnOffsetCommitRequest(Request["TxnOffsetCommitResponse"], api_key=28, versions="0-5", flexible="3+"):
    """Commits offsets of a group within a transaction."""

    class TxnOffsetCommitRequestPartition(Struct):
        partition_index: int = field(Int32, "0+")
        committed_offset: int = field(Int64, "0+")
        committed_leader_epoch: int = field(Int32, "2+", default=-1, ignorable=True)
        committed_metadata: str | None = field(String, "0+", nullable="0+")

    class TxnOffsetCommitRequestTopic(Struct):
        name: str = field(String, "0+")
        partitions: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition] = field(
            Array("TxnOffsetCommitRequestPartition"), "0+"
        )

    transactional_id: str = field(String, "0+")
    group_id: str = field(String, "0+")
    producer_id: int = field(Int64, "0+")
    producer_epoch: int = field(Int16, "0+")
    generation_id: int = field(Int32, "3+", default=-1)
    member_id: str = field(String, "3+")
    group_instance_id: str | None = field(String, "3+", nullable="3+", default=None)
    topics: list[TxnOffsetCommitRequestTopic] = field(Array(TxnOffsetCommitRequestTopic), "0+")


class TxnOffsetCommitResponse(Response, api_key=28, versions="0-5", flexible="3+"):
    class TxnOffsetCommitResponsePartition(Struct):
        partition_index: int = field(Int32, "0+")
        error_code: int = field(Int16, "0+")

    class TxnOffsetCommitResponseTopic(Struct):
        name: str = field(String, "0+")
        partitions: list[TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition] = field(
            Array("TxnOffsetCommitResponsePartition"), "0+"
        )

    throttle_time_ms: int = field(Int32, "0+")
    topics: list[TxnOffsetCommitResponseTopic] = field(Array(TxnOffsetCommitResponseTopic), "0+")


class WriteTxnMarkersRequest(Request["WriteTxnMarkersResponse"], api_key=27, versions="0-2", flexible="1+"):
    """Writes the markers that end a transaction."""

    class WritableTxnMarkerTopic(Struct):
        name: str = field(String, "0+")
        partition_indexes: list[int] = field(Array(Int32), "0+")

    class WritableTxnMarker(Struct):
        producer_id: int = field(Int64, "0+")
        producer_epoch: int = field(Int16, "0+")
        transaction_result: bool = field(Boolean, "0+")
        topics: list[WriteTxnMarkersRequest.WritableTxnMarkerTopic] = field(Array("WritableTxnMarkerTopic"), "0+")
        coordinator_epoch: int = field(Int32, "0+")
        transaction_version: int = field(Int8, "2+", ignorable=True)

    markers: list[WritableTxnMarker] = field(Array(WritableTxnMarker), "0+")


class WriteTxnMarkersResponse(Response, api_key=27, versions="0-2", flexible="1+"):
    class WritableTxnMarkerPartitionResult(Struct):
        partition_index: int = field(Int32, "0+")
        error_code: int = field(Int16, "0+")

    class WritableTxnMarkerTopicResult(Struct):
        name: str = field(String, "0+")
        partitions: list[WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult] = field(
            Array("WritableTxnMarkerPartitionResult"), "0+"
        )

    class WritableTxnMarkerResult(Struct):
        producer_id: int = field(Int64, "0+")
        topics: list[WriteTxnMarkersResponse.WritableTxnMarkerTopicResult] = field(
            Array("WritableTxnMarkerTopicResult"), "0+"
        )

    markers: list[WritableTxnMarkerResult] = field(Array(WritableTxnMarkerResult), "0+")


class DescribeProducersRequest(Request["DescribeProducersResponse"], api_key=61, versions="0", flexible="0+"):
    """Lists the active producers of partitions."""

    class TopicRequest(Struct):
        name: str = field(String, "0+")
        partition_indexes: list[int] = field(Array(Int32), "0+")

    topics: list[TopicRequest] = field(Array(TopicRequest), "0+")


class DescribeProducersResponse(Response, api_key=61, versions="0", flexible="0+"):
    class ProducerState(Struct):
        producer_id: int = field(Int64, "0+")
        producer_epoch: int = field(Int32, "0+")
        last_sequence: int = field(Int32, "0+", default=-1)
        last_timestamp: int = field(Int64, "0+", default=-1)
        coordinator_epoch: int = field(Int32, "0+")
        current_txn_start_offset: int = field(Int64, "0+", default=-1)

    class PartitionResponse(Struct):
        partition_index: int = field(Int32, "0+")
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "0+", nullable="0+", default=None)
        active_producers: list[DescribeProducersResponse.ProducerState] = field(Array("ProducerState"), "0+")

    class TopicResponse(Struct):
        name: str = field(String, "0+")
        partitions: list[DescribeProducersResponse.PartitionResponse] = field(Array("PartitionResponse"), "0+")

    throttle_time_ms: int = field(Int32, "0+")
    topics: list[TopicResponse] = field(Array(TopicResponse), "0+")


class DescribeTransactionsRequest(Request["DescribeTransactionsResponse"], api_key=65, versions="0", flexible="0+"):
    """Describes transactions."""

    transactional_ids: list[str] = field(Array(String), "0+")


class DescribeTransactionsResponse(Response, api_key=65, versions="0", flexible="0+"):
    class TopicData(Struct):
        topic: str = field(String, "0+")
        partitions: list[int] = field(Array(Int32), "0+")

    class TransactionState(Struct):
        error_code: int = field(Int16, "0+")
        transactional_id: str = field(String, "0+")
        transaction_state: str = field(String, "0+")
        transaction_timeout_ms: int = field(Int32, "0+")
        transaction_start_time_ms: int = field(Int64, "0+")
        producer_id: int = field(Int64, "0+")
        producer_epoch: int = field(Int16, "0+")
        topics: list[DescribeTransactionsResponse.TopicData] = field(Array("TopicData"), "0+")

    throttle_time_ms: int = field(Int32, "0+")
    transaction_states: list[TransactionState] = field(Array(TransactionState), "0+")


class ListTransactionsRequest(Request["ListTransactionsResponse"], api_key=66, versions="0-2", flexible="0+"):
    """Lists the transactions of a broker."""

    state_filters: list[str] = field(Array(String), "0+")
    producer_id_filters: list[int] = field(Array(Int64), "0+")
    duration_filter: int = field(Int64, "1+", default=-1)
    transactional_id_pattern: str | None = field(String, "2+", nullable="2+", default=None)


class ListTransactionsResponse(Response, api_key=66, versions="0-2", flexible="0+"):
    class TransactionState(Struct):
        transactional_id: str = field(String, "0+")
        producer_id: int = field(Int64, "0+")
        transaction_state: str = field(String, "0+")

    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    unknown_state_filters: list[str] = field(Array(String), "0+")
    transaction_states: list[TransactionState] = field(Array(TransactionState), "0+")
