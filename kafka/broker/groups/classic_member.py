"""The members of a classic group, the states of the group, and the requests and replies of the protocol as values.

Data and questions only: timers and rebalances are in ``classic_group``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from kafka.broker.groups.group import UNSAVED, Answer, GroupMember
from kafka.errors import FencedInstanceIdError, IllegalStateError, KafkaError, UnknownMemberIdError
from kafka.protocol.consumer_protocol import ConsumerProtocolSubscription

#: The protocol type of consumers; the only one whose metadata a broker ever looks into.
CONSUMER: Final = "consumer"

#: The protocols that a member can speak, in its order of preference: name and metadata.
Protocols = Sequence[tuple[str, bytes]]


@dataclass(eq=False, kw_only=True)
class Member(GroupMember):
    """One member of a classic group."""

    session_timeout: float
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = field(default=False, metadata=UNSAVED)
    join_answer: Answer[JoinResult] | None = field(default=None, metadata=UNSAVED)
    sync_answer: Answer[SyncResult] | None = field(default=None, metadata=UNSAVED)

    def metadata(self, protocol: str | None) -> bytes:
        """Return the metadata that it sent for a protocol."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def answer_join(self, result: JoinResult) -> None:
        """Answer its JoinGroup, if one waits."""
        answer, self.join_answer = self.join_answer, None
        if answer is not None:
            answer.set(result)

    def answer_sync(self, result: SyncResult) -> None:
        """Answer its SyncGroup, if one waits."""
        answer, self.sync_answer = self.sync_answer, None
        if answer is not None:
            answer.set(result)


