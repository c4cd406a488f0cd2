"""Members of streams groups, and the groups' description (KIP-1071)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from kafka.broker.groups.epoch_group import JOIN, LEAVE, Topics
from kafka.broker.groups.service import check_fields, check_group, check_topics, coordinator, describe_groups
from kafka.broker.groups.streams_group import StreamsAsk, StreamsGroup, StreamsMember, Target
from kafka.broker.groups.streams_topology import InternalTopic, Subtopology, Task, Topology
from kafka.broker.server.api import Call
from kafka.errors import InvalidRequestError, UnsupportedVersionError
from kafka.protocol.streams import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

_FEATURE: Final = "streams.version"
_LEAVE_STATIC: Final = -2
_HIDDEN = "The described group uses topics that the client is not authorized to describe."


def streams_group_heartbeat(
    call: Call[StreamsGroupHeartbeatResponse], request: StreamsGroupHeartbeatRequest
) -> StreamsGroupHeartbeatResponse:
    """StreamsGroupHeartbeat (88), version 0: join, stay in and leave a streams group (KIP-1071)."""
    if not call.cluster.features.serves(_FEATURE):
        raise UnsupportedVersionError
    _check(request)
    subtopologies = request.topology.subtopologies if request.topology is not None else ()
    check_group(call, request.group_id)
    check_topics(call, (name for each in subtopologies for name in each.source_topics))
    groups = coordinator(call)
    if request.member_epoch == LEAVE:
        groups.leave_epochs(StreamsGroup, request.group_id, request.member_id)
        return call.response(member_id=request.member_id, member_epoch=LEAVE, status=[])
    result = groups.streams_heartbeat(request.group_id, _ask(call, request))
    member = result.member
    reply = call.response(
        member_id=member.member_id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=int(groups.settings_of(request.group_id).streams_heartbeat_interval * 1000),
        status=list(result.status),
        endpoint_information_epoch=result.endpoint_epoch,
    )
    if result.has_tasks:
        make = call.response.TaskIds
        reply.active_tasks = [make(*task) for task in tasks(member.active)]
        reply.standby_tasks = [make(*task) for task in tasks(member.standby)]
        reply.warmup_tasks = []
    if result.endpoints is not None:
        topology = groups.find(StreamsGroup, request.group_id).topology
        reply.partitions_by_user_endpoint = [_endpoint(call, topology, one) for one in result.endpoints]
    return reply


def refuse_streams_group_heartbeat(
    call: Call[StreamsGroupHeartbeatResponse], _: StreamsGroupHeartbeatRequest, code: int
) -> StreamsGroupHeartbeatResponse:
    """List no status beside the error."""
    return call.response(error_code=code, status=[])


def _check(request: StreamsGroupHeartbeatRequest) -> None:
    joins = request.member_epoch == JOIN
    check_fields(
        (
            (request.instance_id is not None, "Static membership is not yet supported."),
            (not request.member_id.strip(), "MemberId can't be empty."),
            (not request.group_id.strip(), "GroupId can't be empty."),
            (request.rack_id is not None and not request.rack_id.strip(), "RackId can't be empty."),
            (joins and request.rebalance_timeout_ms == -1, "RebalanceTimeoutMs must be provided in first request."),
            (joins and request.topology is None, "Topology must be non-null when (re-)joining."),
            (joins and request.active_tasks != [], "ActiveTasks must be empty when (re-)joining."),
            (joins and request.standby_tasks != [], "StandbyTasks must be empty when (re-)joining."),
            (joins and request.warmup_tasks != [], "WarmupTasks must be empty when (re-)joining."),
            (request.member_epoch == _LEAVE_STATIC, "InstanceId can't be null."),
            (
                request.member_epoch < _LEAVE_STATIC,
                f"MemberEpoch is {request.member_epoch}, but must be greater than or equal to -2.",
            ),
        )
    )


def _ask(call: Call[StreamsGroupHeartbeatResponse], request: StreamsGroupHeartbeatRequest) -> StreamsAsk:
    endpoint, tags, active = request.user_endpoint, request.client_tags, request.active_tasks
    return StreamsAsk(
        request.member_id,
        request.member_epoch,
        request.endpoint_information_epoch,
        request.rack_id,
        None if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms / 1000,
        None if request.topology is None else _asked_topology(request.topology),
        None
        if active is None
        else frozenset((one.subtopology_id, index) for one in active for index in one.partitions),
        request.process_id,
        None if endpoint is None else (endpoint.host, endpoint.port),
        None if tags is None else tuple((tag.key, tag.value) for tag in tags),
        request.shutdown_application,
        call.client_id,
        f"/{call.host}",
    )


def _asked_topology(asked: StreamsGroupHeartbeatRequest.Topology) -> Topology:
    return Topology(asked.epoch, tuple(_asked_subtopology(each) for each in asked.subtopologies))


def _asked_subtopology(asked: StreamsGroupHeartbeatRequest.Subtopology) -> Subtopology:
    sources, repartitions = list(asked.source_topics), _asked_internal(asked.repartition_source_topics)
    return Subtopology(
        asked.subtopology_id,
        tuple(sources),
        tuple(asked.source_topic_regex),
        _asked_internal(asked.state_changelog_topics),
        tuple(asked.repartition_sink_topics),
        repartitions,
        tuple(
            (
                *_chosen(sources, group.source_topics),
                *_chosen([topic.name for topic in repartitions], group.repartition_source_topics),
            )
            for group in asked.copartition_groups
        ),
    )


def _chosen(names: list[str], indexes: list[int]) -> list[str]:
    """Return the topics of a copartition group, which names them by their places in the subtopology's lists."""
    if any(not 0 <= at < len(names) for at in indexes):
        raise InvalidRequestError(f"A copartition group has topics {indexes}, but the subtopology has {len(names)}.")
    return [names[at] for at in indexes]


