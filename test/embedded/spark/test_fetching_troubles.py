"""Reading ranges from brokers that are away, late or strange: what passes is waited for, the rest is told."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from typing import Any

import pyarrow.compute as pc
import pytest

from kafka._runtime.clock import SystemClock
from kafka.broker import Broker
from kafka.errors import (
    CorruptRecordError,
    KafkaTimeoutError,
    NotLeaderOrFollowerError,
    TopicAuthorizationFailedError,
    UnknownError,
)
from kafka.producer import KafkaProducer
from kafka.protocol.fetch import FetchRequest
from kafka.spark.client_cache import ClientCache
from kafka.spark.fetcher import TaskClient, TaskClock, read_ranges
from kafka.spark.fetcher import _clients as reading_clients
from kafka.spark.offset_ranges import OffsetRange
from kafka.structs import TopicPartition
from test.embedded.spark.reading import fill, options, read, read_all_of

# Metadata is asked for often enough to come several times before a task gives up.
IMPATIENT = {
    "kafkaConsumer__pollTimeoutMs": "1000",
    "kafka__retry__backoff__ms": "10",
    "kafka__retry__backoff__max__ms": "50",
}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(nodes=2, topics={"events": 2}) as running:
        yield running
        reading_clients.close()


def test_a_broker_that_stays_away_is_reported_with_partition_and_offset(broker: Broker) -> None:
    fill(broker, 10)
    broker.fail(FetchRequest, [NotLeaderOrFollowerError], times=1000)
    with pytest.raises(KafkaTimeoutError, match="Cannot fetch record for offset 3 in 300 milliseconds") as caught:
        read(broker, [OffsetRange("events", 0, 3, 8)], kafkaConsumer__pollTimeoutMs="300")
    assert caught.value.topic_partition == TopicPartition("events", 0)


def test_a_task_that_begins_while_the_brokers_are_away_waits_for_them(broker: Broker) -> None:
    fill(broker, 10)
    for node in broker.node_ids:
        broker.stop_node(node, crash=True)
    some = [OffsetRange("events", 0, 3, 8)]
    with pytest.raises(KafkaTimeoutError, match="offset 3 in 300 milliseconds: No bootstrap server") as caught:
        read(broker, some, kafkaConsumer__pollTimeoutMs="300")
    assert caught.value.topic_partition == TopicPartition("events", 0)

    def come_back() -> None:
        for node in broker.node_ids:
            broker.start_node(node)

    back = threading.Timer(2.5, come_back)
    back.start()
    try:
        assert read(broker, some, ["offset"])["offset"].to_pylist() == [3, 4, 5, 6, 7]
    finally:
        back.join()


@pytest.mark.parametrize("gone", [OffsetRange("nowhere", 0, 3, 8), OffsetRange("events", 7, 3, 8)])
def test_a_partition_without_a_known_leader_is_reported(broker: Broker, gone: OffsetRange) -> None:
    fill(broker, 10)
    with pytest.raises(KafkaTimeoutError, match=r"offset 3 in 1000 milliseconds: .*UnknownTopicOrPartition") as caught:
        read(broker, [OffsetRange("events", 0, 0, 10), gone], **IMPATIENT)
    assert caught.value.topic_partition == gone.tp


def test_a_topic_that_one_may_not_describe_is_reported_at_once(broker: Broker) -> None:
    def forbid(exchange: Any) -> None:
        for topic in exchange.reply.topics:
            topic.error_code, topic.partitions = TopicAuthorizationFailedError.errno, []

    broker.intercept("Metadata", forbid)
    some = OffsetRange("events", 0, 3, 8)
    with pytest.raises(TopicAuthorizationFailedError) as caught:
        read(broker, [some])
    assert caught.value.topic_partition == some.tp


def test_a_topic_that_is_deleted_while_it_is_read_is_reported(broker: Broker) -> None:
    fill(broker, 2000, batch_size=500)
    chosen = options(broker, kafka__max__partition__fetch__bytes="1000", **IMPATIENT)
    reading = read_ranges([OffsetRange("events", 0, 0, 2000)], chosen, ["offset"])
    next(reading)
    broker.delete_topic("events")
    with pytest.raises(KafkaTimeoutError, match=r"in 1000 milliseconds: .*UnknownTopicOrPartition"):
        list(reading)


def test_a_partition_whose_replicas_are_all_away_is_waited_for_and_then_reported(broker: Broker) -> None:
    fill(broker, 10)
    away = broker.leader("events", 0)
    broker.stop_node(away, crash=True)
    some = [OffsetRange("events", 0, 3, 8)]
    with pytest.raises(KafkaTimeoutError, match=r"offset 3 in 1000 milliseconds: .*LeaderNotAvailable") as caught:
        read(broker, some, **IMPATIENT)
    assert caught.value.topic_partition == TopicPartition("events", 0)
    looked_up = threading.Semaphore(0)

    def come_back() -> None:
        for _ in range(5):
            assert looked_up.acquire(timeout=30)
        broker.start_node(away)

    broker.intercept("Metadata", lambda _: looked_up.release())
    back = threading.Thread(target=come_back)
    back.start()
    try:
        assert read(broker, some, ["offset"])["offset"].to_pylist() == [3, 4, 5, 6, 7]
    finally:
        back.join()


def test_a_task_that_waits_says_so_but_not_at_each_attempt(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    fill(broker, 10)
    broker.fail(FetchRequest, [NotLeaderOrFollowerError], times=1000)
    ranges = [OffsetRange("events", 0, 3, 8), OffsetRange("events", 1, 3, 8)]
    with pytest.raises(KafkaTimeoutError), caplog.at_level(logging.WARNING, "kafka.spark"):
        read(broker, ranges, **IMPATIENT)
    waits = [entry.getMessage() for entry in caplog.records if entry.name == "kafka.spark.range_position"]
    assert len(waits) == 1
    assert "from offset 3 waits" in waits[0]


def test_a_partition_to_retry_does_not_wait_for_another_leaders_reply(broker: Broker) -> None:
    slow = broker.leader("events", 0)
    broker.move_leader(("events", 1), 3 - slow)
    for partition in (0, 1):
        broker.append_many("events", [b"0", b"1"], partition=partition)
    broker.delay(FetchRequest, 3.0, node=slow, times=1)
    broker.fail(FetchRequest, [NotLeaderOrFollowerError], node=3 - slow)
    table = read(broker, [OffsetRange("events", 0, 0, 2), OffsetRange("events", 1, 0, 2)], ["partition"])
    assert table["partition"].to_pylist() == [1, 1, 0, 0]


# Replies that bring less than one would think.


@pytest.mark.parametrize("version", [0, 2, 3, 12])
def test_a_record_that_is_larger_than_what_is_asked_for_comes_from_brokers_of_all_times(
    broker: Broker, version: int
) -> None:
    for number in range(5):
        broker.append("events", b"%0300000d" % number)
    broker.advertise(FetchRequest, 0, version)
    asked_for: list[int] = []

    def ask_for_more(exchange: Any) -> None:
        part = exchange.request.topics[0].partitions[0]
        asked_for.append(part.partition_max_bytes)
        part.partition_max_bytes = 10_000_000

    def cut(exchange: Any) -> None:
        part = exchange.reply.responses[0].partitions[0]
        part.records = bytes(part.records)[: asked_for[-1]]

    if version < 3:  # brokers before 0.10.1 send as many bytes as are asked for, wherever that is
        broker.intercept(FetchRequest, ask_for_more, before=True)
        broker.intercept(FetchRequest, cut)
    read_all_of(broker, 5)


def test_partitions_whose_batches_are_larger_than_what_is_asked_for_come_one_after_the_other(broker: Broker) -> None:
    broker.move_leader(("events", 1), broker.leader("events", 0))
    for partition in (0, 1):
        for number in range(4):
            broker.append("events", b"%030000d" % number, partition=partition)
    ranges = [OffsetRange("events", 0, 0, 4), OffsetRange("events", 1, 0, 4)]
    given = {"kafka__max__partition__fetch__bytes": "1000", "kafka__fetch__max__bytes": "1000"}
    table = read(broker, ranges, ["partition", "offset"], **given)
    assert table.num_rows == 8
    for each in ranges:
        own = table.filter(pc.equal(table["partition"], each.partition))
        assert own["offset"].to_pylist() == [0, 1, 2, 3]


def _cut(exchange: Any) -> None:
    for topic in exchange.reply.responses:
        for part in topic.partitions:
            part.records = bytes(part.records or b"")[:-7]


def test_a_batch_that_is_cut_off_at_the_end_of_a_reply_comes_with_the_next_one(broker: Broker) -> None:
    for number in range(6):
        broker.append("events", b"%d" % number)
    with broker.intercept(FetchRequest, _cut, times=5):
        read_all_of(broker, 6)
    with broker.intercept(FetchRequest, _cut), pytest.raises(KafkaTimeoutError, match="offset 5 in 1000 milliseconds"):
        read(broker, [OffsetRange("events", 0, 5, 6)], **IMPATIENT)


def _left_out(exchange: Any) -> None:
    exchange.reply.responses = []


def _of_others(exchange: Any) -> None:
    for topic in exchange.reply.responses:
        topic.topic = "others"


@pytest.mark.breaks_invariant("replies", reason="a broker that answers other than what it was asked")
@pytest.mark.parametrize("spoil", [_left_out, _of_others])
def test_a_reply_without_what_was_asked_for_is_none(broker: Broker, spoil: Any) -> None:
    broker.append_many("events", [b"0", b"1", b"2"])
    with broker.intercept(FetchRequest, spoil, times=3):
        read_all_of(broker, 3)
    broker.forget_requests()
    with broker.intercept(FetchRequest, spoil), pytest.raises(KafkaTimeoutError, match="the broker sends nothing"):
        read(broker, [OffsetRange("events", 0, 0, 3)], **IMPATIENT)
    assert sum(seen.name == "Fetch" for seen in broker.requests) <= 15  # with 0.1 seconds between them


def test_a_header_that_makes_no_sense_is_reported_with_the_partition(broker: Broker) -> None:
    broker.append_many("events", [b"0", b"1", b"2"])

    def damage(exchange: Any) -> None:
        part = exchange.reply.responses[0].partitions[0]
        records = bytearray(part.records)
        records[16] = 9  # the format
        part.records = bytes(records)

    with broker.intercept(FetchRequest, damage), pytest.raises(CorruptRecordError) as caught:
        read(broker, [OffsetRange("events", 0, 0, 3)])
    assert (caught.value.topic_partition, caught.value.offset) == (TopicPartition("events", 0), 0)


def test_an_offset_that_is_refused_though_it_is_there_is_asked_for_again(broker: Broker) -> None:
    broker.append_many("events", [b"0", b"1", b"2"])
    broker.intercept(FetchRequest, _out_of_range, times=2)
    read_all_of(broker, 3)


def _out_of_range(exchange: Any) -> None:
    for topic in exchange.reply.responses:
        for part in topic.partitions:
            part.error_code, part.records = 1, None


def test_two_ranges_of_one_partition_may_be_in_one_task(broker: Broker) -> None:
    fill(broker, 1000, batch_size=500)
    ranges = [
        OffsetRange("events", 0, 100, 300),
        OffsetRange("events", 0, 300, 320),
        OffsetRange("events", 0, 700, 800),
    ]
    table = read(broker, ranges, ["offset"])
    assert sorted(table["offset"].to_pylist()) == [*range(100, 320), *range(700, 800)]


def test_what_compaction_removed_at_either_edge_of_a_range_is_passed_in_silence(broker: Broker) -> None:
    broker.create_topic("compacted", configs={"cleanup.policy": "compact"})
    for key in b"aabbccdd":
        broker.append("compacted", b"v", key=bytes([key]))
    broker.roll("compacted")
    broker.append("compacted", b"v", key=b"z")
    broker.compact()
    left = [record.offset for record in broker.records("compacted")]
    assert left == [1, 3, 5, 7, 8]
    for start, end in ((0, 1), (0, 7), (2, 3), (4, 7), (6, 9)):
        table = read(broker, [OffsetRange("compacted", 0, start, end)], ["offset"])
        assert table["offset"].to_pylist() == [offset for offset in left if start <= offset < end]


def test_a_range_may_end_within_an_aborted_transaction_or_at_a_marker(broker: Broker) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="t") as producer:
        producer.init_transactions()
        for commit in (True, False, False):
            producer.begin_transaction()
            producer.send("events", b"a", partition=0)
            producer.send("events", b"b", partition=0)
            producer.flush()
            (producer.commit_transaction if commit else producer.abort_transaction)()
    assert broker.offsets("events", 0)[1] == 9  # each of the three has a marker at its end
    for start in range(9):
        for end in range(start + 1, 10):
            part = [OffsetRange("events", 0, start, end)]
            plain = read(broker, part, ["offset"])["offset"].to_pylist()
            assert plain == [offset for offset in range(start, end) if offset % 3 < 2]
            committed = read(broker, part, ["offset"], kafka__isolation__level="read_committed")["offset"].to_pylist()
            assert committed == [offset for offset in plain if offset < 2]


RACKS = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}


def _asked(broker: Broker, leader: int) -> str:
    """Return whom fetches went to: the (l)eader or the (f)ollower."""
    return "".join("l" if seen.node_id == leader else "f" for seen in broker.requests if seen.name == "Fetch")


def test_records_come_from_a_replica_in_the_same_rack_and_from_the_leader_if_that_cannot() -> None:
    with Broker(nodes=2, racks=["a", "b"], configs=RACKS) as spread:
        spread.create_topic("events", replication_factor=2)
        for number in range(6):
            spread.append("events", b"%d" % number)
        leader = spread.leader("events", 0)
        near = {"kafka__client__rack": "ba"[leader - 1], "kafka__max__partition__fetch__bytes": "1"}
        read_all_of(spread, 6, **near)
        assert _asked(spread, leader) == "l" + "f" * 6
        spread.forget_requests()
        follower = 3 - leader
        with spread.intercept(FetchRequest, _out_of_range, node=follower):
            read_all_of(spread, 6, **near)
        assert _asked(spread, leader) == "lf" + "l" * 6
        spread.forget_requests()
        spread.drop_connections(follower, api=FetchRequest)
        read_all_of(spread, 6, **near)
        assert _asked(spread, leader).replace("f", "") == "l" * 7
        reading_clients.close()


@pytest.mark.breaks_invariant("replies", reason="the error stands beside the records that the broker has found")
def test_an_error_that_has_no_name_is_tried_again(broker: Broker) -> None:
    broker.append_many("events", [b"0", b"1", b"2"])

    def stumble(exchange: Any) -> None:
        exchange.reply.responses[0].partitions[0].error_code = UnknownError.errno

    broker.intercept(FetchRequest, stumble, times=2)
    read_all_of(broker, 3)


class _Clock(SystemClock):
    """The machine's clock, which a test can put forward."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Clock]:
    """Return the clock that tasks read in this test."""
    given = _Clock()

    clients = ClientCache(lambda options: TaskClient(options, TaskClock(given)))
    monkeypatch.setattr("kafka.spark.fetcher._clients", clients)
    yield given
    clients.close()


