"""DescribeTopicPartitions (75), version 0: topics page by page (KIP-966).

* v0: topics by name (all if none is named), at most a given number of partitions, and a cursor to continue from.
"""

from __future__ import annotations

from kafka.broker.cluster.topics import NO_LEADER, Partition, Topic, is_valid_topic_name
from kafka.broker.server.api import Call, Code, Operation, Resource
from kafka.broker.server.call import topic_operations
from kafka.protocol.metadata import DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse

#: max.request.partition.size.limit
_MOST = 2000


def handle(
    call: Call[DescribeTopicPartitionsResponse], request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """Describe topics in order of their names."""
    cluster = call.cluster
    cursor = request.cursor
    names = sorted({topic.name for topic in request.topics} or cluster.topics)
    if not request.topics:
        names = [name for name in names if call.allows(Operation.DESCRIBE, Resource.TOPIC, name)]
    if cursor is not None:
        names = [name for name in names if name >= cursor.topic_name]
    left = max(1, min(request.response_partition_limit, _MOST))
    reply = call.response(topics=[])
    for name in names:
        if not left:
            reply.next_cursor = call.response.Cursor(topic_name=name, partition_index=0)
            break
        topic = cluster.topic(name)
        if topic is None or not call.allows(Operation.DESCRIBE, Resource.TOPIC, name):
            reply.topics.append(_missing(call, name))
            continue
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        shown = topic.partitions[first : first + left]
        reply.topics.append(_describe(call, topic, shown))
        left -= len(shown)
        if first + len(shown) < len(topic.partitions):
            reply.next_cursor = call.response.Cursor(topic_name=name, partition_index=first + len(shown))
            break
    return reply


def _missing(
    call: Call[DescribeTopicPartitionsResponse], name: str
) -> DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic:
    missing = call.response.DescribeTopicPartitionsResponseTopic(error_code=Code.TOPIC_AUTHORIZATION_FAILED, name=name)
    if call.allows(Operation.DESCRIBE, Resource.TOPIC, name):
        known = is_valid_topic_name(name)
        missing.error_code = Code.UNKNOWN_TOPIC_OR_PARTITION if known else Code.INVALID_TOPIC_EXCEPTION
        missing.topic_authorized_operations = topic_operations(call, name)
    return missing


def _describe(
    call: Call[DescribeTopicPartitionsResponse], topic: Topic, partitions: list[Partition]
) -> DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic:
    return call.response.DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=[_partition(call, partition) for partition in partitions],
        topic_authorized_operations=topic_operations(call, topic.name),
    )


def _partition(
    call: Call[DescribeTopicPartitionsResponse], partition: Partition
) -> DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition:
    return call.response.DescribeTopicPartitionsResponsePartition(
        error_code=Code.LEADER_NOT_AVAILABLE if partition.leader == NO_LEADER else 0,
        partition_index=partition.index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        eligible_leader_replicas=[],
        last_known_elr=[],
        offline_replicas=call.cluster.offline(partition),
    )
