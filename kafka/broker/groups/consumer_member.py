"""A member of a consumer group (KIP-848): its heartbeats, and one step towards its target assignment.

A member gives up the partitions that it must not keep. After it has confirmed that, it enters the next epoch, and it
gets a new partition only when no other member holds it. So no partition has two owners at any time. Pure: values in,
values out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final
from uuid import UUID

from kafka.broker.groups.assignors import Assignment
from kafka.broker.groups.classic_member import Protocols
from kafka.broker.groups.group import GroupMember


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
    #: The epoch of the assignment with which the member got each partition that it owns; its own where none is noted.
    assignment_epochs: Mapping[tuple[UUID, int], int] = field(default_factory=dict)

    @property
    def owned(self) -> Assignment:
        """The partitions that no other member may have yet: assigned ones, and ones that it must give back."""
        owned = dict(self.assigned)
        for topic, indexes in self.pending_revocation.items():
            owned[topic] = owned.get(topic, frozenset()) | indexes
        return owned

    def assignment_epoch(self, topic: UUID, index: int) -> int | None:
        """Return the epoch of the assignment with which the member got a partition; None if it does not own it."""
        if index in self.owned.get(topic, frozenset()):
            return self.assignment_epochs.get((topic, index), self.epoch)
        return None


def step(
    holding: Holding,
    target: Mapping[UUID, frozenset[int]],
    target_epoch: int,
    owned: Mapping[UUID, frozenset[int]] | None,
    is_free: Callable[[UUID, int], bool],
    new_subscription: Collection[UUID] | None = None,
) -> Holding:
    """Return what the member holds after this heartbeat.

    ``owned`` is what it says that it has, None if it did not say. ``is_free`` tells of a partition whether no member
    holds it or is still to give it back. ``new_subscription`` are its topics if this heartbeat has changed them.
    """
    if holding.state is MemberState.UNREVOKED_PARTITIONS:
        is_settled = _has_any(owned, holding.pending_revocation)
    else:
        is_settled = holding.state is MemberState.STABLE and holding.epoch == target_epoch
    if is_settled:
        return holding if new_subscription is None else _narrowed(holding, owned, new_subscription)
    # It revokes first, and stays at its epoch until it has; then it gets what is free.
    kept: Assignment = {}
    revoked: Assignment = {}
    granted: Assignment = {}
    has_unreleased = False
    for topic in sorted({*target, *holding.assigned}, key=lambda each: each.int):
        wanted = target.get(topic, frozenset())
        had = holding.assigned.get(topic, frozenset())
        # It may have back at once what it was to give back itself.
        own = holding.pending_revocation.get(topic, frozenset())
        free = frozenset(index for index in wanted - had if index in own or is_free(topic, index))
        has_unreleased = has_unreleased or free != wanted - had
        _put(kept, topic, had & wanted)
        _put(revoked, topic, had - wanted)
        _put(granted, topic, free)
    if revoked and _has_any(owned, revoked):
        return _held(holding, holding.epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoked)
    epochs = {(topic, index): target_epoch for topic, indexes in granted.items() for index in indexes}
    for topic, indexes in granted.items():
        _put(kept, topic, kept.get(topic, frozenset()) | indexes)
    state = MemberState.UNRELEASED_PARTITIONS if has_unreleased else MemberState.STABLE
    return _held(holding, target_epoch, state, kept, {}, epochs)


def _narrowed(holding: Holding, owned: Mapping[UUID, frozenset[int]] | None, subscription: Collection[UUID]) -> Holding:
    """Take the topics that the member does not subscribe to any more from what it may read."""
    kept = {topic: indexes for topic, indexes in holding.assigned.items() if topic in subscription}
    if len(kept) == len(holding.assigned):
        return holding
    revoked = dict(holding.pending_revocation)
    for topic in holding.assigned.keys() - kept.keys():
        _put(revoked, topic, revoked.get(topic, frozenset()) | holding.assigned[topic])
    if _has_any(owned, revoked):
        return _held(holding, holding.epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoked)
    return _held(holding, holding.epoch, holding.state, kept, holding.pending_revocation)


def _held(
    before: Holding,
    epoch: int,
    state: MemberState,
    assigned: Assignment,
    revoked: Mapping[UUID, frozenset[int]],
    granted: Mapping[tuple[UUID, int], int] | None = None,
) -> Holding:
    after = Holding(epoch, before.epoch, state, assigned, revoked)
    epochs = dict(granted or {})
    for topic, indexes in after.owned.items():
        for index in indexes:
            epochs.setdefault((topic, index), before.assignment_epochs.get((topic, index), before.epoch))
    return replace(after, assignment_epochs=epochs)


def _has_any(owned: Mapping[UUID, frozenset[int]] | None, partitions: Mapping[UUID, frozenset[int]]) -> bool:
    """Whether the member still has one of the partitions, as it must be taken to if it does not say."""
    return owned is None or any(indexes & owned.get(topic, frozenset()) for topic, indexes in partitions.items())


def _put(assignment: Assignment, topic: UUID, indexes: frozenset[int]) -> None:
    if indexes:
        assignment[topic] = indexes


#: The epoch with which a static member leaves for as long as its session lasts.
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


@dataclass(eq=False, kw_only=True)
class ConsumerMember(GroupMember):
    """One member of a consumer group.

    In a rebalance it must revoke partitions in time, or, as a classic member, join and synchronise.
    """

    names: frozenset[str] = frozenset()
    regex: str | None = None
    assignor: str | None = None
    holding: Holding = field(default_factory=Holding)
    classic: ClassicTerms | None = None

    @property
    def epoch(self) -> int:
        """Its epoch."""
        return self.holding.epoch

    @property
    def previous_epoch(self) -> int:
        """The epoch that it had before."""
        return self.holding.previous_epoch

    @property
    def assigned(self) -> Assignment:
        """What it may read."""
        return dict(self.holding.assigned)
