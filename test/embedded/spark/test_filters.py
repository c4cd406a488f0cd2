"""The option filterPushdown: less is planned and read, and the rows are the same."""

from __future__ import annotations

import logging
import random
from typing import Any

import pytest

from kafka.broker import Broker
from kafka.producer import KafkaProducer

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'purekafka[spark]'")

from pyspark.sql.datasource import DataSourceReader

from kafka.spark.batch_reader import KafkaBatchReader
from kafka.spark.datasource import KafkaDataSource, source_schema
from kafka.spark.offset_reader import _clients as planning_clients

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

CONF = "spark.sql.python.filterPushdown.enabled"
needs_filters = pytest.mark.skipif(not hasattr(DataSourceReader, "pushFilters"), reason="Spark before 4.1")


@pytest.fixture
def broker() -> Any:
    """Return a broker with two topics of records whose timestamps are in no order."""
    rng = random.Random(1)
    with Broker(topics={"events": 3, "others": 2}) as running:
        with KafkaProducer(bootstrap_servers=running.bootstrap_servers) as producer:
            for number in range(300):
                time = 1_700_000_000_000 + number * 10 + rng.randrange(500)
                producer.send("events", b"%d" % number, partition=number % 3, timestamp_ms=time)
                producer.send("others", b"%d" % number, partition=number % 2, timestamp_ms=time)
        yield running
        planning_clients.close()


def reader(broker: Broker, **options: str) -> Any:
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": "events,others", "rowsPerTask": "0"}
    return KafkaDataSource({**given, **options}).reader(source_schema(include_headers=False))


def planned(made: Any) -> list[tuple[Any, ...]]:
    return [tuple(each) for task in made.partitions() for each in task.ranges]


@needs_filters
def test_fewer_offsets_are_planned(broker: Broker) -> None:
    from pyspark.sql import datasource as spark

    made = reader(broker, filterPushdown="true")
    assert len(planned(made)) == 5
    filters = [
        spark.EqualTo(("topic",), "events"),
        spark.In(("partition",), (1, 2)),
        spark.GreaterThanOrEqual(("offset",), 40),
        spark.LessThan(("offset",), 70),
        spark.EqualTo(("value",), b"130"),
    ]
    assert list(made.pushFilters(filters)) == filters  # Spark applies them all
    assert planned(made) == [("events", 1, 40, 70), ("events", 2, 40, 70)]


@needs_filters
def test_records_before_the_first_that_is_late_enough_are_not_planned(broker: Broker) -> None:
    from datetime import datetime, timezone

    from pyspark.sql import datasource as spark

    made = reader(broker, filterPushdown="true")
    wanted = 1_700_000_002.0
    late = datetime.fromtimestamp(wanted, timezone.utc)
    made.pushFilters([spark.GreaterThan(("timestamp",), late), spark.EqualTo(("topic",), "events")])
    for topic, partition, start, end in planned(made):
        records = [record for record in broker.records(topic) if record.partition == partition]
        assert 0 < start < end == 100
        assert all(record.timestamp <= wanted * 1000 for record in records if record.offset < start)
        assert records[start].timestamp > wanted * 1000


def test_filters_are_not_taken_unless_asked_for(broker: Broker) -> None:
    assert type(reader(broker)) is KafkaBatchReader


def test_without_filters_from_spark_one_line_is_logged(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("kafka.spark.batch_reader._warned", set())
    if hasattr(DataSourceReader, "pushFilters"):
        monkeypatch.delattr(DataSourceReader, "pushFilters")
    with caplog.at_level(logging.WARNING):
        assert {type(reader(broker, filterPushdown="true")) for _ in range(3)} == {KafkaBatchReader}
        source = KafkaDataSource({"kafka.bootstrap.servers": "b", "subscribe": "a", "filterPushdown": "true"})
        for _ in range(2):
            source.streamReader(source_schema(include_headers=False))
    assert caplog.text.count("filterPushdown has no effect before Spark 4.1") == 1
    assert caplog.text.count("filterPushdown has no effect in streaming queries") == 1


@needs_filters
@pytest.mark.skipif(hasattr(DataSourceReader, "pushLimit"), reason="this release keeps filters apart")
def test_a_frame_for_one_filter_is_logged_once(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("kafka.spark.batch_reader._warned", set())
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            reader(broker, filterPushdown="true")
    assert caplog.text.count("load() a frame for each filter") == 1


FILTERS = (
    "partition = 1",
    "partition IN (0, 2) AND offset >= 30 AND offset < 45",
    "topic = 'others' AND offset > 140",
    "topic IN ('events', 'nothing') AND partition <> 1",
    "topic LIKE 'oth%' AND offset IN (3, 90, 149)",
    "timestamp >= timestamp_millis(1700000002000)",
    "timestamp > timestamp_millis(1700000001000) AND timestamp < timestamp_millis(1700000001500)",
    "timestamp >= timestamp_millis(1700000009000)",
    "offset = 12 OR partition = 0",
    "partition = 0 AND (offset < 3 OR value = '297')",
    "offset > 1000",
    "partition + 1 = 2 AND NOT (offset <= 97)",
)


@needs_filters
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_rows_are_the_same_and_fewer_tasks_run(spark: Any, broker: Broker) -> None:
    def load(**options: str) -> Any:
        made = spark.read.format("purekafka").option("kafka.bootstrap.servers", broker.bootstrap_servers)
        return made.options(subscribe="events,others", **options).load()

    rows = "xxhash64(topic, partition, offset, timestamp, value)"

    def plainly() -> dict[str, str]:
        """Return the number and a hash of the rows of each filter, from one look at all of them."""
        each = [f"concat_ws(' ', count_if({one}), bit_xor(if({one}, {rows}, null)))" for one in FILTERS]
        return dict(zip(FILTERS, load().selectExpr(*each).first(), strict=True))

    def pushed() -> dict[str, str]:
        """Return the same from a frame for each filter, as Spark up to 4.3 needs it."""
        union = None
        for number, one in enumerate(FILTERS):
            frame = load(filterPushdown="true").where(one)
            part = frame.selectExpr(f"{number} number", f"concat_ws(' ', count(*), bit_xor({rows})) digest")
            union = part if union is None else union.union(part)
        return {FILTERS[row.number]: row.digest for row in union.collect()}

    plain = plainly()
    spark.conf.set(CONF, "true")
    try:
        assert pushed() == plain
        assert load(filterPushdown="true", rowsPerTask="0").where("partition = 1").rdd.getNumPartitions() == 2
        assert load(rowsPerTask="0").where("partition = 1").rdd.getNumPartitions() == 5
    finally:
        spark.conf.unset(CONF)
    assert plain["partition = 1"].startswith("250 ")
    assert plain["offset > 1000"].startswith("0")
    with pytest.raises(Exception, match=CONF):
        load(filterPushdown="true").where("partition = 1").count()
