"""Where partitions start is found out from each leader by itself: one that hangs or fails holds up nobody else."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kafka.broker import Broker
from kafka.broker.faults import NO_REPLY, Exchange
from kafka.consumer import KafkaConsumer
from kafka.errors import LeaderNotAvailableError

from .conftest import MakeConsumer
from .reading import TIMEOUT, fill, read, tp

FACES = "both"

# Longer than any of these tests may take: who waits for it has failed.
NEVER_MS = 10 * 60 * 1000
WELL, ILL = tp(0), tp(1)


@pytest.fixture
def two_leaders(broker: Broker) -> Broker:
    """A broker with three records in each of two partitions, led by nodes 1 and 2."""
    for node, partition in enumerate((WELL, ILL), 1):
        broker.move_leader(partition, node)
        fill(broker, 3, partition.partition)
    return broker


def lookups(broker: Broker, node: int) -> int:
    return sum(seen.name == "ListOffsets" and seen.node_id == node for seen in broker.requests)


def values(consumer: KafkaConsumer, count: int = 3) -> list[tuple[int, Any]]:
    return [(record.partition, record.value) for record in read(consumer, count)]


def records_of(number: int) -> list[tuple[int, Any]]:
    return [(number, b"0"), (number, b"1"), (number, b"2")]


@pytest.mark.one_face  # aiokafka's seek_to_beginning() waits for the offset
def test_a_leader_that_hangs_holds_up_its_own_partitions_alone(
    two_leaders: Broker, make_consumer: MakeConsumer
) -> None:
    broker = two_leaders
    broker.intercept("ListOffsets", lambda _: NO_REPLY, before=True, node=2)
    consumer = make_consumer(request_timeout_ms=NEVER_MS, fetch_max_wait_ms=50)
    consumer.assign([WELL, ILL])
    assert values(consumer) == records_of(0)
    for _ in range(3):
        consumer.seek_to_beginning(WELL)
        assert values(consumer) == records_of(0)
        consumer.seek_to_beginning(ILL)  # does not ask again who has not answered yet
    assert lookups(broker, 2) == 1

    # It is found out from the next leader, though the last one has still not answered.
    broker.move_leader(ILL, 1)
    core = consumer._core
    assert core is not None
    core.client.cluster.request_update()
    assert values(consumer) == records_of(1)
    assert lookups(broker, 2) == 1
    began = time.monotonic()
    consumer.close()
    assert time.monotonic() - began < 20  # a busy machine adds to it; the request that has no answer has 30


def test_a_leader_that_fails_is_let_rest_and_the_others_are_asked(
    two_leaders: Broker, make_consumer: MakeConsumer
) -> None:
    broker = two_leaders
    broker.fail("ListOffsets", [LeaderNotAvailableError], node=2)
    consumer = make_consumer("events", retry_backoff_ms=NEVER_MS, retry_backoff_max_ms=NEVER_MS, fetch_max_wait_ms=50)
    assert values(consumer) == records_of(0)
    for _ in range(3):
        consumer.seek_to_beginning(WELL)
        assert values(consumer) == records_of(0)
    assert lookups(broker, 2) == 1
    assert "LeaderNotAvailable" in consumer.health()["partitions"]["events-1"]["problem"]


def test_a_coordinator_that_hangs_holds_up_only_what_starts_at_commits(
    two_leaders: Broker, make_consumer: MakeConsumer
) -> None:
    broker = two_leaders
    broker.intercept("OffsetFetch", lambda _: NO_REPLY, before=True)
    consumer = make_consumer(
        group_id="readers", enable_auto_commit=False, request_timeout_ms=NEVER_MS, fetch_max_wait_ms=50
    )
    consumer.assign([WELL, ILL])
    deadline = time.monotonic() + TIMEOUT
    while not any(seen.name == "OffsetFetch" for seen in broker.requests):
        assert time.monotonic() < deadline
        assert consumer.poll(timeout_ms=20) == {}
    consumer.seek_to_beginning(WELL)
    assert values(consumer) == records_of(0)


@pytest.mark.breaks_invariant("replies", reason="the broker leaves out a partition that it was asked for")
def test_a_partition_that_an_answer_leaves_out_is_asked_for_again(
    two_leaders: Broker, make_consumer: MakeConsumer
) -> None:
    broker = two_leaders

    def leave_out(exchange: Exchange) -> None:
        exchange.reply.topics = []

    broker.intercept("ListOffsets", leave_out, times=2)
    consumer = make_consumer(fetch_max_wait_ms=50)
    consumer.assign([WELL])
    assert values(consumer) == records_of(0)
    assert lookups(broker, 1) == 3
    broker.intercept("ListOffsets", leave_out, times=1)
    assert consumer.end_offsets([WELL, ILL]) == {WELL: 3, ILL: 3}


def test_a_leader_that_does_not_tell_the_end_is_not_asked_in_a_busy_loop(
    two_leaders: Broker, make_consumer: MakeConsumer
) -> None:
    broker = two_leaders

    def tell_nothing(exchange: Exchange) -> None:
        for topic in exchange.reply.topics:
            for entry in topic.partitions:
                entry.offset = -1

    order = broker.intercept("ListOffsets", tell_nothing, node=2)
    consumer = make_consumer("events", retry_backoff_ms=NEVER_MS, retry_backoff_max_ms=NEVER_MS, fetch_max_wait_ms=50)
    deadline = time.monotonic() + TIMEOUT
    while order.used < 2:  # the beginning, then the end
        assert time.monotonic() < deadline
        consumer.poll(timeout_ms=20)
    consumer.seek_to_beginning(WELL)
    assert (0, b"0") in values(consumer)
    assert order.used == 2
