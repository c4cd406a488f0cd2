"""Reading, seeking, pausing: what an application does all day."""

from __future__ import annotations

import re
import sys
import threading
import time
from itertools import islice

import pytest

from kafka import KafkaProducer
from kafka._core.topology import Topology
from kafka.broker import Broker
from kafka.consumer import ConsumerRebalanceListener, KafkaConsumer
from kafka.errors import (
    ClientClosedError,
    IllegalArgumentError,
    IllegalStateError,
    KafkaConfigurationError,
    KafkaTimeoutError,
    NoBrokersAvailable,
)
from kafka.structs import OffsetAndMetadata, OffsetAndTimestamp, PartitionMetadata, TopicPartition

from .conftest import MakeConsumer
from .reading import TIMEOUT, fill, read, tp, wait_until_fetched

FACES = "both"


def test_each_record_comes_once_and_in_order(broker: Broker, make_consumer: MakeConsumer) -> None:
    for partition in range(4):
        fill(broker, 250, partition)
    consumer = make_consumer("events")
    records = read(consumer, 1000)
    for partition in range(4):
        mine = [record for record in records if record.partition == partition]
        assert [record.offset for record in mine] == list(range(250))
        assert [record.value for record in mine] == [b"%d" % n for n in range(250)]
        assert consumer.position(tp(partition)) == 250
    assert consumer.poll(timeout_ms=0) == {}


def test_records_that_are_written_while_it_waits_come_at_once(broker: Broker, make_consumer: MakeConsumer) -> None:
    consumer = make_consumer(fetch_max_wait_ms=20_000)
    consumer.assign([tp()])
    assert consumer.poll(timeout_ms=200) == {}
    broker.append("events", b"late")
    before = time.monotonic()
    assert [record.value for record in read(consumer, 1)] == [b"late"]
    assert time.monotonic() - before < 15  # a busy machine adds to it; the long poll would take 20


def test_a_reader_of_committed_records_waits_at_the_broker_for_the_end_of_a_transaction(
    broker: Broker, make_consumer: MakeConsumer
) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="t") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("events", b"open", partition=0).get(30)
        consumer = make_consumer(isolation_level="read_committed", fetch_max_wait_ms=20_000)
        consumer.assign([tp()])
        deadline = time.monotonic() + TIMEOUT
        while not any(seen.name == "Fetch" for seen in broker.requests):
            assert consumer.poll(timeout_ms=10) == {}
            assert time.monotonic() < deadline
        broker.forget_requests()
        for _ in range(3):
            producer.send("events", b"more", partition=0).get(30)
            assert consumer.poll(timeout_ms=100) == {}
        assert [seen.name for seen in broker.requests if seen.name == "Fetch"] == []
        producer.commit_transaction()
        assert [record.value for record in read(consumer, 4)] == [b"open", b"more", b"more", b"more"]


def test_poll_returns_no_more_than_asked_for_and_serves_partitions_in_turn(
    broker: Broker, make_consumer: MakeConsumer
) -> None:
    for partition in range(4):
        fill(broker, 100, partition, batch=100)
    consumer = make_consumer("events", max_poll_records=50)
    read(consumer, 50)  # by now, or soon, all partitions have something
    for partition in range(4):
        consumer.seek(tp(partition), 0)
    seen: list[int] = []
    deadline = time.monotonic() + TIMEOUT
    while len(seen) < 8 and time.monotonic() < deadline:
        for served, records in consumer.poll(timeout_ms=1000).items():
            assert len(records) <= 50
            seen.append(served.partition)
    assert sorted(seen) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert len(read(consumer, 0)) == 0


