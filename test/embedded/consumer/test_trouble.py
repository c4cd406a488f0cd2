"""What goes wrong, and how the consumer recovers or says what it is."""

from __future__ import annotations

import copy
import gc
import json
import os
import pickle
import signal
import threading
import time
import warnings
from typing import Any

import pytest

from kafka.broker import Broker
from kafka.broker.faults import CLOSE, Exchange
from kafka.consumer import KafkaConsumer
from kafka.errors import (
    CorruptRecordError,
    IllegalStateError,
    KafkaConnectionError,
    LogTruncationError,
    NoOffsetForPartitionError,
    NotLeaderForPartitionError,
    OffsetOutOfRangeError,
    RecordDeserializationError,
    TopicAuthorizationFailedError,
    WakeupError,
)
from test.embedded import faces
from test.embedded.holding import held_up
from test.embedded.threads import nothing_left

from .conftest import MakeConsumer
from .reading import TIMEOUT, fill, read, tp

FACES = "both"


def test_a_hint_about_a_partition_that_is_not_read_any_more_has_no_effect(
    broker: Broker, make_consumer: MakeConsumer
) -> None:
    for number in (0, 1):
        broker.move_leader(tp(number), 1)
        fill(broker, 1, number)
    consumer = make_consumer(fetch_max_wait_ms=20_000)
    consumer.assign([tp(0), tp(1)])
    assert len(read(consumer, 2)) == 2
    assert consumer.poll(timeout_ms=100) == {}  # the request for both waits at the broker now
    consumer.assign([tp(0)])
    broker.move_leader(tp(1), 2)  # the broker ends the long poll: it leads this one no more, and tells who does
    fill(broker, 1)
    assert len(read(consumer, 1)) == 1


def test_the_new_leader_is_asked_once_the_old_one_has_answered_a_fetch_from_before(
    broker: Broker, make_consumer: MakeConsumer
) -> None:
    """Nothing but that answer was left to wake anybody: the partition stood still until metadata was asked for anew."""
    fill(broker, 10)
    consumer = make_consumer(fetch_max_wait_ms=50)
    consumer.assign([tp()])
    read(consumer, 10)
    client, old = consumer._core.client, broker.leader("events")  # type: ignore[union-attr]

    def find_nothing_wrong(exchange: Exchange) -> None:
        for topic in exchange.reply.responses:
            for data in topic.partitions:
                data.error_code, data.records = 0, None

    broker.intercept("Fetch", find_nothing_wrong, node=old)
    with held_up(broker, "Fetch", node=old):
        broker.forget_requests()
        deadline = time.monotonic() + TIMEOUT
        while not broker.requests:
            assert not consumer.poll(timeout_ms=0)
            assert time.monotonic() < deadline
            time.sleep(0.005)
        broker.move_leader(tp(), 3 - old)
        broker.append("events", b"at the new one")
        client.loop.call_soon(client.cluster.request_update)
        while client.cluster.leader_for_partition(tp()) == old:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        found = [record for records in consumer.poll(timeout_ms=100).values() for record in records]
    # On a busy machine the answer of before comes before the poll has begun.
    found = found or read(consumer, 1)
    assert [record.value for record in found] == [b"at the new one"]


def test_a_crashed_broker_is_replaced_and_the_whole_cluster_may_be_away(
    broker: Broker, make_consumer: MakeConsumer
) -> None:
    for partition in range(4):
        fill(broker, 10, partition)
    consumer = make_consumer("events", request_timeout_ms=2000, session_timeout_ms=1000, fetch_max_wait_ms=100)
    read(consumer, 40)
    broker.stop_node(1, crash=True)
    broker.stop_node(2, crash=True)

    deadline = time.monotonic() + TIMEOUT
    while not all(entry["problem"] for entry in consumer.health()["partitions"].values()):
        assert consumer.poll(timeout_ms=100) == {}
        assert time.monotonic() < deadline, consumer.health()
    assert not consumer.health()["ok"]
    broker.start_node(1)
    broker.start_node(2)
    for partition in range(4):
        broker.append("events", b"back", partition=partition)
    assert sorted(record.partition for record in read(consumer, 4)) == [0, 1, 2, 3]
    assert consumer.health()["ok"], consumer.health()


