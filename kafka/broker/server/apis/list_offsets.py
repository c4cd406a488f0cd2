"""Where records are: the offsets of timestamps, and of the ends of leader epochs."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from kafka.broker.cluster.topics import Partition
from kafka.broker.server.api import CLUSTER_NAME, Call, Code, Operation, Resource
from kafka.broker.storage.times import HeavyBatch, Reader, first_at_or_after, greatest_timestamp, offsets_before
from kafka.protocol.offset import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafka.record.batch import decode_batch

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING: Final = -6
#: The special timestamps that need a version, with it.
_SINCE: Final = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING: 11}
_READ_COMMITTED: Final = 1
_UNKNOWN: Final = (-1, -1, -1)


def list_offsets(
    call: Call[ListOffsetsResponse], request: ListOffsetsRequest
) -> ListOffsetsResponse | Awaitable[ListOffsetsResponse]:
    """ListOffsets (2), versions 0-11: the offset that belongs to a time, or to an end of the log.

    * v0: a list of offsets of segments, newest first (KIP-79 replaced it).
    * v1: one offset and its timestamp.
    * v2: isolation level: with read_committed the latest offset is the last stable one; throttle time.
    * v3: clients expect throttling after the reply. v4: leader epochs (KIP-320).
    * v5: OFFSET_NOT_AVAILABLE (not here). v6: flexible.
    * v7: -3: the record with the greatest timestamp (KIP-734).
    * v8: -4: the earliest offset that is local (KIP-405): the first one, as nothing is tiered here.
    * v9: -5: the latest tiered offset (KIP-1005): none.
    * v10: a timeout. v11: -6: the earliest offset yet to be tiered (KIP-1023): none.
    """
    reader = Reader()
    try:
        return _reply(call, request, reader)
    except HeavyBatch as batch:
        return _reply_later(call, request, reader, batch)


async def _reply_later(
    call: Call[ListOffsetsResponse], request: ListOffsetsRequest, reader: Reader, batch: HeavyBatch
) -> ListOffsetsResponse:
    """Have large batches read in a thread, while others are served."""
    while True:
        rows = await call.cluster.in_thread(decode_batch, batch.data, batch.header, check_crc=False)
        reader.known[batch.key] = rows
        try:
            return _reply(call, request, reader)
        except HeavyBatch as another:
            batch = another


def _reply(call: Call[ListOffsetsResponse], request: ListOffsetsRequest, reader: Reader) -> ListOffsetsResponse:
    counts: dict[tuple[str, int], int] = {}
    for topic in request.topics:
        for part in topic.partitions:
            counts[topic.name, part.partition_index] = counts.get((topic.name, part.partition_index), 0) + 1
    return call.response(
        topics=[
            call.response.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    _offset_of(call, request, topic.name, part, counts[topic.name, part.partition_index] > 1, reader)
                    # One that is asked for twice is answered once: with an error.
                    for part in {part.partition_index: part for part in topic.partitions}.values()
                ],
            )
            for topic in request.topics
        ]
    )


def _offset_of(
    call: Call[ListOffsetsResponse],
    request: ListOffsetsRequest,
    topic: str,
    part: ListOffsetsRequest.ListOffsetsPartition,
    is_double: bool,
    reader: Reader,
) -> ListOffsetsResponse.ListOffsetsPartitionResponse:
    result = call.response.ListOffsetsPartitionResponse(partition_index=part.partition_index)
    partition = call.cluster.partition(topic, part.partition_index)
    code = _refusal(call, topic, partition, part)
    if is_double and call.version > 0:
        code = Code.INVALID_REQUEST
    if code or partition is None:
        result.error_code = code
        return result
    if call.version == 0:
        result.old_style_offsets = offsets_before(partition.log, part.timestamp, part.max_num_offsets)
        return result
    committed = request.isolation_level == _READ_COMMITTED
    result.timestamp, result.offset, epoch = _find(partition, part.timestamp, committed, reader)
    if call.version >= 4:
        result.leader_epoch = epoch
    return result


def _refusal(
    call: Call[ListOffsetsResponse],
    topic: str,
    partition: Partition | None,
    part: ListOffsetsRequest.ListOffsetsPartition,
) -> int:
    if not call.allows(Operation.DESCRIBE, Resource.TOPIC, topic):
        return Code.TOPIC_AUTHORIZATION_FAILED
    if partition is None:
        return Code.UNKNOWN_TOPIC_OR_PARTITION
    if partition.leader != call.node.node_id:
        return Code.NOT_LEADER_OR_FOLLOWER
    epoch = part.current_leader_epoch
    if 0 <= epoch < partition.leader_epoch:
        return Code.FENCED_LEADER_EPOCH
    if epoch > partition.leader_epoch:
        return Code.UNKNOWN_LEADER_EPOCH
    if part.timestamp < EARLIEST and call.version < _SINCE.get(part.timestamp, 0):
        return Code.UNSUPPORTED_VERSION
    if part.timestamp < EARLIEST_PENDING:
        return Code.UNSUPPORTED_VERSION
    return 0


def _find(partition: Partition, timestamp: int, committed: bool, reader: Reader) -> tuple[int, int, int]:
    """Return timestamp, offset and leader epoch."""
    log = partition.log
    if timestamp in {EARLIEST, EARLIEST_LOCAL}:
        return -1, log.start_offset, log.epoch_of(log.start_offset) if log.epochs else -1
    if timestamp == LATEST:
        return -1, log.stable_offset if committed else log.high_watermark, partition.leader_epoch
    if timestamp in {LATEST_TIERED, EARLIEST_PENDING}:
        return _UNKNOWN
    found = greatest_timestamp(log, reader) if timestamp == MAX_TIMESTAMP else first_at_or_after(log, timestamp, reader)
    upper = log.stable_offset if committed else log.high_watermark
    if found is None or found[1] >= upper:
        return _UNKNOWN
    return found


def offset_for_leader_epoch(
    call: Call[OffsetForLeaderEpochResponse], request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """OffsetForLeaderEpoch (23), versions 0-4: where the records of a leader epoch end (KIP-101, KIP-320).

    * v0: end offset. v1: the epoch that it is of, which may be an earlier one.
    * v2: the asker's leader epoch is checked; throttle time.
    * v3: replica id (consumers send -1). v4: flexible.

    Look the epochs up; brokers may for all topics.
    """
    is_broker = call.allows(Operation.CLUSTER_ACTION, Resource.CLUSTER, CLUSTER_NAME)
    return call.response(
        topics=[
            call.response.OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_end_of_epoch(call, topic.topic, part, is_broker) for part in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _end_of_epoch(
    call: Call[OffsetForLeaderEpochResponse],
    topic: str,
    part: OffsetForLeaderEpochRequest.OffsetForLeaderPartition,
    is_broker: bool,
) -> OffsetForLeaderEpochResponse.EpochEndOffset:
    result = call.response.EpochEndOffset(partition=part.partition)
    partition = call.cluster.partition(topic, part.partition)
    if not is_broker and not call.allows(Operation.DESCRIBE, Resource.TOPIC, topic):
        result.error_code = Code.TOPIC_AUTHORIZATION_FAILED
    elif partition is None:
        result.error_code = Code.UNKNOWN_TOPIC_OR_PARTITION
    elif partition.leader != call.node.node_id:
        result.error_code = Code.NOT_LEADER_OR_FOLLOWER
    elif 0 <= part.current_leader_epoch < partition.leader_epoch:
        result.error_code = Code.FENCED_LEADER_EPOCH
    elif part.current_leader_epoch > partition.leader_epoch:
        result.error_code = Code.UNKNOWN_LEADER_EPOCH
    else:
        epoch, end = partition.log.epoch_end(part.leader_epoch)
        result.leader_epoch, result.end_offset = epoch, end
    return result
