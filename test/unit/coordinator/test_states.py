"""The table of a member's states."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka.coordinator.states import NEXT, IllegalTransition, MemberEvent, MemberState, next_state


def walk(*events: MemberEvent) -> MemberState:
    state = MemberState.UNJOINED
    for event in events:
        state = next_state(state, event)
    return state


JOIN = (MemberEvent.START, MemberEvent.PREPARED, MemberEvent.JOINED, MemberEvent.SYNCED, MemberEvent.COMPLETED)


def test_a_round_leads_into_the_group_and_through_it_again() -> None:
    assert walk(*JOIN) is MemberState.STABLE
    assert walk(*JOIN, *JOIN) is MemberState.STABLE


def test_every_state_can_be_left_for_good_and_nothing_leads_out_of_closed() -> None:
    for state in MemberState:
        assert next_state(state, MemberEvent.CLOSE) is MemberState.CLOSED
    assert {event for state, event in NEXT if state is MemberState.CLOSED} == {MemberEvent.CLOSE}


def test_each_step_under_way_can_fail_and_be_tried_again() -> None:
    for length in range(len(JOIN) + 1):
        assert walk(*JOIN[:length], MemberEvent.RETRY) is MemberState.UNJOINED
        assert walk(*JOIN[:length], MemberEvent.POLL_TIMEOUT, MemberEvent.POLLED) is MemberState.UNJOINED
        assert walk(*JOIN[:length], MemberEvent.FATAL, MemberEvent.POLLED, *JOIN) is MemberState.STABLE


def test_a_state_that_the_table_lacks_is_an_error_that_names_both() -> None:
    with pytest.raises(IllegalTransition, match=r"JOINED.*UNJOINED"):
        next_state(MemberState.UNJOINED, MemberEvent.JOINED)


def test_every_state_is_reachable_and_has_a_historic_name() -> None:
    assert {MemberState.UNJOINED, *NEXT.values()} == set(MemberState)
    assert {state.historic for state in MemberState} == {"<unjoined>", "<rebalancing>", "<stable>"}


def test_the_page_on_groups_shows_the_table() -> None:
    page = (Path(__file__).parents[3] / "docs" / "internals" / "groups.rst").read_text(encoding="utf-8")
    shown = {line.strip() for line in page.splitlines() if " --> " in line}
    everywhere = {MemberEvent.FATAL, MemberEvent.LEAVE, MemberEvent.CLOSE}
    expected = {
        f"{state.name} -- {event.value} --> {target.name}"
        for (state, event), target in NEXT.items()
        if event not in everywhere
    }
    assert shown == expected
