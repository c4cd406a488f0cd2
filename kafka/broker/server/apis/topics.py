"""Topics: creating, enlarging, deleting them and their records, and describing them page by page."""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias
from uuid import UUID

from kafka.broker.cluster.creation import TopicPlan, is_too_much, plan_partitions, plan_topic
from kafka.broker.cluster.topics import NO_LEADER, Partition, Topic, is_valid_topic_name
from kafka.broker.configs.definitions import TOPIC_OPTIONS
from kafka.broker.server.api import CLUSTER_NAME, BrokerResponseError, Call, Code, Operation, Resource
from kafka.broker.server.call import topic_operations
from kafka.errors import InvalidReplicationAssignmentError
from kafka.protocol.admin import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from kafka.protocol.fields import ZERO_UUID
from kafka.protocol.metadata import DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse

#: Name and id, of which one is to be given.
_Asked: TypeAlias = "tuple[str | None, UUID]"
_WITH_IDS_FROM = 6
_DISABLED_FROM = 3
_HIGH_WATERMARK = -1
#: max.request.partition.size.limit
_MOST = 2000


def create_topics(call: Call[CreateTopicsResponse], request: CreateTopicsRequest) -> CreateTopicsResponse:
    """CreateTopics (19), versions 0-7: new topics.

    * v0: names, numbers, assignments, configuration. v1: validate only; messages with errors.
    * v2: throttle time. v3: clients expect throttling after the reply.
    * v4: -1 for partitions and replicas takes the brokers' defaults (KIP-464); older versions may use it too.
    * v5: flexible; the reply describes the new topic, with its configuration (KIP-525). v6: quota errors (not here).
    * v7: topic ids.

    Any node takes it, as brokers in KRaft mode forward it to the controller.
    """
    names = Counter(topic.name for topic in request.topics)
    may_create_any = call.allows(Operation.CREATE, Resource.CLUSTER, CLUSTER_NAME)
    too_much = is_too_much(call.cluster, [len(one.assignments) or one.num_partitions for one in request.topics])
    results = []
    for topic in {topic.name: topic for topic in request.topics}.values():
        if names[topic.name] > 1:
            results.append(_refused(call, topic.name, Code.INVALID_REQUEST, "Duplicate topic name."))
        elif not (may_create_any or call.allows(Operation.CREATE, Resource.TOPIC, topic.name)):
            results.append(_refused(call, topic.name, Code.TOPIC_AUTHORIZATION_FAILED, "Authorization failed."))
        elif too_much:
            message = "Excessively large number of partitions per request."
            results.append(_refused(call, topic.name, Code.POLICY_VIOLATION, message))
        else:
            results.append(_create_topic(call, request, topic))
    return call.response(topics=results)


def _refused(
    call: Call[CreateTopicsResponse], name: str, code: int, message: str | None
) -> CreateTopicsResponse.CreatableTopicResult:
    return call.response.CreatableTopicResult(name=name, error_code=code, error_message=message, configs=[])


def _create_topic(
    call: Call[CreateTopicsResponse], request: CreateTopicsRequest, topic: CreateTopicsRequest.CreatableTopic
) -> CreateTopicsResponse.CreatableTopicResult:
    indexes = Counter(one.partition_index for one in topic.assignments)
    double = next((index for index, times in indexes.items() if times > 1), None)
    try:
        if double is not None:
            raise InvalidReplicationAssignmentError(
                f"Found multiple manual partition assignments for partition {double}"
            )
        plan = plan_topic(
            call.cluster,
            topic.name,
            topic.num_partitions,
            topic.replication_factor,
            {one.partition_index: one.broker_ids for one in topic.assignments},
            {config.name: config.value for config in topic.configs},
        )
        topic_id = call.cluster.new_uuid()
        if not request.validate_only:
            call.cluster.create_topic(plan.name, configs=plan.configs, assignment=plan.assignment, topic_id=topic_id)
    except BrokerResponseError as error:
        return _refused(call, topic.name, error.code, str(error.args[0]))
    result = call.response.CreatableTopicResult(
        name=plan.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=len(plan.assignment),
        replication_factor=len(plan.assignment[0]),
    )
    if call.version >= 5:
        _tell_configs(call, plan, result)
    return result


def _tell_configs(
    call: Call[CreateTopicsResponse], plan: TopicPlan, result: CreateTopicsResponse.CreatableTopicResult
) -> None:
    if not call.allows(Operation.DESCRIBE_CONFIGS, Resource.TOPIC, plan.name):
        result.topic_config_error_code = Code.TOPIC_AUTHORIZATION_FAILED
        result.num_partitions = result.replication_factor = -1
        result.configs = []
        return
    result.configs = []
    for name, option in TOPIC_OPTIONS.items():
        value = call.cluster.configs.topic_values(option, plan.configs)[0]
        result.configs.append(call.response.CreatableTopicConfigs(name, value.value, False, int(value.source), False))


def delete_topics(call: Call[DeleteTopicsResponse], request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """DeleteTopics (20), versions 0-6: topics and all their records.

    * v0: by name. v1: throttle time. v2: clients expect throttling after the reply.
    * v3: TOPIC_DELETION_DISABLED where it was INVALID_REQUEST. v4: flexible. v5: messages. v6: by id too (KIP-516).
    """
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
    responses += [_delete_topic(call, *each) for each in asked if each not in twice]
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


def _delete_topic(
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


def delete_records(call: Call[DeleteRecordsResponse], request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    """DeleteRecords (21), versions 0-2: move the start of partitions up (KIP-107).

    * v0, v1: offsets; -1 means the high watermark. v1: clients expect throttling after the reply. v2: flexible.
    """
    return call.response(
        topics=[
            (topic.name, [_delete_records_of(call, topic.name, part) for part in topic.partitions])
            for topic in request.topics
        ]
    )


def _delete_records_of(
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
    if partition.topic.is_internal or (log.config.compacts and not log.config.deletes):
        return index, -1, Code.POLICY_VIOLATION
    offset = log.high_watermark if part.offset == _HIGH_WATERMARK else part.offset
    if not 0 <= offset <= log.high_watermark:
        return index, -1, Code.OFFSET_OUT_OF_RANGE
    log.delete_before(offset)
    partition.changed()
    return index, log.start_offset, 0


def create_partitions(
    call: Call[CreatePartitionsResponse], request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    """CreatePartitions (37), versions 0-3: more partitions for topics.

    * v0, v1: count, assignments, validate only; v1: clients expect throttling after the reply.
    * v2: flexible. v3: quota errors (not here).
    """
    names = Counter(topic.name for topic in request.topics)
    results: list[tuple[str, int, str | None]] = []
    for topic in {topic.name: topic for topic in request.topics}.values():
        if names[topic.name] > 1:
            results.append((topic.name, Code.INVALID_REQUEST, "Duplicate topic name."))
        elif not call.allows(Operation.ALTER, Resource.TOPIC, topic.name):
            results.append((topic.name, Code.TOPIC_AUTHORIZATION_FAILED, None))
        else:
            results.append(_add_partitions(call, request, topic))
    return call.response(results=results)


def _add_partitions(
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
        if not request.validate_only:
            call.cluster.add_partitions(topic, replicas)
    except BrokerResponseError as error:
        reason = error.args[0] if error.args else None
        return asked.name, error.code, None if reason is None else str(reason)
    return asked.name, 0, None


def describe_topic_partitions(
    call: Call[DescribeTopicPartitionsResponse], request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """DescribeTopicPartitions (75), version 0: topics page by page (KIP-966).

    * v0: topics by name (all if none is named), at most a given number of partitions, and a cursor to continue from.
    """
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
