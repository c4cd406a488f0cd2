"""Groups of the classic protocol and of KIP-848: describe their state and their members, and remove members."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from kafka.admin.calls import Calls, call
from kafka.admin.groups import MemberToRemove, as_group, as_groups
from kafka.admin.resources import operations
from kafka.admin.results import ItemResult, Result, error_of, raise_refused
from kafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from kafka.errors import (
    GroupIdNotFoundError,
    IllegalArgumentError,
    KafkaError,
    KafkaProtocolError,
    UnsupportedVersionError,
    for_code,
)
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.group import ConsumerGroupDescribeRequest, LeaveGroupRequest
from kafka.protocol.registry import ApiKey
from kafka.structs import GroupInformation, MemberInformation, TopicPartition

if TYPE_CHECKING:
    from typing_extensions import Self

    from kafka.protocol.admin import DescribeGroupsResponse
    from kafka.protocol.api import Request, Response
    from kafka.protocol.group import ConsumerGroupDescribeResponse
    from kafka.protocol.share import ShareGroupDescribeResponse
    from kafka.protocol.streams import StreamsGroupDescribeResponse

_OPERATIONS_SINCE: Final = 3
_MANY_MEMBERS_SINCE: Final = 3
_CLASSIC_MEMBER: Final = 0

G = TypeVar("G", bound="DescribedGroup")
ResponseT = TypeVar("ResponseT", bound="Response")


class DescribedGroup(ItemResult):
    """The description of a group of any kind by its coordinator; ``error`` is the error in place of one."""

    __slots__ = ()
    _item = "group {0.group_id!r}"
    _blank: ClassVar[Mapping[str, object]] = {}
    """The values of the fields that a kind of group adds, for a group that is not known."""
    group_id: str
    group_state: str
    group_type: str
    group_epoch: int
    assignment_epoch: int
    coordinator_id: int
    authorized_operations: list[str] | None

    @classmethod
    def known(
        cls,
        group: DescribeGroupsResponse.DescribedGroup
        | ConsumerGroupDescribeResponse.DescribedGroup
        | ShareGroupDescribeResponse.DescribedGroup
        | StreamsGroupDescribeResponse.DescribedGroup,
        **fields: object,
    ) -> Self:
        """Make the description of a group from a response: what all kinds have, and these fields."""
        return cls(
            error_code=0,
            error_message=None,
            group_id=group.group_id,
            group_state=group.group_state,
            group_epoch=getattr(group, "group_epoch", -1),
            assignment_epoch=getattr(group, "assignment_epoch", -1),
            coordinator_id=-1,
            authorized_operations=operations(group.authorized_operations),
            **fields,
        )

    @classmethod
    def unknown(cls, group_id: str, error: KafkaError) -> Self:
        """Make the description of a group that its coordinator does not describe."""
        return cls.failure(
            error,
            **{
                "group_id": group_id,
                "group_state": "Unknown",
                "group_epoch": -1,
                "assignment_epoch": -1,
                "coordinator_id": -1,
                "authorized_operations": None,
                "members": [],
                **cls._blank,
            },
        )


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
    """A member; metadata and assignment of a member that is not a consumer (but Connect's, for one) are bytes.

    Members of classic groups have no rack, no epoch (-1) and no target assignment. `is_classic` tells whether the
    member uses the classic protocol, also in a group that others of KIP-848 are in; None if the broker does not tell
    (before Kafka 4.0).
    """

    __slots__ = ()
    member_id: str
    group_instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    member_epoch: int
    member_metadata: MemberMetadata | bytes
    member_assignment: MemberAssignment | bytes
    target_assignment: MemberAssignment | None
    is_classic: bool | None


class GroupDescription(DescribedGroup):
    """A group and its members, or why they are not known.

    The epochs are -1 in classic groups. `coordinator_id` is the broker that coordinates the group.
    """

    __slots__ = ()
    _aliases: ClassVar = {"group": "group_id", "state": "group_state", "protocol": "protocol_data", "error": "error"}
    _blank: ClassVar = {"group_type": "", "protocol_type": "", "protocol_data": ""}
    protocol_type: str
    protocol_data: str
    members: list[MemberDescription]

    @classmethod
    def unknown(cls, group_id: str, error: KafkaError) -> Self:
        """Make the description of a group that its coordinator does not describe; ``Dead`` if it is not there."""
        made = super().unknown(group_id, error)
        if isinstance(error, GroupIdNotFoundError):
            made["group_state"] = "Dead"
        return made

    @property
    def is_simple_consumer_group(self) -> bool:
        """Whether the group only has committed offsets: no member ever joined it."""
        return self.ok and not self.protocol_type

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
    """The calls about the members of groups, of the classic protocol and of KIP-848."""

    @call
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
        return await self._describe_groups(
            self._core.deadline(timeout_ms),
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

    @call
    async def describe_classic_groups(
        self,
        group_ids: Iterable[str],
        group_coordinator_id: int | None = None,
        include_authorized_operations: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[str, GroupDescription]:
        """Describe groups as `describe_groups` does, but only groups of the classic protocol."""
        return await self._describe_groups(
            self._core.deadline(timeout_ms),
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
        what = "describe_groups()"
        described: dict[str, GroupDescription | KafkaError] = {}
        if versions.reaches(ApiKey.ConsumerGroupDescribe) and not classic_only:
            described = await self._ask_descriptions(
                deadline, groups, ConsumerGroupDescribeRequest, include_operations, _of_consumers, what, node_id=node_id
            )
        others = [
            group
            for group in groups
            if group not in described or isinstance(described[group], (GroupIdNotFoundError, UnsupportedVersionError))
        ]
        described.update(
            await self._ask_descriptions(
                deadline, others, DescribeGroupsRequest, include_operations, _classic, what, "groups", node_id=node_id
            )
        )
        return self._descriptions(GroupDescription, {group: described[group] for group in groups}, node_id)

    async def _ask_descriptions(
        self,
        deadline: float,
        groups: list[str],
        kind: type[Request[ResponseT]],
        include_operations: bool,
        describe: Callable[[Any], G],
        what: str,
        field: str = "group_ids",
        *,
        node_id: int | None = None,
    ) -> dict[str, G | KafkaError]:
        """Return the description of each group, or its error."""

        def request(some: list[str]) -> Request[ResponseT]:
            return kind(include_authorized_operations=include_operations, **{field: some})

        def read(response: ResponseT) -> dict[str, G | KafkaError]:
            return {
                group.group_id: error_of(group.error_code, f"group {group.group_id!r}", group.error_message)
                or describe(group)
                for group in response.groups
            }

        return await self._core.ask_coordinators(groups, request, read, deadline, what, node_id=node_id)

    def _descriptions(
        self, kind: type[G], answers: Mapping[str, G | KafkaError], node_id: int | None = None
    ) -> dict[str, G]:
        """Return the answers of coordinators as descriptions, with the coordinator of each group."""
        found: dict[str, G] = {}
        for group, answer in answers.items():
            found[group] = kind.unknown(group, answer) if isinstance(answer, KafkaError) else answer
            found[group]["coordinator_id"] = self._core.coordinator_of(group) if node_id is None else node_id
        return found

    # Removing members…

    @call
    async def remove_group_members(
        self,
        group_id: str,
        members: Iterable[MemberToRemove | str] | None = None,
        group_coordinator_id: int | None = None,
        timeout_ms: float | None = None,
        *,
        raise_errors: bool = True,
    ) -> dict[str, type[KafkaError]]:
        """Remove members from a group, all of them for None (Kafka 2.4).

        A static member is named by its ``group_instance_id``, and is in the result by that name. The first error of a
        member is raised; with ``raise_errors=False`` the class of each error is returned.

        >>> from kafka import KafkaAdminClient
        >>> from kafka.broker import Broker
        >>> with Broker() as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...     admin.remove_group_members("readers", ["consumer-1"], raise_errors=False)
        {'consumer-1': <class 'kafka.errors.UnknownMemberIdError'>}
        """
        wanted = None if members is None else [_member(member) for member in members]
        deadline, group = self._core.deadline(timeout_ms), as_group(group_id)
        await self._core.require(
            deadline, LeaveGroupRequest.API_KEY, _MANY_MEMBERS_SINCE, "remove_group_members()", "2.4"
        )
        if wanted is None:
            described = (await self.describe_groups([group], group_coordinator_id, timeout_ms=deadline))[group]
            described.raise_for_error()
            wanted = [MemberToRemove(member.member_id, member.group_instance_id) for member in described.members]
        if not wanted:
            return {}
        response = await self._core.ask_coordinator(
            group,
            lambda: LeaveGroupRequest(
                group_id=group,
                members=[
                    {
                        "member_id": "" if one.group_instance_id is not None else one.member_id,
                        "group_instance_id": one.group_instance_id,
                        "reason": one.reason,
                    }
                    for one in wanted
                ],
            ),
            lambda response: response.error_code,
            deadline,
            "remove_group_members()",
            node_id=group_coordinator_id,
        )
        found: dict[str, type[KafkaError]] = {
            one.member_id if one.group_instance_id is None else one.group_instance_id: for_code(one.error_code)
            for one in response.members
        }
        if raise_errors:
            raise_refused(f"remove_group_members(): group {group_id!r}", found.items(), found)
        return found

    remove_members_from_consumer_group = remove_group_members  # as in Java


def assigned_partitions(assignment: ShareGroupDescribeResponse.Assignment) -> list[TopicPartition]:
    """Return the partitions of an assignment that names topics, from a response."""
    return [
        TopicPartition(topic.topic_name, number) for topic in assignment.topic_partitions for number in topic.partitions
    ]


def _classic(group: DescribeGroupsResponse.DescribedGroup) -> GroupDescription:
    of_consumers = group.protocol_type == "consumer"
    return GroupDescription.known(
        group,
        group_type="classic",
        protocol_type=group.protocol_type,
        protocol_data=group.protocol_data,
        members=[
            MemberDescription(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                rack_id=None,
                client_id=member.client_id,
                client_host=member.client_host,
                member_epoch=-1,
                member_metadata=_metadata(bytes(member.member_metadata), of_consumers),
                member_assignment=_assignment(bytes(member.member_assignment), of_consumers),
                target_assignment=None,
                is_classic=True,
            )
            for member in group.members
        ],
    )


def _of_consumers(group: ConsumerGroupDescribeResponse.DescribedGroup) -> GroupDescription:
    return GroupDescription.known(
        group,
        group_type="consumer",
        protocol_type="consumer",
        protocol_data=group.assignor_name,
        members=[
            MemberDescription(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                rack_id=member.rack_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_epoch=member.member_epoch,
                member_metadata=MemberMetadata(topics=list(member.subscribed_topic_names), user_data=None),
                member_assignment=_by_names(member.assignment),
                target_assignment=_by_names(member.target_assignment),
                is_classic=None if member.member_type < 0 else member.member_type == _CLASSIC_MEMBER,
            )
            for member in group.members
        ],
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


def _by_names(assignment: ConsumerGroupDescribeResponse.Assignment) -> MemberAssignment:
    return _assigned(((entry.topic_name, entry.partitions) for entry in assignment.topic_partitions), None)


def _assigned(topics: Iterable[tuple[str, Iterable[int]]], user_data: bytes | None) -> MemberAssignment:
    entries = [Result(topic=topic, partitions=list(numbers)) for topic, numbers in topics]
    return MemberAssignment(assigned_partitions=entries, user_data=user_data)


def _member(member: MemberToRemove | str) -> MemberToRemove:
    if isinstance(member, str):
        return MemberToRemove(member)
    found = MemberToRemove(*member)
    if not found.member_id and found.group_instance_id is None:
        raise IllegalArgumentError("a MemberToRemove needs a member_id or a group_instance_id")
    return found