def test_the_time_that_spark_takes_is_not_counted_as_waiting(broker: Broker, clock: _Clock) -> None:
    broker.move_leader(("events", 1), broker.leader("events", 0))
    for partition in (0, 1):
        broker.append_many("events", [b"0", b"1", b"2"], partition=partition)

    def refuse_the_second(exchange: Any) -> None:
        for part in exchange.reply.responses[0].partitions:
            if part.partition_index == 1:
                part.error_code, part.records = NotLeaderOrFollowerError.errno, None

    # It is in trouble when the first one's records are handed out, and for a while after.
    broker.intercept(FetchRequest, refuse_the_second, times=4)
    found = []
    ranges = [OffsetRange("events", 0, 0, 3), OffsetRange("events", 1, 0, 3)]
    for batch in read_ranges(ranges, options(broker), ["partition", "offset"]):
        found += [(row["partition"], row["offset"]) for row in batch.to_pylist()]
        clock.ahead += 100.0
    assert found == [(partition, offset) for partition in (0, 1) for offset in range(3)]


def test_a_reply_that_came_while_spark_had_the_rows_is_taken(
    broker: Broker, clock: _Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(8):
        broker.append("events", b"%d" % number)
    chosen = options(broker, kafka__max__partition__fetch__bytes="1")
    found: list[int] = []
    with caplog.at_level(logging.WARNING, "kafka"):
        for batch in read_ranges([OffsetRange("events", 0, 0, 8)], chosen, ["offset"]):
            found += batch["offset"].to_pylist()
            clock.ahead += 1000.0
    assert found == list(range(8))
    assert not caplog.records
    assert sum(seen.name == "Fetch" for seen in broker.requests) == 8
