"""What an application reads, commits and gives up, in orders of calls that once lost records or told nothing."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Collection
from typing import Any

import pytest

from kafka.broker import Broker
from kafka.consumer import ConsumerRebalanceListener, KafkaConsumer
from kafka.errors import CommitFailedError, RecordDeserializationError, WakeupError
from kafka.structs import TopicPartition

from .conftest import MakeConsumer
from .reading import TIMEOUT, fill, read, tp

FACES = "both"

PROTOCOLS: dict[str, dict[str, Any]] = {
    "eager": {},
    "cooperative": {"partition_assignment_strategy": ["cooperative-sticky"]},
    "consumer": {"group_protocol": "consumer"},
}
ALL = [tp(number) for number in range(4)]


def until(ready: Callable[[], bool], *consumers: KafkaConsumer) -> None:
    """Wait for something, while consumers poll."""
    deadline = time.monotonic() + TIMEOUT
    while not ready():
        assert time.monotonic() < deadline, [consumer.health() for consumer in consumers]
        for consumer in consumers:
            consumer.poll(timeout_ms=20)
        time.sleep(0.002)


def refuse_five(data: bytes) -> bytes:
    if data == b"5":
        raise ValueError("refused")
    return data


# Reading


def test_columns_come_behind_the_last_record_of_an_iteration(broker: Broker, make_consumer: MakeConsumer) -> None:
    fill(broker, 1000, batch=1000)
    consumer = make_consumer("events", group_id="g", enable_auto_commit=False)
    seen = [next(consumer).offset for _ in range(3)]
    while len(seen) < 1000:
        for columns in consumer.poll_batches(timeout_ms=1000).values():
            seen += columns.offsets
    assert seen == list(range(1000))
    consumer.commit()
    assert broker.committed("g", "events", 0) == 1000


def test_columns_come_behind_the_last_record_before_one_that_the_deserializer_refuses(
    broker: Broker, make_consumer: MakeConsumer
) -> None:
    fill(broker, 700, batch=700)
    consumer = make_consumer("events", value_deserializer=refuse_five)
    assert [record.offset for record in read(consumer, 5)] == [0, 1, 2, 3, 4]
    with pytest.raises(RecordDeserializationError):
        read(consumer, 1)
    seen: list[int] = []
    while len(seen) < 695:
        for columns in consumer.poll_batches(timeout_ms=1000).values():
            seen += columns.offsets
    assert seen == list(range(5, 700))


def test_an_error_behind_returned_records_is_met_again_at_its_place_alone(
    broker: Broker, make_consumer: MakeConsumer
) -> None:
    fill(broker, 10)
    fill(broker, 10, 1)
    consumer = make_consumer(value_deserializer=refuse_five)

    def offsets(count: int) -> list[int]:
        return [record.offset for record in read(consumer, count)]

    consumer.assign([tp(0)])
    assert offsets(5) == [0, 1, 2, 3, 4]
    consumer.assign([tp(1)])  # the partition of the error is not read any more
    consumer.seek(tp(1), 6)
    assert offsets(4) == [6, 7, 8, 9]
    consumer.assign([tp(0)])
    consumer.seek(tp(0), 0)
    assert offsets(5) == [0, 1, 2, 3, 4]
    consumer.seek(tp(0), 7)
    assert offsets(3) == [7, 8, 9]
    consumer.seek(tp(0), 0)
    assert offsets(5) == [0, 1, 2, 3, 4]
    lengths = set()
    for _ in range(3):
        with pytest.raises(RecordDeserializationError) as caught:
            offsets(1)
        assert (caught.value.topic_partition, caught.value.offset) == (tp(0), 5)
        lengths.add(len(traceback.extract_tb(caught.value.__traceback__)))
    assert len(lengths) == 1  # it does not grow
    consumer.seek(tp(0), 6)
    assert offsets(4) == [6, 7, 8, 9]


def test_a_wakeup_is_for_the_next_call_that_takes_records(broker: Broker, make_consumer: MakeConsumer) -> None:
    fill(broker, 1)
    consumer = make_consumer()
    consumer.assign([tp(0)])
    consumer.wakeup()
    assert consumer.position(tp(0)) == 0
    assert consumer.end_offsets([tp(0)]) == {tp(0): 1}
    with pytest.raises(WakeupError):
        consumer.poll(timeout_ms=TIMEOUT * 1000)
    assert len(read(consumer, 1)) == 1


# The group


class Notes(ConsumerRebalanceListener):
    """Notes its calls, and commits what was returned when partitions are revoked."""

    def __init__(self, consumer: KafkaConsumer) -> None:
        self.consumer = consumer
        self.calls: list[tuple[Any, ...]] = []
        self.lost: list[TopicPartition] = []

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        self.calls.append(("revoked", sorted(revoked), {tp: self.consumer.position(tp) for tp in revoked}))
        if revoked:
            self.consumer.commit()

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        self.calls.append(("assigned", sorted(assigned)))

    def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        self.lost += lost


@pytest.mark.parametrize("commits", ["automatic", "by the listener"])
@pytest.mark.parametrize("then", ["subscribe", "assign", "close"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_unsubscribe_commits_and_calls_the_listener_and_gives_the_partitions_up(
    broker: Broker, make_consumer: MakeConsumer, protocol: str, then: str, commits: str
) -> None:
    fill(broker, 3)
    consumer = make_consumer(group_id="g", enable_auto_commit=commits == "automatic", **PROTOCOLS[protocol])
    listener = Notes(consumer)
    consumer.subscribe(["events"], listener=listener)
    assert [record.offset for record in read(consumer, 1, max_records=1)] == [0]
    revoked = ("revoked", ALL, {tp(0): 1, tp(1): 0, tp(2): 0, tp(3): 0})
    joined = [*([("revoked", [], {})] if protocol == "eager" else []), ("assigned", ALL)]
    expected = [*joined, revoked]
    consumer.unsubscribe()
    assert consumer.assignment() == set()
    if then == "close":
        consumer.close()
        assert broker.committed("g", "events") == 1
    else:
        if then == "subscribe":
            consumer.subscribe(["events"], listener=listener)
            expected += joined
        else:
            until(lambda: not broker.group_members("g"))
            consumer.assign([tp(0)])
        assert [record.offset for record in read(consumer, 1, max_records=1)] == [1]
        consumer.commit()
        assert broker.committed("g", "events") == 2
    assert listener.calls == expected


def test_a_commit_after_the_group_has_removed_the_member_says_so(
    broker: Broker, make_consumer: MakeConsumer, face: str
) -> None:
    fill(broker, 5)
    consumer = make_consumer(
        group_id="g", enable_auto_commit=False, heartbeat_interval_ms=50, session_timeout_ms=30_000
    )
    listener = Notes(consumer)
    consumer.subscribe(["events"], listener=listener)
    read(consumer, 5)
    broker.expire_member("g")
    if face == "asyncio":  # whose task has given them up before the application asks
        until(lambda: bool(listener.lost))
    with pytest.raises(CommitFailedError):
        consumer.commit()
    assert broker.committed("g", "events", 0) is None
    assert [record.offset for record in read(consumer, 5)] == [0, 1, 2, 3, 4]
    consumer.commit()
    assert broker.committed("g", "events", 0) == 5
    assert sorted(listener.lost) == ALL


@pytest.mark.parametrize("call", ["subscribe", "unsubscribe"])
@pytest.mark.parametrize("protocol", ["eager", "consumer"])
def test_a_consumer_that_polled_too_late_may_subscribe_to_something_else(
    broker: Broker, make_consumer: MakeConsumer, protocol: str, call: str
) -> None:
    """It is out of the group until it polls."""
    broker.create_topic("other")
    broker.append("other", b"x")
    consumer = make_consumer("events", group_id="g", max_poll_interval_ms=1500, **PROTOCOLS[protocol])
    until(lambda: bool(consumer.assignment()), consumer)
    until(lambda: not broker.group_members("g"))
    if call == "unsubscribe":
        consumer.unsubscribe()
    consumer.subscribe(["other"])
    assert [record.topic for record in read(consumer, 1)] == ["other"]


@pytest.mark.parametrize("protocol", ["eager", "consumer"])
def test_close_during_the_first_join_leaves_the_group(
    broker: Broker, make_consumer: MakeConsumer, protocol: str
) -> None:
    joins = "ConsumerGroupHeartbeat" if protocol == "consumer" else "JoinGroup"
    consumer = make_consumer(group_id="g", **PROTOCOLS[protocol])
    broker.delay(joins, 0.3, times=1)
    consumer.subscribe(["events"])
    consumer.poll(timeout_ms=0)
    until(lambda: any(seen.name == joins for seen in broker.requests))
    consumer.close()
    deadline = time.monotonic() + 20  # less than a session
    while broker.group_members("g"):
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.slow
def test_a_member_that_takes_a_record_now_and_then_stays(broker: Broker, make_consumer: MakeConsumer) -> None:
    """Each record counts for max_poll_interval_ms, also of those that were fetched together."""
    fill(broker, 20, batch=20)
    limit, pause = 2.7, 1.3  # at the limit the application has a second more
    consumer = make_consumer("events", group_id="g", max_poll_interval_ms=limit * 1000)
    offsets = [next(consumer).offset]
    generation = consumer.group_metadata().generation_id
    took, longest = time.monotonic(), 0.0
    while len(offsets) < 5:
        time.sleep(pause)
        offsets.append(next(consumer).offset)
        took, longest = time.monotonic(), max(longest, time.monotonic() - took)
    if longest > limit - 0.5:
        pytest.skip(f"the machine was busy: {longest:.1f} s between two records")
    assert offsets == list(range(5))
    assert consumer.group_metadata().generation_id == generation
