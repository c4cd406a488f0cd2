"""The states of a transactional producer, and what leads from one to another: all of it, as data.

Events are the application's calls and what happens to the producer. A call that is not in the table is refused in that
state, with words on what to do; something that happens and is not in the table is a bug of ours. Nothing here waits,
sends or knows of a cluster.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from kafka.errors import IllegalStateError

__all__ = ["CALLS", "Event", "State", "is_allowed", "next_state"]


class State(Enum):
    """Where a producer is."""

    UNINITIALIZED = "not initialized"
    INITIALIZING = "being initialized"
    READY = "ready"
    IN_TRANSACTION = "in a transaction"
    COMMITTING = "committing"
    ABORTING = "aborting"
    MUST_ABORT = "in a transaction that has to be aborted"
    FAILED = "failed"


class Event(Enum):
    """What the application calls, and what happens."""

    INIT = "init_transactions()"
    TAKE_OVER = "take_over()"
    BEGIN = "begin_transaction()"
    SEND = "send()"
    SEND_OFFSETS = "send_offsets_to_transaction()"
    COMMIT = "commit_transaction()"
    ABORT = "abort_transaction()"
    DONE = "the end of what was called"
    REFUSED = "a refusal"
    TROUBLE = "an error that an abort mends"
    FAILURE = "an error that nothing mends"


CALLS: Final = (Event.INIT, Event.TAKE_OVER, Event.BEGIN, Event.SEND, Event.SEND_OFFSETS, Event.COMMIT, Event.ABORT)

_NEXT: Final = {
    (State.UNINITIALIZED, Event.INIT): State.INITIALIZING,
    (State.UNINITIALIZED, Event.TAKE_OVER): State.INITIALIZING,
    (State.INITIALIZING, Event.INIT): State.INITIALIZING,  # again, after a timeout: waits on
    (State.INITIALIZING, Event.DONE): State.READY,
    (State.INITIALIZING, Event.REFUSED): State.UNINITIALIZED,
    (State.READY, Event.TAKE_OVER): State.INITIALIZING,  # under another id, or anew under the same
    (State.READY, Event.BEGIN): State.IN_TRANSACTION,
    (State.IN_TRANSACTION, Event.SEND): State.IN_TRANSACTION,
    (State.IN_TRANSACTION, Event.SEND_OFFSETS): State.IN_TRANSACTION,
    (State.IN_TRANSACTION, Event.COMMIT): State.COMMITTING,
    (State.IN_TRANSACTION, Event.ABORT): State.ABORTING,
    (State.IN_TRANSACTION, Event.TROUBLE): State.MUST_ABORT,
    (State.COMMITTING, Event.COMMIT): State.COMMITTING,
    (State.COMMITTING, Event.DONE): State.READY,
    (State.COMMITTING, Event.TROUBLE): State.MUST_ABORT,
    (State.MUST_ABORT, Event.ABORT): State.ABORTING,
    (State.MUST_ABORT, Event.TROUBLE): State.MUST_ABORT,  # the first one is told
    (State.ABORTING, Event.ABORT): State.ABORTING,
    (State.ABORTING, Event.DONE): State.READY,
    (State.ABORTING, Event.TROUBLE): State.ABORTING,  # it is being aborted as it is
    **{(state, Event.FAILURE): State.FAILED for state in State},
}

_ADVICE: Final = {
    State.UNINITIALIZED: "call init_transactions() first, once",
    State.INITIALIZING: "init_transactions() is not done: call it again, which waits for the rest",
    State.READY: "no transaction is open: begin_transaction() comes first",
    State.IN_TRANSACTION: "a transaction is open: commit_transaction() or abort_transaction() comes first",
    State.COMMITTING: (
        "commit_transaction() was called and its outcome is not known: call it again, which waits for the rest"
    ),
    State.ABORTING: "abort_transaction() is not done: call it again, which waits for the rest",
    State.MUST_ABORT: "the transaction cannot be committed any more: call abort_transaction()",
    State.FAILED: "this producer cannot go on: close it and make another",
}


def is_allowed(state: State, event: Event) -> bool:
    """Whether something may be called in a state.

    >>> is_allowed(State.READY, Event.BEGIN), is_allowed(State.READY, Event.SEND)
    (True, False)
    """
    return (state, event) in _NEXT


def next_state(state: State, event: Event) -> State:
    """Return where an event leads; IllegalStateError with advice where it has no place.

    >>> next_state(State.READY, Event.BEGIN)
    <State.IN_TRANSACTION: 'in a transaction'>
    >>> next_state(State.READY, Event.COMMIT)
    Traceback (most recent call last):
    kafka.errors.IllegalStateError: commit_transaction() has no place while the producer is ready: \
no transaction is open: begin_transaction() comes first
    """
    try:
        return _NEXT[state, event]
    except KeyError:
        raise IllegalStateError(
            f"{event.value} has no place while the producer is {state.value}: {_advice(state, event)}"
        ) from None


def _advice(state: State, event: Event) -> str:
    if state is State.READY and event is Event.INIT:
        return "it was initialized, which is needed once: go on with begin_transaction()"
    return _ADVICE[state]
