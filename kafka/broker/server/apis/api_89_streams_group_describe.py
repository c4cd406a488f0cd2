"""StreamsGroupDescribe (89), version 0: topology, members and tasks of streams groups (KIP-1071)."""

from __future__ import annotations

from kafka.broker.groups.service import TopicsView, coordinator, describe_group
from kafka.broker.groups.streams_group import StreamsGroup, StreamsMember, Target
from kafka.broker.groups.streams_topology import InternalTopic, Subtopology
from kafka.broker.server.api import Call
from kafka.broker.server.apis.api_88_streams_group_heartbeat import tasks
from kafka.protocol.streams import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse

_HIDDEN = "The described group uses topics that the client is not authorized to describe."


def handle(
    call: Call[StreamsGroupDescribeResponse], request: StreamsGroupDescribeRequest
) -> StreamsGroupDescribeResponse:
    """Describe each."""
    return call.response(
        groups=[
            describe_group(
                call,
                group_id,
                coordinator(call).streams,
                lambda group: group.topology.source_topics() if group.topology is not None else [],
                lambda group: _describe(call, group),
                hidden=_HIDDEN,
                with_operations=request.include_authorized_operations,
            )
            for group_id in request.group_ids
        ]
    )


def _describe(
    call: Call[StreamsGroupDescribeResponse], group: StreamsGroup
) -> StreamsGroupDescribeResponse.DescribedGroup:
    return call.response.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        topology=_topology(call, group),
        members=[_member(call, group, member) for member in group.members.values()],
    )


def _topology(
    call: Call[StreamsGroupDescribeResponse], group: StreamsGroup
) -> StreamsGroupDescribeResponse.Topology | None:
    if group.topology is None:
        return None
    topology = group.topology
    if group.state != "NotReady":
        topology = topology.with_partitions(TopicsView(call.cluster).partition_count)
    make = call.response.Topology
    return make(epoch=topology.epoch, subtopologies=[_subtopology(call, each) for each in topology.subtopologies])


def _subtopology(
    call: Call[StreamsGroupDescribeResponse], each: Subtopology
) -> StreamsGroupDescribeResponse.Subtopology:
    return call.response.Subtopology(
        subtopology_id=each.subtopology_id,
        source_topics=list(each.source_topics),
        repartition_sink_topics=list(each.sinks),
        state_changelog_topics=[_internal(topic) for topic in each.changelogs],
        repartition_source_topics=[_internal(topic) for topic in each.repartition_sources],
    )


def _internal(topic: InternalTopic) -> tuple[str, int, int, list[tuple[str, str]]]:
    return topic.name, topic.partitions, topic.replication_factor, list(topic.configs)


def _member(
    call: Call[StreamsGroupDescribeResponse], group: StreamsGroup, member: StreamsMember
) -> StreamsGroupDescribeResponse.Member:
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
