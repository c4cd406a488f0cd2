"""The base of all kinds of groups and of their members: the questions of the coordinator to a group, and its answers.

Each kind answers the requests of classic members (JoinGroup, SyncGroup, Heartbeat, LeaveGroup) through
``classic_members``, or has none. Sans-IO; lives on the broker's loop and takes no lock.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol, TypeVar

from kafka.broker.cluster.clock import Timer

if TYPE_CHECKING:
    from kafka.broker.groups.classic_member import JoinAsk, JoinResult, SyncAsk, SyncResult
    from kafka.broker.groups.settings import GroupSettings
    from kafka.structs import TopicPartition

T = TypeVar("T")

#: The metadata of a dataclass's field that is not kept on disk.
UNSAVED: Final = {"saved": False}


class Answer(Generic[T]):
    """A value that is there at once or comes later; it comes once.

    >>> answer = Answer()
    >>> answer.then(print)
    >>> answer.set("joined")
    joined
    >>> answer.is_set, answer.value
    (True, 'joined')
    """

    __slots__ = ("_callbacks", "_value", "is_set")

    def __init__(self) -> None:
        self.is_set = False
        self._value: T | None = None
        self._callbacks: list[Callable[[T], object]] = []

    @classmethod
    def of(cls, value: T) -> Answer[T]:
        """Return an answer that is there at once."""
        answer = cls()
        answer.set(value)
        return answer

    @property
    def value(self) -> T:
        """The value; asking before it is there is an error of the caller."""
        if not self.is_set:
            raise ValueError("the answer is not there yet")
        return self._value  # type: ignore[return-value]

    def set(self, value: T) -> None:
        """Give the value to the callback that waits for it."""
        if self.is_set:
            raise ValueError("the answer was given already")
        self.is_set = True
        self._value = value
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(value)

    def then(self, callback: Callable[[T], object]) -> None:
        """Call ``callback`` with the value, now or when it comes."""
        if self.is_set:
            callback(self.value)
        else:
            self._callbacks.append(callback)


@dataclass(eq=False)
class GroupMember:
    """A member of a group of any kind."""

    member_id: str
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rack_id: str | None = None
    rebalance_timeout: float = 300.0
    session: Timer | None = field(default=None, metadata=UNSAVED)
    #: Removes the member unless it does in time what a rebalance asks of it.
    rebalance: Timer | None = field(default=None, metadata=UNSAVED)
    #: Its fields as they were last saved, of which none is ever changed in place, and the JSON data made of them.
    saved: tuple[list[Any], Any] | None = field(default=None, metadata=UNSAVED)

    def stop_session(self) -> None:
        """Stop waiting for its next heartbeat."""
        if self.session is not None:
            self.session.cancel()
            self.session = None

    def stop_rebalance(self) -> None:
        """Stop waiting for what a rebalance asks of it."""
        if self.rebalance is not None:
            self.rebalance.cancel()
            self.rebalance = None

    def stop_timers(self) -> None:
        """Stop watching it."""
        self.stop_session()
        self.stop_rebalance()


@dataclass(frozen=True)
class Commit:
    """Which member wants to commit offsets, and how; without a transaction by OffsetCommit of that version."""

    member_id: str
    instance_id: str | None
    epoch: int
    partitions: Sequence[TopicPartition]
    is_transactional: bool
    version: int


class ClassicMembers(Protocol):
    """A group as its members of the classic protocol see it."""

    def join(self, ask: JoinAsk) -> Answer[JoinResult]:
        """Serve JoinGroup."""
        ...

    def sync(self, ask: SyncAsk) -> Answer[SyncResult]:
        """Serve SyncGroup."""
        ...

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int) -> None:
        """Serve Heartbeat: raise the error for its response."""
        ...

    def leave(self, members: Iterable[tuple[str, str | None]]) -> list[int]:
        """Serve LeaveGroup: return an error code for each member."""
        ...


class Group(ABC):
    """One group."""

    #: Kafka's name of the type of the group.
    kind: ClassVar[str]
    #: Whether an empty group without offsets stays until an administrator deletes it.
    stays: ClassVar[bool] = False

    group_id: str
    settings: GroupSettings

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.group_id!r} {self.state_name}>"

    # Questions

    @property
    @abstractmethod
    def state_name(self) -> str:
        """Kafka's name of the group's state."""

    @property
    @abstractmethod
    def protocol_type(self) -> str | None:
        """The protocol of the members; None for a group that only keeps offsets."""

    @property
    @abstractmethod
    def members(self) -> Mapping[str, Any]:
        """The members by their ids."""

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return not self.members

    @property
    def gives_way(self) -> bool:
        """Whether a classic group takes its place when a classic member joins."""
        return False

    @property
    def has_pending(self) -> bool:
        """Whether member ids were given out that may still be joined with."""
        return False

    @property
    def classic_members(self) -> ClassicMembers | None:
        """The group as its classic members see it; None if it cannot have any."""
        return None

    @abstractmethod
    def expects(self, topic: str) -> bool:
        """Whether a member reads the topic."""

    def unused_since_ms(self, committed_ms: int) -> int:
        """Return since when an offset that was committed then has not been in use."""
        return committed_ms

    # Offsets

    @abstractmethod
    def check_commit(self, commit: Commit) -> None:
        """Raise if a member may not commit these partitions now."""

    def check_fetch(self, member_id: str | None, epoch: int) -> None:  # noqa: B027 - most groups let anyone read
        """Raise if a member may not read committed offsets now (OffsetFetch v9)."""

    def check_deletion_of_offsets(self) -> None:  # noqa: B027 - most groups let administrators
        """Raise if no offsets of the group may be deleted (OffsetDelete)."""

    # Life

    @abstractmethod
    def expel(self, member_id: str) -> None:
        """Remove a member as if its session had ended."""

    @abstractmethod
    def resign(self) -> None:
        """Stop all timers, and answer requests that wait: another node coordinates this group from now on."""

    @abstractmethod
    def resume(self) -> None:
        """Continue at the new coordinator: sessions start again."""

    def delete(self) -> None:
        """End the group, of which nothing is kept."""
        self.resign()

    # On disk

    @abstractmethod
    def snapshot(self) -> Any:
        """Return the state of the group that outlives the broker, as a dataclass of values."""

    @abstractmethod
    def load(self, snapshot: Any) -> None:
        """Take a fresh group to the state of a snapshot."""