def test_a_topic_that_is_created_again_is_read_from_its_beginning(broker: Broker, make_consumer: MakeConsumer) -> None:
    fill(broker, 10)
    consumer = make_consumer(metadata_max_age_ms=200, fetch_max_wait_ms=50)
    consumer.assign([tp()])
    read(consumer, 10)
    broker.delete_topic("events")
    consumer.poll(timeout_ms=50)
    broker.create_topic("events", 4)
    broker.append("events", b"new")
    assert [(record.offset, record.value) for record in read(consumer, 1)] == [(0, b"new")]


def create_again(broker: Broker, consumer: KafkaConsumer, partitions: int, count: int) -> None:
    """Delete the topic, create it again, and wait until the consumer's metadata has the new one."""
    client = consumer._core.client  # type: ignore[union-attr]
    before = client.cluster.topic_id("events")
    broker.delete_topic("events")
    broker.create_topic("events", partitions)
    fill(broker, count)
    client.loop.call_soon(client.cluster.request_update)
    deadline = time.monotonic() + TIMEOUT
    while client.cluster.topic_id("events") in {None, before}:
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize(("partitions", "count"), [(4, 10), (1, 15)])
def test_the_offset_that_a_group_has_committed_of_a_deleted_topic_is_not_the_place_in_the_one_created_again(
    broker: Broker, make_consumer: MakeConsumer, partitions: int, count: int, protocol: str
) -> None:
    """With fewer partitions the group rebalances, and commits what was returned; with the same count of records the
    position is the one that was stored, and must be stored again."""
    fill(broker, 10)
    options = {"group_id": "g", "group_protocol": protocol, "allow_auto_create_topics": False, "fetch_max_wait_ms": 50}
    consumer = make_consumer("events", **options)
    read(consumer, 10)
    consumer.commit()
    create_again(broker, consumer, partitions, count)
    assert broker.committed("g", "events") is None
    assert [record.offset for record in read(consumer, count)] == list(range(count))
    consumer.close()
    assert broker.committed("g", "events") == count


@pytest.mark.parametrize("fetch", [11, 17])
@pytest.mark.parametrize("count", [1, 15])
@pytest.mark.parametrize("reset", ["earliest", "none"])
def test_a_topic_that_is_created_again_between_two_fetches_is_read_from_its_beginning(
    broker: Broker, make_consumer: MakeConsumer, reset: str, count: int, fetch: int
) -> None:
    """Its log goes another way than the one that was read, or reaches beyond it: neither place is where it begins."""
    broker.advertise("Fetch", 0, fetch)
    fill(broker, 10)
    consumer = make_consumer(fetch_max_wait_ms=50, auto_offset_reset=reset, allow_auto_create_topics=False)
    consumer.assign([tp()])
    consumer.seek(tp(), 0)
    read(consumer, 10)
    with held_up(broker, "Fetch"):
        create_again(broker, consumer, partitions=4, count=count)
    if reset == "none":
        for _ in range(2):
            with pytest.raises(LogTruncationError, match="created again") as caught:
                read(consumer, 1)
        assert caught.value.divergent_offsets is None
        consumer.seek(tp(), 0)
    assert [record.offset for record in read(consumer, count)] == list(range(count))


def test_partitions_that_do_not_exist_yet_are_waited_for(broker: Broker, make_consumer: MakeConsumer) -> None:
    consumer = make_consumer(allow_auto_create_topics=False)
    consumer.assign([tp(0, "later")])
    deadline = time.monotonic() + TIMEOUT
    while not consumer.health()["partitions"]["later-0"]["problem"]:
        assert consumer.poll(timeout_ms=100) == {}
        assert time.monotonic() < deadline
    broker.create_topic("later")
    broker.append("later", b"there")
    assert [record.value for record in read(consumer, 1)] == [b"there"]


# Positions outside of the log


@pytest.mark.parametrize(("reset", "offset"), [("earliest", 0), ("latest", 10)])
def test_a_position_beyond_the_log_is_reset_by_policy(
    broker: Broker, make_consumer: MakeConsumer, reset: str, offset: int
) -> None:
    fill(broker, 10)
    consumer = make_consumer(auto_offset_reset=reset, fetch_max_wait_ms=50)
    consumer.assign([tp()])
    consumer.seek(tp(), 1000)
    deadline = time.monotonic() + TIMEOUT
    while consumer.position(tp()) == 1000 and time.monotonic() < deadline:
        consumer.poll(timeout_ms=50, max_records=1)
    broker.append("events", b"last")
    assert consumer.position(tp()) in {offset, offset + 1}


