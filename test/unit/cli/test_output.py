"""Tables, consent, colours and progress, with and without a terminal."""

from __future__ import annotations

import io
import sys
from argparse import Namespace
from types import SimpleNamespace
from typing import Any

import pytest

from kafka.cli import output
from kafka.cli.arguments import UsageError
from kafka.cli.output import Column, Progress, agreed, print_table


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


PLAIN = Namespace(no_headers=False, color="auto", prog="purekafka", progress=False)


def connection(**arguments: bool) -> Any:
    """What a verb gets, as far as a question needs it."""
    return SimpleNamespace(arguments=Namespace(**arguments), cluster=lambda: "A at b1:9092")


@pytest.mark.parametrize(
    ("answer", "expected"), [("y\n", True), ("YES\n", True), ("n\n", False), ("\n", False), ("", False)]
)
def test_c11_a_terminal_is_asked(
    answer: str, expected: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    assert agreed(connection(dry_run=False, yes=False), "Delete it?") is expected
    said = capsys.readouterr()
    assert said.err.startswith("Cluster A at b1:9092\nDelete it? [y/N] ")
    assert said.out == ""


def test_c11_without_a_terminal_consent_must_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(UsageError, match="give --yes or --dry-run"):
        agreed(connection(dry_run=False, yes=False), "Delete it?")
    assert agreed(connection(dry_run=False, yes=True), "Delete it?")
    assert not agreed(connection(dry_run=True, yes=True), "Delete it?")


def test_c5_a_table_fits_a_terminal_and_is_whole_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "dumb")
    rows = [{"name": "x" * 60, "note": "日本" * 10, "count": 1234567}]
    columns = Column.of("name", "note", "count")
    narrow, pipe = Terminal(), io.StringIO()
    print_table(PLAIN, rows, columns, narrow)
    print_table(PLAIN, rows, columns, pipe)
    assert max(map(output._width, narrow.getvalue().splitlines())) <= 40
    assert "…" in narrow.getvalue()
    assert "1234567" in narrow.getvalue()
    assert "x" * 60 in pipe.getvalue()
    assert "…" not in pipe.getvalue()


@pytest.mark.parametrize(
    ("prog", "format_", "complained", "said"),
    [
        ("purekafka topics list", "table", False, "purekafka topics list: no topics\n"),
        ("purekafka groups lag", "table", False, "purekafka groups lag: nothing to show\n"),
        ("purekafka topics list", "table", True, ""),
        ("purekafka topics list", "json", False, ""),
    ],
)
def test_c5_a_person_reads_that_a_list_is_empty_and_a_pipe_does_not(
    prog: str, format_: str, complained: bool, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for out, expected in ((Terminal(), said), (io.StringIO(), "")):
        arguments = Namespace(prog=prog, format=format_, quiet=False, fail_if_empty=True)
        monkeypatch.setattr("sys.stdout", out)
        monkeypatch.setattr("sys.stderr", io.StringIO())
        if complained:
            output.complain(arguments, "topic 'nope' does not exist")
            sys.stderr.truncate(0)
            sys.stderr.seek(0)
        assert output.emit(arguments, [], Column.of("topic")) == 3
        assert sys.stderr.getvalue() == expected  # type: ignore[attr-defined]


def test_text_of_brokers_cannot_command_the_terminal() -> None:
    shown = io.StringIO()
    print_table(PLAIN, [{"name": "a\x1b[2Jb\nc"}], Column.of("name"), shown)
    assert shown.getvalue() == "NAME\na\\x1b[2Jb\\nc\n"


def test_c12_progress_is_drawn_on_a_terminal_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    for out, arguments, drawn in (
        (Terminal(), PLAIN, True),
        (io.StringIO(), PLAIN, False),
        (io.StringIO(), Namespace(progress=True), True),
    ):
        monkeypatch.setattr("sys.stderr", out)
        progress = Progress(arguments, "copied", 1000, alone=True)
        now[0] += 2
        progress.add(250, 1_000_000)
        progress.end()
        text = out.getvalue()
        assert bool(text) is drawn
        if drawn:
            assert "[#####               ]  25%  copied 250 records, 1.0 MB (125/s, 0.5 MB/s), 6 s left" in text
        assert ("\x1b" in text) is isinstance(out, Terminal)


def test_progress_counts_the_records_that_a_filter_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("sys.stderr", io.StringIO())
    progress = Progress(Namespace(progress=True), "consumed", 1000)
    now[0] += 2
    progress.passed += 499
    progress.add(1, 10)
    assert " 50%  consumed 1 records" in sys.stderr.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("columns", [40, 60, 70, 80, 160])
def test_c12_progress_fits_into_one_line_of_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that the terminal breaks could not be redrawn."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(columns))
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("sys.stderr", Terminal())
    progress = Progress(PLAIN, "copied", 10_000_000, alone=True)
    for _ in range(3):
        now[0] += 2
        progress.add(1_250_000, 1_000_000_000)
    text = sys.stderr.getvalue()  # type: ignore[attr-defined]
    lines = text.split("\r\x1b[K")[1:]
    assert len(lines) == 3
    assert all(len(line) < columns for line in lines)
    assert ("[" in lines[0]) is (columns == 160), "the bar gives way"


def test_a_text_is_cut_to_any_width() -> None:
    assert [output.cut("日本語", width) for width in (6, 5, 3, 1, 0, -1)] == ["日本語", "日本…", "日…", "…", "", ""]
