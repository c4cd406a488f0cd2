"""ConsumerGroupDescribe (69), versions 0-1: members of consumer groups, what they have and what they are to have.

* v0: as KIP-848 says.
* v1: which protocol each member speaks (KIP-1099).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from kafka.broker.groups.consumer_group import ConsumerGroup
from kafka.broker.groups.consumer_member import ConsumerMember
from kafka.broker.groups.service import TopicsView, coordinator, message_of, refusal
from kafka.broker.server.api import Call, Code, Operation, Resource
from kafka.broker.server.call import group_operations
from kafka.errors import GroupIdNotFoundError
from kafka.protocol.group import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse

_CLASSIC: Final = 0
_CONSUMER: Final = 1


def handle(
    call: Call[ConsumerGroupDescribeResponse], request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    """Describe each."""
    return call.response(groups=[_describe(call, request, group_id) for group_id in request.group_ids])


def _describe(
    call: Call[ConsumerGroupDescribeResponse], request: ConsumerGroupDescribeRequest, group_id: str
) -> ConsumerGroupDescribeResponse.DescribedGroup:
    described = call.response.DescribedGroup(group_id=group_id)
    described.assignment_epoch = described.group_epoch = 0
    described.error_code = refusal(call, group_id, Operation.DESCRIBE)
    if described.error_code:
        return described
    try:
        group = coordinator(call).consumer(group_id)
    except GroupIdNotFoundError as error:
        described.error_code = error.code
        described.error_message = message_of(error)
        return described
    if request.include_authorized_operations:
        described.authorized_operations = group_operations(call, group_id)
    described.group_state = group.state
    described.group_epoch = group.epoch
    described.assignment_epoch = group.assignment_epoch
    described.assignor_name = group.assignor
    described.members = [_member(call, group, member) for member in group.members.values()]
    if any(not call.allows(Operation.DESCRIBE, Resource.TOPIC, name) for name in _topics(described.members)):
        return call.response.DescribedGroup(
            group_id=group_id,
            error_code=Code.TOPIC_AUTHORIZATION_FAILED,
            error_message="The group has described topic(s) that the client is not authorized to describe.",
        )
    return described


def _topics(members: list[ConsumerGroupDescribeResponse.Member]) -> set[str]:
    named = {name for member in members for name in member.subscribed_topic_names}
    return named | {
        part.topic_name
        for member in members
        for assignment in (member.assignment, member.target_assignment)
        for part in assignment.topic_partitions
    }


def _member(
    call: Call[ConsumerGroupDescribeResponse], group: ConsumerGroup, member: ConsumerMember
) -> ConsumerGroupDescribeResponse.Member:
    found = call.response.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.names),
        subscribed_topic_regex=member.regex or "",
        assignment=_assignment(call, member.holding.owned),
        target_assignment=_assignment(call, group.targets.get(member.member_id, {})),
    )
    if call.version >= 1:
        found.member_type = _CONSUMER if member.classic is None else _CLASSIC
    return found


def _assignment(
    call: Call[ConsumerGroupDescribeResponse], assigned: Mapping[UUID, frozenset[int]]
) -> ConsumerGroupDescribeResponse.Assignment:
    topics = TopicsView(call.cluster)
    named = [(topic_id, topics.topic_name(topic_id), sorted(indexes)) for topic_id, indexes in assigned.items()]
    return call.response.Assignment([each for each in named if each[1] is not None])
