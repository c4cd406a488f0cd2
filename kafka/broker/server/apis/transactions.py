"""Requests of transactional producers to their coordinator."""

from __future__ import annotations

from typing import Final

from kafka.broker.cluster.topics import INTERNAL_TOPICS
from kafka.broker.groups import service as groups
from kafka.broker.groups.offsets import CommittedOffset
from kafka.broker.server.api import BrokerResponseError, Call, Code, Operation, Resource
from kafka.broker.transactions.coordinator import Granted
from kafka.broker.transactions.service import check_id, coordinator, offsets_partition
from kafka.broker.transactions.transaction import NO_EPOCH, NO_PRODUCER
from kafka.errors import (
    InvalidProducerEpochError,
    InvalidRequestError,
    ProducerFencedError,
    TransactionAbortableError,
)
from kafka.protocol.transaction import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from kafka.structs import TopicPartition

_INIT_FENCED_FROM: Final = 4
_FENCED_FROM: Final = 2
_BATCH_FROM: Final = 4
_ADD_ABORTABLE_FROM: Final = 5
_Codes = dict[TopicPartition, int]
_BUMPS_FROM: Final = 5
_COMMIT_ABORTABLE_FROM: Final = 4
_ADDS_FROM: Final = 5
_Row = tuple[TopicPartition, CommittedOffset, int]


def init_producer_id(call: Call[InitProducerIdResponse], request: InitProducerIdRequest) -> InitProducerIdResponse:
    """InitProducerId (22), versions 0-5: a producer id, and for transactional ids an epoch that fences older producers.

    * v0: as KIP-98 says. v1: clients expect throttling after the reply. v2: flexible.
    * v3: the producer sends its id and epoch, to continue after an error (KIP-360).
    * v4: PRODUCER_FENCED, where it was INVALID_PRODUCER_EPOCH before (KIP-588).
    * v5: transactions of version 2 (KIP-890); nothing changes here.
    * v6, two-phase commit (KIP-939), is not stable in Kafka and not served.
    """
    transactional_id = request.transactional_id
    expected = Granted(request.producer_id, request.producer_epoch)
    if transactional_id:
        check_id(call, transactional_id)
    elif transactional_id is None and not call.allows_any(Operation.WRITE, Resource.TOPIC):
        call.require(Operation.IDEMPOTENT_WRITE, Resource.CLUSTER)
    if (expected.producer_id == NO_PRODUCER) != (expected.epoch == NO_EPOCH):
        raise InvalidRequestError
    try:
        granted = coordinator(call).init_producer(transactional_id, request.transaction_timeout_ms / 1000, expected)
    except ProducerFencedError:
        if call.version >= _INIT_FENCED_FROM:
            raise
        raise InvalidProducerEpochError from None
    return call.response(error_code=0, producer_id=granted.producer_id, producer_epoch=granted.epoch)


