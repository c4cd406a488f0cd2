"""AlterShareGroupOffsets (91), version 0: set where an empty share group begins to read partitions (KIP-932).

A group that does not exist is created, with offsets and without members.
"""

from __future__ import annotations

from kafka.broker.groups.service import GroupService, coordinator, message_of, refusal
from kafka.broker.groups.share_group import ShareGroup
from kafka.broker.server.api import BrokerResponseError, Call, Code, Operation, Resource
from kafka.protocol.fields import ZERO_UUID
from kafka.protocol.share import AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse

_UNKNOWN = "This server does not host this topic-partition."
_DENIED = "Topic authorization failed."


def handle(
    call: Call[AlterShareGroupOffsetsResponse], request: AlterShareGroupOffsetsRequest
) -> AlterShareGroupOffsetsResponse:
    """Set the offsets; Kafka lists the topics that it refuses first."""
    refused = refusal(call, request.group_id) if request.group_id else Code.NONE
    if refused:
        return call.response(error_code=refused)
    try:
        group = coordinator(call).alterable_share(request.group_id, creates=True)
    except BrokerResponseError as error:
        return call.response(error_code=error.code, error_message=message_of(error))
    topics = [_topic(call, group, topic) for topic in request.topics]
    return call.response(responses=sorted(topics, key=lambda topic: bool(topic.topic_id.int)))


def _topic(
    call: Call[AlterShareGroupOffsetsResponse],
    group: ShareGroup,
    asked: AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic,
) -> AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic:
    name = asked.topic_name
    topic = call.cluster.topic(name)
    is_allowed = call.allows(Operation.READ, Resource.TOPIC, name)
    rows: list[tuple[int, int, str | None]] = []
    for part in asked.partitions:
        if not is_allowed:
            rows.append((part.partition_index, Code.TOPIC_AUTHORIZATION_FAILED, _DENIED))
        elif topic is None or topic.partition(part.partition_index) is None:
            rows.append((part.partition_index, Code.UNKNOWN_TOPIC_OR_PARTITION, _UNKNOWN))
        else:
            group.offsets.set(topic.id, part.partition_index, part.start_offset)
            call.cluster.service(GroupService).share_offset_set(group.group_id, topic.id, part.partition_index)
            rows.append((part.partition_index, Code.NONE, None))
    make = call.response.AlterShareGroupOffsetsResponsePartition
    return call.response.AlterShareGroupOffsetsResponseTopic(
        topic_name=name,
        topic_id=topic.id if topic is not None and is_allowed else ZERO_UUID,
        partitions=[make(partition_index=index, error_code=code, error_message=text) for index, code, text in rows],
    )