class Roster:
    """The members of one classic group, in the order in which they came."""

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.static: dict[str, str] = {}
        self.leader: str | None = None
        self.protocol_type: str | None = None
        self._support: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[Member]:
        return iter(list(self.members.values()))

    def __contains__(self, member_id: str) -> bool:
        return member_id in self.members

    # Coming and going

    def add(self, member: Member, protocol_type: str) -> None:
        """Take a member in; the first one leads."""
        if not self.members:
            self.protocol_type = protocol_type
        self.leader = self.leader or member.member_id
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id
        self._count(member.protocols, 1)

    def remove(self, member_id: str) -> Member | None:
        """Let a member go; if it led, the longest-standing one leads now."""
        member = self.members.pop(member_id, None)
        if member is None:
            return None
        self._count(member.protocols, -1)
        if member.instance_id is not None and self.static.get(member.instance_id) == member_id:
            del self.static[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        member.stop_timers()
        return member

    def rename(self, old_id: str, new_id: str) -> Member:
        """Give a static member's place to its next incarnation (KIP-345)."""
        member = self.members[old_id]
        # The place in the order is kept: assignors and leadership depend on it.
        self.members = {new_id if key == old_id else key: value for key, value in self.members.items()}
        member.member_id = new_id
        assert member.instance_id is not None
        self.static[member.instance_id] = new_id
        if self.leader == old_id:
            self.leader = new_id
        return member

    def update_protocols(self, member: Member, protocols: Protocols) -> None:
        """Record the protocols that a member speaks now."""
        self._count(member.protocols, -1)
        member.protocols = protocols
        self._count(protocols, 1)

    def _count(self, protocols: Protocols, by: int) -> None:
        for name, _ in protocols:
            self._support[name] += by

    # Identity

    def expect(self, member_id: str, instance_id: str | None) -> Member:
        """Return the member that a request names, or raise the error for the reply."""
        if instance_id is not None:
            known = self.static.get(instance_id)
            if known is None:
                raise UnknownMemberIdError
            if known != member_id:
                raise FencedInstanceIdError
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberIdError
        return member

    def elect(self) -> bool:
        """Ensure that the leader is a member that has joined; return whether there is one."""
        leader = self.members.get(self.leader or "")
        if leader is None or leader.join_answer is not None:
            return leader is not None
        for member in self.members.values():
            if member.join_answer is not None:
                self.leader = member.member_id
                return True
        return False

    # What they agree on

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member that speaks these protocols could join."""
        if not self.members:
            return bool(protocol_type) and bool(protocols)
        everyone = len(self.members)
        return self.protocol_type == protocol_type and any(self._support[name] == everyone for name, _ in protocols)

    def vote(self) -> str | None:
        """Return the protocol that all speak and most prefer."""
        everyone = len(self.members)
        votes: Counter[str] = Counter()
        for member in self.members.values():
            choice = next((name for name, _ in member.protocols if self._support[name] == everyone), None)
            if choice is not None:
                votes[choice] += 1
        return votes.most_common(1)[0][0] if votes else None

    def rebalance_timeout(self) -> float:
        """Return how long a rebalance may take: the longest that any member asks for."""
        return max((member.rebalance_timeout for member in self.members.values()), default=0.0)

    def subscribed_topics(self, protocol: str | None) -> frozenset[str] | None:
        """Return the topics that consumers of this group read; None if that is unknown."""
        if self.protocol_type != CONSUMER:
            return None
        if not self.members:
            return frozenset()
        if protocol is None:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            subscription = read_subscription(member.metadata(protocol))
            if subscription is None:
                return None
            topics.update(subscription.topics)
        return frozenset(topics)


def read_subscription(metadata: bytes) -> ConsumerProtocolSubscription | None:
    """Read what a consumer said it wants; None if it is in no form that we know."""
    version = int.from_bytes(metadata[:2], "big", signed=True)
    if len(metadata) < 2 or version < 0:
        return None
    try:
        # A version from the future begins like the newest that we know.
        return ConsumerProtocolSubscription[min(version, 3)].decode_prefix(bytes(metadata), start=2)[0]
    except KafkaError:
        return None


class State(Enum):
    """Where a group is; the values are Kafka's names."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Event(Enum):
    """What moves a group."""

    REBALANCE = "a rebalance begins"
    GATHERED = "the members have joined"
    DESERTED = "no member is left"
    ASSIGNED = "the leader has handed out the partitions"
    DELETED = "the group is deleted"


_NEXT: Final[Mapping[tuple[State, Event], State]] = {  # an absent pair is a bug of ours
    (State.EMPTY, Event.REBALANCE): State.PREPARING,
    (State.STABLE, Event.REBALANCE): State.PREPARING,
    (State.COMPLETING, Event.REBALANCE): State.PREPARING,
    (State.PREPARING, Event.GATHERED): State.COMPLETING,
    (State.PREPARING, Event.DESERTED): State.EMPTY,
    (State.COMPLETING, Event.ASSIGNED): State.STABLE,
    (State.EMPTY, Event.DELETED): State.DEAD,
    (State.PREPARING, Event.DELETED): State.DEAD,
    (State.COMPLETING, Event.DELETED): State.DEAD,
    (State.STABLE, Event.DELETED): State.DEAD,
}


def next_state(state: State, event: Event) -> State:
    """Return where an event leads.

    >>> next_state(State.STABLE, Event.REBALANCE)
    <State.PREPARING: 'PreparingRebalance'>
    """
    try:
        return _NEXT[state, event]
    except KeyError:
        raise IllegalStateError(f"a group that is {state.value} cannot take that {event.value}") from None


@dataclass(frozen=True)
class JoinAsk:
    """A JoinGroup request."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout: float
    rebalance_timeout: float
    protocol_type: str
    protocols: Protocols
    #: KIP-394, v4: a new member gets its id first and joins with it then.
    needs_id_first: bool = True
    #: KIP-814, v9: the reply can say to a returning static leader that there is nothing to assign.
    can_skip_assignment: bool = True


@dataclass(frozen=True)
class JoinResult:
    """The reply to a member that joins."""

    error_code: int
    member_id: str
    generation: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    #: For the leader only: member id, instance id and metadata of each member.
    members: tuple[tuple[str, str | None, bytes], ...] = ()


@dataclass(frozen=True)
class SyncAsk:
    """A SyncGroup request."""

    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True)
class SyncResult:
    """The reply to a member that synchronises."""

    error_code: int
    assignment: bytes = b""
    protocol_type: str | None = None
    protocol_name: str | None = None
