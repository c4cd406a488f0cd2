"""ConsumerGroupHeartbeat (68), versions 0-1: join, stay in and leave a consumer group (KIP-848).

* v0: the broker makes the member's id, if it has none.
* v1: the member makes it; topics by a pattern, matched by the broker.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode

from kafka.broker.groups.assignors import ASSIGNORS
from kafka.broker.groups.consumer_member import JOIN, LEAVE_STATIC, HeartbeatAsk, HeartbeatResult
from kafka.broker.groups.service import coordinator, message_of, refusal
from kafka.broker.server.api import BrokerResponseError, Call, Code, Operation, Resource
from kafka.errors import InvalidRequestError, UnsupportedAssignorError
from kafka.protocol.group import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse


def handle(
    call: Call[ConsumerGroupHeartbeatResponse], request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    """Take the member one step further."""
    refused = refusal(call, request.group_id) or _refused_topics(call, request)
    if refused:
        return call.response(error_code=refused)
    groups = coordinator(call)
    try:
        _check(call, request, groups.settings.consumer_assignors)
        result = groups.consumer_heartbeat(request.group_id, _ask(call, request))
    except BrokerResponseError as error:
        return call.response(error_code=error.code, error_message=message_of(error))
    interval = groups.settings_of(request.group_id).consumer_heartbeat_interval
    return _reply(call, result, int(interval * 1000))


def _refused_topics(call: Call[ConsumerGroupHeartbeatResponse], request: ConsumerGroupHeartbeatRequest) -> int:
    for name in request.subscribed_topic_names or ():
        if not call.allows(Operation.DESCRIBE, Resource.TOPIC, name):
            return Code.TOPIC_AUTHORIZATION_FAILED
    return Code.NONE


def _check(
    call: Call[ConsumerGroupHeartbeatResponse], request: ConsumerGroupHeartbeatRequest, assignors: tuple[str, ...]
) -> None:
    """Raise if the fields of the request contradict each other."""
    joins = request.member_epoch == JOIN
    named = request.subscribed_topic_names is not None or bool(request.subscribed_topic_regex)
    problems = (
        (not request.group_id.strip(), "GroupId can't be empty."),
        (not request.member_id.strip() and (call.version >= 1 or not joins), "MemberId can't be empty."),
        (request.instance_id is not None and not request.instance_id.strip(), "InstanceId can't be empty."),
        (request.rack_id is not None and not request.rack_id.strip(), "RackId can't be empty."),
        (request.member_epoch < LEAVE_STATIC, f"MemberEpoch {request.member_epoch} is invalid."),
        (request.member_epoch == LEAVE_STATIC and request.instance_id is None, "InstanceId can't be null."),
        (joins and request.rebalance_timeout_ms == -1, "RebalanceTimeoutMs must be provided in first request."),
        (joins and request.topic_partitions != [], "TopicPartitions must be empty when (re-)joining."),
        (
            joins and not named,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
    )
    for is_wrong, message in problems:
        if is_wrong:
            raise InvalidRequestError(message)
    assignor = request.server_assignor
    if assignor is not None and (assignor not in assignors or assignor not in ASSIGNORS):
        raise UnsupportedAssignorError(
            f"ServerAssignor {assignor} is not supported. Supported assignors: {', '.join(assignors)}."
        )


def _ask(call: Call[ConsumerGroupHeartbeatResponse], request: ConsumerGroupHeartbeatRequest) -> HeartbeatAsk:
    names, owned = request.subscribed_topic_names, request.topic_partitions
    return HeartbeatAsk(
        request.member_id or _new_member_id(call),
        request.member_epoch,
        request.instance_id,
        request.rack_id,
        None if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms / 1000,
        None if names is None else tuple(names),
        request.subscribed_topic_regex,
        request.server_assignor,
        None if owned is None else {each.topic_id: frozenset(each.partitions) for each in owned},
        call.client_id,
        f"/{call.host}",
    )


def _new_member_id(call: Call[ConsumerGroupHeartbeatResponse]) -> str:
    """Return a random id in the form in which Kafka writes its own."""
    return urlsafe_b64encode(call.cluster.new_uuid().bytes).decode().rstrip("=")


def _reply(
    call: Call[ConsumerGroupHeartbeatResponse], result: HeartbeatResult, interval_ms: int
) -> ConsumerGroupHeartbeatResponse:
    reply = call.response(
        error_code=0,
        member_id=result.member_id,
        member_epoch=result.epoch,
        heartbeat_interval_ms=interval_ms if result.epoch >= 0 else 0,
    )
    if result.assignment is not None:
        parts = [(topic_id, sorted(indexes)) for topic_id, indexes in result.assignment.items()]
        reply.assignment = call.response.Assignment(parts)
    return reply
