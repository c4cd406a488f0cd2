"""What the ready jobs make of their words, before Spark has anything to do."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest

from kafka.cli import main

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'purekafka[spark]'")

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from kafka.spark.pipeline import Pipeline

WORDS = ["spark", "run", "-b", "b1:9092", "--source", "in", "--sink", "out", "--schema", "a int", "--checkpoint", "c"]


def started(monkeypatch: pytest.MonkeyPatch, *words: str) -> Pipeline:
    found: list[Pipeline] = []

    def start(self: Pipeline, _spark: Any) -> list[Any]:
        found.append(self)
        return []

    monkeypatch.setattr(Pipeline, "start", start)
    monkeypatch.setattr("kafka.spark.session.local_session", lambda *_, **__: SimpleNamespace(stop=lambda: None))
    assert main([*WORDS, *words]) == 0
    return found[0]


def test_options_are_the_source_s_and_those_that_concern_both_sides_the_sink_s_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {"minPartitions": "3", "freezeworkers": "false", "kafka.security.protocol": "SSL"}
    pipeline = started(monkeypatch, *(word for name, value in given.items() for word in ("-O", f"{name}={value}")))
    assert {**pipeline.source_options, "holdFile": ""} == {"minPartitions": "3", "holdFile": ""}
    assert pipeline.kafka == {"freezeworkers": "false", "kafka.security.protocol": "SSL"}


def test_a_password_on_standard_input_reaches_source_and_sink(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("hush\n"))
    pipeline = started(monkeypatch, "-O", "kafka.ssl.key.password=@-")
    assert pipeline.kafka == {"kafka.ssl.key.password": "hush"}


@pytest.mark.parametrize(
    "error",
    [
        Py4JError(
            "An error occurred.\n: SparkException: Could not parse\n\tat a.b(C.java:1)\n\t... 3 more\nCaused by: x"
        ),
        PySparkException("An error occurred.\n: SparkException: Could not parse\nCaused by: x\nJVM stacktrace:\n a"),
    ],
    ids=["Java", "Python"],
)
def test_a_session_that_does_not_start_is_told_without_stacks(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("kafka.spark.session.local_session", fails)
    assert main(WORDS) == 1
    told = "purekafka spark: An error occurred.\n: SparkException: Could not parse\nCaused by: x\n"
    assert capsys.readouterr().err == told
