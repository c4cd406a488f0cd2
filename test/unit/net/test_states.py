"""The table of states, and that the docs show it as it is."""

from __future__ import annotations

from pathlib import Path

from kafka.net.states import NEXT, ConnectionEvent

PAGE = Path(__file__).parents[3] / "docs" / "internals" / "network.rst"


def test_the_docs_show_every_step_and_no_other():
    shown = {
        line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("- ``") and " --> " in line
    }
    table = {
        f"- ``{state.name}`` -- {event.name} --> ``{after.name}``"
        for (state, event), after in NEXT.items()
        if event is not ConnectionEvent.CLOSE
    }
    assert shown == table


def test_every_state_can_be_closed():
    states = {state for state, _ in NEXT}
    assert {state for state, event in NEXT if event is ConnectionEvent.CLOSE} == states
