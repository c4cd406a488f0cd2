"""TxnOffsetCommit (28), versions 0-5: offsets of a group that count when a transaction is committed.

* v1: clients expect throttling after the reply. v2: leader epochs (KIP-320).
* v3: flexible; the member of the group, so that a zombie cannot commit (KIP-447).
* v4: TRANSACTION_ABORTABLE is known.
* v5: adds the group to the transaction implicitly (KIP-890).
"""

from __future__ import annotations

from typing import Final

from kafka.broker.groups import service as groups
from kafka.broker.groups.offsets import CommittedOffset
from kafka.broker.server.api import BrokerResponseError, Call, Code, Operation, Resource
from kafka.broker.transactions.coordinator import Granted
from kafka.broker.transactions.service import coordinator, offsets_partition
from kafka.errors import ProducerFencedError, TransactionAbortableError
from kafka.protocol.transaction import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from kafka.structs import TopicPartition

_ABORTABLE_FROM: Final = 4
_ADDS_FROM: Final = 5

_Row = tuple[TopicPartition, CommittedOffset, int]


def handle(call: Call[TxnOffsetCommitResponse], request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    """Take the offsets into the transaction."""
    refused = _refusal(call, request)
    topics = [(topic.name, [_row(call, topic.name, part) for part in topic.partitions]) for topic in request.topics]
    good = [(where, offset) for _, rows in topics for where, offset, code in rows if not code]
    if not refused and good:
        refused = _commit(call, request, good)
    return call.response(
        topics=[(name, [(where.partition, refused or code) for where, _, code in rows]) for name, rows in topics]
    )


def _refusal(call: Call[TxnOffsetCommitResponse], request: TxnOffsetCommitRequest) -> int:
    if not call.allows(Operation.WRITE, Resource.TRANSACTIONAL_ID, request.transactional_id):
        return Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return groups.refusal(call, request.group_id)


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
        return error.code if call.version >= _ABORTABLE_FROM else Code.INVALID_TXN_STATE
    except BrokerResponseError as error:
        return error.code
    groups.coordinator(call).commit_pending(request.group_id, producer.producer_id, good)
    return Code.NONE
