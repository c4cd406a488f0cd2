"""A member of a consumer group (KIP-848): its heartbeats, and one step towards its target assignment.

A member gives up the partitions that it must not keep. After it has confirmed that, it enters the next epoch, and it
gets a new partition only when no other member holds it. So no partition has two owners at any time. Pure: values in,
values out.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final
from uuid import UUID

from kafka.broker.groups.assignors import Assignment
from kafka.broker.groups.classic_member import Protocols
from kafka.broker.groups.interfaces import Timer

__all__ = [
    "JOIN",
    "LEAVE",
    "LEAVE_STATIC",
    "ClassicTerms",
    "ConsumerMember",
    "HeartbeatAsk",
    "HeartbeatResult",
    "Holding",
    "MemberState",
    "step",
]


class MemberState(IntEnum):
    """Where a member is on its way; the numbers are the ones in Kafka's log."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2


@dataclass(frozen=True)
class Holding:
    """The partitions that a member holds, and its epoch."""

    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Mapping[UUID, frozenset[int]] = field(default_factory=dict)
    pending_revocation: Mapping[UUID, frozenset[int]] = field(default_factory=dict)
    #: The member epoch at which it got each partition.
    since: Mapping[tuple[UUID, int], int] = field(default_factory=dict)

    def may_commit(self, topic: UUID | None, index: int, epoch: int) -> bool:
        """Whether an offset may be committed with an earlier epoch: only of a partition that it has had since then."""
        had = topic is not None and index in self.owned.get(topic, ())
        return had and self.since.get((topic, index), self.epoch) <= epoch  # type: ignore[arg-type]

    @property
    def owned(self) -> Assignment:
        """The partitions that no other member may have yet: assigned ones, and ones that it must give back."""
        owned = dict(self.assigned)
        for topic, indexes in self.pending_revocation.items():
            owned[topic] = owned.get(topic, frozenset()) | indexes
        return owned


def step(
    holding: Holding,
    target: Mapping[UUID, frozenset[int]],
    target_epoch: int,
    owned: Mapping[UUID, frozenset[int]] | None,
    is_free: Callable[[UUID, int], bool],
    subscribed: Container[UUID],
) -> Holding:
    """Return what the member holds after this heartbeat.

    ``owned`` is what it says that it has, None if it did not say. ``is_free`` tells of a partition whether no other
    member holds it or is still to give it back; ``subscribed`` are the topics that the member reads.
    """
    revokes = holding.state is MemberState.UNREVOKED_PARTITIONS
    settled = holding.state is MemberState.STABLE and holding.epoch == target_epoch
    if settled or (revokes and (owned is None or _overlap(owned, holding.pending_revocation))):
        return _narrowed(holding, owned, subscribed)
    # Kafka assigns again to a member what it has just revoked.
    released = holding.pending_revocation if revokes else {}

    def may_have(topic: UUID, index: int) -> bool:
        return is_free(topic, index) or index in released.get(topic, ())

    wanted = {topic: indexes for topic, indexes in target.items() if topic in subscribed}
    after = _next(holding, wanted, target_epoch, owned, may_have)
    partitions = [(topic, index) for topic, indexes in after.owned.items() for index in indexes]
    since = {partition: holding.since.get(partition, after.epoch) for partition in partitions}
    return replace(after, since=since)


def _narrowed(holding: Holding, owned: Mapping[UUID, frozenset[int]] | None, subscribed: Container[UUID]) -> Holding:
    """Return a holding without the topics that a member no longer reads, before a target says so."""
    dropped = {topic: indexes for topic, indexes in holding.assigned.items() if topic not in subscribed}
    if not dropped:
        return holding
    kept = {topic: indexes for topic, indexes in holding.assigned.items() if topic in subscribed}
    pending = {**holding.pending_revocation, **dropped}
    if owned is not None and not _overlap(owned, pending):
        return replace(holding, assigned=kept)
    return replace(holding, state=MemberState.UNREVOKED_PARTITIONS, assigned=kept, pending_revocation=pending)


def _next(
    holding: Holding,
    target: Mapping[UUID, frozenset[int]],
    target_epoch: int,
    owned: Mapping[UUID, frozenset[int]] | None,
    is_free: Callable[[UUID, int], bool],
) -> Holding:
    kept: Assignment = {}
    revoked: Assignment = {}
    granted: Assignment = {}
    has_unreleased = False
    for topic in sorted({*target, *holding.assigned}, key=lambda each: each.int):
        wanted = target.get(topic, frozenset())
        had = holding.assigned.get(topic, frozenset())
        free = frozenset(index for index in wanted - had if is_free(topic, index))
        has_unreleased = has_unreleased or free != wanted - had
        _put(kept, topic, had & wanted)
        _put(revoked, topic, had - wanted)
        _put(granted, topic, free)
    if revoked and (owned is None or _overlap(owned, revoked)):
        return Holding(holding.epoch, holding.epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoked)
    for topic, indexes in granted.items():
        _put(kept, topic, kept.get(topic, frozenset()) | indexes)
    state = MemberState.UNRELEASED_PARTITIONS if has_unreleased else MemberState.STABLE
    # As in Kafka the epoch before is that of the step before, also where the epoch did not change.
    return Holding(target_epoch, holding.epoch, state, kept)


def _overlap(left: Mapping[UUID, frozenset[int]], right: Mapping[UUID, frozenset[int]]) -> bool:
    return any(indexes & left.get(topic, frozenset()) for topic, indexes in right.items())


def _put(assignment: Assignment, topic: UUID, indexes: frozenset[int]) -> None:
    if indexes:
        assignment[topic] = indexes


#: Epochs with a special meaning.
JOIN: Final = 0
LEAVE: Final = -1
LEAVE_STATIC: Final = -2


@dataclass(frozen=True)
class HeartbeatAsk:
    """A ConsumerGroupHeartbeat request; None stands for what did not change."""

    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout: float | None = None
    names: tuple[str, ...] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: Mapping[UUID, frozenset[int]] | None = None
    client_id: str = ""
    client_host: str = ""


@dataclass(frozen=True)
class HeartbeatResult:
    """The reply to a member; it has an assignment only if it changed or everything was asked for."""

    member_id: str
    epoch: int
    assignment: Mapping[UUID, frozenset[int]] | None = None


@dataclass(frozen=True)
class ClassicTerms:
    """The terms of a member that speaks the classic protocol in a consumer group."""

    session_timeout: float
    protocols: Protocols

    @property
    def protocol_name(self) -> str:
        """The protocol that it is answered with: its own favourite, since members need not agree."""
        return self.protocols[0][0]

    @property
    def metadata(self) -> bytes:
        """Its subscription."""
        return self.protocols[0][1]


@dataclass(eq=False)
class ConsumerMember:
    """One member of a consumer group."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: float = 300.0
    names: frozenset[str] = frozenset()
    regex: str | None = None
    assignor: str | None = None
    holding: Holding = field(default_factory=Holding)
    classic: ClassicTerms | None = None
    session: Timer | None = None
    #: Revoking in time, or joining and synchronising in time for classic members.
    rebalance: Timer | None = None

    @property
    def epoch(self) -> int:
        """Its epoch."""
        return self.holding.epoch

    @property
    def assigned(self) -> Assignment:
        """What it may read."""
        return dict(self.holding.assigned)

    def stop_timers(self) -> None:
        """Watch it no more."""
        for timer in (self.session, self.rebalance):
            if timer is not None:
                timer.cancel()
        self.session = self.rebalance = None