def test_iteration_ends_after_its_timeout_and_continues_where_it_was(
    broker: Broker, make_consumer: MakeConsumer
) -> None:
    fill(broker, 100)
    consumer = make_consumer("events", consumer_timeout_ms=2000)
    read(consumer, 1)  # what comes first may take a busy machine longer
    consumer.seek(tp(), 0)
    for record in consumer:
        if record.offset == 29:
            break
    assert consumer.position(tp()) == 30
    assert next(consumer).offset == 30
    assert [record.offset for record in consumer] == list(range(31, 100))
    assert consumer.position(tp()) == 100
    with pytest.raises(StopIteration):
        next(consumer)
    broker.append("events", b"more")
    assert next(consumer).value == b"more"


def test_poll_continues_where_an_iteration_was_left(broker: Broker, make_consumer: MakeConsumer) -> None:
    fill(broker, 100)
    consumer = make_consumer("events")
    assert [next(consumer).offset for _ in range(3)] == [0, 1, 2]
    assert [record.offset for record in read(consumer, 97)] == list(range(3, 100))


def test_a_seek_in_an_iteration_is_followed(broker: Broker, make_consumer: MakeConsumer) -> None:
    fill(broker, 100)
    consumer = make_consumer("events")
    seen = []
    for record in consumer:
        seen.append(record.offset)
        if record.offset == 4:
            consumer.seek(tp(), 98)
        if record.offset == 99:
            break
    assert seen == [0, 1, 2, 3, 4, 98, 99]


def test_seek_during_a_long_poll_is_served_at_once(broker: Broker, make_consumer: MakeConsumer) -> None:
    fill(broker, 10)
    consumer = make_consumer("events", fetch_max_wait_ms=20_000)
    read(consumer, 10)
    assert consumer.poll(timeout_ms=100) == {}  # the request for more waits at the broker now
    consumer.seek(tp(), 5)
    before = time.monotonic()
    assert [record.offset for record in read(consumer, 5)] == [5, 6, 7, 8, 9]
    assert time.monotonic() - before < 15  # a busy machine adds to it; the long poll would take 20


@pytest.mark.one_face  # asyncio has no second thread that seeks meanwhile
def test_a_seek_while_a_fetch_is_put_together_is_not_answered_by_that(
    broker: Broker, make_consumer: MakeConsumer
) -> None:
    """What was asked for at one place was taken for an answer at the other, and what lies between was passed."""
    fill(broker, 20)
    consumer = make_consumer()
    consumer.assign([tp()])
    consumer.seek(tp(), 10)
    looked_up, real = threading.Event(), Topology.partition

    def meanwhile(topology: Topology, topic: str, number: int) -> PartitionMetadata | None:
        if sys._getframe(1).f_code.co_name == "_asking" and not looked_up.is_set():
            looked_up.set()
            consumer.seek(tp(), 0)  # the application's thread may do so at any time
        return real(topology, topic, number)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Topology, "partition", meanwhile)
        assert looked_up.wait(TIMEOUT)
    assert [record.offset for record in read(consumer, 20)] == list(range(20))


@pytest.mark.one_face  # aiokafka's seek() takes no -1
def test_seek_to_ends_times_and_offsets(broker: Broker, make_consumer: MakeConsumer) -> None:
    for number in range(10):
        broker.append("events", b"%d" % number, timestamp_ms=1_700_000_000_000 + 1000 * number)
    consumer = make_consumer()
    consumer.assign([tp()])
    consumer.seek_to_end()
    assert consumer.position(tp()) == 10
    consumer.seek_to_beginning(tp())
    assert consumer.position(tp()) == 0
    consumer.seek_to_timestamp(1_700_000_004_500)
    assert consumer.position(tp()) == 5
    consumer.seek_to_timestamp(1_800_000_000_000)
    assert consumer.position(tp()) == 10
    consumer.seek(tp(), OffsetAndMetadata(7, ""))
    assert [record.offset for record in read(consumer, 3)] == [7, 8, 9]
    with pytest.raises(IllegalArgumentError):
        consumer.seek(tp(), -1)
    with pytest.raises(IllegalStateError):
        consumer.seek(tp(1), 0)


