"""The group coordinator as a service of a cluster, and what its API files share: permissions, and the right node."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import UUID

from kafka.broker.cluster.coordinators import GROUP
from kafka.broker.configs.definitions import BROKER_OPTIONS
from kafka.broker.configs.resource_kinds import GROUP_TABLE
from kafka.broker.groups.assignors import Assignment
from kafka.broker.groups.coordinator import GroupCoordinator
from kafka.broker.groups.epoch_group import EpochGroup, Topics
from kafka.broker.groups.group import Answer
from kafka.broker.groups.settings import PROPERTIES, GroupSettings
from kafka.broker.security.acls import Operation, Resource
from kafka.broker.server.call import group_operations
from kafka.errors import (
    BrokerResponseError,
    GroupIdNotFoundError,
    IllegalArgumentError,
    InvalidGroupIdError,
    InvalidRequestError,
    KafkaTimeoutError,
    NotCoordinatorError,
    TopicAuthorizationFailedError,
)

if TYPE_CHECKING:
    from kafka.broker.cluster.cluster import Cluster
    from kafka.broker.server.call import Call
    from kafka.broker.server.node import Node
    from kafka.broker.sharing.share_sessions import ShareSessions
    from kafka.protocol.group import ConsumerGroupDescribeRequest
    from kafka.protocol.share import ShareGroupDescribeRequest
    from kafka.protocol.streams import StreamsGroupDescribeRequest
    from kafka.structs import TopicPartition

#: Where a node keeps its share sessions (:mod:`kafka.broker.sharing`).
SHARE_SESSIONS: Final = "share sessions"

T = TypeVar("T")
R = TypeVar("R")
EpochGroupT = TypeVar("EpochGroupT", bound=EpochGroup[Any])


class GroupService:
    """``cluster.service(GroupService)``: the coordinator, kept informed of where groups are coordinated."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._groups = cluster.store.table(GROUP_TABLE)
        self._nodes: dict[str, Node | None] = {}
        self.coordinator = GroupCoordinator(
            self._settings(),
            cluster.clock,
            cluster.timers,
            Topics(cluster),
            lambda: str(cluster.new_uuid()),
            cluster.store.table,
            self._settings,
        )
        cluster.on_configs_changed.append(self._configs_changed)
        cluster.on_group_configs_changed.append(self.coordinator.settings_changed)
        cluster.coordinators.on_move(self._moved)
        cluster.on_topic_deleted.append(self.coordinator.forget_topic)

    def _settings(self, group_id: str = "") -> GroupSettings:
        """Return the settings of all groups, or of one: its own options come before the brokers'."""
        properties = {
            name: value
            for name in PROPERTIES
            if name in BROKER_OPTIONS and (value := self._cluster.configs.broker_value(name)) is not None
        }
        for name, value in self._groups.get(group_id, {}).items():
            properties[f"group.{name}"] = value
        return GroupSettings.from_properties(properties)

    def _configs_changed(self) -> None:
        self.coordinator.settings = self._settings()
        self.coordinator.settings_changed()

    def _moved(self) -> None:
        for group_id in list(self.coordinator.groups):
            node = self._cluster.coordinators.node_for(GROUP, group_id)
            if self._nodes.setdefault(group_id, node) is not node:
                self._nodes[group_id] = node
                self.coordinator.moved(group_id)

    def share_offset_set(self, group_id: str, topic_id: UUID, index: int) -> None:
        """Have the node that reads a partition for a share group go by the stored offset."""
        for sessions in self._share_sessions():
            sessions.offset_set(group_id, (topic_id, index))

    def share_group_deleted(self, group_id: str) -> None:
        """Have all nodes forget what they read for a share group."""
        for sessions in self._share_sessions():
            sessions.forget(group_id)

    def share_sessions_at(self, node_id: int) -> ShareSessions | None:
        """Return the share sessions of a node; None before the first."""
        node = self._cluster.nodes.get(node_id)
        return None if node is None else node.memory.get(SHARE_SESSIONS)

    def _share_sessions(self) -> list[ShareSessions]:
        nodes = self._cluster.nodes.values()
        return [node.memory[SHARE_SESSIONS] for node in nodes if SHARE_SESSIONS in node.memory]

    def note(self, group_id: str, node: Node) -> None:
        """Remember which node coordinates a group."""
        self._nodes[group_id] = node

    def client_ids(self, group_id: str) -> dict[str, str]:
        """Return the client id of each member of a group, of either protocol, by the member's id."""
        group = self.coordinator.groups.get(group_id)
        if group is None:
            raise GroupIdNotFoundError(f"the group {group_id!r} does not exist")
        return {member_id: member.client_id for member_id, member in group.members.items()}

    async def wait_until_stable(self, group_id: str, members: int | None, timeout: float) -> dict[str, str]:
        """Wait until a group is stable, with that many members or any; return the client id of each member."""
        # Real time: a group changes with requests, and the clock of the broker may stand still.
        deadline = time.monotonic() + timeout
        while True:
            group = self.coordinator.groups.get(group_id)
            if group is not None and group.state_name == "Stable" and members in (None, len(group.members)):
                return self.client_ids(group_id)
            if time.monotonic() >= deadline:
                break
            await asyncio.sleep(0.005)
        wanted = "" if members is None else f" with {members} members"
        state = "does not exist" if group is None else f"is {group.state_name} with {len(group.members)} members"
        raise KafkaTimeoutError(f"waited {timeout} s for the group {group_id!r} to be stable{wanted}: it {state}")

    def committed_offset(self, group_id: str, partition: TopicPartition) -> int | None:
        """Return the offset that a group has committed; None if it has not."""
        offsets = self.coordinator.offsets.get(group_id)
        found = None if offsets is None else offsets.committed.get(partition)
        return None if found is None else found.offset

    def expire_member(self, group_id: str, member: str | None) -> None:
        """End the session of the member with this member id or client id; with None, of the only member."""
        found = [
            member_id
            for member_id, client_id in self.client_ids(group_id).items()
            if member is None or member in {member_id, client_id}
        ]
        if len(found) != 1:
            which = "" if member is None else f" called {member!r}"
            raise IllegalArgumentError(
                f"the group {group_id!r} has {len(found)} members{which}: pass the id of one of its members"
            )
        self.coordinator.expel(group_id, found[0])

    def close(self) -> None:
        """Stop all timers."""
        self.coordinator.close()


