"""Queries of a real Spark session against the embedded broker."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from kafka.broker import Broker
from kafka.producer import KafkaProducer
from kafka.spark.jobs.runner import describe
from kafka.spark.progress import lag
from kafka.structs import TopicPartition
from test.spark_runs.sessions import finish

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore::ResourceWarning")]


def fill(broker: Broker, count: int, first: int = 0) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for number in range(first, first + count):
            headers = [("n", b"%d" % number)] if number % 2 else None
            producer.send("events", b"%d" % number, b"k%d" % (number % 10), headers, partition=number % 2)


def run(frame: Any, checkpoint: Path) -> list[list[str]]:
    """Run a query over what is available; return the values of each batch."""
    batches: list[list[str]] = []

    def take(rows: Any, _number: int) -> None:
        batches.append(sorted(row[0].decode() for row in rows.select("value").collect()))

    finish(frame.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint)))
    return batches


def values(numbers: range) -> list[str]:
    return sorted(map(str, numbers))


def test_a_batch_has_all_rows_and_columns(read: Any, broker: Broker) -> None:
    fill(broker, 100)
    frame = read(includeHeaders="true")
    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
        "timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
    rows = frame.collect()
    assert sorted(int(row.value) for row in rows) == list(range(100))
    for row in rows:
        number = int(row.value)
        assert (bytes(row.key), row.topic, row.partition, row.offset) == (
            b"k%d" % (number % 10),
            "events",
            number % 2,
            number // 2,
        )
        assert row.headers is None if number % 2 == 0 else bytes(row.headers[0].value) == b"%d" % number


def test_a_schema_chooses_columns_and_parts_are_cut(spark: Any, broker: Broker) -> None:
    fill(broker, 100)
    reader = spark.read.format("purekafka").schema("offset bigint, value binary")
    reader = reader.option("kafka.bootstrap.servers", broker.bootstrap_servers).option("subscribe", "events")
    frame = reader.option("minPartitions", "6").load()
    assert frame.columns == ["offset", "value"]
    assert frame.rdd.getNumPartitions() == 6
    assert sorted(int(row.value) for row in frame.collect()) == list(range(100))


def test_wrong_options_fail_in_load_in_the_official_words(spark: Any, read: Any, broker: Broker) -> None:
    with pytest.raises(Exception, match="Only one of the following options can be specified for Kafka source"):
        read(assign='{"events":[0]}')
    with pytest.raises(Exception, match="must be specified for configuring Kafka consumer"):
        spark.read.format("purekafka").option("subscribe", "events").load()
    with pytest.raises(Exception, match="starting offset can't be latest for batch queries on Kafka"):
        read(startingOffsets="latest").count()


def test_a_query_continues_from_its_checkpoint_with_limited_batches(
    stream: Any, broker: Broker, tmp_path: Path
) -> None:
    fill(broker, 100)
    first = run(stream(maxOffsetsPerTrigger="40"), tmp_path)
    assert [len(batch) for batch in first] == [40, 40, 20]
    assert sorted(chain(*first)) == values(range(100))
    fill(broker, 10, 100)
    assert run(stream(), tmp_path) == [values(range(100, 110))]
    logged = (tmp_path / "offsets" / "3").read_text(encoding="utf-8").splitlines()[-1]
    assert json.loads(logged) == {"events": {"0": 55, "1": 55}}


def test_a_query_from_the_latest_offsets_loses_nothing_when_its_first_batch_failed(
    stream: Any, broker: Broker, tmp_path: Path
) -> None:
    fill(broker, 10)

    def fail(_rows: Any, _number: int) -> None:
        raise RuntimeError("the first batch fails")

    frame = stream(startingOffsets="latest")
    with pytest.raises(Exception, match="the first batch fails"):
        finish(frame.writeStream.foreachBatch(fail).option("checkpointLocation", str(tmp_path)))
    fill(broker, 7, 10)
    assert list(chain(*run(stream(startingOffsets="latest"), tmp_path))) == values(range(10, 17))
    fill(broker, 3, 17)
    assert run(stream(startingOffsets="latest"), tmp_path) == [values(range(17, 20))]


def test_a_checkpoint_of_the_official_connector_is_carried_on(stream: Any, broker: Broker, tmp_path: Path) -> None:
    fill(broker, 20)
    run(stream(), tmp_path)
    offsets = tmp_path / "offsets" / "0"
    lines = offsets.read_text(encoding="utf-8").splitlines()
    lines[-1] = '{"events":{"0":10,"1":10}}'  # without spaces, as it writes them
    offsets.write_text("\n".join(lines), encoding="utf-8")
    offsets.with_name(".0.crc").unlink(missing_ok=True)
    fill(broker, 5, 20)
    assert list(chain(*run(stream(), tmp_path))) == values(range(20, 25))


def test_the_lag_of_a_batch_that_is_repeated_is_unknown_and_that_of_the_next_one_known(
    stream: Any, broker: Broker, tmp_path: Path
) -> None:
    fill(broker, 20)
    run(stream(), tmp_path)
    for path in (tmp_path / "commits").iterdir():  # as if the driver had died before it noted the batch as done
        path.unlink()
    fill(broker, 10, 20)
    query = finish(stream().writeStream.format("noop").option("checkpointLocation", str(tmp_path)))
    lags = [lag(progress) for progress in query.recentProgress if progress["numInputRows"]]
    assert lags == [None, {TopicPartition("events", 0): 0, TopicPartition("events", 1): 0}]
    assert describe("x", query.recentProgress[0]).endswith("lag unknown")


def test_progress_goes_to_a_group_up_to_the_last_batch(stream: Any, broker: Broker, tmp_path: Path) -> None:
    from kafka.consumer import KafkaConsumer

    fill(broker, 10)
    frame = stream(maxOffsetsPerTrigger="6", commitOffsetsToGroup="lag")
    run(frame, tmp_path)
    with KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id="lag", enable_auto_commit=False) as group:
        assert [group.committed(TopicPartition("events", partition)) for partition in (0, 1)] == [5, 5]


def test_frames_are_written_with_keys_headers_and_partitions(spark: Any, broker: Broker) -> None:
    frame = spark.range(6).selectExpr(
        "cast(id as string) value",
        "case when id % 2 = 0 then cast(id as string) end key",
        "'out' topic",
        "cast(id % 2 as int) partition",
        "case when id = 1 then array(named_struct('key', 'a', 'value', cast('x' as binary))) end headers",
        "id other",
    )
    servers = broker.bootstrap_servers
    frame.write.format("purekafka").option("kafka.bootstrap.servers", servers).mode("append").save()
    found = {record.value: record for record in broker.records("out")}
    assert sorted(found) == [b"%d" % number for number in range(6)]
    assert found[b"1"].headers == [("a", b"x")]
    assert found[b"4"].key == b"4"
    assert found[b"3"].key is None
    assert all(record.partition == int(value) % 2 for value, record in found.items())


def test_frames_that_cannot_be_written_are_refused(spark: Any, broker: Broker) -> None:
    def save(*columns: str, mode: str = "append", **options: str) -> None:
        writer = spark.range(1).selectExpr(*columns).write.format("purekafka").mode(mode)
        writer.option("kafka.bootstrap.servers", broker.bootstrap_servers).options(**options).save()

    with pytest.raises(Exception, match="Required attribute 'value' not found"):
        save("id", topic="out")
    with pytest.raises(Exception, match="topic option required when no 'topic' attribute is present"):
        save("'x' value")
    with pytest.raises(Exception, match="value attribute unsupported type bigint"):
        save("id value", topic="out")
    with pytest.raises(Exception, match="Save mode Overwrite not allowed for Kafka"):
        save("'x' value", topic="out", mode="overwrite")
    with pytest.raises(Exception, match="KAFKA_NULL_TOPIC_IN_DATA"):
        save("'x' value", "cast(null as string) topic")
    assert broker.records("out") == []


def test_a_batch_that_was_written_but_not_noted_as_done_is_not_written_twice_with_exactly_once(
    stream: Any, broker: Broker, tmp_path: Path
) -> None:
    def run_once(**how: str) -> None:
        writer = stream(**how).select("key", "value").writeStream.format("purekafka").option("topic", "out")
        writer = writer.option("kafka.bootstrap.servers", broker.bootstrap_servers).option("exactlyOnce", "true")
        finish(writer.option("checkpointLocation", str(tmp_path)))

    fill(broker, 30)
    run_once(rowsPerTask="0")
    # As if the driver had died after the tasks and before it wrote down that the batch is done.
    for path in (tmp_path / "commits").iterdir():
        path.unlink()
    fill(broker, 20, 30)
    with pytest.raises(Exception, match=r"15 were written by an earlier run of this query. Restore minPartitions"):
        run_once(minPartitions="4")
    run_once(rowsPerTask="0")
    found = sorted(int(record.value or b"") for record in broker.records("out", committed=True))
    assert found == list(range(50))


def test_programs_that_say_kafka_get_this_source_with_the_shim(spark: Any, broker: Broker) -> None:
    from kafka.spark import register

    servers = broker.bootstrap_servers
    with register(spark, shim=True):
        frame = spark.range(5).selectExpr("cast(id as string) value")
        frame.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", "events").save()
        chosen = frame.write.mode("overwrite").format("kafka").option("kafka.bootstrap.servers", servers)
        with pytest.raises(Exception, match="Save mode Overwrite not allowed for Kafka"):
            chosen.option("topic", "events").save()
        back = spark.read.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", "events")
        assert back.load().count() == 5
    with pytest.raises(Exception, match="Failed to find data source: kafka"):
        spark.read.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", "events").load()
