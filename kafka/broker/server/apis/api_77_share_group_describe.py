"""ShareGroupDescribe (77), version 1: the members of share groups and their partitions (KIP-932)."""

from __future__ import annotations

from typing import Any

from kafka.broker.groups.service import TopicsView, coordinator, message_of, refusal
from kafka.broker.groups.share_group import ShareMember
from kafka.broker.server.api import BrokerResponseError, Call, Code, Operation, Resource
from kafka.broker.server.call import group_operations
from kafka.protocol.share import ShareGroupDescribeRequest

_HIDDEN = "The group has described topic(s) that the client is not authorized to describe."


def handle(call: Call, request: ShareGroupDescribeRequest) -> Any:
    """Describe each."""
    return call.response(groups=[_describe(call, request, group_id) for group_id in request.group_ids])


def _describe(call: Call, request: ShareGroupDescribeRequest, group_id: str) -> Any:
    make = call.response.DescribedGroup
    if not group_id:
        return make(group_id=group_id, error_code=Code.INVALID_GROUP_ID)
    refused = refusal(call, group_id, Operation.DESCRIBE)
    if refused:
        return make(group_id=group_id, error_code=refused)
    try:
        group = coordinator(call).share(group_id)
    except BrokerResponseError as error:
        return make(group_id=group_id, error_code=error.code, error_message=message_of(error))
    names = {name for member in group.members.values() for name in member.names}
    if not all(call.allows(Operation.DESCRIBE, Resource.TOPIC, name) for name in names):
        return make(group_id=group_id, error_code=Code.TOPIC_AUTHORIZATION_FAILED, error_message=_HIDDEN)
    described = make(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor,
        members=[_member(call, member) for member in group.members.values()],
    )
    if request.include_authorized_operations:
        described.authorized_operations = group_operations(call, group_id)
    return described


def _member(call: Call, member: ShareMember) -> Any:
    topics = TopicsView(call.cluster)
    named = [(topic_id, topics.topic_name(topic_id), sorted(parts)) for topic_id, parts in member.assigned.items()]
    return call.response.Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.names),
        assignment=call.response.Assignment([each for each in named if each[1] is not None]),
    )
