"""How long close() and unsubscribe() take, whatever is down, and what they still do."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from kafka.consumer import KafkaConsumer
from kafka.errors import CoordinatorNotAvailableError
from test.unit.consumer.scripted import T0, Cluster, MakeConsumer, read, rest

A_FEW_SECONDS = 6.0
DEFAULT = 30.0
AT_ONCE = 2.0  # what a broker that stays silent is given for the end of a fetch session, and a bit


def member(cluster: Cluster, make: MakeConsumer, **configs: Any) -> KafkaConsumer:
    """A member of a group that has something to commit."""
    consumer = make("t", group_id="g", **configs)
    cluster.fill(10)
    read(consumer, 10)
    return consumer


def duration(cluster: Cluster, call: Any) -> float:
    before = cluster.now
    call()
    return cluster.now - before


@pytest.mark.parametrize("end", ["stop", "vanish"])
@pytest.mark.parametrize("call", [KafkaConsumer.close, KafkaConsumer.unsubscribe])
def test_without_any_broker_it_takes_a_few_seconds(
    cluster: Cluster, make: MakeConsumer, caplog: pytest.LogCaptureFixture, end: str, call: Any
) -> None:
    consumer = member(cluster, make)
    cluster.broker.stop() if end == "stop" else cluster.vanish()
    assert 1 < duration(cluster, lambda: call(consumer)) < A_FEW_SECONDS
    assert "no broker could be reached for 5 seconds" in caplog.text
    assert not cluster.committed


def test_a_broker_that_is_back_within_these_seconds_gets_the_commit(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = member(cluster, make)
    cluster.broker.stop()
    assert cluster.loop is not None
    cluster.loop.call_later(3.0, cluster.broker.start)
    assert duration(cluster, consumer.close) < A_FEW_SECONDS
    assert cluster.committed[T0] == 10
    assert cluster.asked("LeaveGroup")


@pytest.mark.parametrize("call", [KafkaConsumer.close, KafkaConsumer.unsubscribe])
def test_brokers_that_do_not_answer_are_waited_for_until_the_default_timeout(
    cluster: Cluster, make: MakeConsumer, call: Any
) -> None:
    consumer = member(cluster, make, request_timeout_ms=40_000, default_api_timeout_ms=90_000)
    cluster.go_silent()
    assert duration(cluster, lambda: call(consumer)) < DEFAULT + AT_ONCE


def test_a_coordinator_that_is_not_there_is_waited_for_until_the_default_timeout(
    cluster: Cluster, make: MakeConsumer
) -> None:
    consumer = member(cluster, make)
    cluster.script["OffsetCommit"] = deque([CoordinatorNotAvailableError.errno] * 10_000)
    assert duration(cluster, consumer.close) < DEFAULT + AT_ONCE


def test_a_shorter_default_api_timeout_counts_for_the_end_too(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = member(cluster, make, request_timeout_ms=2000, default_api_timeout_ms=3000)
    cluster.go_silent()
    assert duration(cluster, consumer.close) < 3.0 + AT_ONCE


def test_a_timeout_that_is_given_is_used_up_also_without_any_broker(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = member(cluster, make)
    cluster.broker.stop()
    assert cluster.loop is not None
    cluster.loop.call_later(40.0, cluster.broker.start)
    assert 40 <= duration(cluster, lambda: consumer.close(timeout_ms=60_000)) < 60
    assert cluster.committed[T0] == 10


@pytest.mark.parametrize("end", ["stop", "vanish", "silence"])
def test_a_timeout_that_is_given_is_the_longest(cluster: Cluster, make: MakeConsumer, end: str) -> None:
    consumer = member(cluster, make)
    {"stop": cluster.broker.stop, "vanish": cluster.vanish, "silence": cluster.go_silent}[end]()
    assert duration(cluster, lambda: consumer.close(timeout_ms=1500)) <= 2.0


def test_a_consumer_without_a_group_ends_though_no_broker_answers(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = make("t")
    cluster.fill(10)
    read(consumer, 10)
    rest(consumer, 0.6)
    cluster.go_silent()
    assert duration(cluster, consumer.close) < AT_ONCE


def test_a_consumer_with_nothing_to_commit_ends_at_once(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = make("t", group_id="g", enable_auto_commit=False)
    cluster.fill(10)
    read(consumer, 10)
    cluster.broker.stop()
    assert duration(cluster, consumer.close) < AT_ONCE


def test_a_closed_consumer_still_has_its_metrics_and_no_connection(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = member(cluster, make)
    assert consumer.bootstrap_connected()
    consumer.close()
    assert not consumer.bootstrap_connected()
    assert consumer.metrics()["consumer-fetch-manager-metrics"]["records-consumed-total"] == 10
    assert consumer.health()["closed"]
