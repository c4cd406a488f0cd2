"""DeleteTopics (20), versions 0-6: topics and all their records.

* v0: by name. v1: throttle time. v2: clients expect throttling after the reply.
* v3: TOPIC_DELETION_DISABLED where it was INVALID_REQUEST. v4: flexible. v5: messages. v6: by id too (KIP-516).
"""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias
from uuid import UUID

from kafka.broker.server.api import CLUSTER_NAME, Call, Code, Operation, Resource
from kafka.protocol.admin import DeleteTopicsRequest, DeleteTopicsResponse
from kafka.protocol.fields import ZERO_UUID

#: Name and id, of which one is to be given.
_Asked: TypeAlias = "tuple[str | None, UUID]"

_WITH_IDS_FROM = 6
_DISABLED_FROM = 3


def handle(call: Call[DeleteTopicsResponse], request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """Delete them."""
    if call.version >= _WITH_IDS_FROM:
        asked: list[_Asked] = [(topic.name, topic.topic_id) for topic in request.topics]
    else:
        asked = [(name, ZERO_UUID) for name in request.topic_names]
    twice = _named_twice(call, asked)
    responses = [
        call.response.DeletableTopicResult(
            name=name, topic_id=topic_id, error_code=Code.INVALID_REQUEST, error_message=message
        )
        for (name, topic_id), message in dict.fromkeys(twice.values())
    ]
    responses += [_delete(call, *each) for each in asked if each not in twice]
    return call.response(responses=responses)


def _named_twice(call: Call[DeleteTopicsResponse], asked: list[_Asked]) -> dict[_Asked, tuple[_Asked, str]]:
    """Return the requests that name one topic twice, each with its name, id and error; none is deleted."""
    twice: dict[_Asked, tuple[_Asked, str]] = {}
    for each, times in Counter(asked).items():
        if times > 1 and (each[0] is None) != (each[1] == ZERO_UUID):
            message = "Duplicate topic id." if each[0] is None else "Duplicate topic name."
            twice[each] = each, message
    for name, topic_id in dict.fromkeys(asked):
        topic = call.cluster.topic(name) if name is not None and topic_id == ZERO_UUID else None
        if topic is not None and (None, topic.id) in asked:
            both = topic.name, topic.id
            twice[name, topic_id] = both, "The provided topic name maps to an ID that was already supplied."
            twice.pop((None, topic.id), None)
            twice[None, topic.id] = twice[name, topic_id]
    return twice


def _delete(
    call: Call[DeleteTopicsResponse], name: str | None, topic_id: UUID
) -> DeleteTopicsResponse.DeletableTopicResult:
    result = call.response.DeletableTopicResult(name=name, topic_id=topic_id)
    by_id = topic_id != ZERO_UUID
    if not call.cluster.configs.broker_bool("delete.topic.enable"):
        result.error_code = Code.TOPIC_DELETION_DISABLED if call.version >= _DISABLED_FROM else Code.INVALID_REQUEST
        return result
    if (name is None) == (not by_id):
        result.error_code = Code.INVALID_REQUEST
        result.error_message = (
            "Neither topic name nor id were specified."
            if name is None
            else "You may not specify both topic name and topic id."
        )
        return result
    topic = call.cluster.topic(name, topic_id)
    known = name if topic is None else topic.name
    if known is not None and not _may(call, Operation.DELETE, known):
        # A client without the right to describe a topic learns neither its name nor whether it exists.
        may_know = _may(call, Operation.DESCRIBE, known)
        result.name = known if may_know or not by_id else None
        result.error_code = Code.TOPIC_AUTHORIZATION_FAILED
        if topic is not None or not may_know:
            return result
    if topic is None:
        missing = Code.UNKNOWN_TOPIC_ID if by_id else Code.UNKNOWN_TOPIC_OR_PARTITION
        result.error_code = missing
        result.error_message = (
            "This server does not host this topic ID." if by_id else "This server does not host this topic-partition."
        )
        return result
    result.name, result.topic_id = topic.name, topic.id
    call.cluster.delete_topic(topic)
    return result


def _may(call: Call[DeleteTopicsResponse], operation: Operation, topic: str) -> bool:
    """Whether the client may; a right to delete on the cluster holds for all topics, and includes DESCRIBE."""
    return call.allows(Operation.DELETE, Resource.CLUSTER, CLUSTER_NAME) or call.allows(
        operation, Resource.TOPIC, topic
    )