def coordinator(call: Call) -> GroupCoordinator:
    """Return the cluster's group coordinator."""
    return call.cluster.service(GroupService).coordinator


def check_group(call: Call, group_id: str, operation: Operation = Operation.READ) -> None:
    """Raise if this client may not ask this node about the group."""
    call.require(operation, Resource.GROUP, group_id)
    if not call.cluster.coordinators.is_at(call.node, GROUP, group_id):
        raise NotCoordinatorError
    call.cluster.service(GroupService).note(group_id, call.node)


def describe_groups(
    call: Call[Any],
    request: ConsumerGroupDescribeRequest | ShareGroupDescribeRequest | StreamsGroupDescribeRequest,
    kind: type[EpochGroupT],
    topics_of: Callable[[Any, EpochGroupT], Iterable[str]],
    fill: Callable[[Any, EpochGroupT, Any], None],
    hidden: str = "The group has described topic(s) that the client is not authorized to describe.",
) -> Any:
    """Return the reply to a request that describes groups of a kind, of which `fill` adds what others do not have.

    Instead of a description there may be the error why this client may not have it from this node; `hidden` is the
    message where the client may not describe one of the group's topics.
    """
    found = []
    for group_id in request.group_ids:
        described = call.response.DescribedGroup(group_id=group_id)
        found.append(described)
        try:
            if not group_id:
                raise InvalidGroupIdError
            check_group(call, group_id, Operation.DESCRIBE)
            group = coordinator(call).find(kind, group_id)
            check_topics(call, topics_of(call, group), hidden)
        except BrokerResponseError as error:
            described.error_code, described.error_message = error.code, error.args[0] if error.args else None
            continue
        described.group_state, described.group_epoch = group.state, group.epoch
        described.assignment_epoch = group.assignment_epoch
        fill(call, group, described)
        if request.include_authorized_operations:
            described.authorized_operations = group_operations(call, group_id)
    return call.response(groups=found)


def check_topics(call: Call, names: Iterable[str], *message: str) -> None:
    """Raise, with a message if one is given, if this client may not describe one of these topics."""
    if not all(call.allows(Operation.DESCRIBE, Resource.TOPIC, name) for name in names):
        raise TopicAuthorizationFailedError(*message)


def named_partitions(call: Call, assigned: Assignment) -> list[tuple[UUID, str, list[int]]]:
    """Return an assignment as descriptions have it, without topics that have been deleted."""
    topics = Topics(call.cluster)
    return [
        (topic_id, name, sorted(indexes))
        for topic_id, indexes in assigned.items()
        if (name := topics.topic_name(topic_id)) is not None
    ]


def check_fields(problems: Iterable[tuple[bool, str]]) -> None:
    """Raise the first problem that a request has."""
    for is_wrong, text in problems:
        if is_wrong:
            raise InvalidRequestError(*([text] if text else []))


def when_answered(answer: Answer[T], make: Callable[[T], R]) -> R | asyncio.Future[R]:
    """Return the reply now if the answer is there, else a future of it."""
    if answer.is_set:
        return make(answer.value)
    future: asyncio.Future[R] = asyncio.get_running_loop().create_future()

    def arrived(value: T) -> None:
        if not future.done():  # the client may have gone away
            future.set_result(make(value))

    answer.then(arrived)
    return future
