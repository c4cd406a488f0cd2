"""OffsetDelete (47), version 0: delete committed offsets of topics that a group no longer reads (KIP-496)."""

from __future__ import annotations

from collections.abc import Callable

from kafka.broker.groups.service import coordinator, refusal
from kafka.broker.server.api import BrokerResponseError, Call, Code, Operation, Resource
from kafka.protocol.commit import OffsetDeleteRequest, OffsetDeleteResponse
from kafka.structs import TopicPartition


def handle(call: Call[OffsetDeleteResponse], request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    """Delete, partition by partition."""
    refused = refusal(call, request.group_id, Operation.DELETE)
    if refused:
        return call.response(error_code=refused)
    try:
        may_delete = coordinator(call).deletable(request.group_id)
    except BrokerResponseError as error:
        return call.response(error_code=error.code)
    topics = [
        (
            topic.name,
            [
                (part.partition_index, _delete(call, request.group_id, topic.name, part.partition_index, may_delete))
                for part in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return call.response(error_code=0, topics=topics)


def _delete(
    call: Call[OffsetDeleteResponse], group_id: str, topic: str, index: int, may_delete: Callable[[str], bool]
) -> int:
    if not call.allows(Operation.READ, Resource.TOPIC, topic):
        return Code.TOPIC_AUTHORIZATION_FAILED
    if call.cluster.partition(topic, index) is None:
        return Code.UNKNOWN_TOPIC_OR_PARTITION
    if not may_delete(topic):
        return Code.GROUP_SUBSCRIBED_TO_TOPIC
    coordinator(call).offsets_of(group_id).delete(TopicPartition(topic, index))
    return Code.NONE
