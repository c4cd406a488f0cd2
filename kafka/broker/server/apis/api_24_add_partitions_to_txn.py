"""AddPartitionsToTxn (24), versions 0-5: partitions become part of a transaction before they are first written to.

* v0: one transaction. v1: clients expect throttling after the reply.
* v2: PRODUCER_FENCED, where it was INVALID_PRODUCER_EPOCH before. v3: flexible.
* v4: several transactions, and a mode that only verifies; between brokers (KIP-890).
* v5: TRANSACTION_ABORTABLE is known.
"""

from __future__ import annotations

from typing import Final

from kafka.broker.cluster.topics import INTERNAL_TOPICS
from kafka.broker.server.api import CLUSTER_NAME, BrokerResponseError, Call, Code, Operation, Resource
from kafka.broker.transactions.coordinator import Granted
from kafka.broker.transactions.service import coordinator, refusal
from kafka.errors import ProducerFencedError, TransactionAbortableError
from kafka.protocol.transaction import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from kafka.structs import TopicPartition

_FENCED_FROM: Final = 2
_BATCH_FROM: Final = 4
_ABORTABLE_FROM: Final = 5

_Codes = dict[TopicPartition, int]


def handle(call: Call[AddPartitionsToTxnResponse], request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
    """Add or verify."""
    if call.version < _BATCH_FROM:
        producer = Granted(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
        codes = _serve(call, request.v3_and_below_transactional_id, producer, request.v3_and_below_topics, verify=False)
        return call.response(results_by_topic_v3_and_below=_results(request.v3_and_below_topics, codes))
    if not call.allows(Operation.CLUSTER_ACTION, Resource.CLUSTER, CLUSTER_NAME):
        return call.response(error_code=Code.CLUSTER_AUTHORIZATION_FAILED)
    results = []
    for each in request.transactions:
        producer = Granted(each.producer_id, each.producer_epoch)
        codes = _serve(call, each.transactional_id, producer, each.topics, verify=each.verify_only)
        results.append((each.transactional_id, _results(each.topics, codes)))
    return call.response(error_code=0, results_by_transaction=results)


def _results(
    topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic], codes: _Codes
) -> list[tuple[str, list[tuple[int, int]]]]:
    return [
        (topic.name, [(index, codes[TopicPartition(topic.name, index)]) for index in topic.partitions])
        for topic in topics
    ]


def _serve(
    call: Call[AddPartitionsToTxnResponse],
    transactional_id: str,
    producer: Granted,
    topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic],
    *,
    verify: bool,
) -> _Codes:
    wanted = [TopicPartition(topic.name, index) for topic in topics for index in topic.partitions]
    refused = refusal(call, transactional_id)
    if refused:
        return dict.fromkeys(wanted, refused)
    codes = {each: _check(call, each) for each in wanted}
    if any(codes.values()):
        # All or nothing: partitions without an error are not added either.
        spared = Code.OPERATION_NOT_ATTEMPTED
        return {each: code or spared for each, code in codes.items()}
    if verify:
        return {each: _verify(call, transactional_id, producer, each) for each in wanted}
    try:
        coordinator(call).add(transactional_id, producer, wanted)
    except BrokerResponseError as error:
        return dict.fromkeys(wanted, _code(call, error))
    return codes


def _check(call: Call[AddPartitionsToTxnResponse], partition: TopicPartition) -> int:
    if partition.topic in INTERNAL_TOPICS or not call.allows(Operation.WRITE, Resource.TOPIC, partition.topic):
        return Code.TOPIC_AUTHORIZATION_FAILED
    if call.cluster.partition(*partition) is None:
        return Code.UNKNOWN_TOPIC_OR_PARTITION
    return Code.NONE


def _verify(
    call: Call[AddPartitionsToTxnResponse], transactional_id: str, producer: Granted, partition: TopicPartition
) -> int:
    try:
        coordinator(call).verify(transactional_id, producer, partition)
    except BrokerResponseError as error:
        return _code(call, error)
    return Code.NONE


def _code(call: Call[AddPartitionsToTxnResponse], error: BrokerResponseError) -> int:
    if isinstance(error, ProducerFencedError) and call.version < _FENCED_FROM:
        return Code.INVALID_PRODUCER_EPOCH
    if isinstance(error, TransactionAbortableError) and call.version < _ABORTABLE_FROM:
        return Code.INVALID_TXN_STATE
    return error.code
