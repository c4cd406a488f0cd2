"""What administrators see of producers and transactions, and how they end one that hangs (KIP-664)."""

from __future__ import annotations

from itertools import groupby
from typing import Final

from kafka.broker.cluster.coordinators import TRANSACTION
from kafka.broker.groups.pattern import compile_re2
from kafka.broker.server.api import CLUSTER_NAME, BrokerResponseError, Call, Code, Operation, Resource
from kafka.broker.transactions.service import check_id, coordinator
from kafka.broker.transactions.transaction import State
from kafka.errors import InvalidRegularExpressionError, KafkaError
from kafka.protocol.transaction import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

_REFUSED: Final = Code.CLUSTER_AUTHORIZATION_FAILED


def write_txn_markers(call: Call[WriteTxnMarkersResponse], request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    """WriteTxnMarkers (27), versions 0-2: end a producer's transaction on partitions, whatever its coordinator knows.

    Between brokers; administrators use it against transactions that hang (KIP-664).

    * v1: flexible.
    * v2: the transaction's version (KIP-1228); nothing changes here.
    """
    allowed = call.allows(Operation.CLUSTER_ACTION, Resource.CLUSTER, CLUSTER_NAME) or call.allows(
        Operation.ALTER, Resource.CLUSTER, CLUSTER_NAME
    )
    markers = [
        (
            marker.producer_id,
            [
                (
                    topic.name,
                    [
                        (index, _write(call, marker, topic.name, index) if allowed else _REFUSED)
                        for index in topic.partition_indexes
                    ],
                )
                for topic in marker.topics
            ],
        )
        for marker in request.markers
    ]
    return call.response(markers=markers)


def _write(
    call: Call[WriteTxnMarkersResponse], marker: WriteTxnMarkersRequest.WritableTxnMarker, topic: str, index: int
) -> int:
    partition = call.cluster.partition(topic, index)
    if partition is None:
        return Code.UNKNOWN_TOPIC_OR_PARTITION
    if partition.leader != call.node.node_id:
        return Code.NOT_LEADER_OR_FOLLOWER
    try:
        call.cluster.append_marker(
            partition,
            marker.producer_id,
            marker.producer_epoch,
            committed=marker.transaction_result,
            coordinator_epoch=marker.coordinator_epoch,
        )
    except KafkaError as error:
        return getattr(error, "code", Code.UNKNOWN_SERVER_ERROR)
    return Code.NONE


def describe_producers(
    call: Call[DescribeProducersResponse], request: DescribeProducersRequest
) -> DescribeProducersResponse:
    """DescribeProducers (61), version 0: the active producers of partitions (KIP-664).

    * v0: epoch, last sequence, coordinator epoch, start of the open transaction.
    """
    return call.response(
        topics=[
            (topic.name, [_producers_of(call, topic.name, index) for index in topic.partition_indexes])
            for topic in request.topics
        ]
    )


def _producers_of(
    call: Call[DescribeProducersResponse], name: str, index: int
) -> DescribeProducersResponse.PartitionResponse:
    result = call.response.PartitionResponse(partition_index=index)
    partition = call.cluster.partition(name, index)
    if not call.allows(Operation.READ, Resource.TOPIC, name):
        result.error_code = Code.TOPIC_AUTHORIZATION_FAILED
    elif partition is None:
        result.error_code = Code.UNKNOWN_TOPIC_OR_PARTITION
        if name not in call.cluster.topics:
            result.error_message = "This server does not host this topic-partition."
    elif call.node.node_id not in partition.replicas:  # followers answer too
        result.error_code = Code.NOT_LEADER_OR_FOLLOWER
    else:
        result.active_producers = [
            call.response.ProducerState(
                state.producer_id,
                state.epoch,
                state.last_sequence,
                state.last_timestamp,
                state.coordinator_epoch,
                -1 if state.transaction_start is None else state.transaction_start,
            )
            for state in partition.log.producers.states.values()
        ]
    return result


def describe_transactions(
    call: Call[DescribeTransactionsResponse], request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    """DescribeTransactions (65), version 0: state, producer and partitions of transactions (KIP-664)."""
    return call.response(
        transaction_states=[_transaction(call, each) for each in dict.fromkeys(request.transactional_ids)]
    )


def _transaction(
    call: Call[DescribeTransactionsResponse], transactional_id: str
) -> DescribeTransactionsResponse.TransactionState:
    described = call.response.TransactionState(transactional_id=transactional_id)
    try:
        if transactional_id:
            check_id(call, transactional_id, Operation.DESCRIBE)
        record = coordinator(call).describe(transactional_id)
    except BrokerResponseError as error:
        described.error_code = error.code
        return described
    described.transaction_state = record.state.value
    described.transaction_timeout_ms = round(record.timeout * 1000)
    described.transaction_start_time_ms = record.start_ms  # of the last transaction, also once it has ended
    described.producer_id = record.producer_id
    described.producer_epoch = record.epoch
    visible = [
        each for each in sorted(record.partitions) if call.allows(Operation.DESCRIBE, Resource.TOPIC, each.topic)
    ]
    described.topics = [
        call.response.TopicData(topic, [each.partition for each in parts])
        for topic, parts in groupby(visible, lambda each: each.topic)
    ]
    return described


def list_transactions(
    call: Call[ListTransactionsResponse], request: ListTransactionsRequest
) -> ListTransactionsResponse:
    """ListTransactions (66), versions 0-2: the transactional ids that this node coordinates (KIP-664).

    * v0: filters by state and producer id. v1: by how long a transaction has been open (KIP-994).
    * v2: by a pattern of ids (KIP-1152).
    """
    names = {state.value for state in State}
    unknown = [name for name in request.state_filters if name not in names]
    try:
        pattern = compile_re2(request.transactional_id_pattern) if request.transactional_id_pattern else None
    except InvalidRegularExpressionError as error:
        return call.response(error_code=error.code, unknown_state_filters=unknown)
    found = [
        (record.transactional_id, record.producer_id, record.state.value)
        for record in coordinator(call)
        if (
            (not request.state_filters or record.state.value in request.state_filters)
            and (not request.producer_id_filters or record.producer_id in request.producer_id_filters)
            and (request.duration_filter < 0 or coordinator(call).running_for_ms(record) > request.duration_filter)
            and (pattern is None or pattern.fullmatch(record.transactional_id) is not None)
        )
        and call.cluster.coordinators.is_at(call.node, TRANSACTION, record.transactional_id)
        and call.allows(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, record.transactional_id)
    ]
    return call.response(error_code=0, unknown_state_filters=unknown, transaction_states=found)
