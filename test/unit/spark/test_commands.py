"""What the ready jobs make of their words, before Spark has anything to do."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka.cli import main

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'purekafka[spark]'")

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from kafka.spark.jobs.pipeline import Pipeline

WORDS = ["spark", "run", "-b", "b1:9092", "--source", "in", "--sink", "out", "--schema", "a int", "--checkpoint", "c"]


def started(monkeypatch: pytest.MonkeyPatch, *words: str) -> Pipeline:
    found: list[Pipeline] = []

    def start(self: Pipeline, _spark: Any) -> list[Any]:
        found.append(self)
        return []

    monkeypatch.setattr(Pipeline, "start", start)
    monkeypatch.setattr("kafka.cli.spark._check_source", lambda *_, **__: None)
    monkeypatch.setattr("kafka.spark.session.local_session", lambda *_, **__: SimpleNamespace(stop=lambda: None))
    assert main([*WORDS, *words]) == 0
    return found[0]


def test_options_belong_to_the_source_and_the_shared_ones_to_the_sink_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {"minPartitions": "3", "freezeworkers": "false", "kafka.security.protocol": "SSL"}
    pipeline = started(monkeypatch, *(word for name, value in given.items() for word in ("-O", f"{name}={value}")))
    assert {**pipeline.source_options, "holdFile": ""} == {
        "minPartitions": "3",
        "startingOffsets": "earliest",
        "holdFile": "",
    }
    assert pipeline.kafka == {"freezeworkers": "false", "kafka.security.protocol": "SSL"}


def test_the_cluster_comes_from_a_context_a_file_variables_and_flags(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = tmp_path / "client.properties"
    file.write_text(
        "bootstrap.servers=b2\\:9093\nsecurity.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nacks=1\ngroup.id=g\n"
        'sasl.jaas.config=x.PlainLoginModule required username="ada" password="@hush";\n'
    )
    monkeypatch.setattr(
        "test.unit.spark.test_commands.WORDS", [word for word in WORDS if word not in {"-b", "b1:9092"}]
    )
    secured = {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.plain.username": "ada",
        "kafka.sasl.plain.password": "@hush",
    }
    found = started(monkeypatch, "--config", str(file))
    assert (found.servers, found.kafka) == ("b2:9093", secured)
    assert main(["contexts", "import", "prod", str(file)]) == 0
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "b3:9092")
    assert started(monkeypatch).servers == "b3:9092"
    found = started(monkeypatch, "--context", "prod", "-X", "client.id=me", "-O", "kafka.sasl.username=bea")
    assert found.servers == "b2:9093"
    del secured["kafka.sasl.plain.username"]
    assert found.kafka == {**secured, "kafka.client.id": "me", "kafka.sasl.username": "bea"}
    jaas = 'x.PlainLoginModule required username="eve" password="psst";'
    found = started(monkeypatch, "--context", "prod", "-O", f"kafka.sasl.jaas.config={jaas}")
    assert found.kafka == {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": jaas,
    }


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
def test_a_session_that_does_not_start_is_reported_without_stacks(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("kafka.spark.session.local_session", fails)
    monkeypatch.setattr("kafka.cli.spark._check_source", lambda *_, **__: None)
    assert main(WORDS) == 1
    assert capsys.readouterr().err == "purekafka spark run: SparkException: Could not parse; caused by: x\n"
    monkeypatch.setenv("PUREKAFKA_TRACEBACK", "1")  # as --verbose does, and taken back after the test
    assert main([*WORDS, "--verbose"]) == 1
    shown = capsys.readouterr().err
    assert str(error) in shown
    assert shown.endswith("purekafka spark run: SparkException: Could not parse; caused by: x\n")


@pytest.mark.parametrize(
    ("words", "begin"),
    [
        ([], {"startingOffsets": "earliest"}),
        (["--from", "earliest"], {"startingOffsets": "earliest"}),
        (["--from", "latest"], {"startingOffsets": "latest"}),
        (["-O", "startingoffsets=latest"], {"startingoffsets": "latest"}),
        (["-O", "startingTimestamp=1700000000000"], {"startingTimestamp": "1700000000000"}),
    ],
)
def test_a_job_starts_where_its_words_say_and_otherwise_at_the_earliest_offsets(
    words: list[str], begin: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {**started(monkeypatch, *words).source_options, "holdFile": ""} == {**begin, "holdFile": ""}


def test_two_places_to_start_at_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*WORDS, "--from", "latest", "-O", "startingOffsets=earliest"]) == 2
    assert "--from latest and -O startingOffsets both say where to start" in capsys.readouterr().err


@pytest.mark.parametrize("job", ["run", "copy", "plan"])
def test_the_help_says_where_a_job_starts(job: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["spark", job, "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "--from earliest|latest where a query without a checkpoint starts (earliest)" in shown


def test_a_warning_states_that_each_output_reads_the_topic(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started(monkeypatch, "--parquet", "p", "--dead-letter", "dead")
    assert "3 queries (sink, parquet, dead_letter) read in, each for itself\n" in capsys.readouterr().err
    started(monkeypatch, "--parquet", "p", "--complete")
    assert "each for itself" not in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["spark", "run", "--help"])
    assert "three outputs read it three times" in " ".join(capsys.readouterr().out.split())
