"""StreamsGroupDescribe (89), version 0: topology, members and tasks of streams groups (KIP-1071)."""

from __future__ import annotations

from typing import Any

from kafka.broker.groups.service import TopicsView, coordinator, message_of, refusal
from kafka.broker.groups.streams_group import StreamsGroup, StreamsMember, Target
from kafka.broker.groups.streams_topology import InternalTopic, Subtopology
from kafka.broker.server.api import BrokerResponseError, Call, Code, Operation, Resource
from kafka.broker.server.apis.api_88_streams_group_heartbeat import tasks
from kafka.broker.server.call import group_operations
from kafka.protocol.streams import StreamsGroupDescribeRequest

_HIDDEN = "The described group uses topics that the client is not authorized to describe."


def handle(call: Call, request: StreamsGroupDescribeRequest) -> Any:
    """Describe each."""
    return call.response(groups=[_describe(call, request, group_id) for group_id in request.group_ids])


def _describe(call: Call, request: StreamsGroupDescribeRequest, group_id: str) -> Any:
    make = call.response.DescribedGroup
    if not group_id:
        return make(group_id=group_id, error_code=Code.INVALID_GROUP_ID)
    refused = refusal(call, group_id, Operation.DESCRIBE)
    if refused:
        return make(group_id=group_id, error_code=refused)
    try:
        group = coordinator(call).streams(group_id)
    except BrokerResponseError as error:
        return make(group_id=group_id, error_code=error.code, error_message=message_of(error))
    names = group.topology.source_topics() if group.topology is not None else []
    if not all(call.allows(Operation.DESCRIBE, Resource.TOPIC, name) for name in names):
        return make(group_id=group_id, error_code=Code.TOPIC_AUTHORIZATION_FAILED, error_message=_HIDDEN)
    described = make(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        topology=_topology(call, group),
        members=[_member(call, group, member) for member in group.members.values()],
    )
    if request.include_authorized_operations:
        described.authorized_operations = group_operations(call, group_id)
    return described


def _topology(call: Call, group: StreamsGroup) -> Any:
    if group.topology is None:
        return None
    topology = group.topology
    if group.state != "NotReady":
        topology = topology.with_partitions(TopicsView(call.cluster).partition_count)
    make = call.response.Topology
    return make(epoch=topology.epoch, subtopologies=[_subtopology(call, each) for each in topology.subtopologies])


def _subtopology(call: Call, each: Subtopology) -> Any:
    return call.response.Subtopology(
        subtopology_id=each.subtopology_id,
        source_topics=list(each.source_topics),
        repartition_sink_topics=list(each.sinks),
        state_changelog_topics=[_internal(topic) for topic in each.changelogs],
        repartition_source_topics=[_internal(topic) for topic in each.repartition_sources],
    )


def _internal(topic: InternalTopic) -> tuple[str, int, int, list[tuple[str, str]]]:
    return topic.name, topic.partitions, topic.replication_factor, list(topic.configs)


def _member(call: Call, group: StreamsGroup, member: StreamsMember) -> Any:
    target = group.targets.get(member.member_id, Target())
    make = call.response.Assignment
    return call.response.Member(
        member_id=member.member_id,
        member_epoch=member.epoch,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=member.endpoint,
        client_tags=list(member.tags),
        assignment=make(tasks(member.active), tasks(member.standby), []),
        target_assignment=make(tasks(target.active), tasks(target.standby), []),
    )
