"""The states of a member of a group, the transitions between them, the member's generation. No I/O, clock or log.

All transitions are in `NEXT`; an absent pair is a bug of ours. docs/internals/groups.rst draws the table.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from kafka import structs

__all__ = ["Generation", "IllegalTransition", "MemberEvent", "MemberState", "NEXT", "NO_GENERATION", "next_state"]


class MemberState(Enum):
    """Where a member is."""

    UNJOINED = "not in the group"
    PREPARING = "giving up partitions before it joins"
    JOINING = "waiting for the others to join"
    SYNCING = "waiting for the assignment"
    COMPLETING = "taking the assignment"
    STABLE = "in the group"
    LEFT = "out of the group until poll() is called"
    FAILED = "out of the group because of an error that the application must see"
    CLOSED = "out of the group for good"

    @property
    def historic(self) -> str:
        """The name in ConsumerGroupMetadata.state."""
        if self is MemberState.STABLE:
            return structs.MemberState.STABLE
        if self in _UNDER_WAY:
            return structs.MemberState.REBALANCING
        return structs.MemberState.UNJOINED


_UNDER_WAY: Final = frozenset({MemberState.PREPARING, MemberState.JOINING, MemberState.SYNCING, MemberState.COMPLETING})


class MemberEvent(Enum):
    """What happens to a member."""

    START = "it has to join, or to join again"
    PREPARED = "it gave up what it had to"
    JOINED = "the coordinator let it in"
    SYNCED = "the assignment came"
    COMPLETED = "the assignment was taken"
    RETRY = "that did not work, or the coordinator does not know it any more"
    LEAVE = "the application unsubscribed"
    POLL_TIMEOUT = "poll() was not called for too long"
    POLLED = "poll() was called"
    FATAL = "an error came that trying again does not mend"
    CLOSE = "the application closed the consumer"


class IllegalTransition(AssertionError):  # noqa: N818 - a bug of ours, not an error to handle
    """An event that cannot happen in a state."""


NEXT: Final[dict[tuple[MemberState, MemberEvent], MemberState]] = {
    (MemberState.UNJOINED, MemberEvent.START): MemberState.PREPARING,
    (MemberState.STABLE, MemberEvent.START): MemberState.PREPARING,
    (MemberState.PREPARING, MemberEvent.PREPARED): MemberState.JOINING,
    (MemberState.JOINING, MemberEvent.JOINED): MemberState.SYNCING,
    (MemberState.SYNCING, MemberEvent.SYNCED): MemberState.COMPLETING,
    (MemberState.COMPLETING, MemberEvent.COMPLETED): MemberState.STABLE,
    # KIP-848: a new assignment comes with the answer to a heartbeat, without a join.
    (MemberState.STABLE, MemberEvent.SYNCED): MemberState.COMPLETING,
    (MemberState.LEFT, MemberEvent.POLLED): MemberState.UNJOINED,
    (MemberState.FAILED, MemberEvent.POLLED): MemberState.UNJOINED,
    **{
        (state, MemberEvent.RETRY): MemberState.UNJOINED
        for state in (*_UNDER_WAY, MemberState.STABLE, MemberState.UNJOINED)
    },
    **{
        (state, MemberEvent.POLL_TIMEOUT): MemberState.LEFT
        for state in (*_UNDER_WAY, MemberState.STABLE, MemberState.UNJOINED)
    },
    **{(state, MemberEvent.FATAL): MemberState.FAILED for state in MemberState if state is not MemberState.CLOSED},
    **{(state, MemberEvent.LEAVE): MemberState.UNJOINED for state in MemberState if state is not MemberState.CLOSED},
    **{(state, MemberEvent.CLOSE): MemberState.CLOSED for state in MemberState},
}


def next_state(state: MemberState, event: MemberEvent) -> MemberState:
    """Return where an event leads.

    >>> next_state(MemberState.JOINING, MemberEvent.JOINED).name
    'SYNCING'
    """
    found = NEXT.get((state, event))
    if found is None:
        raise IllegalTransition(f"{event.name} ({event.value}) cannot happen while a member is {state.name}")
    return found


class Generation(NamedTuple):
    """A member in one round of its group.

    >>> NO_GENERATION.is_member
    False
    """

    generation_id: int = -1
    """The round; in the protocol of KIP-848 the member's epoch."""
    member_id: str = ""
    protocol: str | None = None
    """The assignor that the round was made with."""

    @property
    def is_member(self) -> bool:
        """Whether the coordinator knows it as a member."""
        return self.generation_id >= 0


NO_GENERATION: Final = Generation()
