"""Share groups (KIP-932) and streams groups (KIP-1071): describe and delete them, and change their offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kafka.admin.group_offsets import GroupOffsets, ListedOffsets
from kafka.admin.groups import Groups, as_group, as_groups
from kafka.admin.partitions import as_offsets, as_partitions, by_topic
from kafka.admin.resources import as_topics, operations
from kafka.admin.results import ItemResult, Outcome, Result, error_of
from kafka.errors import KafkaError, NoError
from kafka.protocol.share import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    ShareGroupDescribeRequest,
)
from kafka.protocol.streams import StreamsGroupDescribeRequest
from kafka.structs import OffsetAndMetadata, TopicPartition

__all__ = [
    "ShareGroupDescription",
    "ShareGroupOffset",
    "ShareGroups",
    "ShareMember",
    "StreamsGroupDescription",
    "StreamsMember",
    "Subtopology",
    "TaskAssignment",
]

_STABLE_SHARE_VERSION: Final = 1


class ShareMember(Result):
    """A member of a share group, and the partitions that it reads together with others."""

    __slots__ = ()
    member_id: str
    member_epoch: int
    rack_id: str | None
    client_id: str
    client_host: str
    topics: list[str]
    assigned_partitions: list[TopicPartition]


class ShareGroupDescription(ItemResult):
    """A share group and its members, or why they are not known."""

    __slots__ = ()
    group_id: str
    group_state: str
    group_type: str
    group_epoch: int
    assignment_epoch: int
    assignor_name: str
    members: list[ShareMember]
    authorized_operations: list[str] | None

    def item(self) -> str:
        """Return what the outcome is about, for error messages."""
        return f"share group {self.group_id!r}"


class TaskAssignment(Result):
    """Tasks of a streams member: partitions by the id of a subtopology."""

    __slots__ = ()
    active: dict[str, list[int]]
    standby: dict[str, list[int]]
    warmup: dict[str, list[int]]


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
    assignment: TaskAssignment
    target_assignment: TaskAssignment
    is_classic: bool


class Subtopology(Result):
    """A part of a streams application, with the topics that it reads and writes."""

    __slots__ = ()
    subtopology_id: str
    source_topics: list[str]
    repartition_sink_topics: list[str]
    state_changelog_topics: list[str]
    repartition_source_topics: list[str]


class StreamsGroupDescription(ItemResult):
    """A streams group: its topology and its members, or why they are not known."""

    __slots__ = ()
    group_id: str
    group_state: str
    group_type: str
    group_epoch: int
    assignment_epoch: int
    topology_epoch: int
    subtopologies: list[Subtopology]
    members: list[StreamsMember]
    authorized_operations: list[str] | None

    def item(self) -> str:
        """Return what the outcome is about, for error messages."""
        return f"streams group {self.group_id!r}"


class ShareGroupOffset(Result):
    """The first record of a partition that the group has not finished, and how many follow it (-1 before Kafka 4.2)."""

    __slots__ = ()
    start_offset: int
    leader_epoch: int
    lag: int


class ShareGroups(GroupOffsets, Groups):
    """The calls about share groups and streams groups."""

    # Describing…

    async def describe_share_groups(
        self, group_ids: Iterable[str], include_authorized_operations: bool = False, timeout_ms: float | None = None
    ) -> dict[str, ShareGroupDescription]:
        """Describe share groups (Kafka 4.1); a group that cannot be described has its ``error``."""
        return await self._run(
            timeout_ms, self._describe_share_groups, as_groups(group_ids), include_authorized_operations
        )

    async def _describe_share_groups(
        self, deadline: float, groups: list[str], with_operations: bool
    ) -> dict[str, ShareGroupDescription]:
        kind = ShareGroupDescribeRequest
        await self._core.require(deadline, kind.API_KEY, _STABLE_SHARE_VERSION, "describe_share_groups()", "4.1")
        answers = await self._ask_about_groups(
            deadline, groups, kind, with_operations, _share_group, "describe_share_groups()"
        )
        return {
            group: ShareGroupDescription.failure(
                answer,
                group_id=group,
                group_state="Unknown",
                group_type="share",
                group_epoch=-1,
                assignment_epoch=-1,
                assignor_name="",
                members=[],
                authorized_operations=None,
            )
            if isinstance(answer, KafkaError)
            else answer
            for group, answer in answers.items()
        }

    async def describe_streams_groups(
        self, group_ids: Iterable[str], include_authorized_operations: bool = False, timeout_ms: float | None = None
    ) -> dict[str, StreamsGroupDescription]:
        """Describe streams groups (Kafka 4.1); a group that cannot be described has its ``error``."""
        return await self._run(
            timeout_ms, self._describe_streams_groups, as_groups(group_ids), include_authorized_operations
        )

    async def _describe_streams_groups(
        self, deadline: float, groups: list[str], with_operations: bool
    ) -> dict[str, StreamsGroupDescription]:
        kind = StreamsGroupDescribeRequest
        await self._core.require(deadline, kind.API_KEY, 0, "describe_streams_groups()", "4.1")
        answers = await self._ask_about_groups(
            deadline, groups, kind, with_operations, _streams_group, "describe_streams_groups()"
        )
        return {
            group: StreamsGroupDescription.failure(
                answer,
                group_id=group,
                group_state="Unknown",
                group_type="streams",
                group_epoch=-1,
                assignment_epoch=-1,
                topology_epoch=-1,
                subtopologies=[],
                members=[],
                authorized_operations=None,
            )
            if isinstance(answer, KafkaError)
            else answer
            for group, answer in answers.items()
        }

    async def _ask_about_groups(
        self, deadline: float, groups: list[str], kind: Any, with_operations: bool, describe: Any, what: str
    ) -> dict[str, Any]:
        def request(some: list[str]) -> Any:
            return kind(group_ids=some, include_authorized_operations=with_operations)

        def read(response: Any) -> dict[str, Any]:
            return {
                one.group_id: error_of(one.error_code, f"group {one.group_id!r}", one.error_message) or describe(one)
                for one in response.groups
            }

        return await self._core.ask_coordinators(groups, request, read, deadline, what)

    # Offsets of share groups…

    async def list_share_group_offsets(
        self,
        group_specs: str | Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
        timeout_ms: float | None = None,
        *,
        raise_errors: bool = True,
    ) -> dict[str, dict[TopicPartition, ShareGroupOffset]]:
        """Return the start offsets of share groups, of all their partitions or of some (Kafka 4.1).

        The first error is raised; with ``raise_errors=False`` a group or a partition has its error instead.
        """
        if isinstance(group_specs, str):
            group_specs = [group_specs]
        wanted: dict[str, list[TopicPartition] | None] = (
            {
                as_group(group): None if partitions is None else as_partitions(partitions)
                for group, partitions in group_specs.items()
            }
            if isinstance(group_specs, Mapping)
            else dict.fromkeys(as_groups(group_specs))
        )
        found = await self._run(timeout_ms, self._list_share_group_offsets, wanted)
        if raise_errors:
            for group in found.values():
                for answer in group.values() if isinstance(group, dict) else [group]:
                    if isinstance(answer, KafkaError):
                        answer.results = found
                        raise answer
        return found

    async def _list_share_group_offsets(
        self, deadline: float, wanted: dict[str, list[TopicPartition] | None]
    ) -> dict[str, Any]:
        kind = DescribeShareGroupOffsetsRequest
        await self._core.require(deadline, kind.API_KEY, 0, "list_share_group_offsets()", "4.1")

        def request(groups: list[str]) -> Any:
            return kind(
                groups=[
                    kind.DescribeShareGroupOffsetsRequestGroup(
                        group_id=group,
                        topics=None
                        if (partitions := wanted[group]) is None
                        else [
                            kind.DescribeShareGroupOffsetsRequestTopic(topic_name=topic, partitions=numbers)
                            for topic, numbers in by_topic(partitions).items()
                        ],
                    )
                    for group in groups
                ]
            )

        def read(response: Any) -> dict[str, Any]:
            return {
                group.group_id: error_of(group.error_code, f"share group {group.group_id!r}", group.error_message)
                or {
                    TopicPartition(topic.topic_name, one.partition_index): error_of(
                        one.error_code, f"{topic.topic_name}-{one.partition_index}", one.error_message
                    )
                    or ShareGroupOffset(start_offset=one.start_offset, leader_epoch=one.leader_epoch, lag=one.lag)
                    for topic in group.topics
                    for one in topic.partitions
                }
                for group in response.groups
            }

        return await self._core.ask_coordinators(list(wanted), request, read, deadline, "list_share_group_offsets()")

    async def alter_share_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int], timeout_ms: float | None = None
    ) -> dict[TopicPartition, type[KafkaError]]:
        """Set the start offsets of a share group without members (Kafka 4.1); return each partition's error class."""
        return await self._run(timeout_ms, self._alter_share_group_offsets, as_group(group_id), as_offsets(offsets))

    async def _alter_share_group_offsets(
        self, deadline: float, group: str, offsets: dict[TopicPartition, OffsetAndMetadata]
    ) -> dict[TopicPartition, type[KafkaError]]:
        kind = AlterShareGroupOffsetsRequest
        await self._core.require(deadline, kind.API_KEY, 0, "alter_share_group_offsets()", "4.1")
        part = kind.AlterShareGroupOffsetsRequestPartition
        request = kind(
            group_id=group,
            topics=[
                kind.AlterShareGroupOffsetsRequestTopic(
                    topic_name=topic,
                    partitions=[
                        part(partition_index=number, start_offset=offsets[TopicPartition(topic, number)].offset)
                        for number in numbers
                    ],
                )
                for topic, numbers in by_topic(offsets).items()
            ],
        )
        response = await self._core.ask_coordinator(
            group, lambda: request, lambda found: found.error_code, deadline, "alter_share_group_offsets()"
        )
        return {
            TopicPartition(topic.topic_name, one.partition_index): _class(one.error_code)
            for topic in response.responses
            for one in topic.partitions
        }

    async def delete_share_group_offsets(
        self, group_id: str, topics: Iterable[str], timeout_ms: float | None = None
    ) -> dict[str, type[KafkaError]]:
        """Delete the offsets of topics of a share group without members (Kafka 4.1); return the error class of each."""
        names = [str(topic) for topic in as_topics(topics)]
        return await self._run(timeout_ms, self._delete_share_group_offsets, as_group(group_id), names)

    async def _delete_share_group_offsets(
        self, deadline: float, group: str, topics: list[str]
    ) -> dict[str, type[KafkaError]]:
        kind = DeleteShareGroupOffsetsRequest
        await self._core.require(deadline, kind.API_KEY, 0, "delete_share_group_offsets()", "4.1")
        entry = kind.DeleteShareGroupOffsetsRequestTopic
        request = kind(group_id=group, topics=[entry(topic_name=topic) for topic in topics])
        response = await self._core.ask_coordinator(
            group, lambda: request, lambda found: found.error_code, deadline, "delete_share_group_offsets()"
        )
        return {topic.topic_name: _class(topic.error_code) for topic in response.responses}

    # Calls that are the same for groups of every kind, by the names of Java…

    async def delete_share_groups(
        self, group_ids: Iterable[str], timeout_ms: float | None = None
    ) -> dict[str, Outcome]:
        """Delete share groups without members: `delete_groups`."""
        return await self.delete_groups(group_ids, timeout_ms=timeout_ms)

    async def delete_streams_groups(
        self, group_ids: Iterable[str], timeout_ms: float | None = None
    ) -> dict[str, Outcome]:
        """Delete streams groups without members: `delete_groups`."""
        return await self.delete_groups(group_ids, timeout_ms=timeout_ms)

    async def list_streams_group_offsets(
        self,
        group_specs: str | Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
        timeout_ms: float | None = None,
    ) -> ListedOffsets:
        """Return the committed offsets of streams groups: `list_group_offsets`."""
        return await self.list_group_offsets(group_specs, timeout_ms)

    async def alter_streams_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, type[KafkaError]]:
        """Commit offsets for a streams group without members: `alter_group_offsets`."""
        return await self.alter_group_offsets(group_id, offsets, timeout_ms=timeout_ms)

    async def delete_streams_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, type[KafkaError]]:
        """Delete committed offsets of a streams group: `delete_group_offsets`."""
        return await self.delete_group_offsets(group_id, partitions, timeout_ms=timeout_ms)