def _asked_internal(topics: Iterable[StreamsGroupHeartbeatRequest.TopicInfo]) -> tuple[InternalTopic, ...]:
    return tuple(
        InternalTopic(
            topic.name,
            topic.partitions,
            topic.replication_factor,
            tuple((config.key, config.value) for config in topic.topic_configs),
        )
        for topic in topics
    )


def tasks(assigned: Iterable[Task]) -> list[tuple[str, list[int]]]:
    """Return tasks as messages list them: the partitions of each subtopology."""
    found: dict[str, list[int]] = defaultdict(list)
    for subtopology, index in sorted(assigned):
        found[subtopology].append(index)
    return list(found.items())


def _endpoint(
    call: Call[StreamsGroupHeartbeatResponse], topology: Topology | None, member: StreamsMember
) -> StreamsGroupHeartbeatResponse.EndpointToPartitions:
    make = call.response.EndpointToPartitions

    def partitions(assigned: Iterable[Task]) -> list[tuple[str, list[int]]]:
        return [
            (topic, indexes)
            for subtopology, indexes in tasks(assigned)
            for topic in (topology.topics_of(subtopology) if topology is not None else ())
        ]

    return make(
        user_endpoint=member.endpoint,
        active_partitions=partitions(member.active),
        standby_partitions=partitions(member.standby),
    )


def streams_group_describe(
    call: Call[StreamsGroupDescribeResponse], request: StreamsGroupDescribeRequest
) -> StreamsGroupDescribeResponse:
    """StreamsGroupDescribe (89), version 0: topology, members and tasks of streams groups (KIP-1071)."""
    return describe_groups(call, request, StreamsGroup, _topics, _describe, _HIDDEN)  # type: ignore[no-any-return]


def _topics(_: Call, group: StreamsGroup) -> Iterable[str]:
    return () if group.topology is None else group.topology.source_topics()


def _describe(
    call: Call[StreamsGroupDescribeResponse],
    group: StreamsGroup,
    described: StreamsGroupDescribeResponse.DescribedGroup,
) -> None:
    described.topology = _described_topology(call, group)
    described.members = [_member(call, group, member) for member in group.members.values()]


def _described_topology(
    call: Call[StreamsGroupDescribeResponse], group: StreamsGroup
) -> StreamsGroupDescribeResponse.Topology | None:
    if group.topology is None:
        return None
    topology = group.topology
    if group.state != "NotReady":
        topology = topology.with_partitions(Topics(call.cluster).partition_count)
    make = call.response.Topology
    return make(
        epoch=topology.epoch, subtopologies=[_described_subtopology(call, each) for each in topology.subtopologies]
    )


def _described_subtopology(
    call: Call[StreamsGroupDescribeResponse], each: Subtopology
) -> StreamsGroupDescribeResponse.Subtopology:
    return call.response.Subtopology(
        subtopology_id=each.subtopology_id,
        source_topics=list(each.source_topics),
        repartition_sink_topics=list(each.sinks),
        state_changelog_topics=[_described_internal(topic) for topic in each.changelogs],
        repartition_source_topics=[_described_internal(topic) for topic in each.repartition_sources],
    )


def _described_internal(topic: InternalTopic) -> tuple[str, int, int, list[tuple[str, str]]]:
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
