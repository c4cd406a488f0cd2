"""What a producer keeps for each broker that it sends to."""

from __future__ import annotations

from typing import Any

import pytest

from kafka._core.client import PRODUCE
from kafka.errors import UnsupportedVersionError
from kafka.testing import SILENCE
from test.unit.producer.memory_cluster import Cluster


def refresh(producer: Any) -> None:
    producer._driver.run(producer.core.client.refresh(producer.core.now() + 10))


def test_a_throttle_is_waited_for_with_one_timer(make_producer, monkeypatch):
    cluster = Cluster({"events": 50})
    producer = make_producer(cluster, linger_ms=0)
    cluster.throttle_ms = 60_000
    producer.send("events", b"x").get(1)
    cluster.throttle_ms = 0
    loop = producer.core.loop
    call_later, timers = loop.call_later, []
    monkeypatch.setattr(loop, "call_later", lambda *args: timers.append(args) or call_later(*args))
    futures = []
    for partition in range(50):
        futures.append(producer.send("events", b"x", partition=partition))
        producer.rest(0.5)
    assert len(timers) == 1
    assert not any(future.is_done for future in futures)
    producer.rest(40)
    assert all(future.succeeded() for future in futures)


def test_a_throttle_that_begins_again_is_waited_for_again(make_producer):
    cluster = Cluster({"events": 1})
    producer = make_producer(cluster, linger_ms=0)
    cluster.throttle_ms = 10_000
    times = []
    for _ in range(3):
        producer.send("events", b"x").get(60)
        times.append(cluster.now)
    assert times[1] - times[0] >= 10
    assert times[2] - times[1] >= 10


def test_a_broker_that_has_left_the_cluster_is_forgotten(make_producer):
    cluster = Cluster({"events": 3}, nodes=3)
    producer = make_producer(cluster)
    for partition in range(3):
        producer.send("events", b"x", partition=partition).get(10)
    assert sorted(producer.core.sender._sinks) == [0, 1, 2]
    cluster.advertised = {0}
    cluster.leaders = {("events", 1): 0, ("events", 2): 0}
    refresh(producer)
    assert sorted(producer.core.sender._sinks) == [0]
    for partition in range(3):
        producer.send("events", b"y", partition=partition).get(10)
    cluster.advertised, cluster.leaders = {0, 1, 2}, {}
    refresh(producer)
    assert [producer.send("events", b"z", partition=at).get(10).offset for at in range(3)] == [2, 2, 2]
    assert sorted(producer.core.sender._sinks) == [0, 1, 2]


def test_a_broker_that_owes_an_answer_is_not_forgotten(make_producer):
    cluster = Cluster({"events": 2}, nodes=2)
    producer = make_producer(cluster, request_timeout_ms=5000, linger_ms=0)
    producer.send("events", b"x", partition=1).get(10)
    cluster.script.append(SILENCE)
    future = producer.send("events", b"y", partition=1)
    producer.rest(0.1)
    cluster.advertised, cluster.leaders = {0}, {("events", 1): 0}
    refresh(producer)
    assert sorted(producer.core.sender._sinks) == [1]
    assert future.get(30).partition == 1
    refresh(producer)
    assert sorted(producer.core.sender._sinks) == [0]


def test_records_for_a_broker_without_a_version_of_produce_fail_alone(make_producer):
    cluster = Cluster({"events": 2}, nodes=2)
    producer = make_producer(cluster, linger_ms=0)
    assert producer.send("events", b"x", partition=1).get(10).offset == 0
    link = producer.core.client.link(1, PRODUCE)
    link.versions.ranges = {**link.versions.ranges, 0: (90, 99)}
    link.versions._newest.clear()
    with pytest.raises(UnsupportedVersionError, match="versions 90-99"):
        producer.send("events", b"x", partition=1).get(10)
    assert producer.send("events", b"x", partition=0).get(10).offset == 0
