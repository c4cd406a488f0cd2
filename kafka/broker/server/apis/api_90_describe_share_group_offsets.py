"""DescribeShareGroupOffsets (90), versions 0-1: where share groups begin to read partitions (KIP-932).

* v1: how many records are after that (KIP-1226).
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from kafka.broker.groups.service import coordinator, refusal
from kafka.broker.groups.share_offsets import UNINITIALIZED
from kafka.broker.server.api import Call, Code, Operation, Resource
from kafka.protocol.fields import ZERO_UUID
from kafka.protocol.share import DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse

_DENIED = "Topic authorization failed."


def handle(
    call: Call[DescribeShareGroupOffsetsResponse], request: DescribeShareGroupOffsetsRequest
) -> DescribeShareGroupOffsetsResponse:
    """Describe each group; a group that does not exist has no offsets."""
    return call.response(groups=[_group(call, group) for group in request.groups])


def _group(
    call: Call[DescribeShareGroupOffsetsResponse],
    asked: DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup,
) -> DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup:
    refused = refusal(call, asked.group_id, Operation.DESCRIBE)
    reply = call.response.DescribeShareGroupOffsetsResponseGroup(group_id=asked.group_id, error_code=refused)
    if refused:
        return reply
    if asked.topics is not None:
        reply.topics = [_named(call, asked.group_id, topic.topic_name, topic.partitions) for topic in asked.topics]
        return reply
    offsets = coordinator(call).share_offsets(asked.group_id)
    for topic_id in offsets.topic_ids():
        topic = call.cluster.topic(topic_id=topic_id)
        if topic is not None and call.allows(Operation.DESCRIBE, Resource.TOPIC, topic.name):
            reply.topics.append(_topic(call, asked.group_id, topic.name, topic_id, sorted(offsets.of_topic(topic_id))))
    return reply


def _named(
    call: Call[DescribeShareGroupOffsetsResponse], group_id: str, name: str, partitions: Iterable[int]
) -> DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic:
    topic = call.cluster.topic(name)
    return _topic(call, group_id, name, ZERO_UUID if topic is None else topic.id, partitions)


def _topic(
    call: Call[DescribeShareGroupOffsetsResponse], group_id: str, name: str, topic_id: UUID, partitions: Iterable[int]
) -> DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic:
    make = call.response.DescribeShareGroupOffsetsResponsePartition
    found = call.response.DescribeShareGroupOffsetsResponseTopic(topic_name=name, topic_id=topic_id)
    if not call.allows(Operation.DESCRIBE, Resource.TOPIC, name):
        code = Code.TOPIC_AUTHORIZATION_FAILED
        found.topic_id = ZERO_UUID
        found.partitions = [make(partition_index=i, error_code=code, error_message=_DENIED) for i in partitions]
        return found
    offsets = coordinator(call).share_offsets(group_id).of_topic(topic_id)
    for index in partitions:
        state = offsets.get(index)
        row = make(partition_index=index, start_offset=UNINITIALIZED if state is None else state.start)
        partition = call.cluster.partition(name, index)
        if state is not None and state.start != UNINITIALIZED and partition is not None and call.version >= 1:
            row.lag = partition.log.end_offset - state.start - state.finished
        found.partitions.append(row)
    return found