def test_without_a_policy_the_application_gets_the_error_and_continues_by_seeking(
    broker: Broker, make_consumer: MakeConsumer
) -> None:
    fill(broker, 10)
    consumer = make_consumer(auto_offset_reset="none")
    consumer.assign([tp()])
    for _ in range(2):
        with pytest.raises(NoOffsetForPartitionError):
            consumer.poll(timeout_ms=30_000)
    with pytest.raises(NoOffsetForPartitionError):
        consumer.position(tp(), timeout_ms=30_000)
    consumer.seek(tp(), 99)
    for _ in range(2):
        with pytest.raises(OffsetOutOfRangeError):
            consumer.poll(timeout_ms=30_000)
    consumer.seek(tp(), 8)
    assert [record.offset for record in read(consumer, 2)] == [8, 9]


def test_a_duration_resets_to_the_first_record_within_it(broker: Broker, make_consumer: MakeConsumer) -> None:
    now = time.time_ns() // 1_000_000
    broker.append("events", b"old", timestamp_ms=now - 7_200_000)
    broker.append("events", b"recent", timestamp_ms=now - 60_000)
    consumer = make_consumer(auto_offset_reset="by_duration:PT1H")
    consumer.assign([tp()])
    assert [record.value for record in read(consumer, 1)] == [b"recent"]


@pytest.mark.parametrize(("reset", "end"), [("earliest", 6), ("none", 0)])
def test_a_log_that_was_cut_is_noticed(broker: Broker, make_consumer: MakeConsumer, reset: str, end: int) -> None:
    fill(broker, 10)
    cuts: list[object] = []

    def cut(exchange: Exchange) -> None:
        for topic in exchange.reply.responses:
            for data in topic.partitions:
                if data.records and exchange.reply.session_id and len(read_so_far) == 10 and not cuts:
                    cuts.append(data)
                    data.diverging_epoch.epoch, data.diverging_epoch.end_offset = 0, end
                    data.records = None

    read_so_far: list[object] = []
    broker.intercept("Fetch", cut)
    consumer = make_consumer(auto_offset_reset=reset, fetch_max_wait_ms=50)
    consumer.assign([tp()])
    consumer.seek(tp(), 0)
    read_so_far += read(consumer, 10)
    broker.append("events", b"wake up")
    if reset == "none":
        with pytest.raises(LogTruncationError) as caught:
            read(consumer, 1)
        assert caught.value.divergent_offsets is not None
        assert caught.value.divergent_offsets[tp()].offset == end
        consumer.seek(tp(), 6)
    assert [record.offset for record in read(consumer, 5)] == [6, 7, 8, 9, 10]


# Records that cannot be read


def test_a_record_that_the_deserializer_refuses_can_be_stepped_over(
    broker: Broker, make_consumer: MakeConsumer
) -> None:
    for value in (b"1", b"{bad", b"3"):
        broker.append("events", value, key=b"k")
    consumer = make_consumer("events", value_deserializer=json.loads)
    assert [record.value for record in read(consumer, 1)] == [1]
    for _ in range(2):
        with pytest.raises(RecordDeserializationError) as caught:
            consumer.poll(timeout_ms=30_000)
    error = caught.value
    assert (error.topic_partition, error.offset, error.value_bytes, error.key_bytes) == (tp(), 1, b"{bad", b"k")
    assert consumer.position(tp()) == 1
    assert error.topic_partition is not None
    assert error.offset is not None
    consumer.seek(error.topic_partition, error.offset + 1)
    assert [record.value for record in read(consumer, 1)] == [3]


def test_a_refused_record_reaches_the_iteration_too(broker: Broker, make_consumer: MakeConsumer) -> None:
    for value in (b"1", b"x", b"3"):
        broker.append("events", value)
    consumer = make_consumer("events", value_deserializer=int)
    assert next(consumer).value == 1
    with pytest.raises(RecordDeserializationError):
        next(consumer)
    consumer.seek(tp(), 2)
    assert next(consumer).value == 3


