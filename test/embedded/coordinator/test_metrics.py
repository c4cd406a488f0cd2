"""What a consumer measures of its membership, under the names that dashboards know."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kafka import KafkaConsumer
from kafka.broker import Broker

FACES = "both"

PATIENCE = 30


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_joins_heartbeats_and_commits_are_measured(protocol: str) -> None:
    options: dict[str, Any] = {"group_id": "g", "auto_offset_reset": "earliest", "group_protocol": protocol}
    if protocol == "classic":
        options["heartbeat_interval_ms"] = 50
    with Broker(topics={"t": 4}, configs={"group.consumer.heartbeat.interval.ms": 50}) as broker:
        broker.append("t", b"x", partition=0)
        with KafkaConsumer("t", bootstrap_servers=broker.bootstrap_servers, **options) as consumer:
            deadline = time.monotonic() + PATIENCE

            read: list[Any] = []

            def found() -> Any:
                assert time.monotonic() < deadline, consumer.health()
                read.extend(consumer.poll(timeout_ms=50).values())
                return consumer.metrics()["consumer-coordinator-metrics"]

            while not read or found()["heartbeat-rate"] == 0 or found()["assigned-partitions"] != 4:
                found()
            consumer.commit()
            measured = found()
    assert measured["heartbeat-response-time-max"] > 0
    assert 0 <= measured["last-heartbeat-seconds-ago"] < PATIENCE
    assert measured["commit-rate"] > 0
    assert 0 < measured["commit-latency-avg"] <= measured["commit-latency-max"]
    if protocol == "classic":  # in the other there are no rounds
        assert measured["join-rate"] > 0
        assert measured["sync-rate"] > 0
        assert 0 < measured["join-time-avg"] <= measured["join-time-max"]
        assert 0 < measured["sync-time-avg"] <= measured["sync-time-max"]