def test_offsets_are_found_for_partitions_that_are_not_assigned(broker: Broker, make_consumer: MakeConsumer) -> None:
    for number in range(10):
        broker.append("events", b"", partition=number % 2, timestamp_ms=1000 * (number + 1))
    consumer = make_consumer()
    assert consumer.beginning_offsets([tp(0), tp(1)]) == {tp(0): 0, tp(1): 0}
    assert consumer.end_offsets([tp(0), tp(1), tp(2)]) == {tp(0): 5, tp(1): 5, tp(2): 0}
    found = consumer.offsets_for_times({tp(0): 3000, tp(1): 99_000})
    assert found[tp(0)] == OffsetAndTimestamp(1, 3000, 0)
    assert found[tp(1)] is None
    with pytest.raises(KafkaTimeoutError):
        consumer.end_offsets([TopicPartition("events", 99)], timeout_ms=300)


def test_a_paused_partition_gives_nothing_and_keeps_what_was_fetched(
    broker: Broker, make_consumer: MakeConsumer
) -> None:
    fill(broker, 100, 0)
    fill(broker, 100, 1)
    consumer = make_consumer(max_poll_records=10)
    consumer.assign([tp(0), tp(1)])
    wait_until_fetched(consumer, tp(0), tp(1))
    read(consumer, 20)
    at = consumer.position(tp(0))
    consumer.pause(tp(0))
    assert consumer.paused() == {tp(0)}
    assert {record.partition for record in read(consumer, 100 - consumer.position(tp(1)))} == {1}
    assert consumer.poll(timeout_ms=100) == {}
    broker.forget_requests()
    consumer.resume(tp(0))
    assert [record.offset for record in read(consumer, 100 - at)] == list(range(at, 100))
    fetched = [r for r in broker.requests if r.name == "Fetch"]
    asked = [p.fetch_offset for r in fetched for t in r.request.topics for p in t.partitions if p.partition == 0]
    assert all(offset == 100 for offset in asked), "what was fetched before the pause was fetched again"


def test_pausing_within_an_iteration_takes_effect_at_once(broker: Broker, make_consumer: MakeConsumer) -> None:
    fill(broker, 50, 0)
    consumer = make_consumer("events", consumer_timeout_ms=2000)
    read(consumer, 1)  # what comes first may take a busy machine longer
    consumer.seek(tp(), 0)
    assert next(consumer).offset == 0
    consumer.pause(tp(0))
    assert list(consumer) == []
    consumer.resume(tp(0))
    assert [record.offset for record in islice(consumer, 49)] == list(range(1, 50))


def test_positions_survive_a_new_assignment(broker: Broker, make_consumer: MakeConsumer) -> None:
    fill(broker, 10, 0)
    fill(broker, 10, 1)
    consumer = make_consumer()
    consumer.assign([tp(0)])
    read(consumer, 10)
    consumer.assign([tp(0), tp(1)])
    assert {record.partition for record in read(consumer, 10)} == {1}
    assert consumer.position(tp(0)) == 10
    consumer.assign([])
    assert consumer.assignment() == set()
    assert consumer.poll(timeout_ms=50) == {}


def test_columns_have_the_same_records(broker: Broker, make_consumer: MakeConsumer) -> None:
    fill(broker, 100, 0)
    fill(broker, 100, 1)
    consumer = make_consumer("events")
    values: dict[int, list[bytes | None]] = {0: [], 1: []}
    deadline = time.monotonic() + TIMEOUT
    while sum(map(len, values.values())) < 200 and time.monotonic() < deadline:
        for partition, columns in consumer.poll_batches(timeout_ms=1000).items():
            values[partition.partition] += list(columns.values)
            assert consumer.position(partition) == columns.offsets[-1] + 1
    assert values == {0: [b"%d" % n for n in range(100)], 1: [b"%d" % n for n in range(100)]}


