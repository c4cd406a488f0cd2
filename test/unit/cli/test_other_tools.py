"""Words of other tools are answered with the words here."""

from __future__ import annotations

import shlex

import pytest

from kafka.cli import main


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("consume --topic events", "TOPIC is an argument"),
        ("produce --topic=events", "TOPIC is an argument"),
        ("topics create -t events", "TOPIC is an argument"),
        ("groups lag --group billing", "GROUP is an argument"),
        ("consume events --from-beginning", "did you mean --from beginning?"),
        ("consume events --offset 3", "did you mean --from OFFSET?"),
        ("consume events --max-messages 3", "did you mean --max-records?"),
        ("produce events --broker-list b:1", "did you mean --bootstrap-server?"),
        ("topics list --json", "did you mean --format json?"),
        ("groups reset-offsets g --to-datetime 2026-01-31", "did you mean --to 2026-01-31T12:00Z?"),
        ("topics --list", "the verb stands without dashes: purekafka topics list"),
        ("topics --describe --topic events", "the verb stands without dashes: purekafka topics describe"),
        ("topics create events --config retention.ms=1", "a setting of a topic is --set NAME=VALUE"),
        ("consume events --follo", "did you mean --follow?"),
    ],
)
def test_the_answer_names_the_word_here(line: str, answer: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(shlex.split(line))
    except SystemExit as ended:
        code = int(ended.code or 0)
    printed = capsys.readouterr()
    assert (code, printed.out) == (2, "")
    assert answer in printed.err


@pytest.mark.parametrize(
    "line", ["tail events --offset 3", "topics create events --topik x", "consume events --wibble"]
)
def test_a_word_that_is_like_none_gets_no_advice(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(shlex.split(line))
    assert "did you mean" not in capsys.readouterr().err