def test_stepping_over_a_record_keeps_what_was_fetched_ahead(broker: Broker, make_consumer: MakeConsumer) -> None:
    broker.append_many("events", [b"1", b"{bad", b"3", b"{worse", b"5"])
    consumer = make_consumer("events", value_deserializer=json.loads)
    found = [record.value for record in read(consumer, 1)]
    broker.fail("Fetch", [NotLeaderForPartitionError], times=1000)  # what comes now was fetched before
    for _ in range(2):
        with pytest.raises(RecordDeserializationError) as caught:
            consumer.poll(timeout_ms=30_000)
        consumer.seek(tp(), caught.value.offset + 1)
        assert consumer.position(tp()) == caught.value.offset + 1
        found += [record.value for record in read(consumer, 1)]
    assert found == [1, 3, 5]


def test_deserializers_see_the_topic_and_the_headers(broker: Broker, make_consumer: MakeConsumer) -> None:
    closed: list[object] = []

    class Versioned:
        def deserialize(self, topic: str, headers: Any, data: bytes) -> Any:
            return topic, dict(headers).get("version"), data

        def close(self) -> None:
            closed.append(self)

    broker.append("events", b"a", key=b"k", headers=[("version", b"2")])
    broker.append("events", b"b")
    consumer = make_consumer("events", value_deserializer=Versioned(), key_deserializer=lambda data: data and data[0])
    first, second = read(consumer, 2)
    assert (first.key, first.value) == (107, ("events", b"2", b"a"))
    assert (second.key, second.value) == (None, ("events", None, b"b"))
    consumer.close()
    assert len(closed) == 1


def test_a_damaged_batch_is_refused_after_what_came_before(broker: Broker, make_consumer: MakeConsumer) -> None:
    fill(broker, 20)

    def damage(exchange: Exchange) -> None:
        for topic in exchange.reply.responses:
            for data in topic.partitions:
                if data.records:
                    spoilt = bytearray(data.records)
                    spoilt[-1] ^= 1
                    data.records = bytes(spoilt)

    broker.intercept("Fetch", damage)
    consumer = make_consumer("events")
    assert [record.offset for record in read(consumer, 10)] == list(range(10))
    for _ in range(2):
        with pytest.raises(CorruptRecordError) as caught:
            consumer.poll(timeout_ms=30_000)
    assert caught.value.topic_partition == tp()
    broker.clear_faults()
    consumer.seek(tp(), 10)
    assert [record.offset for record in read(consumer, 10)] == list(range(10, 20))


def test_a_record_larger_than_what_is_asked_for_is_delivered(broker: Broker, make_consumer: MakeConsumer) -> None:
    broker.append("events", b"x" * 200_000)
    broker.append("events", b"small")
    consumer = make_consumer("events", max_partition_fetch_bytes=1000, fetch_max_bytes=2000)
    assert [len(record.value) for record in read(consumer, 2)] == [200_000, 5]


def test_memory_is_bounded_and_reading_continues(broker: Broker, make_consumer: MakeConsumer) -> None:
    for partition in range(4):
        for _ in range(30):
            broker.append_many("events", [b"x" * 1000] * 10, partition=partition)
    consumer = make_consumer("events", max_partition_fetch_bytes=20_000, fetch_buffer_memory=60_000, max_poll_records=7)
    seen = 0
    while seen < 1200:
        records = consumer.poll(timeout_ms=30_000)
        assert records
        seen += sum(map(len, records.values()))
        held = sum(entry["buffered_bytes"] for entry in consumer.health()["partitions"].values())
        assert held <= 60_000 + 4 * 20_000


def buffered(consumer: KafkaConsumer) -> int:
    return sum(entry["buffered_bytes"] for entry in consumer.health()["partitions"].values())


def test_responses_of_several_brokers_at_once_fit_into_the_memory_together() -> None:
    memory, batch = 200_000, 10_200
    with Broker(nodes=3, topics={"wide": 60}) as broker:
        for partition in range(60):
            broker.append_many("wide", [b"x" * 1000] * 10, partition=partition)
        broker.delay("Fetch", 0.3, times=3)  # so all three requests are in flight before the first response
        with KafkaConsumer(
            "wide",
            bootstrap_servers=broker.bootstrap_servers,
            group_id=None,
            auto_offset_reset="earliest",
            fetch_buffer_memory=memory,
            max_poll_records=1,
        ) as consumer:
            seen = sum(map(len, consumer.poll(timeout_ms=TIMEOUT * 1000).values()))
            while seen < 600:
                # Each of the six connections may bring one batch whole.
                assert buffered(consumer) <= memory + 6 * batch
                seen += sum(map(len, consumer.poll(timeout_ms=2000).values()))


