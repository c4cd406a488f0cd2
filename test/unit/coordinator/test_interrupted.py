"""Ctrl-C while poll() does the group's work: what it cuts short, the next poll() does."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from typing import Any

import pytest

from kafka._runtime.application import complete
from kafka.consumer import KafkaConsumer
from kafka.coordinator.states import MemberState
from test.unit.consumer.scripted import T0, T1, Cluster, MakeConsumer, read, rest
from test.unit.producer.test_interrupted import interrupted

UNKNOWN_MEMBER = 25
_CODE = ("kafka/coordinator/", "kafka/consumer/core.py", "kafka/future.py")


def press() -> None:
    signal.raise_signal(signal.SIGINT)


def interrupted_at_each_line(
    prepare: Callable[[int], KafkaConsumer], act: Callable[[Any], object]
) -> Iterator[KafkaConsumer]:
    """Yield a consumer for each line that the call runs, interrupted before that line."""
    for at in count():
        consumer = prepare(at)
        with interrupted(at, press, _CODE) as lines, suppress(KeyboardInterrupt):
            act(consumer._core)
        yield consumer
        consumer.close()
        if lines[0] <= at:
            return


def serve(core: Any) -> None:
    if core.group is not None:
        core.group.polled()
    complete(core._serve())


def test_a_consumer_joins_its_group_whenever_ctrl_c_comes(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(10)
    for consumer in interrupted_at_each_line(lambda at: make("t", group_id=f"g{at}", enable_auto_commit=False), serve):
        assert len(read(consumer, 10)) == 10


@pytest.mark.parametrize("group_id", ["g", None])
def test_a_pattern_finds_its_topics_whenever_ctrl_c_comes(
    cluster: Cluster, make: MakeConsumer, group_id: str | None
) -> None:
    cluster.fill(10)

    def subscribed(_at: int) -> KafkaConsumer:
        consumer = make(group_id=group_id, enable_auto_commit=False)
        consumer.subscribe(pattern="t")
        rest(consumer, 1)  # metadata comes, and the application does not look
        return consumer

    for consumer in interrupted_at_each_line(subscribed, serve):
        assert len(read(consumer, 10)) == 10


def test_a_changed_subscription_reaches_the_group_whenever_ctrl_c_comes(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(10)

    def subscribed(at: int) -> KafkaConsumer:
        consumer = make("u", group_id=f"g{at}", enable_auto_commit=False)
        consumer.poll(timeout_ms=1000)
        consumer.subscribe(["t"])
        return consumer

    for consumer in interrupted_at_each_line(subscribed, serve):
        assert len(read(consumer, 10)) == 10


def test_automatic_commits_continue_whenever_ctrl_c_comes(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(10)

    def with_records(_at: int) -> KafkaConsumer:
        cluster.committed.clear()
        consumer = make("t", group_id="g", auto_commit_interval_ms=1000)
        read(consumer, 10)
        rest(consumer, 2)
        return consumer

    for consumer in interrupted_at_each_line(with_records, serve):
        for _ in range(4):
            rest(consumer, 1)
            consumer.poll(timeout_ms=100)
        assert cluster.committed == {T0: 10, T1: 0}


def joined(consumer: KafkaConsumer) -> None:
    """Have an assignment wait for the application."""
    consumer.poll(timeout_ms=0)
    rest(consumer, 1)


def removed(consumer: KafkaConsumer) -> None:
    """Have the loss of all partitions wait for the application."""
    consumer.poll(timeout_ms=1000)
    rest(consumer, 1.5)


@pytest.mark.parametrize("come_to", [joined, removed])
def test_a_rebalance_continues_whenever_ctrl_c_comes(
    cluster: Cluster, make: MakeConsumer, come_to: Callable[[KafkaConsumer], None]
) -> None:
    cluster.fill(10)

    def waits(at: int) -> KafkaConsumer:
        consumer = make("t", group_id=f"g{at}", enable_auto_commit=False, heartbeat_interval_ms=1000)
        if come_to is removed:
            cluster.script["Heartbeat"] = deque([UNKNOWN_MEMBER])
        come_to(consumer)
        assert consumer._core.check_group().membership.rendezvous  # type: ignore[union-attr]
        return consumer

    for consumer in interrupted_at_each_line(waits, serve):
        assert len(read(consumer, 10)) == 10
        assert consumer._core.check_group().membership.state is MemberState.STABLE  # type: ignore[union-attr]
