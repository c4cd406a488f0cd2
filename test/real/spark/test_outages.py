"""A broker that dies in the midst of a query is waited for, and reported with the partition and the offset."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka import KafkaProducer
from test.real.kafka_process import KafkaCluster
from test.spark_runs.sessions import finish, spark_session

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore::ResourceWarning")]

ROWS = 40_000  # 20 MB
SMALL = {
    "kafka.max.partition.fetch.bytes": "200000",
    "kafka.fetch.max.bytes": "400000",
    "kafka.reconnect.backoff.ms": "100",
    "kafka.reconnect.backoff.max.ms": "500",
}


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with spark_session("outages", configs={"spark.sql.execution.arrow.maxRecordsPerBatch": "500"}) as session:
        yield session


@pytest.fixture
def broker(kafka_version: str) -> Iterator[KafkaCluster]:
    """One node, with more records than what is under way can hold."""
    with KafkaCluster(kafka_version) as cluster:
        cluster.create_topic("events", partitions=2)
        cluster.create_topic("out", partitions=2)
        with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            for number in range(ROWS):
                producer.send("events", b"%0500d" % number, partition=number % 2)
        yield cluster


def slowed(rows: Any, gate: Path) -> Any:
    """Return the rows as they are; some of each task's come, and the others when a file is there."""
    from pyspark.sql.functions import udf

    passed = [0]  # each task has a copy of it

    def wait_at_gate(value: bytes) -> bytes:
        import time
        from pathlib import Path

        passed[0] += 1
        if passed[0] == ROWS // 100:
            Path(f"{gate}.reached").touch()
            while not Path(gate).exists():
                time.sleep(0.05)
        return value

    return rows.select(udf(wait_at_gate, "binary", useArrow=False).asNondeterministic()("value").alias("value"))


def break_when_reached(broker: KafkaCluster, gate: Path, back_after: float | None) -> threading.Thread:
    """Kill the broker when rows have begun to come, let the query go on, and start the broker again after a while."""

    def run() -> None:
        reached = Path(f"{gate}.reached")
        ticks = threading.Event()
        for _ in range(6000):
            if reached.exists():
                break
            ticks.wait(0.05)
        broker.kill(1)
        gate.touch()
        if back_after is not None:
            ticks.wait(back_after)
            broker.start(1)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def batch(spark: Any, broker: KafkaCluster, **options: str) -> Any:
    reader = spark.read.format("purekafka").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    return reader.options(subscribe="events", rowsPerTask="0", **SMALL, **options).load()


def test_a_batch_query_continues_when_the_broker_is_back(spark: Any, broker: KafkaCluster, tmp_path: Path) -> None:
    rows = slowed(batch(spark, broker), tmp_path / "gate")
    breaking = break_when_reached(broker, tmp_path / "gate", back_after=5.0)
    try:
        found = sorted(int(row.value) for row in rows.collect())
    finally:
        breaking.join()
    assert found == list(range(ROWS))


def test_a_broker_that_stays_away_is_reported_with_partition_and_offset(
    spark: Any, broker: KafkaCluster, tmp_path: Path
) -> None:
    rows = slowed(batch(spark, broker, **{"kafkaConsumer.pollTimeoutMs": "6000"}), tmp_path / "gate")
    breaking = break_when_reached(broker, tmp_path / "gate", back_after=None)
    try:
        with pytest.raises(Exception, match="Cannot fetch record for offset") as told:
            rows.collect()
    finally:
        breaking.join()
    text = str(told.value)
    found = re.search(r"Cannot fetch record for offset (\d+) in 6000 milliseconds[^\n]*", text)
    assert found is not None
    print(found[0])
    assert 0 < int(found[1]) < ROWS // 2
    assert re.search(r"events[-', ]+(partition=)?[01]", text), text


def test_a_streaming_query_continues_when_the_broker_is_back(spark: Any, broker: KafkaCluster, tmp_path: Path) -> None:
    reader = spark.readStream.format("purekafka").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    rows = reader.options(subscribe="events", startingOffsets="earliest", rowsPerTask="0", **SMALL).load()
    writer = slowed(rows, tmp_path / "gate").writeStream.format("purekafka").option("exactlyOnce", "true")
    writer = writer.option("kafka.bootstrap.servers", broker.bootstrap_servers).option("topic", "out")
    breaking = break_when_reached(broker, tmp_path / "gate", back_after=5.0)
    try:
        finish(writer.option("checkpointLocation", str(tmp_path / "checkpoint")))
    finally:
        breaking.join()
    copied = spark.read.format("purekafka").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    copied = copied.option("subscribe", "out").option("kafka.isolation.level", "read_committed").load()
    assert sorted(int(row.value) for row in copied.select("value").collect()) == list(range(ROWS))
