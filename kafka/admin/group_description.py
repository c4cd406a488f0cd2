"""What brokers tell about a group: its state and its members, of the classic protocol and of KIP-848."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final

from kafka.admin.core import AdminCore
from kafka.admin.groups import Groups
from kafka.admin.resources import operations
from kafka.admin.results import ItemResult, Result
from kafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from kafka.errors import GroupIdNotFoundError, KafkaError, KafkaProtocolError, UnsupportedVersionError
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.group import ConsumerGroupDescribeRequest
from kafka.structs import GroupInformation, MemberInformation

__all__ = ["GroupDescription", "GroupDescriptions", "MemberAssignment", "MemberDescription", "MemberMetadata"]

_CONSUMER_GROUP_DESCRIBE: Final = 69
_OPERATIONS_SINCE: Final = 3


class MemberMetadata(Result):
    """What a consumer told its group when it joined."""

    __slots__ = ()
    _aliases: ClassVar = {"subscription": "topics"}
    topics: list[str]
    user_data: bytes | None


class MemberAssignment(Result):
    """The partitions that a consumer has, by topic."""

    __slots__ = ()
    _aliases: ClassVar = {"assignment": "assignment"}
    assigned_partitions: list[Result]
    user_data: bytes | None

    @property
    def assignment(self) -> list[tuple[str, list[int]]]:
        """Topics and their partitions, as kafka-python 2 has them."""
        return [(entry.topic, entry.partitions) for entry in self.assigned_partitions]


class MemberDescription(Result):
    """A member; metadata and assignment of a member that is not a consumer (but Connect's, for one) are bytes."""

    __slots__ = ()
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    member_metadata: MemberMetadata | bytes
    member_assignment: MemberAssignment | bytes


class GroupDescription(ItemResult):
    """A group and its members, or why they are not known."""

    __slots__ = ()
    _aliases: ClassVar = {
        "group": "group_id",
        "state": "group_state",
        "protocol": "protocol_data",
        "error": "error",
    }
    group_id: str
    group_state: str
    group_type: str
    protocol_type: str
    protocol_data: str
    members: list[MemberDescription]
    authorized_operations: list[str] | None

    def item(self) -> str:
        """Return what the outcome is about, for error messages."""
        return f"group {self.group_id!r}"

    def as_information(self) -> GroupInformation:
        """Return the tuple of kafka-python 2; raise the error of the group. One that is not there is ``Dead``."""
        if not isinstance(self.error, GroupIdNotFoundError):
            self.raise_for_error()
        members = [
            MemberInformation(one.member_id, one.client_id, one.client_host, one.member_metadata, one.member_assignment)
            for one in self.members
        ]
        return GroupInformation(
            0,
            self.group_id,
            self.group_state,
            self.protocol_type,
            self.protocol_data,
            members,
            self.authorized_operations,
        )


class GroupDescriptions:
    """The calls that describe groups, as coroutines."""

    def __init__(self, core: AdminCore, groups: Groups) -> None:
        self._core = core
        self._groups = groups

    async def describe(
        self, groups: list[str], deadline: float, node_id: int | None, *, include_operations: bool
    ) -> dict[str, GroupDescription]:
        """Describe groups, all at the same time."""
        versions = await self._core.versions(deadline)
        if include_operations and not versions.supports(DescribeGroupsRequest.API_KEY, _OPERATIONS_SINCE):
            raise self._core.unsupported("include_authorized_operations", "2.3")
        found = await self._core.gather(
            [self._describe(group, deadline, node_id, include_operations) for group in groups]
        )
        return dict(zip(groups, found, strict=True))

    async def _describe(
        self, group: str, deadline: float, node_id: int | None, include_operations: bool
    ) -> GroupDescription:
        versions = await self._core.versions(deadline)
        try:
            if versions.supports(_CONSUMER_GROUP_DESCRIBE):
                request = ConsumerGroupDescribeRequest(
                    group_ids=[group], include_authorized_operations=include_operations
                )
                try:
                    return _of_consumers(await self._ask(group, request, deadline, node_id))
                except (GroupIdNotFoundError, UnsupportedVersionError):
                    pass  # a classic group, or none
            classic = DescribeGroupsRequest(groups=[group], include_authorized_operations=include_operations)
            return _classic(await self._ask(group, classic, deadline, node_id))
        except KafkaError as error:
            if getattr(error, "errno", None) is None:  # which no broker has sent about this group
                raise
            return _unknown(group, error)

    async def _ask(self, group: str, request: Any, deadline: float, node_id: int | None) -> Any:
        response = await self._groups.ask(
            group, lambda: request, lambda found: found.groups[0].error_code, deadline, node_id
        )
        return response.groups[0]


def _classic(group: Any) -> GroupDescription:
    of_consumers = group.protocol_type == "consumer"
    return GroupDescription(
        error_code=0,
        error_message=None,
        group_id=group.group_id,
        group_state=group.group_state,
        group_type="classic",
        protocol_type=group.protocol_type,
        protocol_data=group.protocol_data,
        members=[
            MemberDescription(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=_metadata(bytes(member.member_metadata), of_consumers),
                member_assignment=_assignment(bytes(member.member_assignment), of_consumers),
            )
            for member in group.members
        ],
        authorized_operations=operations(group.authorized_operations),
    )


def _of_consumers(group: Any) -> GroupDescription:
    return GroupDescription(
        error_code=0,
        error_message=None,
        group_id=group.group_id,
        group_state=group.group_state,
        group_type="consumer",
        protocol_type="consumer",
        protocol_data=group.assignor_name,
        members=[
            MemberDescription(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=MemberMetadata(topics=list(member.subscribed_topic_names), user_data=None),
                member_assignment=_assigned(
                    ((entry.topic_name, entry.partitions) for entry in member.assignment.topic_partitions), None
                ),
            )
            for member in group.members
        ],
        authorized_operations=operations(group.authorized_operations),
    )


def _unknown(group: str, error: KafkaError) -> GroupDescription:
    return GroupDescription(
        error_code=getattr(error, "errno", -1),
        error_message=None,
        group_id=group,
        group_state="Dead" if isinstance(error, GroupIdNotFoundError) else "Unknown",
        group_type="",
        protocol_type="",
        protocol_data="",
        members=[],
        authorized_operations=None,
    )


def _metadata(data: bytes, of_consumers: bool) -> MemberMetadata | bytes:
    if not of_consumers:
        return data
    try:
        found = ConsumerProtocolMemberMetadata.decode(data)
    except KafkaProtocolError:
        return data
    return MemberMetadata(topics=list(found.subscription), user_data=found.user_data)


def _assignment(data: bytes, of_consumers: bool) -> MemberAssignment | bytes:
    if not of_consumers:
        return data
    try:
        found = ConsumerProtocolMemberAssignment.decode(data)
    except KafkaProtocolError:
        return data
    return _assigned(found.assignment, found.user_data)


def _assigned(topics: Iterable[tuple[str, Iterable[int]]], user_data: bytes | None) -> MemberAssignment:
    entries = [Result(topic=topic, partitions=list(numbers)) for topic, numbers in topics]
    return MemberAssignment(assigned_partitions=entries, user_data=user_data)
