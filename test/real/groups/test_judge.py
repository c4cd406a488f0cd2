"""The judge finds what it is there to find."""

from __future__ import annotations

from typing import Any, cast

import pytest

from .judge import judge
from .members import Event, Member


class Teller:
    """Says what it was given."""

    def __init__(self, name: str, *told: tuple[float, str, dict[str, Any]], kind: str = "ours") -> None:
        self.name, self.kind, self.is_ours = name, kind, kind == "ours"
        self._told = [Event(time, event, what) for time, event, what in told]

    def events(self) -> list[Event]:
        return self._told


def got(time: float) -> tuple[float, str, dict[str, Any]]:
    return time, "assigned", {"p": [0]}


def gave(time: float, how: str = "revoked") -> tuple[float, str, dict[str, Any]]:
    return time, how, {"p": [0]}


def read(time: float, *ranges: list[int], values: list[list[int]] | None = None) -> tuple[float, str, dict[str, Any]]:
    return time, "read", {"p": 0, "o": list(ranges), "v": values or list(ranges)}


def committed(time: float, offset: int) -> tuple[float, str, dict[str, Any]]:
    return time, "committed", {"o": {"0": offset}}


def wrong(*members: Teller, records: int = 10) -> str:
    verdict = judge(cast("list[Member]", list(members)), {0: {number: number for number in range(records)}})
    return "\n".join(verdict.wrong)


def test_nothing_is_wrong_where_one_member_continues_for_another() -> None:
    one = Teller("one", got(1), read(2, [0, 5]), committed(3, 4), gave(4))
    two = Teller("two", got(5), read(6, [4, 9]))
    assert not wrong(one, two)
    assert judge(cast("list[Member]", [one, two]), {}).doubled == 2


@pytest.mark.parametrize(
    ("members", "complaint"),
    [
        ([Teller("one", got(1), read(2, [0, 8]))], "1 records were never read"),
        ([Teller("one", got(1), read(2, [0, 4], [6, 9]))], "6 came after 4"),
        ([Teller("one", got(1), read(2, [0, 4]), read(3, [3, 9]))], "3 came after 4"),
        ([Teller("one", got(1), gave(2), read(3, [0, 9]))], "which it did not own"),
        ([Teller("one", got(1), read(2, [0, 9], values=[[0, 3], [5, 5], [4, 4], [6, 9]]))], "not in the order"),
        (
            [
                Teller("one", got(1), read(2, [0, 5]), committed(3, 6), gave(4)),
                Teller("two", got(5), read(6, [4, 9])),
            ],
            "it began at 4 although 6 was committed",
        ),
        (
            [Teller("one", got(1), read(9, [0, 5]), gave(10)), Teller("two", got(5), read(6, [6, 9]))],
            "nobody had read what is before",
        ),
        (
            [Teller("one", got(1), read(2, [0, 9]), gave(6)), Teller("two", got(5))],
            "began before the end of one",
        ),
    ],
)
def test_each_kind_of_wrong_history_is_found(members: list[Teller], complaint: str) -> None:
    assert complaint in wrong(*members)


def test_a_member_that_lost_a_partition_may_be_notified_late() -> None:
    assert not wrong(Teller("one", got(1), read(2, [0, 9]), gave(6, "lost")), Teller("two", got(5)))
