"""What runs in tasks and on the driver, against a broker and without Spark."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kafka.broker import Broker
from kafka.client_async import KafkaClient
from kafka.consumer import KafkaConsumer
from kafka.errors import (
    UnknownTopicOrPartitionError,
)
from kafka.producer import KafkaProducer
from kafka.spark.arrow import COLUMNS
from kafka.spark.errors import KafkaDataLossError
from kafka.spark.fetcher import _clients as reading_clients
from kafka.spark.fetcher import read_ranges
from kafka.spark.offset_ranges import OffsetRange
from kafka.spark.offset_reader import KafkaOffsetReader
from kafka.spark.offsets import EARLIEST, LATEST
from kafka.structs import TopicPartition
from test.embedded.spark.reading import fill, options, read


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(nodes=2, topics={"events": 2}) as running:
        yield running
        reading_clients.close()


# Reading.


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_ranges_have_exactly_their_offsets(broker: Broker, codec: str | None) -> None:
    fill(broker, 1000, compression_type=codec, batch_size=1000)
    table = read(broker, [OffsetRange("events", 0, 123, 777)], ["offset", "value"])
    assert table["offset"].to_pylist() == list(range(123, 777))
    assert table["value"].to_pylist() == [b"%d" % number for number in range(123, 777)]


def test_a_short_range_does_not_bring_the_backlog_behind_it_along(broker: Broker) -> None:
    fill(broker, 3000, batch_size=1000)
    assert read(broker, [OffsetRange("events", 0, 100, 110)], ["offset"])["offset"].to_pylist() == [*range(100, 110)]
    asked = [seen.request for seen in broker.requests if seen.name == "Fetch"]
    assert [part.partition_max_bytes for each in asked for topic in each.topics for part in topic.partitions] == [
        10 * 4096 * 11 // 10 + (64 << 10)
    ]


def test_records_larger_than_guessed_take_another_request(broker: Broker) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, batch_size=1) as producer:
        for number in range(10):
            producer.send("events", b"%060000d" % number, partition=0)
    table = read(broker, [OffsetRange("events", 0, 0, 10)], ["offset", "value"])
    assert [int(value[-2:]) for value in table["value"].to_pylist()] == list(range(10))


def test_several_ranges_of_two_leaders_are_read_in_one_task(broker: Broker) -> None:
    fill(broker, 500, 0, batch_size=1000)
    fill(broker, 500, 1, batch_size=1000)
    ranges = [OffsetRange("events", 0, 10, 490), OffsetRange("events", 1, 0, 500)]
    table = read(broker, ranges, ["partition", "offset"], kafka__max__partition__fetch__bytes="2000")
    for each in ranges:
        own = table.filter(pc.equal(table["partition"], each.partition))
        assert own["offset"].to_pylist() == list(range(each.start, each.end))


def test_all_columns_have_what_the_record_has(broker: Broker) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        producer.send("events", b"v", b"k", [("a", b"1"), ("a", None)], 1, timestamp_ms=1_700_000_000_123)
        producer.send("events", None, None, None, 1, timestamp_ms=5)
    table = read(broker, [OffsetRange("events", 1, 0, 2)], [*COLUMNS, "headers"])
    first, second = table.to_pylist()
    assert {name: first[name] for name in ("key", "value", "topic", "partition", "offset", "timestampType")} == {
        "key": b"k",
        "value": b"v",
        "topic": "events",
        "partition": 1,
        "offset": 0,
        "timestampType": 0,
    }
    assert first["headers"] == [{"key": "a", "value": b"1"}, {"key": "a", "value": None}]
    assert table["timestamp"].cast(pa.int64()).to_pylist() == [1_700_000_000_123_000, 5_000]
    assert (second["key"], second["value"], second["headers"]) == (None, None, None)


def test_a_connection_stays_for_the_next_task(broker: Broker) -> None:
    fill(broker, 10)
    chosen = options(broker)
    list(read_ranges([OffsetRange("events", 0, 0, 5)], chosen, ["offset"]))
    broker.forget_requests()
    list(read_ranges([OffsetRange("events", 0, 5, 10)], chosen, ["offset"]))
    assert [type(seen.request).__name__.partition("[")[0] for seen in broker.requests] == ["FetchRequest"]


def test_a_leader_that_moves_is_followed(broker: Broker) -> None:
    fill(broker, 2000, batch_size=500)
    chosen = options(broker, kafka__max__partition__fetch__bytes="1000")
    found: list[int] = []
    for batch in read_ranges([OffsetRange("events", 0, 0, 2000)], chosen, ["offset"]):
        if not found:
            broker.move_leader(("events", 0), 3 - broker.leader("events", 0))
        found += batch["offset"].to_pylist()
    assert found == list(range(2000))


def test_records_that_retention_removed_fail_the_task_or_are_skipped(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    fill(broker, 100)
    _remove_before(broker, 40)
    wanted = [OffsetRange("events", 0, 10, 60)]
    with pytest.raises(KafkaDataLossError) as caught:
        read(broker, wanted, ["offset"])
    assert str(caught.value).startswith(
        "[KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE] Could not read records in offset [10, 60) for topic partition "
        "events-0. Those left begin at 40. Some data may have been lost"
    )
    with caplog.at_level(logging.WARNING):
        assert read(broker, wanted, ["offset"], failOnDataLoss="false")["offset"].to_pylist() == list(range(40, 60))
    assert "failOnDataLoss is false: skipped 30 offsets of events-0, continuing at 40\n" in caplog.text
    assert "set the source option" not in caplog.text


def test_a_range_that_is_gone_as_a_whole_is_empty_without_fail_on_data_loss(broker: Broker) -> None:
    fill(broker, 100)
    _remove_before(broker, 80)
    chosen = options(broker, failOnDataLoss="false")
    for gone in (OffsetRange("events", 0, 10, 60), OffsetRange("events", 0, 500, 600)):
        assert sum(batch.num_rows for batch in read_ranges([gone], chosen, ["offset"])) == 0


def _remove_before(broker: Broker, offset: int) -> None:
    from kafka.protocol.admin import DeleteRecordsRequest

    with KafkaClient(bootstrap_servers=broker.bootstrap_servers) as client:
        topics = [{"name": "events", "partitions": [{"partition_index": 0, "offset": offset}]}]
        response = client.ask(DeleteRecordsRequest(topics=topics, timeout_ms=5000), broker.leader("events", 0))
    assert response.topics[0].partitions[0].error_code == 0


def test_aborted_records_are_left_out_of_a_committed_read(broker: Broker) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="t") as producer:
        producer.init_transactions()
        for word, commit in ((b"a", True), (b"b", False), (b"c", True)):
            producer.begin_transaction()
            producer.send("events", word, partition=0)
            producer.flush()
            (producer.commit_transaction if commit else producer.abort_transaction)()
    end = broker.offsets("events", 0)[1]
    whole = [OffsetRange("events", 0, 0, end)]
    assert read(broker, whole, ["value"])["value"].to_pylist() == [b"a", b"b", b"c"]
    committed = read(broker, whole, ["value"], kafka__isolation__level="read_committed")
    assert committed["value"].to_pylist() == [b"a", b"c"]


def test_a_task_that_is_left_early_leaves_the_connection_usable(broker: Broker) -> None:
    fill(broker, 2000, batch_size=500)
    chosen = options(broker, kafka__max__partition__fetch__bytes="1000")
    reading = read_ranges([OffsetRange("events", 0, 0, 2000)], chosen, ["offset"])
    next(reading)
    reading.close()  # type: ignore[attr-defined] # it is a generator
    batches = list(read_ranges([OffsetRange("events", 0, 0, 2000)], chosen, ["offset"]))
    assert sum(batch.num_rows for batch in batches) == 2000


# On the driver.


def test_the_driver_knows_partitions_and_edges(broker: Broker) -> None:
    fill(broker, 100)
    _remove_before(broker, 30)
    offsets = KafkaOffsetReader(options(broker))
    try:
        tps = [TopicPartition("events", number) for number in range(2)]
        assert offsets.partitions() == set(tps)
        assert offsets.edges(dict.fromkeys(tps, EARLIEST)) == dict(zip(tps, (30, 0), strict=True))
        assert offsets.latest({}) == dict(zip(tps, (100, 0), strict=True))
        assert offsets.at_times({tps[0]: 1, tps[1]: 1}) == dict(zip(tps, (30, None), strict=True))
    finally:
        offsets.close()


def test_a_pattern_matches_any_part_of_a_name_and_new_topics_are_found(broker: Broker) -> None:
    now = [0.0]
    offsets = KafkaOffsetReader(options(broker, subscribePattern="ev.*[st]"), clock=lambda: now[0])
    try:
        assert {tp.topic for tp in offsets.partitions()} == {"events"}
        broker.create_topic("event", partitions=1)
        broker.create_topic("my-events-too", partitions=1)
        broker.create_topic("other", partitions=1)
        assert {tp.topic for tp in offsets.partitions()} == {"events"}
        now[0] += 5
        assert {tp.topic for tp in offsets.partitions()} == {"events", "event", "my-events-too"}
    finally:
        offsets.close()


def test_a_partition_that_is_gone_is_left_out(broker: Broker) -> None:
    offsets = KafkaOffsetReader(options(broker, subscribe="events,short"), patience=0.5)
    try:
        broker.create_topic("short", partitions=1)
        gone = TopicPartition("short", 0)
        assert gone in offsets.partitions()
        broker.delete_topic("short")
        assert gone not in offsets.edges(dict.fromkeys([gone, TopicPartition("events", 0)], LATEST))
    finally:
        offsets.close()


def test_a_named_topic_must_exist(broker: Broker) -> None:
    quick = {"fetchOffset.numRetries": "1", "fetchOffset.retryIntervalMs": "1"}
    for names in ({"subscribe": "events,nowhere"}, {"assign": '{"nowhere":[0]}'}):
        offsets = KafkaOffsetReader(options(broker, **names, **quick))
        with pytest.raises(UnknownTopicOrPartitionError, match="nowhere"):
            offsets.partitions()
        offsets.close()


def test_of_an_assignment_what_is_there_is_read(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    offsets = KafkaOffsetReader(options(broker, assign='{"events":[1,7]}'))
    assert offsets.partitions() == {TopicPartition("events", 1)}
    assert "There are no partitions events-7" in caplog.text
    offsets.close()


def test_a_pattern_leaves_the_brokers_own_topics_out(broker: Broker) -> None:
    broker.create_topic("__consumer_offsets", partitions=1)
    offsets = KafkaOffsetReader(options(broker, subscribePattern=".*"))
    assert {tp.topic for tp in offsets.partitions()} == {"events"}
    offsets.close()


def test_progress_is_committed_to_a_group(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    offsets = KafkaOffsetReader(options(broker))
    tp = TopicPartition("events", 0)
    try:
        fill(broker, 10)
        offsets.commit("lag", {tp: 7})
        with KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id="lag", enable_auto_commit=False) as who:
            assert who.committed(tp) == 7
        with caplog.at_level(logging.WARNING):
            offsets.commit("lag", {TopicPartition("missing", 0): 7})
        assert "Committing progress" in caplog.text
    finally:
        offsets.close()
