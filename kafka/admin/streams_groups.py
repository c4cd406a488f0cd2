"""Streams groups (KIP-1071): describe and delete them, and change their committed offsets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from kafka.admin.calls import call
from kafka.admin.group_description import DescribedGroup, GroupDescriptions
from kafka.admin.group_offsets import GroupOffsets
from kafka.admin.groups import Groups, as_groups
from kafka.admin.results import Result
from kafka.protocol.streams import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse


class TaskAssignment(Result):
    """Tasks of a streams member: partitions by the id of a subtopology."""

    __slots__ = ()
    active: dict[str, list[int]]
    standby: dict[str, list[int]]
    warmup: dict[str, list[int]]


class TaskOffset(Result):
    """How far a member's copy of the state of a task is, as a sum of offsets, or how far it could be."""

    __slots__ = ()
    subtopology_id: str
    partition: int
    offset: int


class StreamsMember(Result):
    """A member of a streams group: a thread of an application, with its tasks."""

    __slots__ = ()
    member_id: str
    member_epoch: int
    group_instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    topology_epoch: int
    process_id: str
    user_endpoint: tuple[str, int] | None
    client_tags: dict[str, str]
    task_offsets: list[TaskOffset]
    task_end_offsets: list[TaskOffset]
    assignment: TaskAssignment
    target_assignment: TaskAssignment
    is_classic: bool


class InternalTopic(Result):
    """A topic that a streams application has for itself; 0 partitions or replicas are for the application to choose."""

    __slots__ = ()
    partitions: int
    replication_factor: int
    topic_configs: dict[str, str]


class Subtopology(Result):
    """A part of a streams application, with the topics that it reads and writes."""

    __slots__ = ()
    subtopology_id: str
    source_topics: list[str]
    repartition_sink_topics: list[str]
    state_changelog_topics: dict[str, InternalTopic]
    repartition_source_topics: dict[str, InternalTopic]


class StreamsGroupDescription(DescribedGroup):
    """A streams group: its topology and its members, or why they are not known.

    `coordinator_id` is the broker that coordinates the group.
    """

    __slots__ = ()
    _item = "streams group {0.group_id!r}"
    _blank: ClassVar = {"group_type": "streams", "topology_epoch": -1, "subtopologies": []}
    topology_epoch: int
    subtopologies: list[Subtopology]
    members: list[StreamsMember]


class StreamsGroups(GroupDescriptions, GroupOffsets, Groups):
    """The calls about streams groups."""

    @call
    async def describe_streams_groups(
        self, group_ids: Iterable[str], include_authorized_operations: bool = False, timeout_ms: float | None = None
    ) -> dict[str, StreamsGroupDescription]:
        """Describe streams groups (Kafka 4.1); a group that cannot be described has its ``error``."""
        deadline = self._core.deadline(timeout_ms)
        groups = as_groups(group_ids)
        kind, what = StreamsGroupDescribeRequest, "describe_streams_groups()"
        await self._core.require(deadline, kind.API_KEY, 0, what, "4.1")
        answers = await self._ask_descriptions(
            deadline, groups, kind, include_authorized_operations, _streams_group, what
        )
        return self._descriptions(StreamsGroupDescription, answers)

    # Calls that are the same for groups of every kind, by the names of Java…
    delete_streams_groups = Groups.delete_groups
    list_streams_group_offsets = GroupOffsets.list_group_offsets
    alter_streams_group_offsets = GroupOffsets.alter_group_offsets
    delete_streams_group_offsets = GroupOffsets.delete_group_offsets


def _streams_group(group: StreamsGroupDescribeResponse.DescribedGroup) -> StreamsGroupDescription:
    topology = group.topology
    return StreamsGroupDescription.known(
        group,
        group_type="streams",
        topology_epoch=-1 if topology is None else topology.epoch,
        subtopologies=[
            Subtopology.of_entry(
                one,
                state_changelog_topics=_topics(one.state_changelog_topics),
                repartition_source_topics=_topics(one.repartition_source_topics),
            )
            for one in (() if topology is None else topology.subtopologies or ())
        ],
        members=[
            StreamsMember.of_entry(
                member,
                group_instance_id=member.instance_id,
                user_endpoint=None
                if member.user_endpoint is None
                else (member.user_endpoint.host, member.user_endpoint.port),
                client_tags=_pairs(member.client_tags),
                task_offsets=[TaskOffset.of_entry(one) for one in member.task_offsets],
                task_end_offsets=[TaskOffset.of_entry(one) for one in member.task_end_offsets],
                assignment=_tasks(member.assignment),
                target_assignment=_tasks(member.target_assignment),
            )
            for member in group.members
        ],
    )


def _tasks(assignment: object) -> TaskAssignment:
    return TaskAssignment(
        **{
            name: {one.subtopology_id: list(one.partitions) for one in getattr(assignment, f"{name}_tasks")}
            for name in ("active", "standby", "warmup")
        }
    )


def _topics(topics: Iterable[StreamsGroupDescribeResponse.TopicInfo]) -> dict[str, InternalTopic]:
    return {topic.name: InternalTopic.of_entry(topic, topic_configs=_pairs(topic.topic_configs)) for topic in topics}


def _pairs(entries: Iterable[StreamsGroupDescribeResponse.KeyValue]) -> dict[str, str]:
    return {entry.key: entry.value for entry in entries}
