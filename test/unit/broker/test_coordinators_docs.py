"""The page on the coordinators draws the states as the code has them."""

from __future__ import annotations

from pathlib import Path

from kafka.broker.groups import classic_member
from kafka.broker.security import sasl
from kafka.broker.transactions import transaction

PAGE = Path(__file__).parents[3] / "docs" / "internals" / "coordinators.rst"


def test_the_page_shows_the_transitions_of_the_tables() -> None:
    shown = {line.strip() for line in PAGE.read_text(encoding="utf-8").splitlines() if " --> " in line}
    coded = {
        f"{state.value} -- {event.value} --> {after.value}"
        for table in (classic_member._NEXT, transaction._NEXT, sasl._NEXT)
        for (state, event), after in table.items()
    }
    assert shown == coded
