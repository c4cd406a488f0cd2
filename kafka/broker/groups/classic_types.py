"""The words of the classic protocol: states, what moves a group, and what is asked and answered.

The asks and results are JoinGroup and SyncGroup without their versions; the API files translate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from kafka.errors import IllegalStateError

if TYPE_CHECKING:
    from kafka.broker.groups.members import Protocols

__all__ = ["Event", "JoinAsk", "JoinResult", "State", "SyncAsk", "SyncResult", "next_state"]


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
