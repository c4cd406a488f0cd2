"""DeleteShareGroupOffsets (92), version 0: delete the offsets of topics from an empty share group (KIP-932)."""

from __future__ import annotations

from kafka.broker.groups.service import coordinator, message_of, refusal
from kafka.broker.groups.share_group import ShareGroup
from kafka.broker.server.api import BrokerResponseError, Call, Code, Operation, Resource
from kafka.protocol.fields import ZERO_UUID
from kafka.protocol.share import DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse

_UNKNOWN = "This server does not host this topic-partition."
_DENIED = "Topic authorization failed."


def handle(
    call: Call[DeleteShareGroupOffsetsResponse], request: DeleteShareGroupOffsetsRequest
) -> DeleteShareGroupOffsetsResponse:
    """Delete them; Kafka lists the topics that it refuses last."""
    refused = refusal(call, request.group_id, Operation.DELETE) if request.group_id else Code.NONE
    if refused:
        return call.response(error_code=refused)
    try:
        group = coordinator(call).alterable_share(request.group_id, creates=False)
    except BrokerResponseError as error:
        return call.response(error_code=error.code, error_message=message_of(error))
    topics = [_topic(call, group, topic.topic_name) for topic in request.topics]
    return call.response(responses=sorted(topics, key=lambda topic: not topic.topic_id.int))


def _topic(
    call: Call[DeleteShareGroupOffsetsResponse], group: ShareGroup, name: str
) -> DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic:
    make = call.response.DeleteShareGroupOffsetsResponseTopic
    if not call.allows(Operation.READ, Resource.TOPIC, name):
        code = Code.TOPIC_AUTHORIZATION_FAILED
        return make(topic_name=name, topic_id=ZERO_UUID, error_code=code, error_message=_DENIED)
    topic = call.cluster.topic(name)
    if topic is None:
        code = Code.UNKNOWN_TOPIC_OR_PARTITION
        return make(topic_name=name, topic_id=ZERO_UUID, error_code=code, error_message=_UNKNOWN)
    group.offsets.delete(topic.id)
    return make(topic_name=name, topic_id=topic.id, error_code=Code.NONE)
