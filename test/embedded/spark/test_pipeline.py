"""The ready pipeline in a session: every event is counted, or told of where it was asked for."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from kafka.broker import Broker
from kafka.errors import KafkaConfigurationError
from kafka.producer import KafkaProducer
from kafka.spark.jobs.runner import Progress, QueryFailedError, watch

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore::ResourceWarning")]

SCHEMA = "user string, amount double, at timestamp"
GOOD = [f'{{"user":"u{n % 2}","amount":{n},"at":"2026-01-01T00:0{n % 3}:00Z"}}'.encode() for n in range(9)]
BAD = [
    b"",
    b"nonsense",
    b'{"user":"u0"',
    b'{"user":"u0","amount":"much"}',
    b'{"user":"u0","at":"soon"}',
    b'[{"user":"u0"}]',
    b"12",
    b"null",
    b'{"user":"u0"} and more',
    b'{"user":"u0"}{"user":"u1"}',
    b'{"user":"u0"}\n{"user":"u1"}',
    b'{"user":"u0"}, {"user":"u1"}',
    b'{"user":"u0"}] {"user":"u1"}',
    b"\xff\xfe{",
    None,
]


def fill(broker: Broker) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for number, value in enumerate([*GOOD, *BAD]):
            producer.send("events", value, b"key", [("own", b"h")], partition=number % 2)


def run(spark: Any, broker: Broker, directory: Path, **more: Any) -> tuple[Progress, str]:
    """Run a pipeline over what is there; return what was read and what was shown."""
    from kafka.spark.jobs.pipeline import AVAILABLE_NOW, Pipeline

    given = {"complete": True, "event_time": "at", "group_by": ("user",), "sums": ("amount",), "sink": "out", **more}
    pipeline = Pipeline(
        servers=broker.bootstrap_servers,
        source="events",
        schema=SCHEMA,
        checkpoint=str(directory / "checkpoint"),
        trigger=AVAILABLE_NOW,
        **given,
    )
    for attempt in range(8):
        out = io.StringIO()
        try:
            return watch(pipeline.start(spark), out), out.getvalue()
        except QueryFailedError as error:  # Spark's process did not start in its 10 seconds
            if "Python worker failed to connect back" not in str(error) or attempt == 7:
                raise
    raise AssertionError("the last attempt returns or raises")


def results(broker: Broker) -> list[dict[str, Any]]:
    return [json.loads(record.value or b"") for record in broker.records("out")]


def test_what_cannot_be_read_goes_to_a_topic_as_it_came(spark: Any, tmp_path: Path) -> None:
    with Broker(topics={"events": 2, "out": 1, "dead": 1}) as broker:
        fill(broker)
        seen, shown = run(spark, broker, tmp_path, dead_letter="dead")
        assert seen[:2] == (len(GOOD) + len(BAD), len(BAD))
        assert f", {len(BAD)} malformed" in shown
        dead = broker.records("dead")
        assert sorted((record.value or b"none") for record in dead) == sorted((value or b"none") for value in BAD)
        found = results(broker)
        assert sum(each["events"] for each in found) == len(GOOD)
        assert sum(each["malformed"] for each in found) == 0
        origins = {record.value: dict(record.headers) for record in dead}
        assert origins[b"nonsense"] == {"topic": b"events", "partition": b"0", "offset": b"5"}
        assert {record.key for record in dead} == {b"key"}
        # From the checkpoint there is nothing more to read, and nothing is told twice.
        assert run(spark, broker, tmp_path, dead_letter="dead")[0].rows == 0
        assert len(broker.records("dead")) == len(BAD)


def test_what_cannot_be_read_goes_into_a_column_with_its_origin(spark: Any, broker: Broker, tmp_path: Path) -> None:
    fill(broker)
    seen, _ = run(spark, broker, tmp_path, dead_letter_column="dead")
    assert seen.malformed == len(BAD)
    found = results(broker)
    assert sum(each["malformed"] for each in found) == len(BAD)
    assert sum(each["events"] for each in found) == len(GOOD)
    # What could be read of an event that is malformed as a whole counts nowhere.
    assert {each.get("user") for each in found if each["malformed"]} == {None}
    assert sum(each.get("sum_amount", 0) for each in found) == sum(range(9))
    letters = {(each["partition"], each["offset"]): each.get("value") for row in found for each in row["dead"]}
    assert len(letters) == len(BAD)
    assert letters[0, 5] == "nonsense"
    assert {each["topic"] for row in found for each in row["dead"]} == {"events"}


def test_columns_that_the_schema_lacks_are_refused(spark: Any, broker: Broker, tmp_path: Path) -> None:
    with pytest.raises(KafkaConfigurationError, match="'city' is not in the schema, which has user, amount, at"):
        run(spark, broker, tmp_path, group_by=("city",))
    with pytest.raises(KafkaConfigurationError, match="The event time 'user' is string in the schema, not timestamp"):
        run(spark, broker, tmp_path, event_time="user")