def test_a_broker_without_new_records_does_not_keep_the_others_from_being_asked() -> None:
    """Its request may stay in flight for 20 s, and keeps a part of the memory only."""
    with Broker(nodes=2, topics={"events": 2}) as broker:
        broker.append_many("events", [b"x" * 1000] * 500, partition=0)
        with KafkaConsumer(
            bootstrap_servers=broker.bootstrap_servers,
            group_id=None,
            auto_offset_reset="earliest",
            fetch_buffer_memory=30_000,
            fetch_max_wait_ms=20_000,
        ) as consumer:
            consumer.assign([tp(0), tp(1)])
            began = time.monotonic()
            assert len(read(consumer, 500)) == 500
            assert time.monotonic() - began < 15  # a busy machine adds to it


def test_paused_partitions_that_fill_the_memory_do_not_stop_the_others(
    broker: Broker, make_consumer: MakeConsumer
) -> None:
    for partition in range(3):
        for _ in range(10):
            broker.append_many("events", [b"x" * 1000] * 10, partition=partition)
    consumer = make_consumer(max_partition_fetch_bytes=50_000, fetch_buffer_memory=60_000, max_poll_records=1)
    consumer.assign([tp(0), tp(1)])
    before: list[Any] = []
    while {record.partition for record in before} != {0, 1}:
        before += read(consumer, 1)
    consumer.pause(tp(0), tp(1))
    consumer.assign([tp(0), tp(1), tp(2)])
    assert {record.partition for record in read(consumer, 100)} == {2}
    consumer.resume(tp(0), tp(1))
    records = before + read(consumer, 200 - len(before))
    for partition in (0, 1):
        assert [record.offset for record in records if record.partition == partition] == list(range(100))


# What does not pass


def test_a_topic_that_may_not_be_read_reaches_poll(broker: Broker, make_consumer: MakeConsumer) -> None:
    fill(broker, 10)
    refused: list[Any] = []

    def refuse(exchange: Exchange) -> None:
        for topic in exchange.reply.responses:
            for data in topic.partitions:
                if len(refused) < 2:
                    refused.append(data)
                    data.error_code, data.records = TopicAuthorizationFailedError.errno, None

    broker.intercept("Fetch", refuse)
    consumer = make_consumer(fetch_max_wait_ms=50)
    consumer.assign([tp()])
    with pytest.raises(TopicAuthorizationFailedError) as caught:
        read(consumer, 1)
    assert caught.value.topic_partition == tp()
    with pytest.raises(TopicAuthorizationFailedError):
        next(consumer)
    assert len(read(consumer, 10)) == 10  # the right was given


def test_a_broker_that_left_the_cluster_is_forgotten_and_read_from_when_it_is_back(
    broker: Broker, make_consumer: MakeConsumer
) -> None:
    for number in range(4):
        fill(broker, 10, number)
    consumer = make_consumer(metadata_max_age_ms=100)
    consumer.assign([tp(number) for number in range(4)])
    read(consumer, 40)
    core = consumer._core
    assert core is not None
    connections = core.fetcher._connections
    assert set(connections) == {1, 2}
    deadline = time.monotonic() + TIMEOUT
    broker.stop_node(2)
    while set(connections) != {1}:
        consumer.poll(timeout_ms=50)
        assert time.monotonic() < deadline
    broker.start_node(2)
    broker.move_leader(tp(3), 2)
    fill(broker, 10, 3)
    assert len(read(consumer, 10)) == 10
    assert set(connections) == {1, 2}


# Waking, interrupting, ending


def test_wakeup_ends_the_wait_from_another_thread(make_consumer: MakeConsumer) -> None:
    consumer = make_consumer("events")
    timer = threading.Timer(0.2, consumer.wakeup)
    timer.start()
    before = time.monotonic()
    with pytest.raises(WakeupError):
        consumer.poll(timeout_ms=20_000)
    assert time.monotonic() - before < 15  # a busy machine adds to it
    timer.join()
    assert consumer.poll(timeout_ms=10) == {}
    consumer.wakeup()
    with pytest.raises(WakeupError):
        next(consumer)


