"""A task that is run again writes its rows once, whatever cut it off."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from kafka.broker import Broker
from kafka.errors import KafkaError
from kafka.producer import KafkaProducer
from kafka.spark.errors import KafkaSparkOptionError
from kafka.spark.exactly_once import TaskIdentity, write_once
from kafka.spark.sink_options import SinkOptions

FIRST = TaskIdentity("query", 0, 0)


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(topics={"out": 2}) as running:
        yield running


@pytest.fixture
def options(broker: Broker) -> SinkOptions:
    return SinkOptions.parse(
        {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": "out", "exactlyOnce": "true"}
    )


def rows(*values: bytes) -> Any:
    return pa.RecordBatch.from_pydict({"value": list(values)})


def seen(broker: Broker) -> list[bytes | None]:
    return sorted(record.value or b"" for record in broker.records("out", committed=True))


def test_a_task_is_written_and_told_by_partition(broker: Broker, options: SinkOptions) -> None:
    counts = write_once(options, FIRST, [rows(b"a", b"b"), rows(b"c")])
    assert sum(counts.values()) == 3
    assert seen(broker) == [b"a", b"b", b"c"]


def test_a_task_that_is_run_again_after_its_commit_writes_nothing_and_takes_its_rows(
    broker: Broker, options: SinkOptions
) -> None:
    write_once(options, FIRST, [rows(b"a")])
    again = iter([rows(b"a")])
    assert write_once(options, FIRST, again) == {}
    assert next(again, None) is None
    assert write_once(options, TaskIdentity("query", 1, 0), [rows(b"b")]) != {}
    assert seen(broker) == [b"a", b"b"]


def test_tasks_and_queries_have_marks_of_their_own(broker: Broker, options: SinkOptions) -> None:
    for identity in (FIRST, TaskIdentity("query", 0, 1), TaskIdentity("other", 0, 0)):
        write_once(options, identity, [rows(b"a")])
    assert seen(broker) == [b"a"] * 3


def test_a_task_that_failed_midway_shows_nothing_until_it_is_run_again(broker: Broker, options: SinkOptions) -> None:
    def failing() -> Iterator[Any]:
        yield rows(b"a", b"b")
        raise RuntimeError("the task fails")

    with pytest.raises(RuntimeError, match="the task fails"):
        write_once(options, FIRST, failing())
    assert seen(broker) == []
    write_once(options, FIRST, [rows(b"a", b"b")])
    assert seen(broker) == [b"a", b"b"]


def test_a_process_that_was_killed_before_its_commit_is_locked_out(broker: Broker, options: SinkOptions) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="spark-query-0") as killed:
        killed.init_transactions()
        killed.begin_transaction()
        killed.send("out", b"a").get(timeout=10)
        # Here it hangs, and Spark runs the task elsewhere.
        write_once(options, FIRST, [rows(b"a")])
        with pytest.raises(KafkaError):
            killed.commit_transaction()
    assert seen(broker) == [b"a"]


def test_what_it_cannot_be_used_for_is_refused(broker: Broker) -> None:
    base = {"kafka.bootstrap.servers": broker.bootstrap_servers, "exactlyOnce": "true"}
    with pytest.raises(KafkaSparkOptionError, match="needs the option topic"):
        SinkOptions.parse(base)
    with pytest.raises(KafkaSparkOptionError, match="cannot be one for all tasks"):
        SinkOptions.parse({**base, "topic": "out", "kafka.transactional.id": "x"})
