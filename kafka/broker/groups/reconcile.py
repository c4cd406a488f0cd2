"""One step of one member towards its target assignment (KIP-848). Pure: values in, values out.

A member gives up what it is not to keep, and only when it has said so does it go to the next epoch; it gets what is
new to it only when no other member holds it. So no partition has two owners at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from uuid import UUID

from kafka.broker.groups.assignors import Assignment

__all__ = ["Holding", "MemberState", "step"]


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

    @property
    def owned(self) -> Assignment:
        """The partitions that no other member may have yet: assigned ones, and ones that it must give back."""
        owned = dict(self.assigned)
        for topic, indexes in self.pending_revocation.items():
            owned[topic] = owned.get(topic, frozenset()) | indexes
        return owned

    def at_epoch(self, epoch: int) -> Holding:
        """Return the same at another epoch."""
        return self if epoch == self.epoch else replace(self, epoch=epoch, previous_epoch=self.epoch)


def step(
    holding: Holding,
    target: Mapping[UUID, frozenset[int]],
    target_epoch: int,
    owned: Mapping[UUID, frozenset[int]] | None,
    is_free: Callable[[UUID, int], bool],
) -> Holding:
    """Return what the member holds after this heartbeat.

    ``owned`` is what it says that it has, None if it did not say. ``is_free`` tells of a partition whether no other
    member holds it or is still to give it back.
    """
    if holding.state is MemberState.UNREVOKED_PARTITIONS:
        if owned is None or _overlap(owned, holding.pending_revocation):
            return holding
        # It has given up what it had to: that was the way to the next epoch.
        return _next(holding, holding.epoch + 1, target, target_epoch, owned, is_free)
    if holding.state is MemberState.STABLE and holding.epoch == target_epoch:
        return holding
    return _next(holding, holding.epoch, target, target_epoch, owned, is_free)


def _next(
    holding: Holding,
    epoch: int,
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
        fresh = Holding(holding.epoch, holding.previous_epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoked)
        return fresh.at_epoch(epoch)
    for topic, indexes in granted.items():
        _put(kept, topic, kept.get(topic, frozenset()) | indexes)
    state = MemberState.UNRELEASED_PARTITIONS if has_unreleased else MemberState.STABLE
    return Holding(holding.epoch, holding.previous_epoch, state, kept).at_epoch(target_epoch)


def _overlap(left: Mapping[UUID, frozenset[int]], right: Mapping[UUID, frozenset[int]]) -> bool:
    return any(indexes & left.get(topic, frozenset()) for topic, indexes in right.items())


def _put(assignment: Assignment, topic: UUID, indexes: frozenset[int]) -> None:
    if indexes:
        assignment[topic] = indexes
