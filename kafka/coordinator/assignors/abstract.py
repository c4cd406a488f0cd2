"""The base class of assignors: pure functions of the cluster and the members' subscriptions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from types import MethodType
from typing import TYPE_CHECKING, Any, Protocol

from kafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata, by_topic
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.cluster import ClusterMetadata

__all__ = [
    "AbstractPartitionAssignor",
    "Assignor",
    "Members",
    "RebalanceProtocol",
    "answer",
    "on_class_too",
    "readers_by_topic",
]

Members = Mapping[str, ConsumerProtocolMemberMetadata]
"""Member id -> its subscription."""


class Assignor(Protocol):
    """An assignor as a member needs it: this library's, or any object of the application that has the two."""

    @property
    def name(self) -> object:
        """The name of the protocol in the group."""
        ...

    def assign(self, cluster: ClusterMetadata, members: Members) -> Mapping[str, ConsumerProtocolMemberAssignment]:
        """Return an assignment for each member."""
        ...


class RebalanceProtocol(IntEnum):
    """How members change from one assignment to the next."""

    EAGER = 0
    """All members revoke all partitions before they join."""
    COOPERATIVE = 1
    """Members keep their partitions, and revoke only the ones that move (KIP-429)."""


class on_class_too:  # noqa: N801 - a decorator
    """A method that can be called on the class too, which makes an instance for the call.

    The assignors of kafka-python 1.x and 2.x have class methods.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None and getattr(owner, "__abstractmethods__", None):
            return self._function
        return MethodType(self._function, owner() if instance is None else instance)


class AbstractPartitionAssignor(ABC):
    """The base of assignors, also of an application's: a subclass has a name and `assign`.

    >>> class FirstTakesAll(AbstractPartitionAssignor):
    ...     name = "first-takes-all"
    ...
    ...     def assign(self, cluster, members):
    ...         first, *rest = sorted(members)
    ...         topics = members[first].subscription
    ...         everything = [(topic, sorted(cluster.partitions_for_topic(topic))) for topic in topics]
    ...         empty = {member: ConsumerProtocolMemberAssignment(0, [], b"") for member in rest}
    ...         return {first: ConsumerProtocolMemberAssignment(0, everything, b""), **empty}

    Methods may be class methods, as they were in 1.x. Each consumer makes its own instance.
    """

    name: Any = None
    """The name of the protocol in the group."""
    version: Any = 0
    """The version of its user data."""

    @abstractmethod
    def assign(self, cluster: ClusterMetadata, members: Any) -> Mapping[str, Any]:
        """Return an assignment for each member; called on the group's leader only.

        `members` are ``{member_id: ConsumerProtocolMemberMetadata}``, the result is
        ``{member_id: ConsumerProtocolMemberAssignment}``.
        """

    @on_class_too
    def metadata(self, topics: Iterable[str]) -> Any:
        """Return the metadata for the leader: topics, and the assignor's user data."""
        return ConsumerProtocolMemberMetadata(int(self.version), sorted(topics), b"")

    @on_class_too  # noqa: B027 - may be left as it is
    def on_assignment(self, assignment: Any) -> None:
        """Called with the assignment of this member."""

    @on_class_too  # noqa: B027
    def on_generation_assignment(self, generation: int) -> None:
        """Called with the generation of the assignment, after `on_assignment`."""

    def supported_protocols(self) -> tuple[RebalanceProtocol, ...]:
        """The rebalance protocols that its users support."""
        return (RebalanceProtocol.EAGER,)


def readers_by_topic(members: Members) -> dict[str, list[str]]:
    """Return the members that subscribe to each topic; topics and member ids sorted."""
    readers: dict[str, list[str]] = {}
    for member in sorted(members):
        for topic in set(members[member].subscription):
            readers.setdefault(topic, []).append(member)
    return dict(sorted(readers.items()))


def answer(version: int, owned: Mapping[str, Iterable[TopicPartition]]) -> dict[str, ConsumerProtocolMemberAssignment]:
    """Return an assignment in the form that assignors return."""
    return {
        member: ConsumerProtocolMemberAssignment(version, by_topic(partitions), b"")
        for member, partitions in owned.items()
    }