def test_columns_come_after_an_iteration_was_left(broker: Broker, make_consumer: MakeConsumer) -> None:
    fill(broker, 20, 0, batch=20)
    consumer = make_consumer("events", value_deserializer=int)
    assert next(consumer).value == 0
    deadline = time.monotonic() + TIMEOUT
    values: list[bytes | None] = []
    while len(values) < 19 and time.monotonic() < deadline:
        for columns in consumer.poll_batches(timeout_ms=1000).values():
            values += list(columns.values)
    assert values == [b"%d" % n for n in range(1, 20)]


@pytest.mark.one_face  # aiokafka's subscription() is empty, and not None
def test_a_pattern_follows_the_topics_that_appear(broker: Broker, make_consumer: MakeConsumer) -> None:
    told: list[set[TopicPartition]] = []

    class Listener(ConsumerRebalanceListener):
        def on_partitions_assigned(self, assigned: object) -> None:
            told.append(set(assigned))  # type: ignore[call-overload]

    consumer = make_consumer(metadata_max_age_ms=100)
    consumer.subscribe(pattern="log-.*", listener=Listener())
    broker.create_topic("log-a")
    broker.append("log-a", b"first")
    assert [record.topic for record in read(consumer, 1)] == ["log-a"]
    broker.create_topic("log-b", 2)
    broker.append("log-b", b"second", partition=1)
    assert [record.topic for record in read(consumer, 1)] == ["log-b"]
    assert told == [{tp(0, "log-a")}, {tp(0, "log-b"), tp(1, "log-b")}]
    assert consumer.subscription() == {"log-a", "log-b"}
    consumer.unsubscribe()
    assert consumer.subscription() is None


def test_topics_and_their_partitions_are_listed(broker: Broker, make_consumer: MakeConsumer) -> None:
    broker.create_topic("other", 3)
    consumer = make_consumer(allow_auto_create_topics=False)
    assert consumer.topics() == {"events", "other"}
    assert consumer.partitions_for_topic("other") == {0, 1, 2}
    assert consumer.partitions_for_topic("no-such-topic") is None
    assert consumer.bootstrap_connected()


def test_bootstrap_asks_for_metadata_again_if_configured(broker: Broker, make_consumer: MakeConsumer) -> None:
    def asked() -> int:
        return sum(seen.name == "Metadata" for seen in broker.requests)

    consumer = make_consumer()
    consumer.bootstrap(timeout_ms=TIMEOUT * 1000)
    before = asked()
    broker.drop_connections(api="Metadata")
    consumer.bootstrap(refresh=True)
    assert asked() > before


def test_listing_topics_bears_a_connection_that_breaks(broker: Broker, make_consumer: MakeConsumer) -> None:
    consumer = make_consumer(allow_auto_create_topics=False)
    consumer.topics()
    broker.drop_connections(api="Metadata")
    assert consumer.topics() == {"events"}
    broker.drop_connections(api="Metadata")
    assert consumer.partitions_for_topic("no-such-topic") is None


def test_highwater_and_lag_come_from_the_last_fetch(broker: Broker, make_consumer: MakeConsumer) -> None:
    fill(broker, 10)
    consumer = make_consumer()
    consumer.assign([tp()])
    assert consumer.highwater(tp()) is None
    assert consumer.current_lag(tp()) is None
    read(consumer, 4, max_records=4)
    assert consumer.highwater(tp()) == 10
    assert consumer.current_lag(tp()) == 6


def test_polling_without_moving_returns_the_same_again(broker: Broker, make_consumer: MakeConsumer) -> None:
    fill(broker, 5)
    consumer = make_consumer("events")
    first = read(consumer, 5, update_offsets=False)
    assert consumer.position(tp()) == 0
    assert read(consumer, 5) == first


