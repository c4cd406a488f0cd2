"""CreatePartitions (37), versions 0-3: more partitions for topics.

* v0, v1: count, assignments, validate only; v1: clients expect throttling after the reply.
* v2: flexible. v3: quota errors (not here).
"""

from __future__ import annotations

from collections import Counter

from kafka.broker.cluster.creation import plan_partitions
from kafka.broker.server.api import BrokerResponseError, Call, Code, Operation, Resource
from kafka.protocol.admin import CreatePartitionsRequest, CreatePartitionsResponse


def handle(call: Call[CreatePartitionsResponse], request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    """Add them, or say why not."""
    names = Counter(topic.name for topic in request.topics)
    results: list[tuple[str, int, str | None]] = []
    for topic in {topic.name: topic for topic in request.topics}.values():
        if names[topic.name] > 1:
            results.append((topic.name, Code.INVALID_REQUEST, "Duplicate topic name."))
        elif not call.allows(Operation.ALTER, Resource.TOPIC, topic.name):
            results.append((topic.name, Code.TOPIC_AUTHORIZATION_FAILED, None))
        else:
            results.append(_create(call, request, topic))
    return call.response(results=results)


def _create(
    call: Call[CreatePartitionsResponse],
    request: CreatePartitionsRequest,
    asked: CreatePartitionsRequest.CreatePartitionsTopic,
) -> tuple[str, int, str | None]:
    topic = call.cluster.topic(asked.name)
    if topic is None:
        return asked.name, Code.UNKNOWN_TOPIC_OR_PARTITION, None
    assignments = None if asked.assignments is None else [one.broker_ids for one in asked.assignments]
    try:
        replicas = plan_partitions(call.cluster, topic, asked.count, assignments)
    except BrokerResponseError as error:
        reason = error.args[0] if error.args else None
        return asked.name, error.code, None if reason is None else str(reason)
    if not request.validate_only:
        call.cluster.add_partitions(topic, replicas)
    return asked.name, 0, None
