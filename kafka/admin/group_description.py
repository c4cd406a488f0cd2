"""What brokers tell about a group: its state and its members, of the classic protocol and of KIP-848."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Final

from kafka.admin.calls import Calls
from kafka.admin.groups import as_groups
from kafka.admin.resources import operations
from kafka.admin.results import ItemResult, Result, error_of
from kafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from kafka.errors import GroupIdNotFoundError, KafkaError, KafkaProtocolError, UnsupportedVersionError
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.group import ConsumerGroupDescribeRequest
from kafka.structs import GroupInformation, MemberInformation

__all__ = ["GroupDescription", "GroupDescriptions", "MemberAssignment", "MemberDescription", "MemberMetadata"]

_CONSUMER_GROUP_DESCRIBE: Final = 69
_OPERATIONS_SINCE: Final = 3


class MemberMetadata(Result):
    """The topics and the user data that a consumer sent to its group when it joined."""

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


class GroupDescriptions(Calls):
    """The calls that describe groups of the classic protocol and of KIP-848."""

    async def describe_groups(
        self,
        group_ids: Iterable[str],
        group_coordinator_id: int | None = None,
        include_authorized_operations: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[str, GroupDescription]:
        """Describe classic groups and consumer groups: their state and their members.

        A group that the coordinator refuses to describe has its ``error``, and raises nothing.

        >>> from kafka import KafkaAdminClient
        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...         committed = admin.alter_group_offsets("readers", {("events", 0): 7})
        ...         group = admin.describe_groups(["readers"])["readers"]
        >>> group.group_state, group.members
        ('Empty', [])
        """
        return await self._run(
            timeout_ms,
            self._describe_groups,
            as_groups(group_ids),
            group_coordinator_id,
            include_operations=include_authorized_operations,
        )

    async def describe_consumer_groups(
        self,
        group_ids: Iterable[str],
        group_coordinator_id: int | None = None,
        include_authorized_operations: bool = False,
        timeout_ms: float | None = None,
    ) -> list[GroupInformation]:
        """Describe groups as kafka-python 2 does; an unknown group is ``Dead``, other errors are raised."""
        found = await self.describe_groups(group_ids, group_coordinator_id, include_authorized_operations, timeout_ms)
        return [group.as_information() for group in found.values()]

    async def describe_classic_groups(
        self,
        group_ids: Iterable[str],
        group_coordinator_id: int | None = None,
        include_authorized_operations: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[str, GroupDescription]:
        """Describe groups as `describe_groups` does, but only groups of the classic protocol."""
        return await self._run(
            timeout_ms,
            self._describe_groups,
            as_groups(group_ids),
            group_coordinator_id,
            include_operations=include_authorized_operations,
            classic_only=True,
        )

    async def _describe_groups(
        self,
        deadline: float,
        groups: list[str],
        node_id: int | None = None,
        *,
        include_operations: bool = False,
        classic_only: bool = False,
    ) -> dict[str, GroupDescription]:
        """Ask about all groups by KIP-848 first, then about the others by the classic protocol."""
        await self._core.require(deadline, DescribeGroupsRequest.API_KEY, 0, "describe_groups()", "0.9")
        versions = await self._core.versions(deadline)
        if include_operations and not versions.reaches(DescribeGroupsRequest.API_KEY, _OPERATIONS_SINCE):
            raise self._core.unsupported("include_authorized_operations", "2.3")
        described: dict[str, Any] = {}
        if versions.reaches(_CONSUMER_GROUP_DESCRIBE) and not classic_only:
            described = await self._ask_descriptions(
                deadline, groups, node_id, ConsumerGroupDescribeRequest, include_operations, _of_consumers
            )
        others = [
            group
            for group in groups
            if group not in described or isinstance(described[group], (GroupIdNotFoundError, UnsupportedVersionError))
        ]
        described.update(
            await self._ask_descriptions(
                deadline, others, node_id, DescribeGroupsRequest, include_operations, _classic, field="groups"
            )
        )
        return {
            group: _unknown(group, found) if isinstance(found := described[group], KafkaError) else found
            for group in groups
        }

    async def _ask_descriptions(
        self,
        deadline: float,
        groups: list[str],
        node_id: int | None,
        kind: Any,
        include_operations: bool,
        describe: Callable[[Any], Any],
        *,
        field: str = "group_ids",
    ) -> dict[str, Any]:
        """Return the description of each group, or its error."""

        def request(some: list[str]) -> Any:
            return kind(include_authorized_operations=include_operations, **{field: some})

        def read(response: Any) -> dict[str, Any]:
            return {
                group.group_id: error_of(group.error_code, f"group {group.group_id!r}", group.error_message)
                or describe(group)
                for group in response.groups
            }

        return await self._core.ask_coordinators(groups, request, read, deadline, "describe_groups()", node_id=node_id)


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
    return GroupDescription.failure(
        error,
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