@pytest.mark.one_face  # aiokafka's own errors
def test_mixing_subscribe_and_assign_is_refused(make_consumer: MakeConsumer) -> None:
    consumer = make_consumer("events")
    with pytest.raises(IllegalStateError):
        consumer.assign([tp()])
    consumer.unsubscribe()
    consumer.assign([tp()])
    with pytest.raises(IllegalStateError):
        consumer.subscribe(["events"])
    with pytest.raises(IllegalStateError):
        consumer.commit()  # there is no group


def test_impossible_options_fail_at_once(make_consumer: MakeConsumer) -> None:
    with pytest.raises(KafkaConfigurationError):
        make_consumer(no_such_option=1)
    with pytest.raises(TypeError):
        make_consumer().subscribe(5)
    with pytest.raises(IllegalArgumentError):
        make_consumer("bad topic")
    with pytest.raises(NoBrokersAvailable):
        KafkaConsumer(bootstrap_servers="127.0.0.1:1", bootstrap_timeout_ms=300)


@pytest.mark.one_face  # the event loop of the test ends with its client
def test_a_closed_consumer_says_so(make_consumer: MakeConsumer) -> None:
    consumer = make_consumer("events")
    consumer.close()
    consumer.close()
    assert consumer.health()["closed"]
    with pytest.raises(ClientClosedError):
        consumer.poll()
    with pytest.raises(ClientClosedError):
        next(consumer)


def test_metrics_tell_what_was_read(broker: Broker, make_consumer: MakeConsumer) -> None:
    fill(broker, 100)
    consumer = make_consumer("events")
    read(consumer, 100)
    measured = consumer.metrics()["consumer-fetch-manager-metrics"]
    assert measured["records-consumed-total"] == 100
    assert measured["bytes-consumed-total"] > 100
    assert measured["assigned-partitions"] == 4
    assert measured["records-lag-max"] == 0
    assert make_consumer(metrics_enabled=False).metrics() is None


def test_a_partition_that_was_moved_has_one_turn_at_a_time(broker: Broker, make_consumer: MakeConsumer) -> None:
    """It stood in the row twice, and what its second turn gave took the place of the first in the result."""
    fill(broker, 100, batch=20)
    consumer = make_consumer(max_partition_fetch_bytes=700)
    consumer.assign([tp()])
    read(consumer, 1, max_records=1)
    consumer.seek(tp(), 0)
    deadline = time.monotonic() + TIMEOUT
    while consumer.health()["partitions"]["events-0"]["buffered_bytes"] < 700:  # two replies
        assert time.monotonic() < deadline
    seen: list[int] = []
    while len(seen) < 100:
        for columns in consumer.poll_batches(timeout_ms=1000).values():
            seen += columns.offsets
        assert time.monotonic() < deadline, seen
    assert seen == list(range(100))


@pytest.mark.parametrize("group", [None, "readers"])
@pytest.mark.parametrize("how", ["topics", "pattern", "a compiled pattern"])
def test_topics_that_are_subscribed_to_later_are_read(
    broker: Broker, make_consumer: MakeConsumer, group: str | None, how: str
) -> None:
    """Without a group, and by a pattern, nobody asked for their metadata until it was old."""

    def subscribe(*topics: str) -> None:
        if how == "topics":
            consumer.subscribe(topics)
        else:
            pattern = "|".join(f"{topic}$" for topic in topics)
            consumer.subscribe(pattern=pattern if how == "pattern" else re.compile(pattern))

    broker.create_topic("others")
    broker.append("events", b"one")
    broker.append("others", b"two")
    consumer = make_consumer(group_id=group, heartbeat_interval_ms=100)
    assert consumer.poll(timeout_ms=100) == {}
    subscribe("events")
    assert [record.value for record in read(consumer, 1)] == [b"one"]
    subscribe("events", "others")
    assert [record.value for record in read(consumer, 1)] == [b"two"]
    consumer.unsubscribe()
    subscribe("others")
    broker.append("others", b"three")
    assert read(consumer, 1)[-1].topic == "others"
