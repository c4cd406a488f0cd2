"""What share groups and streams groups have in common: members with epochs, sessions, and an empty group that stays.

A member joins with epoch 0, has the epoch of the assignment that it last received, and leaves with epoch -1. Lives on
the broker's loop and takes no lock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

from kafka.broker.groups.interfaces import Clock, Timer, Timers, Topics
from kafka.errors import FencedMemberEpochError, GroupMaxSizeReachedError, UnknownMemberIdError

if TYPE_CHECKING:
    from kafka.broker.groups.settings import GroupSettings

__all__ = ["JOIN", "LEAVE", "EpochGroup", "EpochMember"]

#: Epochs with a special meaning.
JOIN: Final = 0
LEAVE: Final = -1


@dataclass(eq=False)
class EpochMember:
    """One member."""

    member_id: str
    client_id: str = ""
    client_host: str = ""
    rack_id: str | None = None
    epoch: int = 0
    previous_epoch: int = 0
    session: Timer | None = None

    def stop_timers(self) -> None:
        """Stop watching it."""
        if self.session is not None:
            self.session.cancel()
            self.session = None

    def at_epoch(self, epoch: int) -> None:
        """Take it to an epoch."""
        if epoch != self.epoch:
            self.previous_epoch, self.epoch = self.epoch, epoch


M = TypeVar("M", bound=EpochMember)


class EpochGroup(Generic[M]):
    """One group; subclasses know what its members subscribe to and are assigned."""

    #: Kafka's name of the type of the group, which is its protocol type as well.
    protocol_type: ClassVar[str]

    def __init__(
        self,
        group_id: str,
        settings: GroupSettings,
        clock: Clock,
        timers: Timers,
        topics: Topics,
        on_change: Callable[[Any], object] = lambda _group: None,
    ) -> None:
        self.group_id = group_id
        self.settings = settings
        self.epoch = 1
        self.assignment_epoch = 0
        self.members: dict[str, M] = {}
        self._clock = clock
        self._timers = timers
        self._topics = topics
        self._on_change = on_change
        self._assigned_ms: int | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.group_id!r} {self.state} epoch {self.epoch}>"

    @property
    def state(self) -> str:
        """Kafka's name of the group's state."""
        raise NotImplementedError

    @property
    def session_timeout(self) -> float:
        """After how many seconds without a heartbeat a member is removed."""
        raise NotImplementedError

    @property
    def max_size(self) -> int:
        """The most members."""
        raise NotImplementedError

    def expects(self, topic: str) -> bool:
        """Whether a member reads the topic."""
        raise NotImplementedError

    # Members

    def expect(self, member_id: str) -> M:
        """Return a member, or raise UnknownMemberIdError."""
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberIdError(f"Member {member_id} is not a member of group {self.group_id}.")
        return member

    def add(self, member: M) -> M:
        """Add a member."""
        if len(self.members) >= self.max_size:
            raise GroupMaxSizeReachedError(
                f"The {self.protocol_type} group has reached its maximum capacity of {self.max_size} members."
            )
        self.members[member.member_id] = member
        return member

    def remove(self, member_id: str) -> None:
        """Remove a member; the others are assigned its share at their next heartbeats."""
        self.members.pop(member_id).stop_timers()
        self.epoch += 1
        self._on_change(self)

    def leave(self, member_id: str) -> None:
        """Serve a member that leaves."""
        self.remove(self.expect(member_id).member_id)

    def expel(self, member_id: str) -> None:
        """Remove a member as if its session had ended."""
        if member_id in self.members:
            self.remove(member_id)

    def watch(self, member: M) -> None:
        """Restart the member's session."""
        if member.session is not None:
            member.session.cancel()
        member.session = self._timers.call_later(self.session_timeout, self.expel, member.member_id)

    def resign(self) -> None:
        """Stop all timers: another node coordinates this group from now on."""
        for member in self.members.values():
            member.stop_timers()

    def resume(self) -> None:
        """Continue at the new coordinator: sessions start again."""
        for member in self.members.values():
            self.watch(member)

    # Epochs

    def check_epoch(self, member: M, epoch: int, *, is_previous_enough: bool, note: str = "") -> None:
        """Raise unless the member is at that epoch, or has missed the response that took it to the next."""
        if epoch == member.epoch or (epoch == member.previous_epoch and is_previous_enough):
            return
        relation, note = ("greater", "") if epoch > member.epoch else ("smaller", note)
        raise FencedMemberEpochError(
            f"The {self.protocol_type} group member has a {relation} member epoch ({epoch}) than the one known by the"
            f" group coordinator ({member.epoch}){note}. The member must abandon all its"
            " partitions and rejoin."
        )

    def is_assignment_due(self, interval: float) -> bool:
        """Whether the group has changed since its last assignment, which is as long ago as it must be."""
        now = self._clock.now_ms()
        waits = self._assigned_ms is not None and now - self._assigned_ms < interval * 1000
        if self.epoch <= self.assignment_epoch or waits:
            return False
        self._assigned_ms = now
        return True
