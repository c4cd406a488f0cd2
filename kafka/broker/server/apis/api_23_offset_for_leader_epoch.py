"""OffsetForLeaderEpoch (23), versions 0-4: where the records of a leader epoch end (KIP-101, KIP-320).

* v0: end offset. v1: the epoch that it is of, which may be an earlier one.
* v2: the asker's leader epoch is checked; throttle time.
* v3: replica id (consumers send -1). v4: flexible.
"""

from __future__ import annotations

from kafka.broker.server.api import CLUSTER_NAME, Call, Code, Operation, Resource
from kafka.protocol.offset import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse


def handle(
    call: Call[OffsetForLeaderEpochResponse], request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """Look the epochs up; brokers may for all topics."""
    is_broker = call.allows(Operation.CLUSTER_ACTION, Resource.CLUSTER, CLUSTER_NAME)
    return call.response(
        topics=[
            call.response.OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=[_answer(call, topic.topic, part, is_broker) for part in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _answer(
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
