"""What consumer, share and streams groups have in common: members with epochs, sessions, and an empty group that stays.

A member joins with epoch 0, has the epoch of the assignment that it last received, and leaves with epoch -1. The *group
epoch* counts changes of what is wanted, the *assignment epoch* says for which of them the assignment was computed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar
from uuid import UUID

from kafka.broker.cluster.clock import BrokerClock, Timers
from kafka.broker.groups.group import Group, GroupMember
from kafka.broker.groups.settings import GroupSettings
from kafka.errors import FencedMemberEpochError, GroupMaxSizeReachedError, StaleMemberEpochError, UnknownMemberIdError

if TYPE_CHECKING:
    from kafka.broker.cluster.cluster import Cluster

#: Epochs with a special meaning.
JOIN: Final = 0
LEAVE: Final = -1


class Topics:
    """The cluster's topics, as the coordinators ask for them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def topic_names(self) -> Iterable[str]:
        """Every topic's name, save the internal ones, which no pattern means."""
        return [name for name, topic in self._cluster.topics.items() if not topic.is_internal]

    def topic_id(self, name: str) -> UUID | None:
        """Return a topic's id."""
        topic = self._cluster.topic(name)
        return None if topic is None else topic.id

    def topic_name(self, topic_id: UUID) -> str | None:
        """Return the name of the topic of that id."""
        topic = self._cluster.topic(topic_id=topic_id)
        return None if topic is None else topic.name

    def partition_count(self, name: str) -> int | None:
        """Return how many partitions a topic has."""
        topic = self._cluster.topic(name)
        return None if topic is None else len(topic.partitions)

    def create_topic(
        self, name: str, partitions: int, replication_factor: int | None, configs: Mapping[str, str]
    ) -> object:
        """Create a topic."""
        return self._cluster.create_topic(name, partitions, replication_factor, configs)


@dataclass(eq=False)
class EpochMember(GroupMember):
    """A member that knows its epoch, and the one before."""

    epoch: int = 0
    previous_epoch: int = 0

    def at_epoch(self, epoch: int) -> None:
        """Take it to an epoch."""
        if epoch != self.epoch:
            self.previous_epoch, self.epoch = self.epoch, epoch


class _HasEpochs(Protocol):
    """A member of such a group, however it keeps its epochs."""

    member_id: str

    @property
    def epoch(self) -> int: ...

    @property
    def previous_epoch(self) -> int: ...


M = TypeVar("M", bound=GroupMember)


class EpochGroup(Group, Generic[M]):
    """One group; subclasses know what its members subscribe to and are assigned."""

    def __init__(
        self,
        group_id: str,
        settings: GroupSettings,
        clock: BrokerClock,
        timers: Timers,
        topics: Topics,
        on_change: Callable[[Any], object] = lambda _group: None,
    ) -> None:
        self.group_id = group_id
        self.settings = settings
        self.epoch = 1
        self.assignment_epoch = 0
        self._members: dict[str, M] = {}
        self._clock = clock
        self._timers = timers
        self._topics = topics
        self._on_change = on_change
        self._assigned_ms: int | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.group_id!r} {self.state_name} epoch {self.epoch}>"

    @property
    def state_name(self) -> str:
        """Kafka's name of the group's state."""
        return self.state

    @property
    def protocol_type(self) -> str:
        """The group's type is its protocol's name as well."""
        return self.kind

    @property
    def members(self) -> dict[str, M]:
        """The members by their ids."""
        return self._members

    @property
    @abstractmethod
    def state(self) -> str:
        """Kafka's name of the group's state."""

    def session_timeout_of(self, member: M) -> float:  # noqa: ARG002 - consumer groups look at the member
        """Return after how many seconds without a heartbeat a member is removed."""
        return float(self._setting("session_timeout"))

    def _setting(self, name: str) -> Any:
        """Return a setting that each kind of group has for itself."""
        return getattr(self.settings, f"{self.kind}_{name}")

    # Members

    def expect(self, member_id: str) -> M:
        """Return a member, or raise UnknownMemberIdError."""
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberIdError(f"Member {member_id} is not a member of group {self.group_id}.")
        return member

    def add(self, member: M) -> M:
        """Add a member."""
        most = self._setting("max_size")
        if len(self.members) >= most:
            raise GroupMaxSizeReachedError(f"The {self.kind} group has reached its maximum capacity of {most} members.")
        self.members[member.member_id] = member
        return member

    def remove(self, member_id: str) -> None:
        """Remove a member; the others are assigned its share at their next heartbeats."""
        self.members.pop(member_id).stop_timers()
        self.epoch += 1
        self._on_change(self)

    def expel(self, member_id: str) -> None:
        """Remove a member as if its session had ended."""
        if member_id in self.members:
            self.remove(member_id)

    def watch(self, member: M) -> None:
        """Restart the member's session."""
        member.stop_session()
        member.session = self._timers.call_later(self.session_timeout_of(member), self.expel, member.member_id)

    def expel_after(self, member: M, seconds: float) -> None:
        """Remove the member unless its rebalance timer is stopped before."""
        member.stop_rebalance()
        member.rebalance = self._timers.call_later(seconds, self.expel, member.member_id)

    def resign(self) -> None:
        """Stop all timers: another node coordinates this group from now on."""
        for member in self.members.values():
            member.stop_timers()

    def resume(self) -> None:
        """Continue at the new coordinator: sessions start again."""
        for member in self.members.values():
            self.watch(member)

    # Epochs

    def check_epoch(self, member: _HasEpochs, epoch: int, *, is_previous_enough: bool, note: str = "") -> None:
        """Raise unless the member is at that epoch, or has missed the response that took it to the next."""
        if epoch == member.epoch or (epoch == member.previous_epoch and is_previous_enough):
            return
        relation, note = ("greater", "") if epoch > member.epoch else ("smaller", note)
        raise FencedMemberEpochError(
            f"The {self.kind} group member has a {relation} member epoch ({epoch}) than the one known by the"
            f" group coordinator ({member.epoch}){note}. The member must abandon all its"
            " partitions and rejoin."
        )

    def check_present_epoch(self, member: _HasEpochs, epoch: int) -> None:
        """Raise unless the member is at that epoch."""
        if epoch != member.epoch:
            raise StaleMemberEpochError(
                f"The received member epoch {epoch} does not match the expected member epoch {member.epoch}."
            )

    def is_assignment_due(self) -> bool:
        """Whether the group has changed since its last assignment, which is as long ago as it must be."""
        now, interval = self._clock.now_ms(), self._setting("assignment_interval")
        waits = self._assigned_ms is not None and now - self._assigned_ms < interval * 1000
        if self.epoch <= self.assignment_epoch or waits:
            return False
        self._assigned_ms = now
        return True
