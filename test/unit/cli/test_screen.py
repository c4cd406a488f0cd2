"""Views that redraw: what they show while the cluster changes under them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import pytest

from kafka.cli.arguments import UsageError
from kafka.cli.screen import Rates, lag_lines, redraw, screen
from kafka.errors import KafkaConfigurationError, KafkaError, NoBrokersAvailable


def row(topic: str, partition: int, committed: int, end: int) -> dict[str, Any]:
    return {"group_id": "g", "topic": topic, "partition": partition, "lag": end - committed, "end": end}


def cells(rates: Rates, rows: Sequence[dict[str, Any]]) -> list[str]:
    (line,) = lag_lines(rows, rates, ["group_id", "topic"])[1:]
    return line.split()[2:5]


def test_partitions_that_come_and_go_are_no_records_that_were_read_or_written():
    rates = Rates(lambda: 0.0)
    assert cells(rates, [row("t", 0, 10, 100)]) == ["90", "-", "-"]
    rates.next(1.0)
    assert cells(rates, [row("t", 0, 15, 120), row("t", 1, 5000, 9000)]) == ["4,105", "5", "20"]
    rates.next(2.0)
    assert cells(rates, [row("t", 1, 5001, 9002)]) == ["4,001", "1", "2"]


def test_a_topic_that_was_created_again_has_no_rate_below_zero():
    rates = Rates(lambda: 0.0)
    cells(rates, [row("t", 0, 500, 1000)])
    rates.next(1.0)
    assert cells(rates, [row("t", 0, 0, 7)]) == ["7", "-", "-"]
    rates.next(2.0)
    assert cells(rates, [row("t", 0, 3, 9)]) == ["6", "3", "2"]


def test_a_view_outlives_an_outage_and_says_what_it_cannot_find_out(capsys: pytest.CaptureFixture[str]):
    looks: list[KafkaError | UsageError | list[str]] = [
        ["one"],
        NoBrokersAvailable("no broker answered"),
        UsageError("no group matches 'web*'"),
        ["two"],
    ]

    def look(_: Rates) -> list[str]:
        found = looks.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    assert redraw(look, 0.0, times=4) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line[line.startswith(("0", "1", "2")) and 9 :] for line in shown] == [
        "one",
        *("one", "", "no broker answered"),
        *("one", "", "no group matches 'web*'"),
        "two",
    ]


@pytest.mark.parametrize("error", [NoBrokersAvailable("no broker answered"), UsageError("no group matches")])
def test_a_view_that_cannot_begin_ends_with_the_error(error: Exception):
    def look(_: Rates) -> list[str]:
        raise error

    with pytest.raises(type(error)):
        redraw(look, 0.0)


def test_a_view_ends_with_an_error_that_another_look_does_not_help():
    looks: list[list[str]] = [["one"]]

    def look(_: Rates) -> list[str]:
        if not looks:
            raise KafkaConfigurationError("wrong password")
        return looks.pop()

    with pytest.raises(KafkaConfigurationError):
        redraw(look, 0.0)


@pytest.mark.parametrize(("columns", "lines"), [(1, 1), (5, 2), (80, 1)])
def test_a_small_terminal_is_never_written_beyond(
    columns: int, lines: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("LINES", str(lines))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with screen() as show:
        show(["日本語", "two", "three"])
    body = capsys.readouterr().out.split("\x1b[H")[1].split("\x1b[J")[0]
    shown = body.replace("\x1b[K", "").splitlines()
    assert len(shown) <= max(1, lines - 1)
    assert all(sum(2 if ord(char) > 0x3000 else 1 for char in line) <= columns for line in shown)
