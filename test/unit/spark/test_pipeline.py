"""What a pipeline refuses before Spark is asked."""

from __future__ import annotations

from typing import Any

import pytest

from kafka.cli import main
from kafka.errors import KafkaConfigurationError

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'purekafka[spark]'")

from kafka.spark.jobs.pipeline import Pipeline

BASE = {"servers": "b", "source": "events", "schema": "user string", "checkpoint": "c", "sink": "out"}


def refused(**more: Any) -> str:
    with pytest.raises(KafkaConfigurationError) as caught:
        Pipeline(**{**BASE, **more}).check()
    return str(caught.value)


def test_what_goes_together_is_accepted() -> None:
    for more in ({"dead_letter": "dead"}, {"dead_letter_column": "dead"}, {"sink": None, "parquet": "p"}):
        Pipeline(**{**BASE, **more}).check()


def test_a_result_has_to_go_somewhere() -> None:
    assert "needs somewhere to write" in refused(sink=None)


def test_dead_letters_go_to_a_topic_or_into_a_column() -> None:
    assert "not to both: 'dead' and 'broken' are given" in refused(dead_letter="dead", dead_letter_column="broken")


def test_a_topic_is_not_written_by_who_reads_it() -> None:
    assert "would read its own dead letters" in refused(dead_letter="events")
    assert "would read its own result" in refused(source="a, out")
    assert "cannot both go to 'out'" in refused(dead_letter="out")


def test_columns_of_the_result_have_one_name_each() -> None:
    assert "two columns of the name 'malformed'" in refused(dead_letter_column="malformed")
    assert "two columns of the name 'events'" in refused(group_by=("events",))
    assert "two columns of the name 'sum_amount'" in refused(sums=("amount", "amount"))


def test_a_result_that_is_rewritten_each_time_is_not_written_once() -> None:
    assert "cannot be written exactly once" in refused(complete=True, sink_options={"exactlyOnce": "true"})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--schema", "a int", "--checkpoint", "c"], "A pipeline needs somewhere to write"),
        (
            ["run", "--schema", "a int", "--checkpoint", "c", "--sink", "out", "-O", "kafka.auto.offset.reset=latest"],
            "Kafka option 'auto.offset.reset' is not supported",
        ),
        (["copy", "--sink", "events", "--checkpoint", "c"], "A copy of 'events' to itself would never end"),
        (["copy", "--sink", "out", "--checkpoint", "c", "-O", "minPartitions=0"], "minPartitions must be positive"),
        (["dump", "--parquet", "p", "-O", "startingOffsets=latest"], "can't be latest for batch queries on Kafka"),
        (
            ["dump", "--parquet", "p", "-O", "kafka.x=@env:NO_SUCH"],
            "-O kafka.x: the environment has no variable NO_SUCH",
        ),
        (["dump", "--parquet", "p", "-c", "spark.x=@/no/such"], "-c spark.x: cannot read /no/such"),
        (["dump", "--parquet", "p", "-O", "startingOffsets"], "-O takes NAME=VALUE, not 'startingOffsets'"),
    ],
)
def test_wrong_words_fail_before_spark_starts(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def started(*_: Any, **__: Any) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("kafka.spark.session.local_session", started)
    assert main(["spark", words[0], "-b", "localhost:1", "--source", "events", *words[1:]]) == 2
    assert said in capsys.readouterr().err


def test_secrets_among_the_options_are_not_shown() -> None:
    secret = {"kafka.sasl.jaas.config": 'PlainLoginModule required username="a" password="hush";'}
    pipeline = Pipeline(**BASE, kafka=secret, source_options=secret, sink_options=secret)
    assert "hush" not in repr(pipeline)
