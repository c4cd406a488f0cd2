"""The states of a transactional id, and what moves it from one to another.

An end has two steps: *Prepare* is the decision, which stands whatever happens after it; *Complete* says that the
markers are on all partitions. From a complete state the next transaction starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from kafka.errors import IllegalStateError

__all__ = ["Event", "State", "next_state"]


class State(Enum):
    """Where a transactional id is; the values are Kafka's names."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"

    @property
    def is_ending(self) -> bool:
        """Whether the end is decided but not written everywhere."""
        return self in (State.PREPARE_COMMIT, State.PREPARE_ABORT)

    @property
    def is_idle(self) -> bool:
        """Whether a transaction does not exist."""
        return self in (State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT)


class Event(Enum):
    """What moves it."""

    INIT = "a producer starts"
    ADD = "a partition is added"
    COMMIT = "it is committed"
    ABORT = "it is aborted"
    FENCE = "its producer is fenced"
    WRITTEN = "the markers are written"
    EXPIRE = "it is forgotten"


_NEXT: Final[Mapping[tuple[State, Event], State]] = {  # an absent pair is a bug of ours
    (State.EMPTY, Event.INIT): State.EMPTY,
    (State.COMPLETE_COMMIT, Event.INIT): State.EMPTY,
    (State.COMPLETE_ABORT, Event.INIT): State.EMPTY,
    (State.EMPTY, Event.ADD): State.ONGOING,
    (State.COMPLETE_COMMIT, Event.ADD): State.ONGOING,
    (State.COMPLETE_ABORT, Event.ADD): State.ONGOING,
    (State.ONGOING, Event.ADD): State.ONGOING,
    (State.ONGOING, Event.COMMIT): State.PREPARE_COMMIT,
    (State.ONGOING, Event.ABORT): State.PREPARE_ABORT,
    # KIP-890: an abort of nothing counts up the epoch, so that late writes of the past are kept out.
    (State.EMPTY, Event.ABORT): State.PREPARE_ABORT,
    (State.COMPLETE_COMMIT, Event.ABORT): State.PREPARE_ABORT,
    (State.COMPLETE_ABORT, Event.ABORT): State.PREPARE_ABORT,
    (State.ONGOING, Event.FENCE): State.PREPARE_EPOCH_FENCE,
    (State.PREPARE_EPOCH_FENCE, Event.ABORT): State.PREPARE_ABORT,
    (State.PREPARE_COMMIT, Event.WRITTEN): State.COMPLETE_COMMIT,
    (State.PREPARE_ABORT, Event.WRITTEN): State.COMPLETE_ABORT,
    (State.EMPTY, Event.EXPIRE): State.DEAD,
    (State.COMPLETE_COMMIT, Event.EXPIRE): State.DEAD,
    (State.COMPLETE_ABORT, Event.EXPIRE): State.DEAD,
}


def next_state(state: State, event: Event) -> State:
    """Return where an event leads.

    >>> next_state(State.ONGOING, Event.COMMIT)
    <State.PREPARE_COMMIT: 'PrepareCommit'>
    """
    try:
        return _NEXT[state, event]
    except KeyError:
        raise IllegalStateError(f"a transaction in {state.value} cannot take that {event.value}") from None
