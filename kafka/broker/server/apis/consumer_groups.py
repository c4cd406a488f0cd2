"""Members of consumer groups, and the groups' description (KIP-848)."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import Final

from kafka.broker.groups.assignors import ASSIGNORS
from kafka.broker.groups.consumer_group import ConsumerGroup
from kafka.broker.groups.consumer_member import LEAVE_STATIC, ConsumerMember, HeartbeatAsk, HeartbeatResult
from kafka.broker.groups.epoch_group import JOIN
from kafka.broker.groups.service import (
    check_fields,
    check_group,
    check_topics,
    coordinator,
    describe_groups,
    named_partitions,
)
from kafka.broker.server.api import Call
from kafka.errors import UnsupportedAssignorError
from kafka.protocol.group import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

_CLASSIC: Final = 0
_CONSUMER: Final = 1


def consumer_group_heartbeat(
    call: Call[ConsumerGroupHeartbeatResponse], request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    """ConsumerGroupHeartbeat (68), versions 0-1: join, stay in and leave a consumer group (KIP-848).

    * v0: the broker makes the member's id, if it has none.
    * v1: the member makes it; topics by a pattern, matched by the broker.
    """
    check_group(call, request.group_id)
    check_topics(call, request.subscribed_topic_names or ())
    groups = coordinator(call)
    _check(call, request, groups.settings.consumer_assignors)
    result = groups.consumer_heartbeat(request.group_id, _ask(call, request))
    interval = groups.settings_of(request.group_id).consumer_heartbeat_interval
    return _reply(call, result, int(interval * 1000))


def _check(
    call: Call[ConsumerGroupHeartbeatResponse], request: ConsumerGroupHeartbeatRequest, assignors: tuple[str, ...]
) -> None:
    """Raise if the fields of the request contradict each other."""
    joins = request.member_epoch == JOIN
    named = request.subscribed_topic_names is not None or bool(request.subscribed_topic_regex)
    check_fields(
        (
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
    )
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


def consumer_group_describe(
    call: Call[ConsumerGroupDescribeResponse], request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    """ConsumerGroupDescribe (69), versions 0-1: members of consumer groups, what they have and what they are to have.

    * v0: as KIP-848 says.
    * v1: which protocol each member speaks (KIP-1099).
    """
    return describe_groups(call, request, ConsumerGroup, _topics, _describe)  # type: ignore[no-any-return]


def _topics(call: Call[ConsumerGroupDescribeResponse], group: ConsumerGroup) -> set[str]:
    """Return the topics that members name, have, or are to have."""
    members = group.members.values()
    assigned = [*(member.holding.owned for member in members), *group.targets.values()]
    named = {name for member in members for name in member.names}
    return named | {name for each in assigned for _, name, _ in named_partitions(call, each)}


def _describe(
    call: Call[ConsumerGroupDescribeResponse],
    group: ConsumerGroup,
    described: ConsumerGroupDescribeResponse.DescribedGroup,
) -> None:
    described.assignor_name = group.assignor
    described.members = [_member(call, group, member) for member in group.members.values()]


def _member(
    call: Call[ConsumerGroupDescribeResponse], group: ConsumerGroup, member: ConsumerMember
) -> ConsumerGroupDescribeResponse.Member:
    make = call.response.Assignment
    found = call.response.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.names),
        subscribed_topic_regex=member.regex or "",
        assignment=make(named_partitions(call, member.holding.owned)),
        target_assignment=make(named_partitions(call, group.targets.get(member.member_id, {}))),
    )
    if call.version >= 1:
        found.member_type = _CONSUMER if member.classic is None else _CLASSIC
    return found
