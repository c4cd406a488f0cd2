"""The states of a member of a group, the transitions between them, the member's generation. No I/O, clock or log.

All transitions are in `NEXT`; an absent pair is a bug of ours. docs/internals/groups.rst draws the table.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from kafka import structs


class MemberState(Enum):
    """The state of a member."""

    UNJOINED = "not in the group"
    PREPARING = "revoking partitions before it joins"
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
    """An event in the life of a member."""

    START = "it must join, or join again"
    PREPARED = "it has revoked partitions"
    JOINED = "the coordinator accepted it"
    SYNCED = "the assignment came"
    COMPLETED = "the assignment was taken"
    RETRY = "the attempt failed, or the coordinator removed it"
    LEAVE = "the application unsubscribed"
    POLL_TIMEOUT = "poll() was not called for max_poll_interval_ms"
    POLLED = "poll() was called"
    FATAL = "a fatal error came"
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
    # KIP-848: a new assignment comes with a heartbeat response, without a join.
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
    """Return the state that an event leads to.

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
