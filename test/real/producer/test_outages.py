"""KafkaProducer while brokers of a real cluster are killed, restarted, frozen, and all away.

Each test judges by the whole log afterwards (load.py). The long forms are marked soak; what they gave is in
docs/reliability.rst.
"""

from __future__ import annotations

import resource
import time
from pathlib import Path
from typing import Any

import pytest

from kafka import KafkaProducer
from kafka.errors import BufferExhaustedError, KafkaTimeoutError
from kafka.producer.future import FutureRecordMetadata
from test.real.kafka_process import KafkaCluster
from test.real.producer.load import (
    PAD,
    Judgement,
    Load,
    judge,
    kill_the_leader,
    new_topic,
    restart_the_leader,
    start_everything,
    stop_everything,
    until,
    wait_for_another_leader,
    wait_in_sync,
)

SMALL = 8_000_000
"""buffer_memory, less than an outage of seconds fills."""


@pytest.fixture
def three(kafka_cluster: KafkaCluster) -> KafkaCluster:
    return kafka_cluster


@pytest.fixture(params=[True, False], ids=["idempotent", "plain"])
def idempotent(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def say(title: str, load: Load, found: Judgement, **more: object) -> None:
    """The figures, for docs/reliability.rst: shown with -rP or -s."""
    print(f"\n{title}: {load.sent} sent, {found}, longest send() {load.longest_send:.1f} s, {more}")


def rss_kb() -> int:
    """What this process has in memory now."""
    return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * resource.getpagesize() // 1024


def bounce(three: KafkaCluster, topic: str, count: int, rounds: int, *, idempotent: bool, rate: int) -> None:
    new_topic(three, topic)
    with Load(three, topic, count, rate=rate, enable_idempotence=idempotent) as load:
        for _ in range(rounds):
            for hurt in (kill_the_leader, restart_the_leader):
                before = load.sent
                hurt(three, topic)
                assert before < load.sent < count, "nothing was sent meanwhile"
        took = load.finish()
        found = judge(three, topic, load, exactly_once=idempotent)
        say(f"{rounds} kills and {rounds} restarts", load, found, finish=round(took, 1))
        assert (found.written, found.unknown, found.refused) == (count, 0, 0)
    if rounds == 1:
        return
    # P1: readable after any single crash.
    node = three.leader(topic)
    three.kill(node)
    try:
        wait_for_another_leader(three, topic, node)
        assert judge(three, topic, load, exactly_once=idempotent).written == count
    finally:
        three.start(node)
        wait_in_sync(three, topic)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_leader_that_is_killed_and_one_that_is_restarted_cost_no_record(three: KafkaCluster) -> None:
    bounce(three, "bounce", 20_000, 1, idempotent=True, rate=1000)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_five_kills_and_five_restarts_of_the_leader(three: KafkaCluster, idempotent: bool) -> None:
    bounce(three, f"bounce-{idempotent}", 200_000, 5, idempotent=idempotent, rate=2000)


def freeze(three: KafkaCluster, topic: str, count: int, seconds: float, *, idempotent: bool, rate: int) -> None:
    new_topic(three, topic)
    with Load(three, topic, count, rate=rate, enable_idempotence=idempotent) as load:
        until(lambda: load.sent > count // 10, "flow of records")
        node = three.leader(topic)
        three.pause(node)
        try:
            began = time.monotonic()
            until(lambda: time.monotonic() - began > seconds, "end of the pause")
            running = load.sent
            assert running < count
        finally:
            three.resume(node)
        took = load.finish()
        found = judge(three, topic, load, exactly_once=idempotent)
        say(f"{seconds} s frozen", load, found, finish=round(took, 1))
    assert (found.written, found.unknown, found.refused) == (count, 0, 0)
    wait_in_sync(three, topic)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_frozen_leader_costs_no_record(three: KafkaCluster) -> None:
    freeze(three, "frozen", 10_000, 8.0, idempotent=True, rate=1500)  # another leads after 6 s


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_a_leader_that_is_frozen_for_twenty_seconds(three: KafkaCluster, idempotent: bool) -> None:
    freeze(three, f"frozen-{idempotent}", 100_000, 20.0, idempotent=idempotent, rate=3000)


def outage(three: KafkaCluster, topic: str, count: int, seconds: float, *, idempotent: bool) -> None:
    new_topic(three, topic)
    lost = three.create_topic(f"{topic}-lost", replicas=3)
    memory: dict[str, Any] = {"buffer_memory": SMALL, "enable_idempotence": idempotent}
    with (
        impatient(three) as hasty,
        Load(three, topic, count, rate=20_000, **memory) as load,
    ):
        assert hasty.send(lost, b"before").get(timeout=30).offset == 0
        until(lambda: load.sent > count // 20, "flow of records")
        stop_everything(three)
        began = time.monotonic()
        # P9: back-pressure, then a clear error. P3: an outcome in time. P8: it says why.
        until(lambda: load.producer.health()["buffer_waited_for"], "back-pressure")
        before, turns = rss_kb(), load.producer._core.loop.turns
        futures: list[FutureRecordMetadata] = []
        with pytest.raises(BufferExhaustedError):
            fill(hasty, lost, futures)
        health = load.producer.health()
        assert not health["ok"]
        assert any("refused" in str(broker["error"]) for broker in health["brokers"].values()), health
        assert sum(entry["records"] for entry in health["partitions"].values()) * len(PAD) < SMALL
        until(lambda: all(future.is_done for future in futures), "outcome", seconds=30)
        assert all(isinstance(future.exception, KafkaTimeoutError) for future in futures)
        until(lambda: time.monotonic() - began > seconds, "end of the outage")
        grown = rss_kb() - before
        turns_per_second = (load.producer._core.loop.turns - turns) / (time.monotonic() - began)
        assert grown < 20_000, f"{grown} kB more than when the buffer was full"
        assert turns_per_second < 300
        start_everything(three, topic)
        wait_in_sync(three, lost)  # what is sent there has 5 s
        took = load.finish()
        found = judge(three, topic, load, exactly_once=idempotent)
        figures = {"grown_kb": grown, "turns_per_second": round(turns_per_second), "finish": round(took, 1)}
        say(f"all down for {seconds} s", load, found, **figures)
        # P4: none of those that failed is there; P8: the next one is.
        assert not any(future.exception.outcome_unknown for future in futures)  # type: ignore[union-attr]
        assert hasty.send(lost, b"after").get(timeout=30).offset == 1
    assert (found.written, found.unknown, found.refused) == (count, 0, 0)
    assert load.longest_send > seconds * 0.5


def fill(producer: KafkaProducer, topic: str, futures: list[FutureRecordMetadata]) -> None:
    """Send until there is no room."""
    while len(futures) < 10_000:
        futures.append(producer.send(topic, b"x" * 1000))


def impatient(cluster: KafkaCluster) -> KafkaProducer:
    """A producer that soon gives up."""
    return KafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers,
        buffer_memory=100_000,
        max_block_ms=2000,  # a busy machine may take a second for the first record
        delivery_timeout_ms=5000,
        request_timeout_ms=2000,
    )


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_an_outage_of_the_cluster_blocks_and_loses_nothing(three: KafkaCluster) -> None:
    outage(three, "outage", 120_000, 3.0, idempotent=True)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_an_outage_of_the_cluster_for_a_minute(three: KafkaCluster, idempotent: bool) -> None:
    outage(three, f"outage-{idempotent}", 200_000, 60.0, idempotent=idempotent)