def add_partitions_to_txn(
    call: Call[AddPartitionsToTxnResponse], request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse:
    """AddPartitionsToTxn (24), versions 0-5: partitions become part of a transaction before they are first written to.

    * v0: one transaction. v1: clients expect throttling after the reply.
    * v2: PRODUCER_FENCED, where it was INVALID_PRODUCER_EPOCH before. v3: flexible.
    * v4: several transactions, and a mode that only verifies; between brokers (KIP-890).
    * v5: TRANSACTION_ABORTABLE is known.
    """
    if call.version < _BATCH_FROM:
        producer = Granted(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
        codes = _serve(call, request.v3_and_below_transactional_id, producer, request.v3_and_below_topics, verify=False)
        return call.response(results_by_topic_v3_and_below=_results(request.v3_and_below_topics, codes))
    call.require(Operation.CLUSTER_ACTION, Resource.CLUSTER)
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
    try:
        check_id(call, transactional_id)
    except BrokerResponseError as error:
        return dict.fromkeys(wanted, error.code)
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


def _code(call: Call, error: BrokerResponseError) -> int:
    if isinstance(error, ProducerFencedError) and call.version < _FENCED_FROM:
        return Code.INVALID_PRODUCER_EPOCH
    if isinstance(error, TransactionAbortableError) and call.version < _ADD_ABORTABLE_FROM:
        return Code.INVALID_TXN_STATE
    return error.code


def add_offsets_to_txn(call: Call[AddOffsetsToTxnResponse], request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    """AddOffsetsToTxn (25), versions 0-4: a transaction will commit offsets of a group.

    * v1: clients expect throttling after the reply.
    * v2: PRODUCER_FENCED, where it was INVALID_PRODUCER_EPOCH before. v3: flexible.
    * v4: TRANSACTION_ABORTABLE is known (KIP-890). Clients of transactions of version 2 do without this API.
    """
    check_id(call, request.transactional_id)
    call.require(Operation.READ, Resource.GROUP, request.group_id)
    producer = Granted(request.producer_id, request.producer_epoch)
    try:
        coordinator(call).add(
            request.transactional_id, producer, [offsets_partition(call, request.group_id)], [request.group_id]
        )
    except BrokerResponseError as error:
        return call.response(error_code=_code(call, error))
    return call.response(error_code=0)


def end_txn(call: Call[EndTxnResponse], request: EndTxnRequest) -> EndTxnResponse:
    """EndTxn (26), versions 0-5: commit or abort.

    * v1: clients expect throttling after the reply.
    * v2: PRODUCER_FENCED, where it was INVALID_PRODUCER_EPOCH before. v3: flexible.
    * v4: TRANSACTION_ABORTABLE is known.
    * v5: each end counts up the epoch, and the reply tells the new one (KIP-890).
    """
    check_id(call, request.transactional_id)
    producer = Granted(request.producer_id, request.producer_epoch)
    try:
        granted = coordinator(call).end(
            request.transactional_id, producer, committed=request.committed, bumps_epoch=call.version >= _BUMPS_FROM
        )
    except BrokerResponseError as error:
        return call.response(error_code=_code(call, error))
    return call.response(error_code=0, producer_id=granted.producer_id, producer_epoch=granted.epoch)


def txn_offset_commit(call: Call[TxnOffsetCommitResponse], request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    """TxnOffsetCommit (28), versions 0-5: offsets of a group that count when a transaction is committed.

    * v1: clients expect throttling after the reply. v2: leader epochs (KIP-320).
    * v3: flexible; the member of the group, so that a zombie cannot commit (KIP-447).
    * v4: TRANSACTION_ABORTABLE is known.
    * v5: adds the group to the transaction implicitly (KIP-890).
    """
    refused: int = Code.NONE
    try:
        call.require(Operation.WRITE, Resource.TRANSACTIONAL_ID, request.transactional_id)
        groups.check_group(call, request.group_id)
    except BrokerResponseError as error:
        refused = error.code
    topics = [(topic.name, [_row(call, topic.name, part) for part in topic.partitions]) for topic in request.topics]
    good = [(where, offset) for _, rows in topics for where, offset, code in rows if not code]
    if not refused and good:
        refused = _commit(call, request, good)
    return call.response(
        topics=[(name, [(where.partition, refused or code) for where, _, code in rows]) for name, rows in topics]
    )


def _row(
    call: Call[TxnOffsetCommitResponse], topic: str, part: TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition
) -> _Row:
    where = TopicPartition(topic, part.partition_index)
    text = part.committed_metadata or ""
    offset = CommittedOffset(part.committed_offset, part.committed_leader_epoch, text, call.cluster.clock.now_ms())
    if not call.allows(Operation.READ, Resource.TOPIC, topic):
        return where, offset, Code.TOPIC_AUTHORIZATION_FAILED
    if call.cluster.partition(*where) is None:
        return where, offset, Code.UNKNOWN_TOPIC_OR_PARTITION
    if len(text.encode()) > groups.coordinator(call).settings.offset_metadata_max_bytes:
        return where, offset, Code.OFFSET_METADATA_TOO_LARGE
    return where, offset, Code.NONE


def _commit(
    call: Call[TxnOffsetCommitResponse],
    request: TxnOffsetCommitRequest,
    good: list[tuple[TopicPartition, CommittedOffset]],
) -> int:
    producer = Granted(request.producer_id, request.producer_epoch)
    where = offsets_partition(call, request.group_id)
    try:
        if call.version < _ADDS_FROM:
            coordinator(call).verify(request.transactional_id, producer, where)
        # Of the two checks, first the one that changes nothing.
        groups.coordinator(call).check_commit(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id,
            call.version,
            [partition for partition, _ in good],
            transactional=True,
        )
        coordinator(call).add(request.transactional_id, producer, [where], [request.group_id])
    except ProducerFencedError:
        return Code.INVALID_PRODUCER_EPOCH
    except TransactionAbortableError as error:
        return error.code if call.version >= _COMMIT_ABORTABLE_FROM else Code.INVALID_TXN_STATE
    except BrokerResponseError as error:
        return error.code
    groups.coordinator(call).commit_pending(request.group_id, producer.producer_id, good)
    return Code.NONE