@pytest.mark.parametrize("name", ["poll", "iteration"])
def test_wakeup_ends_the_wait_of_who_sleeps_in_the_selector(make_consumer: MakeConsumer, name: str) -> None:
    """Nothing is asked of any broker meanwhile, so nothing else ends that sleep."""
    consumer = make_consumer(consumer_timeout_ms=60_000)
    consumer.assign([tp()])
    consumer.seek(tp(), 0)
    consumer.pause(tp())
    consumer.poll(timeout_ms=700)  # the long poll that was under way has ended
    timer = threading.Timer(0.3, consumer.wakeup)
    timer.start()
    before = time.monotonic()
    with pytest.raises(WakeupError):
        consumer.poll(timeout_ms=60_000) if name == "poll" else next(consumer)
    assert time.monotonic() - before < 45  # a busy machine adds to it
    timer.join()


def test_a_missing_topic_is_logged_once(
    broker: Broker, make_consumer: MakeConsumer, caplog: pytest.LogCaptureFixture
) -> None:
    consumer = make_consumer("evnets", allow_auto_create_topics=False, metadata_max_age_ms=100)
    deadline = time.monotonic() + TIMEOUT
    while len([request for request in broker.requests if request.name == "Metadata"]) < 4:
        consumer.poll(timeout_ms=50)
        assert time.monotonic() < deadline
    assert caplog.text.count("does not have topic 'evnets'") == 1
    health = consumer.health()
    assert not health["ok"]
    assert health["topics"] == {"evnets": "UnknownTopicOrPartitionError"}
    broker.create_topic("evnets")
    broker.append("evnets", b"there")
    assert [record.value for record in read(consumer, 1)] == [b"there"]
    assert consumer.health()["topics"] == {}


@pytest.mark.one_face  # `kafka._core.status` says it for all clients
def test_a_consumer_cannot_be_copied_or_pickled(make_consumer: MakeConsumer) -> None:
    consumer = make_consumer()
    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="a KafkaConsumer cannot be copied or pickled"):
            way(consumer)
    assert consumer.topics() == {"events"}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_consumer_that_is_dropped_ends_though_warnings_are_errors(broker: Broker) -> None:
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers)
    consumer.topics()
    core = consumer._core
    assert core is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del consumer
        gc.collect()
    assert core.closed


def test_partitions_without_a_leader_are_logged_once(
    broker: Broker, make_consumer: MakeConsumer, caplog: pytest.LogCaptureFixture
) -> None:
    consumer = make_consumer()
    consumer.assign([tp()])
    consumer.seek(tp(), 0)
    leader = broker.leader("events", 0)
    broker.stop_node(leader)
    deadline = time.monotonic() + TIMEOUT
    while "events-0: no leader" not in caplog.text:
        assert time.monotonic() < deadline
        consumer.poll(timeout_ms=50)
    broker.start_node(leader)
    fill(broker, 1)
    assert len(read(consumer, 1)) == 1
    assert caplog.text.count("no leader, so") == 1


def test_closing_a_connection_that_is_not_needed_any_more_is_not_logged(
    broker: Broker, make_consumer: MakeConsumer
) -> None:
    consumer = make_consumer()
    consumer.assign([tp()])
    consumer.seek(tp(), 0)
    fill(broker, 1)
    assert len(read(consumer, 1)) == 1
    core = consumer._core
    assert core is not None
    lost = core.client.link(broker.leader("events", 0), "unused")
    lost.error = KafkaConnectionError("the broker was away")
    assert consumer.health()["ok"]
    assert consumer.health()["problems"] == []


def test_iterating_over_nothing_says_so(make_consumer: MakeConsumer) -> None:
    consumer = make_consumer()
    with pytest.raises(IllegalStateError, match=r"call subscribe\(\) or assign\(\) first"):
        next(consumer)
    assert consumer.poll(timeout_ms=10) == {}


def test_ctrl_c_ends_the_wait(make_consumer: MakeConsumer) -> None:
    consumer = make_consumer("events")
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    before = time.monotonic()
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        timer.start()
        consumer.poll(timeout_ms=20_000)
    assert time.monotonic() - before < 15  # a busy machine adds to it; unheard, it would be 20
    timer.join()
    assert consumer.poll(timeout_ms=10) == {}


