"""Streaming queries of a real Spark session whose topics change under them."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from kafka.broker import Broker
from kafka.producer import KafkaProducer
from test.spark_runs.sessions import finish

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore::ResourceWarning")]


def fill(broker: Broker, numbers: range, topic: str = "events") -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for number in numbers:
            producer.send(topic, b"%d" % number, partition=number % 2)


def run(frame: Any, checkpoint: Path, during: Any = None, **trigger: Any) -> list[list[int]]:
    """Run a query over what is available, or as the trigger says until it fails; return the numbers of each batch."""
    batches: list[list[int]] = []

    def take(rows: Any, number: int) -> None:
        if during is not None:
            during(number)
        batches.append(sorted(int(row.value) for row in rows.select("value").collect()))

    finish(frame.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint)), **trigger)
    return batches


def test_a_topic_that_is_deleted_leaves_the_checkpoint_as_it_was(stream: Any, broker: Broker, tmp_path: Path) -> None:
    both = {"subscribe": "events,out", "failOnDataLoss": "false", "fetchOffset.retryIntervalMs": "10"}
    both |= {"kafka.request.timeout.ms": "3000", "kafka.default.api.timeout.ms": "3000"}  # how long it is looked for

    def delete(number: int) -> None:
        if number == 0:
            broker.delete_topic("out")
            fill(broker, range(10, 15))

    fill(broker, range(10))
    with pytest.raises(Exception, match="Topic 'out' does not exist"):
        run(stream(**both), tmp_path, delete, processingTime="0 seconds")
    (logged,) = (tmp_path / "offsets").glob("[0-9]*")
    assert json.loads(logged.read_text(encoding="utf-8").splitlines()[-1]) == {
        "events": {"0": 5, "1": 5},
        "out": {"0": 0, "1": 0},
    }
    broker.create_topic("out", partitions=2)
    assert run(stream(**both), tmp_path) == [list(range(10, 15))]


def test_records_after_the_start_are_available_now(stream: Any, broker: Broker, tmp_path: Path) -> None:
    fill(broker, range(10))

    def more(number: int) -> None:
        if number == 0:  # which writes down where the query starts
            fill(broker, range(10, 15))

    assert run(stream(startingOffsets="latest"), tmp_path, more) == [[], list(range(10, 15))]


def test_a_frame_that_a_query_scans_twice_is_read_twice_after_a_crash_of_the_first_batch(
    stream: Any, broker: Broker, tmp_path: Path
) -> None:
    fill(broker, range(10))

    def fail(_number: int) -> None:
        raise RuntimeError("the first batch fails")

    def twice() -> Any:
        frame = stream(startingOffsets="latest")
        return frame.where("partition = 0").union(frame.where("partition = 1"))

    with pytest.raises(Exception, match="the first batch fails"):
        run(twice(), tmp_path, fail)
    fill(broker, range(10, 17))
    assert sorted(chain(*run(twice(), tmp_path))) == list(range(10, 17))
