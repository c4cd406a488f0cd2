"""Every call in every state: allowed, or an error that says what to do."""

from __future__ import annotations

import pytest

from kafka.errors import IllegalStateError
from kafka.producer.transaction_protocol import CALLS, Event, State, is_allowed, next_state

S, E = State, Event

# Written down a second time, as the application sees it: what may be called where.
ALLOWED = {
    S.UNINITIALIZED: {E.INIT, E.TAKE_OVER},
    S.INITIALIZING: {E.INIT},
    S.READY: {E.BEGIN, E.TAKE_OVER},
    S.IN_TRANSACTION: {E.SEND, E.SEND_OFFSETS, E.COMMIT, E.ABORT},
    S.COMMITTING: {E.COMMIT},
    S.MUST_ABORT: {E.ABORT},
    S.ABORTING: {E.ABORT},
    S.FAILED: set(),
}


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
@pytest.mark.parametrize("state", list(State), ids=lambda state: state.name)
def test_every_call_in_every_state(state, call):
    if call in ALLOWED[state]:
        assert is_allowed(state, call)
        assert isinstance(next_state(state, call), State)
        return
    assert not is_allowed(state, call)
    with pytest.raises(IllegalStateError) as raised:
        next_state(state, call)
    text = str(raised.value)
    assert text.startswith(f"cannot call {call.value} while the producer is ")
    assert state.value in text
    # What to do: a call to make, or that there is none.
    assert any(other.value in text.split(":", 1)[1] for other in CALLS) or "close it" in text


@pytest.mark.parametrize("state", list(State), ids=lambda state: state.name)
def test_a_failure_is_possible_in_every_state_and_final(state):
    assert next_state(state, E.FATAL_ERROR) is S.FAILED
    assert not any(is_allowed(S.FAILED, event) for event in Event if event is not E.FATAL_ERROR)


def test_every_busy_state_ends():
    assert next_state(S.INITIALIZING, E.DONE) is S.READY
    assert next_state(S.COMMITTING, E.DONE) is S.READY
    assert next_state(S.ABORTING, E.DONE) is S.READY
    for state in (S.UNINITIALIZED, S.READY, S.IN_TRANSACTION, S.MUST_ABORT):
        with pytest.raises(IllegalStateError):
            next_state(state, E.DONE)


def test_a_call_that_is_repeated_joins_the_one_under_way():
    for state, call in ((S.INITIALIZING, E.INIT), (S.COMMITTING, E.COMMIT), (S.ABORTING, E.ABORT)):
        assert next_state(state, call) is state


def test_from_every_state_of_a_transaction_there_is_a_way_to_the_next():
    """No sequence of calls and troubles leads where only closing helps, except a failure."""
    seen, todo = set(), [S.UNINITIALIZED]
    while todo:
        state = todo.pop()
        if state in seen:
            continue
        seen.add(state)
        todo += [next_state(state, event) for event in Event if event is not E.FATAL_ERROR and is_allowed(state, event)]
    assert seen == set(State) - {S.FAILED}
    for state in seen:
        assert _can_reach(state, S.READY)


def _can_reach(start: State, goal: State) -> bool:
    seen, todo = set(), [start]
    while todo:
        state = todo.pop()
        if state is goal:
            return True
        if state not in seen:
            seen.add(state)
            todo += [
                next_state(state, event) for event in Event if event is not E.FATAL_ERROR and is_allowed(state, event)
            ]
    return False