def _class(code: int) -> type[KafkaError]:
    error = error_of(code, "")
    return NoError if error is None else type(error)


def _share_group(group: Any) -> ShareGroupDescription:
    return ShareGroupDescription(
        error_code=0,
        error_message=None,
        group_id=group.group_id,
        group_state=group.group_state,
        group_type="share",
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor_name,
        members=[
            ShareMember(
                member_id=member.member_id,
                member_epoch=member.member_epoch,
                rack_id=member.rack_id,
                client_id=member.client_id,
                client_host=member.client_host,
                topics=list(member.subscribed_topic_names),
                assigned_partitions=[
                    TopicPartition(topic.topic_name, number)
                    for topic in member.assignment.topic_partitions
                    for number in topic.partitions
                ],
            )
            for member in group.members
        ],
        authorized_operations=operations(group.authorized_operations),
    )


def _streams_group(group: Any) -> StreamsGroupDescription:
    topology = group.topology
    return StreamsGroupDescription(
        error_code=0,
        error_message=None,
        group_id=group.group_id,
        group_state=group.group_state,
        group_type="streams",
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        topology_epoch=-1 if topology is None else topology.epoch,
        subtopologies=[
            Subtopology(
                subtopology_id=one.subtopology_id,
                source_topics=list(one.source_topics),
                repartition_sink_topics=list(one.repartition_sink_topics),
                state_changelog_topics=[topic.name for topic in one.state_changelog_topics],
                repartition_source_topics=[topic.name for topic in one.repartition_source_topics],
            )
            for one in (() if topology is None else topology.subtopologies or ())
        ],
        members=[
            StreamsMember(
                member_id=member.member_id,
                member_epoch=member.member_epoch,
                group_instance_id=member.instance_id,
                rack_id=member.rack_id,
                client_id=member.client_id,
                client_host=member.client_host,
                topology_epoch=member.topology_epoch,
                process_id=member.process_id,
                user_endpoint=None
                if member.user_endpoint is None
                else (member.user_endpoint.host, member.user_endpoint.port),
                client_tags={tag.key: tag.value for tag in member.client_tags},
                assignment=_tasks(member.assignment),
                target_assignment=_tasks(member.target_assignment),
                is_classic=member.is_classic,
            )
            for member in group.members
        ],
        authorized_operations=operations(group.authorized_operations),
    )


def _tasks(assignment: Any) -> TaskAssignment:
    return TaskAssignment(
        **{
            name: {one.subtopology_id: list(one.partitions) for one in getattr(assignment, f"{name}_tasks")}
            for name in ("active", "standby", "warmup")
        }
    )
