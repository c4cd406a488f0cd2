"""Produce (0), versions 0-13: records into partitions.

* v0, v1: message sets of format v0; v1 has throttle time.
* v2: message sets of format v1; log append time. Both old formats become v2 batches.
* v3: one v2 batch for each partition; transactional id.
* v4: KAFKA_STORAGE_ERROR is possible.
* v5: log start offset. v6: clients expect throttling after the reply.
* v7: zstd (KIP-110).
* v8: records at fault and why (KIP-467).
* v9: flexible.
* v10: the current leader and where it is, with NOT_LEADER_OR_FOLLOWER (KIP-951).
* v11, v12: transactions of version 2: the append itself adds the partition to the transaction (KIP-890).
* v13: topics by id.

acks=0 gets no reply; where an error would be due the connection is closed, as Kafka does.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import Final, NamedTuple

from kafka.broker.cluster.topics import Partition
from kafka.broker.server.api import CLUSTER_NAME, Call, Code, Operation, Resource
from kafka.broker.storage.validation import Accepted, Heavy, Refused, accept, is_transactional
from kafka.errors import KafkaError
from kafka.protocol.produce import ProduceRequest, ProduceResponse
from kafka.record.header import BatchHeader, Buffer

logger = logging.getLogger("kafka.broker")
_RECORD_ERRORS_FROM: Final = 8
_LEADER_FROM: Final = 10
_IDS_FROM: Final = 13
_BUMPS_FROM: Final = 12
_ALL: Final = -1
Checked = Accepted | Refused | None


class _Append(NamedTuple):
    """The part of a request for one partition."""

    partition: Partition
    records: Buffer | None
    result: ProduceResponse.PartitionProduceResponse


"""A batch that was checked; None for one that takes too long to check on the event loop."""


def produce(
    call: Call[ProduceResponse], request: ProduceRequest
) -> ProduceResponse | Awaitable[ProduceResponse | None] | None:
    """Append, partition by partition."""
    refused = _refuse_all(call, request)
    responses = []
    appends: list[_Append] = []
    leaders: set[int] = set()
    for data in request.topic_data:
        results = []
        for part in data.partition_data:
            result = call.response.PartitionProduceResponse(index=part.index, base_offset=-1)
            if refused:
                result.error_code = refused
            else:
                partition = _find(call, request, data, part, result, leaders)
                if partition is not None:
                    appends.append(_Append(partition, part.records, result))
            results.append(result)
        responses.append(
            call.response.TopicProduceResponse(name=data.name, topic_id=data.topic_id, partition_responses=results)
        )
    checked = [_check(call, each, quick=True) for each in appends]
    if None in checked:
        return _handle_heavy(call, request, appends, checked, responses, leaders)
    for each, batch in zip(appends, checked, strict=True):
        _append(call, request, each, batch)
    return _reply(call, request, responses, leaders)


async def _handle_heavy(
    call: Call[ProduceResponse],
    request: ProduceRequest,
    appends: list[_Append],
    checked: list[Checked],
    responses: list[ProduceResponse.TopicProduceResponse],
    leaders: set[int],
) -> ProduceResponse | None:
    """Have what takes long checked in a thread, while others are served; then append."""
    for number, each in enumerate(appends):
        if checked[number] is None:
            checked[number] = await call.cluster.in_thread(_check, call, each)
    for each, batch in zip(appends, checked, strict=True):
        partition = each.partition
        if partition.topic.is_deleted:
            each.result.error_code = Code.UNKNOWN_TOPIC_OR_PARTITION
        elif partition.leader != call.node.node_id:
            each.result.error_code = Code.NOT_LEADER_OR_FOLLOWER
        else:
            _append(call, request, each, batch)
    return _reply(call, request, responses, leaders)


def _reply(
    call: Call[ProduceResponse],
    request: ProduceRequest,
    responses: list[ProduceResponse.TopicProduceResponse],
    leaders: set[int],
) -> ProduceResponse | None:
    if request.acks == 0:
        failed = [result.error_code for topic in responses for result in topic.partition_responses if result.error_code]
        if failed:
            call.connection.refuse(f"a Produce request with acks=0, which has no reply, failed with error {failed[0]}")
        return None
    reply = call.response(responses=responses)
    if leaders:
        reply.node_endpoints = [call.response.NodeEndpoint(*node) for node in call.cluster.endpoints(leaders)]
    return reply


def _refuse_all(call: Call[ProduceResponse], request: ProduceRequest) -> int:
    """Return the code that holds for everything in the request, or 0."""
    if request.acks not in {-1, 0, 1}:
        return Code.INVALID_REQUIRED_ACKS
    if request.transactional_id is None and any(
        is_transactional(part.records) for topic in request.topic_data for part in topic.partition_data
    ):
        return Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if request.transactional_id is not None and not call.allows(
        Operation.WRITE, Resource.TRANSACTIONAL_ID, request.transactional_id
    ):
        return Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return 0


def _find(
    call: Call[ProduceResponse],
    request: ProduceRequest,
    data: ProduceRequest.TopicProduceData,
    part: ProduceRequest.PartitionProduceData,
    result: ProduceResponse.PartitionProduceResponse,
    leaders: set[int],
) -> Partition | None:
    """Return the partition to append to; None, with the error in the result, where nothing may be appended."""
    by_id = call.version >= _IDS_FROM
    topic = call.cluster.topic(topic_id=data.topic_id) if by_id else call.cluster.topic(data.name)
    name = topic.name if topic is not None else data.name
    if name and not call.allows(Operation.WRITE, Resource.TOPIC, name):
        result.error_code = Code.TOPIC_AUTHORIZATION_FAILED
        return None
    if topic is None:
        result.error_code = Code.UNKNOWN_TOPIC_ID if by_id else Code.UNKNOWN_TOPIC_OR_PARTITION
        return None
    partition = topic.partition(part.index)
    if partition is None:
        result.error_code = Code.UNKNOWN_TOPIC_OR_PARTITION
    elif partition.leader != call.node.node_id:
        result.error_code = Code.NOT_LEADER_OR_FOLLOWER
        if call.version >= _LEADER_FROM:
            result.current_leader = call.response.LeaderIdAndEpoch(partition.leader, partition.leader_epoch)
            leaders.add(partition.leader)
    elif topic.is_internal and call.client_id != "__admin_client":
        result.error_code = Code.INVALID_TOPIC_EXCEPTION
    elif request.acks == _ALL and len(partition.isr) < partition.min_insync_replicas:
        result.error_code = Code.NOT_ENOUGH_REPLICAS
    else:
        return partition
    return None


def _check(call: Call[ProduceResponse], append: _Append, *, quick: bool = False) -> Checked:
    tp, config = append.partition.tp, append.partition.log.config
    try:
        return accept(append.records, call.version, config, tp, call.cluster.clock.now_ms(), quick=quick)
    except Refused as refused:
        if refused.__cause__ is not None:
            logger.warning("refused a batch for %s from %s: %s", tp, call.client_id, refused.__cause__)
        return refused
    except Heavy:
        return None


def _append(call: Call[ProduceResponse], request: ProduceRequest, append: _Append, batch: Checked) -> None:
    """Append to one partition and fill in its result."""
    partition, _, result = append
    log = partition.log
    try:
        assert batch is not None
        if isinstance(batch, Refused):
            raise batch
        header = batch.header
        if header.producer_id >= 0:
            _check_producer(call, request, partition, header)
            duplicate = log.producers.find_duplicate(header)
            if duplicate is not None:
                result.base_offset = duplicate.base_offset
                result.log_start_offset = log.start_offset
                # Kafka tells the batch's greatest timestamp here, also where it is the producer's.
                result.log_append_time_ms = duplicate.timestamp
                return
            log.producers.check(header, begins_at_zero=header.is_transactional and call.version >= _BUMPS_FROM)
    except Refused as refused:
        result.error_code = refused.code
        result.error_message = refused.message
        if call.version >= _RECORD_ERRORS_FROM:
            result.record_errors = [call.response.BatchIndexAndErrorMessage(*each) for each in refused.records]
        if refused.by_log:
            result.log_start_offset = log.start_offset
        return
    except KafkaError as error:
        result.error_code = getattr(error, "code", Code.UNKNOWN_SERVER_ERROR)
        result.log_start_offset = log.start_offset
        return
    try:
        result.base_offset = log.append_batch(batch.data, header, partition.leader_epoch)
        log.appended()
    except OSError as error:  # the disk is full, or gone
        logger.error("cannot append to %s: %s", partition.tp, error)
        result.error_code = Code.KAFKA_STORAGE_ERROR
        return
    result.log_append_time_ms = batch.append_time
    result.log_start_offset = log.start_offset
    partition.changed()


def _check_producer(
    call: Call[ProduceResponse], request: ProduceRequest, partition: Partition, header: BatchHeader
) -> None:
    """Raise :class:`Refused` where this producer may not write here now."""
    if not header.is_transactional:
        if not (
            call.allows(Operation.IDEMPOTENT_WRITE, Resource.CLUSTER, CLUSTER_NAME)
            or call.allows(Operation.WRITE, Resource.TOPIC, partition.topic.name)
        ):
            raise Refused(Code.CLUSTER_AUTHORIZATION_FAILED)
        return
    gate = call.cluster.transaction_gate
    if gate is None:
        raise Refused(Code.INVALID_PRODUCER_ID_MAPPING)
    assert request.transactional_id is not None
    partition.log.producers.attempt(header, is_v2=call.version >= _BUMPS_FROM)
    code = gate.check_append(
        request.transactional_id, header.producer_id, header.producer_epoch, partition.tp, call.version
    )
    if code:
        raise Refused(code)
