"""What holds whatever happens: nothing blocks for ever, idle costs nothing, nobody starves, all is found again."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from kafka.broker import Broker
from kafka.broker.faults import NO_REPLY, Exchange
from kafka.consumer import KafkaConsumer
from kafka.errors import NotLeaderForPartitionError
from kafka.structs import OffsetAndMetadata, TopicPartition
from test.embedded.threads import nothing_left

from .conftest import MakeConsumer
from .reading import TIMEOUT, fill, read, tp

FACES = "both"

# Ctrl-C returns within a second from whatever blocks (P13)


def interrupted(call: Callable[[], object]) -> float:
    """Press Ctrl-C while a call blocks; return how long it took to end."""
    pressed: list[float] = []

    def press() -> None:
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.3, press)
    try:
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012
            timer.start()
            call()
        return time.monotonic() - pressed[0]
    finally:
        timer.join()


BLOCKING: dict[str, Callable[[KafkaConsumer], object]] = {
    "poll": lambda consumer: consumer.poll(timeout_ms=20_000),
    "poll_batches": lambda consumer: consumer.poll_batches(timeout_ms=20_000),
    "iteration": lambda consumer: next(iter(consumer)),
    "commit": lambda consumer: consumer.commit({tp(): OffsetAndMetadata(1)}),
    "committed": lambda consumer: consumer.committed({tp(0), tp(1)}),
    "end_offsets": lambda consumer: consumer.end_offsets([tp()]),
    "topics": lambda consumer: consumer.topics(),
    "close": lambda consumer: consumer.close(),
}


@pytest.mark.parametrize("name", BLOCKING)
def test_ctrl_c_returns_within_a_second(broker: Broker, make_consumer: MakeConsumer, name: str) -> None:
    consumer = make_consumer(group_id="readers", consumer_timeout_ms=20_000, enable_auto_commit=name == "close")
    consumer.assign([tp()])
    consumer.seek(tp(), 0)
    consumer.poll(timeout_ms=100)
    for api in ("OffsetCommit", "OffsetFetch", "ListOffsets", "Metadata"):
        broker.intercept(api, lambda _exchange: NO_REPLY)
    # Within a second, to which a busy machine adds; unheard, each of them would take 20 seconds at least.
    assert interrupted(lambda: BLOCKING[name](consumer)) < 15
    broker.clear_faults()
    if name != "close":
        fill(broker, 1)
        assert len(read(consumer, 1)) == 1  # and it goes on


def test_closing_with_a_group_and_everything_down_is_bounded(broker: Broker, make_consumer: MakeConsumer) -> None:
    fill(broker, 10)
    with nothing_left():
        consumer = make_consumer("events", group_id="readers")
        read(consumer, 10)
        broker.stop_node(1, crash=True)
        broker.stop_node(2, crash=True)
        before = time.monotonic()
        consumer.close(timeout_ms=500)
        assert time.monotonic() - before < 20  # a busy machine adds to it; unbounded, requests have 30


def test_closing_without_a_limit_ends_when_the_group_is_left(make_consumer: MakeConsumer) -> None:
    with nothing_left():
        consumer = make_consumer("events", group_id="readers")
        consumer.poll(0)
        consumer.close(timeout_ms=math.inf)


# Idle costs nothing (P14)


def test_an_idle_consumer_of_500_partitions_does_next_to_nothing() -> None:
    with (
        Broker(topics={"wide": 500}) as broker,
        KafkaConsumer(
            "wide", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest", fetch_max_wait_ms=500
        ) as consumer,
    ):
        core = consumer._core
        assert core is not None
        deadline = time.monotonic() + TIMEOUT
        fetches: list[Any] = []
        while not fetches or fetches[-1].topics:  # all have their positions, and the broker has heard of them
            consumer.poll(timeout_ms=100)
            fetches = [seen.request for seen in broker.requests if seen.name == "Fetch"]
            assert time.monotonic() < deadline
        broker.forget_requests()
        turns = core.loop.turns
        consumer.poll(timeout_ms=3000)
        fetches = [seen.request for seen in broker.requests if seen.name == "Fetch"]
        assert 1 <= len(fetches) <= 8  # two a second, fewer on a busy machine
        assert all(not request.topics for request in fetches[1:])  # nothing has changed, nothing is named
        assert core.loop.turns - turns <= 4 * len(fetches) + 10


def test_paused_partitions_keep_what_was_fetched_and_are_not_asked_for(
    broker: Broker, make_consumer: MakeConsumer
) -> None:
    for number in range(4):
        fill(broker, 20, number)
    consumer = make_consumer(fetch_max_wait_ms=50)
    consumer.assign([tp(number) for number in range(4)])
    (first,) = read(consumer, 1, max_records=1)
    deadline = time.monotonic() + TIMEOUT
    while not all(entry["buffered_bytes"] for entry in consumer.health()["partitions"].values()):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    paused = [tp(number) for number in range(1, 4)]
    consumer.pause(*paused)
    while consumer.poll(timeout_ms=100):
        pass
    broker.forget_requests()
    fill(broker, 20, 0)
    read(consumer, 20)
    named = {
        part.partition
        for seen in broker.requests
        if seen.name == "Fetch"
        for topic in seen.request.topics
        for part in topic.partitions
    }
    assert named <= {0}
    broker.fail("Fetch", [NotLeaderForPartitionError], times=1000)  # what comes now was fetched before
    consumer.resume(*paused)
    left = 60 - (first.partition in {1, 2, 3})
    assert len(read(consumer, left)) == left


# Nobody starves


@pytest.mark.parametrize("how", ["poll", "columns"])
def test_a_partition_with_little_is_served_beside_one_with_plenty(
    broker: Broker, make_consumer: MakeConsumer, how: str
) -> None:
    fill(broker, 20_000, 0, batch=500)
    consumer = make_consumer(max_partition_fetch_bytes=20_000, max_poll_records=100)
    consumer.assign([tp(0), tp(1)])
    consumer.seek_to_beginning()
    read(consumer, 100)
    fill(broker, 10, 1)
    seen = 0
    while True:
        if how == "poll":
            got = {partition: len(rows) for partition, rows in consumer.poll(timeout_ms=1000).items()}
        else:
            batches = consumer.poll_batches(timeout_ms=1000, max_records=100)
            got = {partition: len(columns) for partition, columns in batches.items()}
        if tp(1) in got:
            break
        seen += got.get(tp(0), 0)
    assert seen < 15_000


# Things change


def test_the_replica_in_the_same_rack_is_read_from_and_left_when_it_goes() -> None:
    selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    with Broker(nodes=2, racks=["a", "b"], configs={"replica.selector.class": selector}) as broker:
        broker.create_topic("racked", replication_factor=2)
        broker.move_leader(("racked", 0), 1)
        with KafkaConsumer(
            "racked",
            bootstrap_servers=broker.bootstrap_servers,
            client_rack="b",
            auto_offset_reset="earliest",
            fetch_max_wait_ms=50,
            retry_backoff_ms=10,
            reconnect_backoff_ms=10,
        ) as consumer:
            fill(broker, 10, topic="racked")
            assert len(read(consumer, 10)) == 10
            broker.forget_requests()
            for _ in range(2):  # the first may be the answer to a request from before
                fill(broker, 10, topic="racked")
                assert len(read(consumer, 10)) == 10
            assert {seen.node_id for seen in broker.requests if seen.name == "Fetch"} == {2}
            broker.stop_node(2, crash=True)
            fill(broker, 10, topic="racked")
            assert len(read(consumer, 10)) == 10


def test_partitions_that_are_added_are_read_from_their_beginning(broker: Broker, make_consumer: MakeConsumer) -> None:
    fill(broker, 1)
    consumer = make_consumer("events", metadata_max_age_ms=100, auto_offset_reset="earliest")
    read(consumer, 1)

    def add(cluster: object) -> None:
        topic = cluster.topics["events"]  # type: ignore[attr-defined]
        cluster.add_partitions(topic, [[1], [2]])  # type: ignore[attr-defined]

    broker.run(add)
    fill(broker, 3, 5)
    assert [(record.partition, record.offset) for record in read(consumer, 3)] == [(5, 0), (5, 1), (5, 2)]


def test_metadata_that_lags_behind_costs_time_but_no_record(broker: Broker, make_consumer: MakeConsumer) -> None:
    fill(broker, 10)
    consumer = make_consumer(fetch_max_wait_ms=50)
    consumer.assign([tp()])
    assert len(read(consumer, 10)) == 10
    old = broker.leader("events", 0)
    lagging = [0]

    def lag(exchange: Exchange) -> None:
        for topic in exchange.reply.topics:
            for part in topic.partitions:
                if part.partition_index == 0 and topic.name == "events":
                    lagging[0] += 1
                    part.leader_id, part.leader_epoch = old, part.leader_epoch - 1

    broker.intercept("Metadata", lag, times=10)
    broker.move_leader(tp(), 3 - old)
    fill(broker, 10)
    assert [record.offset for record in read(consumer, 10)] == list(range(10, 20))


@pytest.mark.parametrize("seconds", [1.5, pytest.param(60, marks=pytest.mark.soak)])
def test_a_cluster_that_is_away_is_waited_for_and_named(
    broker: Broker, make_consumer: MakeConsumer, seconds: float
) -> None:
    fill(broker, 10)
    consumer = make_consumer("events", group_id="readers", reconnect_backoff_max_ms=1000)
    assert len(read(consumer, 10)) == 10
    consumer.commit()
    for node in (1, 2):
        broker.stop_node(node, crash=True)
    until = time.monotonic() + seconds
    turns = consumer._core.loop.turns  # type: ignore[union-attr]
    while time.monotonic() < until:
        assert consumer.poll(timeout_ms=500) == {}
    health = consumer.health()
    assert not health["ok"]
    assert health["problems"]
    assert consumer._core.loop.turns - turns < 300 * seconds  # type: ignore[union-attr]
    for node in (1, 2):
        broker.start_node(node)
    fill(broker, 10)
    assert [record.offset for record in read(consumer, 10)] == list(range(10, 20))
    consumer.commit()
    deadline = time.monotonic() + TIMEOUT
    while not consumer.health()["ok"]:
        assert time.monotonic() < deadline, consumer.health()
        consumer.poll(timeout_ms=50)


# What Java's has as well


def test_committed_offsets_of_several_partitions_come_in_one_call(broker: Broker, make_consumer: MakeConsumer) -> None:
    consumer = make_consumer(group_id="readers")
    consumer.assign([tp(0), tp(1)])
    consumer.commit({tp(0): OffsetAndMetadata(3, "three"), tp(1): OffsetAndMetadata(5)})
    broker.forget_requests()
    found = consumer.committed({tp(0), tp(1), tp(2)})
    assert found == {tp(0): OffsetAndMetadata(3, "three"), tp(1): OffsetAndMetadata(5), tp(2): None}
    assert sum(seen.name == "OffsetFetch" for seen in broker.requests) == 1


def test_a_rebalance_can_be_asked_for(broker: Broker, make_consumer: MakeConsumer) -> None:
    consumer = make_consumer("events", group_id="readers")
    deadline = time.monotonic() + TIMEOUT
    while not consumer.assignment():
        consumer.poll(timeout_ms=100)
        assert time.monotonic() < deadline
    generation = consumer.group_metadata().generation_id
    consumer.enforce_rebalance("the weights have changed")
    while consumer.group_metadata().generation_id <= generation:
        consumer.poll(timeout_ms=100)
        assert time.monotonic() < deadline
    joins = [seen.request for seen in broker.requests if seen.name == "JoinGroup"]
    assert joins[-1].reason == "the weights have changed"
    while not consumer.assignment():
        consumer.poll(timeout_ms=100)
        assert time.monotonic() < deadline


def test_columns_become_an_arrow_batch(broker: Broker, make_consumer: MakeConsumer) -> None:
    pytest.importorskip("pyarrow")
    broker.append("events", b"a", key=b"k", headers=[("h", b"1")])
    consumer = make_consumer("events")
    deadline = time.monotonic() + TIMEOUT
    while not (batches := consumer.poll_batches(timeout_ms=500)):
        assert time.monotonic() < deadline
    table = batches[TopicPartition("events", 0)].to_arrow()
    assert table.column("value").to_pylist() == [b"a"]
    assert table.column("offset").to_pylist() == [0]
