"""What a task writes: the columns of its rows become records, wherever the rows and the brokers come from."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from kafka.broker import Broker
from kafka.errors import IllegalArgumentError, NoBrokersAvailable
from kafka.partitioner import murmur2
from kafka.spark import row_sender
from kafka.spark.options import SinkOptions

HEADERS = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(topics={"out": 4, "other": 1}) as running:
        yield running
        row_sender._producers.close()


@pytest.fixture(params=["columns", "record by record"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways into the producer."""
    if request.param != "columns":
        monkeypatch.setattr("kafka.producer.arrow.takes_columns", lambda calls: False)


def options(broker: Broker, **more: str) -> SinkOptions:
    return SinkOptions.parse({"kafka.bootstrap.servers": broker.bootstrap_servers, **more})


def rows(broker: Broker, topic: str, partition: int | None = None) -> list[tuple[Any, ...]]:
    return [(record.key, record.value, tuple(record.headers)) for record in broker.records(topic, partition)]


def test_all_columns_arrive_in_order_where_they_belong(broker: Broker, either: None) -> None:
    keys = [None if number % 5 == 4 else f"k{number % 7}" for number in range(200)]
    headers = [[{"key": "h", "value": b"%d" % number}] if number % 2 else None for number in range(200)]
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([f"v{number}" for number in range(200)]),
            pa.array(keys),
            pa.array(headers, HEADERS),
            pa.array([3 if number % 10 == 0 else None for number in range(200)], pa.int32()),
            pa.array(range(200)),
        ],
        names=["value", "key", "headers", "partition", "something"],
    )
    counts = row_sender.write(options(broker, topic="out"), [batch.slice(0, 90), batch.slice(90)])
    assert sum(counts.values()) == 200
    assert counts == {f"out-{at}": len(rows(broker, "out", at)) for at in range(4) if rows(broker, "out", at)}
    seen: dict[int, list[int]] = {}
    for partition in range(4):
        for key, value, pairs in rows(broker, "out", partition):
            number = int(value[1:])
            assert key == (None if keys[number] is None else keys[number].encode())
            assert pairs == ((("h", b"%d" % number),) if number % 2 else ())
            if number % 10 == 0:
                assert partition == 3
            elif key is not None:
                assert partition == (murmur2(key) & 0x7FFFFFFF) % 4
                seen.setdefault(partition, []).append(number)
    assert all(numbers == sorted(numbers) for numbers in seen.values())


def test_each_row_may_name_its_topic(broker: Broker, either: None) -> None:
    batch = pa.RecordBatch.from_pydict({"topic": ["out", "other", "other"], "value": [b"a", b"b", b"c"]})
    assert row_sender.write(options(broker), [batch])["other-0"] == 2
    assert rows(broker, "other") == [(None, b"b", ()), (None, b"c", ())]
    assert rows(broker, "out") == [(None, b"a", ())]


def test_rows_for_many_topics_keep_their_order_in_each(broker: Broker, either: None) -> None:
    topics = [f"many-{number}" for number in range(20)]
    for topic in topics:
        broker.create_topic(topic, partitions=1)
    batches = [
        pa.RecordBatch.from_pydict(
            {
                "topic": [topics[row * 7 % 20] for row in range(300)],
                "value": [b"%d" % (300 * part + row) for row in range(300)],
            }
        )
        for part in range(2)
    ]
    assert sum(row_sender.write(options(broker), batches).values()) == 600
    for number, topic in enumerate(topics):
        assert [value for _, value, _ in rows(broker, topic)] == [
            b"%d" % (300 * part + row) for part in range(2) for row in range(300) if row * 7 % 20 == number
        ]


def test_a_row_without_a_topic_is_an_error_in_spark_s_words(broker: Broker, either: None) -> None:
    batch = pa.RecordBatch.from_pydict({"topic": ["out", None], "value": [b"a", b"b"]})
    with pytest.raises(IllegalArgumentError, match=r"KAFKA_NULL_TOPIC_IN_DATA.*contains a null topic"):
        row_sender.write(options(broker), [batch])


def test_values_may_all_be_null(broker: Broker, either: None) -> None:
    batch = pa.RecordBatch.from_arrays([pa.nulls(2, pa.string()), pa.array([b"k", b"k"])], names=["value", "key"])
    assert sum(row_sender.write(options(broker, topic="other"), [batch]).values()) == 2
    assert rows(broker, "other") == [(b"k", None, ()), (b"k", None, ())]


def test_no_rows_are_none_written(broker: Broker, either: None) -> None:
    assert row_sender.write(options(broker, topic="out"), []) == {}
    assert (
        row_sender.write(options(broker, topic="out"), [pa.RecordBatch.from_pydict({"value": [b"a"]}).slice(1)]) == {}
    )


def test_rows_that_come_as_objects_are_written_alike(broker: Broker) -> None:
    given = [("a", bytearray(b"k"), [("h", bytearray(b"x")), ("n", None)], None), (None, None, None, 2)] * 6000
    batches = row_sender.batches_of_rows(["value", "key", "headers", "partition"], iter(given))
    counts = row_sender.write(options(broker, topic="out"), batches)
    own = (murmur2(b"k") & 0x7FFFFFFF) % 4
    assert counts[f"out-{own}"] + (counts["out-2"] if own != 2 else 0) == 12_000
    assert (b"k", b"a", (("h", b"x"), ("n", None))) in rows(broker, "out", own)
    assert (None, None, ()) in rows(broker, "out", 2)


def test_a_task_that_begins_while_the_broker_is_away_waits_for_it(broker: Broker) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([b"a", b"b"])], names=["value"])
    broker.stop_node(1, crash=True)
    with pytest.raises(NoBrokersAvailable, match="refused"):
        row_sender.write(options(broker, topic="out", **{"kafka.max.block.ms": "300"}), [batch])
    back = threading.Timer(2.5, broker.start_node, [1])
    back.start()
    try:
        assert sum(row_sender.write(options(broker, topic="out"), [batch]).values()) == 2
    finally:
        back.join()


@pytest.mark.breaks_invariant("sequence numbers", reason="they continue in the topic that has its name")
def test_rows_reach_a_topic_that_is_deleted_and_created_again_while_a_task_writes() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([b"x" * 100] * 20_000)], names=["value"])
    with Broker(topics={"out": 1}, configs={"auto.create.topics.enable": False}) as running:
        chosen = options(running, topic="out")
        again = threading.Timer(1.0, running.create_topic, ["out"], {"partitions": 1})

        def batches() -> Iterator[Any]:
            running.delete_topic("out")
            again.start()
            yield batch

        try:
            row_sender.write(chosen, [batch])
            assert row_sender.write(chosen, batches()) == {"out-0": 20_000}
            assert len(running.records("out")) == 20_000
        finally:
            row_sender._producers.close()
            again.join()
