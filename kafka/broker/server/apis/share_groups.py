"""Members of share groups, the groups' description and their offsets (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from kafka.broker.groups.epoch_group import JOIN, LEAVE
from kafka.broker.groups.service import (
    GroupService,
    check_fields,
    check_group,
    check_topics,
    coordinator,
    describe_groups,
    named_partitions,
)
from kafka.broker.groups.share_group import ShareAsk, ShareGroup, ShareMember
from kafka.broker.groups.share_offsets import UNINITIALIZED
from kafka.broker.server.api import BrokerResponseError, Call, Code, Operation, Resource
from kafka.errors import UnsupportedVersionError
from kafka.protocol.fields import ZERO_UUID
from kafka.protocol.share import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

_FEATURE: Final = "share.version"
_DENIED = "Topic authorization failed."
_UNKNOWN = "This server does not host this topic-partition."


def share_group_heartbeat(
    call: Call[ShareGroupHeartbeatResponse], request: ShareGroupHeartbeatRequest
) -> ShareGroupHeartbeatResponse:
    """ShareGroupHeartbeat (76), version 1: join, stay in and leave a share group (KIP-932)."""
    if not call.cluster.features.serves(_FEATURE):
        raise UnsupportedVersionError
    joins = request.member_epoch == JOIN
    check_fields(
        (
            (not request.member_id.strip(), ""),  # Kafka does not say what is wrong
            (not request.group_id.strip(), "GroupId can't be empty."),
            (request.rack_id is not None and not request.rack_id.strip(), "RackId can't be empty."),
            (joins and not request.subscribed_topic_names, "SubscribedTopicNames must be set in first request."),
            (request.member_epoch < LEAVE, "MemberEpoch is invalid."),
        )
    )
    check_group(call, request.group_id)
    check_topics(call, request.subscribed_topic_names or ())
    groups = coordinator(call)
    if request.member_epoch == LEAVE:
        groups.leave_epochs(ShareGroup, request.group_id, request.member_id)
        return call.response(member_id=request.member_id, member_epoch=LEAVE)
    member, has_assignment = groups.share_heartbeat(request.group_id, _ask(call, request))
    reply = call.response(
        member_id=member.member_id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=int(groups.settings_of(request.group_id).share_heartbeat_interval * 1000),
    )
    if has_assignment:
        parts = [(topic_id, sorted(indexes)) for topic_id, indexes in member.assigned.items()]
        reply.assignment = call.response.Assignment(parts)
    return reply


def _ask(call: Call[ShareGroupHeartbeatResponse], request: ShareGroupHeartbeatRequest) -> ShareAsk:
    names = request.subscribed_topic_names
    return ShareAsk(
        request.member_id,
        request.member_epoch,
        request.rack_id,
        None if names is None else tuple(dict.fromkeys(names)),
        call.client_id,
        f"/{call.host}",
    )


def share_group_describe(
    call: Call[ShareGroupDescribeResponse], request: ShareGroupDescribeRequest
) -> ShareGroupDescribeResponse:
    """ShareGroupDescribe (77), version 1: the members of share groups and their partitions (KIP-932)."""
    return describe_groups(call, request, ShareGroup, _topics, _describe)  # type: ignore[no-any-return]


def _topics(_: Call, group: ShareGroup) -> set[str]:
    return {name for member in group.members.values() for name in member.names}


def _describe(
    call: Call[ShareGroupDescribeResponse], group: ShareGroup, described: ShareGroupDescribeResponse.DescribedGroup
) -> None:
    described.assignor_name = group.assignor
    described.members = [_member(call, member) for member in group.members.values()]


def _member(call: Call[ShareGroupDescribeResponse], member: ShareMember) -> ShareGroupDescribeResponse.Member:
    return call.response.Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.names),
        assignment=call.response.Assignment(named_partitions(call, member.assigned)),
    )


def describe_share_group_offsets(
    call: Call[DescribeShareGroupOffsetsResponse], request: DescribeShareGroupOffsetsRequest
) -> DescribeShareGroupOffsetsResponse:
    """DescribeShareGroupOffsets (90), versions 0-1: where share groups begin to read partitions (KIP-932).

    * v1: how many records are after that (KIP-1226).

    Describe each group; a group that does not exist has no offsets.
    """
    return call.response(groups=[_group(call, group) for group in request.groups])


def _group(
    call: Call[DescribeShareGroupOffsetsResponse],
    asked: DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup,
) -> DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup:
    reply = call.response.DescribeShareGroupOffsetsResponseGroup(group_id=asked.group_id)
    try:
        check_group(call, asked.group_id, Operation.DESCRIBE)
    except BrokerResponseError as error:
        reply.error_code = error.code
        return reply
    if asked.topics is not None:
        reply.topics = [_named(call, asked.group_id, topic.topic_name, topic.partitions) for topic in asked.topics]
        return reply
    offsets = coordinator(call).share_offsets(asked.group_id)
    for topic_id in offsets.topic_ids():
        topic = call.cluster.topic(topic_id=topic_id)
        if topic is not None and call.allows(Operation.DESCRIBE, Resource.TOPIC, topic.name):
            reply.topics.append(
                _offsets_of_topic(call, asked.group_id, topic.name, topic_id, sorted(offsets.of_topic(topic_id)))
            )
    return reply


def _named(
    call: Call[DescribeShareGroupOffsetsResponse], group_id: str, name: str, partitions: Iterable[int]
) -> DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic:
    topic = call.cluster.topic(name)
    return _offsets_of_topic(call, group_id, name, ZERO_UUID if topic is None else topic.id, partitions)


def _offsets_of_topic(
    call: Call[DescribeShareGroupOffsetsResponse], group_id: str, name: str, topic_id: UUID, partitions: Iterable[int]
) -> DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic:
    make = call.response.DescribeShareGroupOffsetsResponsePartition
    found = call.response.DescribeShareGroupOffsetsResponseTopic(topic_name=name, topic_id=topic_id)
    if not call.allows(Operation.DESCRIBE, Resource.TOPIC, name):
        code = Code.TOPIC_AUTHORIZATION_FAILED
        found.topic_id = ZERO_UUID
        found.partitions = [make(partition_index=i, error_code=code, error_message=_DENIED) for i in partitions]
        return found
    offsets = coordinator(call).share_offsets(group_id).of_topic(topic_id)
    for index in partitions:
        state = offsets.get(index)
        row = make(partition_index=index, start_offset=UNINITIALIZED if state is None else state.start)
        partition = call.cluster.partition(name, index)
        if state is not None and state.start != UNINITIALIZED and partition is not None and call.version >= 1:
            row.lag = partition.log.end_offset - state.start - state.finished
        found.partitions.append(row)
    return found


def alter_share_group_offsets(
    call: Call[AlterShareGroupOffsetsResponse], request: AlterShareGroupOffsetsRequest
) -> AlterShareGroupOffsetsResponse:
    """AlterShareGroupOffsets (91), version 0: set where an empty share group begins to read partitions (KIP-932).

    A group that does not exist is created, with offsets and without members.

    Set the offsets; Kafka lists the topics that it refuses first.
    """
    group = _alterable(call, request.group_id, Operation.READ, creates=True)
    topics = [_set_offsets(call, group, topic) for topic in request.topics]
    return call.response(responses=sorted(topics, key=lambda topic: bool(topic.topic_id.int)))


def _alterable(call: Call, group_id: str, operation: Operation, *, creates: bool) -> ShareGroup:
    if group_id:
        check_group(call, group_id, operation)
    return coordinator(call).alterable_share(group_id, creates=creates)


def _set_offsets(
    call: Call[AlterShareGroupOffsetsResponse],
    group: ShareGroup,
    asked: AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic,
) -> AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic:
    name = asked.topic_name
    topic = call.cluster.topic(name)
    is_allowed = call.allows(Operation.READ, Resource.TOPIC, name)
    rows: list[tuple[int, int, str | None]] = []
    for part in asked.partitions:
        if not is_allowed:
            rows.append((part.partition_index, Code.TOPIC_AUTHORIZATION_FAILED, _DENIED))
        elif topic is None or topic.partition(part.partition_index) is None:
            rows.append((part.partition_index, Code.UNKNOWN_TOPIC_OR_PARTITION, _UNKNOWN))
        else:
            group.offsets.set(topic.id, part.partition_index, part.start_offset)
            call.cluster.service(GroupService).share_offset_set(group.group_id, topic.id, part.partition_index)
            rows.append((part.partition_index, Code.NONE, None))
    make = call.response.AlterShareGroupOffsetsResponsePartition
    return call.response.AlterShareGroupOffsetsResponseTopic(
        topic_name=name,
        topic_id=topic.id if topic is not None and is_allowed else ZERO_UUID,
        partitions=[make(partition_index=index, error_code=code, error_message=text) for index, code, text in rows],
    )


def delete_share_group_offsets(
    call: Call[DeleteShareGroupOffsetsResponse], request: DeleteShareGroupOffsetsRequest
) -> DeleteShareGroupOffsetsResponse:
    """DeleteShareGroupOffsets (92), version 0: delete the offsets of topics from an empty share group (KIP-932).

    Delete them; Kafka lists the topics that it refuses last.
    """
    group = _alterable(call, request.group_id, Operation.DELETE, creates=False)
    topics = [_delete_offsets(call, group, topic.topic_name) for topic in request.topics]
    return call.response(responses=sorted(topics, key=lambda topic: not topic.topic_id.int))


def _delete_offsets(
    call: Call[DeleteShareGroupOffsetsResponse], group: ShareGroup, name: str
) -> DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic:
    make = call.response.DeleteShareGroupOffsetsResponseTopic
    if not call.allows(Operation.READ, Resource.TOPIC, name):
        code = Code.TOPIC_AUTHORIZATION_FAILED
        return make(topic_name=name, topic_id=ZERO_UUID, error_code=code, error_message=_DENIED)
    topic = call.cluster.topic(name)
    if topic is None:
        code = Code.UNKNOWN_TOPIC_OR_PARTITION
        return make(topic_name=name, topic_id=ZERO_UUID, error_code=code, error_message=_UNKNOWN)
    group.offsets.delete(topic.id)
    return make(topic_name=name, topic_id=topic.id, error_code=Code.NONE)
