"""ShareGroupDescribe (77), version 1: the members of share groups and their partitions (KIP-932)."""

from __future__ import annotations

from kafka.broker.groups.service import TopicsView, coordinator, describe_group
from kafka.broker.groups.share_group import ShareGroup, ShareMember
from kafka.broker.server.api import Call
from kafka.protocol.share import ShareGroupDescribeRequest, ShareGroupDescribeResponse

_HIDDEN = "The group has described topic(s) that the client is not authorized to describe."


def handle(call: Call[ShareGroupDescribeResponse], request: ShareGroupDescribeRequest) -> ShareGroupDescribeResponse:
    """Describe each."""
    return call.response(
        groups=[
            describe_group(
                call,
                group_id,
                coordinator(call).share,
                lambda group: {name for member in group.members.values() for name in member.names},
                lambda group: _describe(call, group),
                hidden=_HIDDEN,
                with_operations=request.include_authorized_operations,
            )
            for group_id in request.group_ids
        ]
    )


def _describe(call: Call[ShareGroupDescribeResponse], group: ShareGroup) -> ShareGroupDescribeResponse.DescribedGroup:
    return call.response.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor,
        members=[_member(call, member) for member in group.members.values()],
    )


def _member(call: Call[ShareGroupDescribeResponse], member: ShareMember) -> ShareGroupDescribeResponse.Member:
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
