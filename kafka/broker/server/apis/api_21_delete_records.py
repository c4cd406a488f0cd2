"""DeleteRecords (21), versions 0-2: move the start of partitions up (KIP-107).

* v0, v1: offsets; -1 means the high watermark. v1: clients expect throttling after the reply. v2: flexible.
"""

from __future__ import annotations

from kafka.broker.server.api import Call, Code, Operation, Resource
from kafka.protocol.admin import DeleteRecordsRequest, DeleteRecordsResponse

_HIGH_WATERMARK = -1


def handle(call: Call[DeleteRecordsResponse], request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    """Delete them."""
    return call.response(
        topics=[
            (topic.name, [_delete(call, topic.name, part) for part in topic.partitions]) for topic in request.topics
        ]
    )


def _delete(
    call: Call[DeleteRecordsResponse], name: str, part: DeleteRecordsRequest.DeleteRecordsPartition
) -> tuple[int, int, int]:
    index = part.partition_index
    if not call.allows(Operation.DELETE, Resource.TOPIC, name):
        return index, -1, Code.TOPIC_AUTHORIZATION_FAILED
    partition = call.cluster.partition(name, index)
    if partition is None:
        return index, -1, Code.UNKNOWN_TOPIC_OR_PARTITION
    if partition.leader != call.node.node_id:
        return index, -1, Code.NOT_LEADER_OR_FOLLOWER
    log = partition.log
    if partition.topic.is_internal or not log.config.deletes:
        return index, -1, Code.POLICY_VIOLATION
    offset = log.high_watermark if part.offset == _HIGH_WATERMARK else part.offset
    if not 0 <= offset <= log.high_watermark:
        return index, -1, Code.OFFSET_OUT_OF_RANGE
    log.delete_before(offset)
    partition.changed()
    return index, log.start_offset, 0
