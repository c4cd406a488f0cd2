"""CreateTopics (19), versions 0-7: new topics.

* v0: names, numbers, assignments, configuration. v1: validate only; messages with errors.
* v2: throttle time. v3: clients expect throttling after the reply.
* v4: -1 for partitions and replicas takes the brokers' defaults (KIP-464); older versions may use it too.
* v5: flexible; the reply describes the new topic, with its configuration (KIP-525). v6: quota errors (not here).
* v7: topic ids.

Any node takes it, as brokers in KRaft mode forward it to the controller.
"""

from __future__ import annotations

from collections import Counter

from kafka.broker.cluster.creation import TopicPlan, is_too_much, plan_topic
from kafka.broker.configs.definitions import TOPIC_OPTIONS
from kafka.broker.server.api import CLUSTER_NAME, BrokerResponseError, Call, Code, Operation, Resource
from kafka.errors import InvalidReplicationAssignmentError
from kafka.protocol.admin import CreateTopicsRequest, CreateTopicsResponse


def handle(call: Call[CreateTopicsResponse], request: CreateTopicsRequest) -> CreateTopicsResponse:
    """Create them, or say why not."""
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
            results.append(_create(call, request, topic))
    return call.response(topics=results)


def _refused(
    call: Call[CreateTopicsResponse], name: str, code: int, message: str | None
) -> CreateTopicsResponse.CreatableTopicResult:
    return call.response.CreatableTopicResult(name=name, error_code=code, error_message=message, configs=[])


def _create(
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
    except BrokerResponseError as error:
        return _refused(call, topic.name, error.code, str(error.args[0]))
    topic_id = call.cluster.new_uuid()
    if not request.validate_only:
        call.cluster.create_topic(plan.name, configs=plan.configs, assignment=plan.assignment, topic_id=topic_id)
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
