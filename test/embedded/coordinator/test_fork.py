"""A process that forks while a consumer of it is in a group: the parent stays what it was, the child is told."""

from __future__ import annotations

import multiprocessing
import time

import pytest

from kafka.broker import Broker
from kafka.consumer.group import KafkaConsumer
from kafka.structs import TopicPartition

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of forks beside threads

CALLS = {
    "poll": lambda consumer: consumer.poll(timeout_ms=20_000),
    "next": next,
    "commit": lambda consumer: consumer.commit(),
    "committed": lambda consumer: consumer.committed(TopicPartition("t", 0)),
    "unsubscribe": lambda consumer: consumer.unsubscribe(),
    "seek_to_end": lambda consumer: (consumer.seek_to_end(), consumer.poll(timeout_ms=20_000)),
}


def _in_child(consumer, pipe):
    found = {}
    for name, call in CALLS.items():
        began = time.monotonic()
        try:
            call(consumer)
        except Exception as error:
            found[name] = (type(error).__name__, str(error), time.monotonic() - began)
    consumer.close()
    consumer.close()
    pipe.send(found)
    pipe.close()


def _fork(consumer):
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=_in_child, args=(consumer, there))
    child.start()
    assert here.poll(60)
    found = here.recv()
    child.join(30)
    assert child.exitcode == 0
    here.close()
    there.close()
    return found


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_child_gets_an_error_and_the_parent_stays_in_its_group(protocol):
    config = {"group_protocol": protocol, "group_id": "g", "auto_offset_reset": "earliest"}
    if protocol == "classic":
        config["heartbeat_interval_ms"] = 50
    with Broker(topics={"t": 2}, configs={"group.consumer.heartbeat.interval.ms": 50}) as broker:
        broker.append_many("t", [f"{number}".encode() for number in range(10)], partition=0)
        with KafkaConsumer("t", bootstrap_servers=broker.bootstrap_servers, max_poll_records=4, **config) as consumer:
            records = _read(consumer, 4)
            before = consumer.group_metadata()
            broker.forget_requests()
            found = _fork(consumer)
            assert {name: kind for name, (kind, _, _) in found.items()} == dict.fromkeys(CALLS, "ForkedClientError")
            assert all("Create the client in the child" in text for _, text, _ in found.values())
            assert all(seconds < 15 for _, _, seconds in found.values())  # at once; what waits, waits for 20 and more
            # The parent reads on, commits, and nobody left or joined.
            records += _read(consumer, 6)
            consumer.commit()
            assert [record.value for record in records] == [f"{number}".encode() for number in range(10)]
            assert consumer.committed(TopicPartition("t", 0)) == 10
            assert consumer.group_metadata() == before
            asked = [type(request.request).__name__ for request in broker.requests]
            assert not [name for name in asked if name.startswith(("LeaveGroup", "JoinGroup", "SyncGroup"))]
            assert list(broker.group_members("g")) == [before.member_id]


def _go_on_in_child(iteration, pipe):
    try:
        pipe.send([record.offset for record in iteration])
    except Exception as error:
        pipe.send(type(error).__name__)
    pipe.close()


def test_an_iteration_ends_in_the_child_and_continues_in_the_parent():
    with Broker(topics={"t": 1}) as broker:
        broker.append_many("t", [f"{number}".encode() for number in range(10)], partition=0)
        config = {"auto_offset_reset": "earliest", "consumer_timeout_ms": 10_000}
        with KafkaConsumer("t", bootstrap_servers=broker.bootstrap_servers, **config) as consumer:
            iteration = iter(consumer)
            assert [next(iteration).offset for _ in range(3)] == [0, 1, 2]
            context = multiprocessing.get_context("fork")
            here, there = context.Pipe()
            child = context.Process(target=_go_on_in_child, args=(iteration, there))
            child.start()
            assert here.poll(60)
            assert here.recv() == "ForkedClientError"
            child.join(30)
            assert child.exitcode == 0
            assert [next(iteration).offset for _ in range(7)] == [3, 4, 5, 6, 7, 8, 9]
            here.close()
            there.close()


def _read(consumer, count):
    records = []
    deadline = time.monotonic() + 20
    while len(records) < count:
        for batch in consumer.poll(timeout_ms=500).values():
            records += batch
        assert time.monotonic() < deadline
    return records
