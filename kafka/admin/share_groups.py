"""Share groups (KIP-932): describe and delete them, and change the offsets from which they read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from kafka.admin.calls import call
from kafka.admin.group_description import DescribedGroup, GroupDescriptions, assigned_partitions
from kafka.admin.group_offsets import as_group_specs
from kafka.admin.groups import Groups, as_group, as_groups
from kafka.admin.partitions import as_offsets, by_topic
from kafka.admin.resources import as_topics
from kafka.admin.results import Result, error_of, raise_first, raise_refused
from kafka.errors import KafkaError, for_code
from kafka.protocol.share import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from kafka.structs import TopicPartition

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


class ShareGroupDescription(DescribedGroup):
    """A share group and its members, or why they are not known; `coordinator_id` is the broker that coordinates it."""

    __slots__ = ()
    _item = "share group {0.group_id!r}"
    _blank: ClassVar = {"group_type": "share", "assignor_name": ""}
    assignor_name: str
    members: list[ShareMember]


class ShareGroupOffset(Result):
    """The first record of a partition that the group has not finished, and how many follow it (-1 before Kafka 4.2)."""

    __slots__ = ()
    start_offset: int
    leader_epoch: int
    lag: int


class ShareGroups(GroupDescriptions, Groups):
    """The calls about share groups."""

    # Describing…

    @call
    async def describe_share_groups(
        self, group_ids: Iterable[str], include_authorized_operations: bool = False, timeout_ms: float | None = None
    ) -> dict[str, ShareGroupDescription]:
        """Describe share groups (Kafka 4.1); a group that cannot be described has its ``error``."""
        deadline = self._core.deadline(timeout_ms)
        groups = as_groups(group_ids)
        kind, what = ShareGroupDescribeRequest, "describe_share_groups()"
        await self._core.require(deadline, kind.API_KEY, _STABLE_SHARE_VERSION, what, "4.1")
        answers = await self._ask_descriptions(
            deadline, groups, kind, include_authorized_operations, _share_group, what
        )
        return self._descriptions(ShareGroupDescription, answers)

    async def _existing_share_groups(self, deadline: float, groups: list[str]) -> dict[str, ShareGroupDescription]:
        """Return the groups that are share groups; none on brokers that have no share groups."""
        versions = await self._core.versions(deadline)
        if not groups or not versions.reaches(ShareGroupDescribeRequest.API_KEY, _STABLE_SHARE_VERSION):
            return {}
        found = await self.describe_share_groups(groups, timeout_ms=deadline)
        return {group: one for group, one in found.items() if one.ok}

    # Offsets…

    @call
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
        deadline = self._core.deadline(timeout_ms)
        wanted = as_group_specs(group_specs)
        kind = DescribeShareGroupOffsetsRequest
        await self._core.require(deadline, kind.API_KEY, 0, "list_share_group_offsets()", "4.1")

        def request(groups: list[str]) -> DescribeShareGroupOffsetsRequest:
            return kind(
                groups=[
                    kind.DescribeShareGroupOffsetsRequestGroup(
                        group_id=group,
                        topics=None
                        if (partitions := wanted[group]) is None
                        else by_topic(partitions, "topic_name", "partitions"),
                    )
                    for group in groups
                ]
            )

        def read(
            response: DescribeShareGroupOffsetsResponse,
        ) -> dict[str, KafkaError | dict[TopicPartition, KafkaError | ShareGroupOffset]]:
            return {
                group.group_id: error_of(group.error_code, f"share group {group.group_id!r}", group.error_message)
                or {
                    TopicPartition(topic.topic_name, one.partition_index): error_of(
                        one.error_code, f"{topic.topic_name}-{one.partition_index}", one.error_message
                    )
                    or ShareGroupOffset.of_entry(one)
                    for topic in group.topics
                    for one in topic.partitions
                }
                for group in response.groups
            }

        found: dict[str, Any] = await self._core.ask_coordinators(
            list(wanted), request, read, deadline, "list_share_group_offsets()"
        )
        if raise_errors:
            for group in found.values():
                raise_first(group.values() if isinstance(group, dict) else [group], found)
        return found

    @call
    async def alter_share_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int],
        timeout_ms: float | None = None,
        *,
        raise_errors: bool = True,
    ) -> dict[TopicPartition, type[KafkaError]]:
        """Set the start offsets of a share group without members (Kafka 4.1).

        The first error of a partition is raised; with ``raise_errors=False`` the class of each error is returned.
        """
        deadline = self._core.deadline(timeout_ms)
        group = as_group(group_id)
        wanted = as_offsets(offsets)
        kind = AlterShareGroupOffsetsRequest
        await self._core.require(deadline, kind.API_KEY, 0, "alter_share_group_offsets()", "4.1")
        request = kind(
            group_id=group,
            topics=by_topic(
                wanted,
                "topic_name",
                "partitions",
                lambda one: {"partition_index": one.partition, "start_offset": wanted[one].offset},
            ),
        )
        response = await self._core.ask_coordinator(
            group, lambda: request, lambda found: found.error_code, deadline, "alter_share_group_offsets()"
        )
        found: dict[TopicPartition, type[KafkaError]] = {
            TopicPartition(topic.topic_name, one.partition_index): for_code(one.error_code)
            for topic in response.responses
            for one in topic.partitions
        }
        if raise_errors:
            raise_refused(f"alter_share_group_offsets(): group {group_id!r}", found.items(), found)
        return found

    @call
    async def delete_share_group_offsets(
        self, group_id: str, topics: Iterable[str], timeout_ms: float | None = None, *, raise_errors: bool = True
    ) -> dict[str, type[KafkaError]]:
        """Delete the offsets of topics of a share group without members (Kafka 4.1).

        The first error of a topic is raised; with ``raise_errors=False`` the class of each error is returned.
        """
        deadline = self._core.deadline(timeout_ms)
        names = [str(topic) for topic in as_topics(topics)]
        group = as_group(group_id)
        kind = DeleteShareGroupOffsetsRequest
        await self._core.require(deadline, kind.API_KEY, 0, "delete_share_group_offsets()", "4.1")
        entry = kind.DeleteShareGroupOffsetsRequestTopic
        request = kind(group_id=group, topics=[entry(topic_name=topic) for topic in names])
        response = await self._core.ask_coordinator(
            group, lambda: request, lambda found: found.error_code, deadline, "delete_share_group_offsets()"
        )
        found: dict[str, type[KafkaError]] = {
            topic.topic_name: for_code(topic.error_code) for topic in response.responses
        }
        if raise_errors:
            raise_refused(f"delete_share_group_offsets(): group {group_id!r}", found.items(), found)
        return found

    # Deleting…

    delete_share_groups = Groups.delete_groups  # as in Java


def _share_group(group: ShareGroupDescribeResponse.DescribedGroup) -> ShareGroupDescription:
    return ShareGroupDescription.known(
        group,
        group_type="share",
        assignor_name=group.assignor_name,
        members=[
            ShareMember.of_entry(
                member,
                topics=list(member.subscribed_topic_names),
                assigned_partitions=assigned_partitions(member.assignment),
            )
            for member in group.members
        ],
    )
