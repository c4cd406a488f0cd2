"""The demo is the first thing that people run."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka.cli import main


def test_the_demo_counts_every_event_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--events", "5000", "--members", "3", "--no-spark"]) == 0
    shown = capsys.readouterr().out
    assert "all 5,000 events arrived, each once, and the group committed them" in shown
    assert shown.count("member") == 3


def test_the_demo_runs_without_spark_and_says_how_to_get_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert main(["demo", "--events", "100"]) == 0
    assert "pip install 'purekafka[spark]'" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--events", "0"], ["--events", "-1"], ["--members", "0"], ["--events", "many"]])
def test_counts_below_one_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["demo", *words])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(f"purekafka demo: argument {words[0]}: ")


def test_a_directory_that_cannot_be_written_to_is_refused_before_anything_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert main(["demo", "--directory", str(tmp_path / "file" / "below")]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f"purekafka demo: --directory {tmp_path}/file/below: Not a directory\n"