def test_close_is_bounded_and_leaves_nothing_with_all_brokers_down(broker: Broker, make_consumer: MakeConsumer) -> None:
    with nothing_left():
        consumer = make_consumer("events")
        consumer.poll(timeout_ms=200)
        broker.stop_node(1, crash=True)
        broker.stop_node(2, crash=True)
        before = time.monotonic()
        consumer.close(timeout_ms=500)
        assert time.monotonic() - before < 20  # a busy machine adds to it; unbounded, requests have 30


def test_close_ends_the_sessions_at_the_brokers(broker: Broker, make_consumer: MakeConsumer) -> None:
    fill(broker, 1)
    consumer = make_consumer("events")
    read(consumer, 1)
    consumer.close()
    last = [seen.request for seen in broker.requests if seen.name == "Fetch"][-1]
    assert (last.session_epoch, bool(last.session_id)) == (-1, True)


@pytest.mark.one_face  # embedded/aio has what asyncio warns of
def test_a_forgotten_consumer_warns(broker: Broker) -> None:
    import gc

    consumers = [KafkaConsumer("events", bootstrap_servers=broker.bootstrap_servers)]
    with pytest.warns(ResourceWarning, match="not closed"):
        consumers.clear()
    gc.collect()


def test_an_idle_consumer_makes_no_turns_but_for_its_fetches(broker: Broker, make_consumer: MakeConsumer) -> None:
    consumer = make_consumer("events", fetch_max_wait_ms=500)
    consumer.poll(timeout_ms=500)
    deadline = time.monotonic() + TIMEOUT
    while [entry["position"] for entry in consumer.health()["partitions"].values()] != [0] * 4:
        consumer.poll(timeout_ms=500)
        assert time.monotonic() < deadline, consumer.health()
    broker.forget_requests()
    core = consumer._core
    assert core is not None
    turns = core.loop.turns
    consumer.poll(timeout_ms=2000)
    fetches = sum(seen.name == "Fetch" for seen in broker.requests)
    assert fetches <= 10  # two brokers, two a second
    assert core.loop.turns - turns <= 6 * fetches + 10


def test_replies_cut_in_the_middle_are_asked_for_again(broker: Broker, make_consumer: MakeConsumer) -> None:
    fill(broker, 50)
    count = 0

    def now_and_then(_exchange: Exchange) -> object:
        nonlocal count
        count += 1
        return CLOSE if count % 3 == 0 else None

    broker.intercept("Fetch", now_and_then)
    consumer = make_consumer("events", max_partition_fetch_bytes=300, fetch_max_wait_ms=20)
    assert [record.offset for record in read(consumer, 50)] == list(range(50))


def test_partitions_without_records_do_not_hold_up_one_that_has_many(
    broker: Broker, make_consumer: MakeConsumer
) -> None:
    fill(broker, 1000, 0)
    consumer = make_consumer("events", max_partition_fetch_bytes=500, fetch_max_wait_ms=20_000, max_poll_records=20)
    before = time.monotonic()
    assert [record.offset for record in read(consumer, 1000)] == list(range(1000))
    # Each time its buffer is full the long poll asks for the others alone; its turn must not wait for that to end.
    assert time.monotonic() - before < 20


def test_health_is_what_json_takes_and_counts_the_group(broker: Broker, make_consumer: MakeConsumer) -> None:
    fill(broker, 1)
    consumer = make_consumer("events", group_id="readers")
    assert len(read(consumer, 1)) == 1
    deadline = time.monotonic() + 30
    while not (health := consumer.health())["ok"]:  # the positions of the other partitions may still be looked up
        assert time.monotonic() < deadline, health
        assert not consumer.poll(10)
    assert json.loads(json.dumps(health)) == health
    assert (health["problems"], health["group"]["waiting_for"]) == ([], None)
    assert health["partitions"]["events-0"]["leader"] == broker.leader("events", 0)
    consumer.close()
    assert (consumer.health()["ok"], consumer.health()["closed"]) == (False, True)


@pytest.mark.parametrize("call", ["poll", "poll_batches"])
def test_a_timeout_that_looks_like_seconds_is_logged(make_consumer: MakeConsumer, call: str) -> None:
    consumer = make_consumer("events")
    with pytest.warns(
        UserWarning, match=rf"{call}\(1\.0\) waits for 1 milliseconds.*as in {call}\(1000\) for 1 seconds"
    ) as told:
        getattr(consumer, call)(1.0)
    assert told[0].filename in {__file__, faces.__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for timeout_ms in (1, 0, 0.0, 50.0):
            getattr(consumer, call)(timeout_ms)
