"""The count of the chaos tests notices what it has to notice; needs no Kafka."""

from __future__ import annotations

import pytest

from test.real.chaos.faults import Tally


@pytest.mark.parametrize(
    ("found", "counts"),
    [
        ([0, 1, 2, 3], (0, 0, 0, 0)),
        ([0, 1, 3], (1, 0, 0, 0)),
        ([0, 1, 1, 2, 3], (0, 1, 0, 0)),
        ([0, 1, 2, 3, 0, 1], (0, 2, 0, 0)),
        ([0, 2, 1, 3], (0, 0, 1, 0)),
        ([3, 1], (2, 0, 1, 0)),
        ([0, 1, 2, 3, 7], (0, 0, 0, 1)),
        ([], (4, 0, 0, 0)),
    ],
)
def test_lost_repeated_and_reordered_records_are_counted(found: list[int], counts: tuple[int, ...]) -> None:
    tally = Tally("a scenario")
    tally.compare(found, [0, 1, 2, 3])
    assert (tally.lost, tally.repeated, tally.reordered, len(tally.wrong)) == counts
    assert tally.records == 4
    if any(counts):
        with pytest.raises(AssertionError):
            tally.check()
    else:
        tally.check()


def test_a_row_has_the_faults_by_kind_and_the_recovery_times() -> None:
    tally = Tally("a scenario", recoveries=[("kill -9", 7.0), ("SIGSTOP", 9.0), ("kill -9", 8.0)], notes={"note": 1})
    assert "| 3 (1 SIGSTOP, 2 kill -9) | 0 | 0 | 0 | median 8.0, longest 9.0 | note: 1 |" in str(tally)
