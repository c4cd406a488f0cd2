"""A frame goes through Apache Kafka and back, as a batch and as a stream in transactions; the long tests are soak."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from test.real.kafka_process import KafkaCluster
from test.spark_runs.sessions import finish, spark_session

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore::ResourceWarning")]

COUNT = 1000


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with spark_session("real") as session:
        yield session


def test_rows_are_written_and_read_as_a_batch_and_copied_once_as_a_stream(
    spark: Any, kafka: KafkaCluster, tmp_path: Path
) -> None:
    mark = uuid.uuid4().hex[:8]
    source, target = (kafka.create_topic(f"{name}-{mark}", partitions=2) for name in ("events", "out"))
    servers = {"kafka.bootstrap.servers": kafka.bootstrap_servers}
    headers = "array(named_struct('key', 'n', 'value', cast(cast(id as string) as binary))) headers"
    rows = spark.range(COUNT).selectExpr("cast(id as string) value", "cast(id % 7 as string) key", headers)
    rows.write.format("purekafka").options(**servers, topic=source).mode("append").save()

    stream = spark.readStream.format("purekafka").options(**servers, subscribe=source, startingOffsets="earliest")
    writer = stream.load().select("key", "value").writeStream.format("purekafka").options(**servers, topic=target)
    writer = writer.option("exactlyOnce", "true").option("checkpointLocation", str(tmp_path))
    finish(writer)
    for path in (tmp_path / "commits").iterdir():
        path.unlink()  # as if the driver had died before it noted that the batch is done
    finish(writer)

    back = spark.read.format("purekafka").options(**servers, subscribe=source, includeHeaders="true").load()
    found = sorted((int(row.value), int(row.key), int(row.headers[0].value)) for row in back.collect())
    assert found == [(number, number % 7, number) for number in range(COUNT)]
    committed = {**servers, "kafka.isolation.level": "read_committed"}
    copied = spark.read.format("purekafka").options(**committed, subscribe=target).load()
    assert sorted(int(row.value) for row in copied.select("value").collect()) == list(range(COUNT))
