"""A cluster for the module's tests, topics of their own, and producers that are closed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka import KafkaProducer
from kafka.broker import Broker

WAIT = 60


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker(nodes=3, seed=1) as broker:
        yield broker


@pytest.fixture
def broker(shared: Broker, request: pytest.FixtureRequest) -> Iterator[Broker]:
    """The broker that all tests share; a broker of the test's alone where a marker says how it is made."""
    if request.node.get_closest_marker("kafka_broker"):
        yield request.getfixturevalue("kafka_broker")
        return
    yield shared
    shared.clear_faults()
    shared.forget_requests()


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    name = re.sub(r"[^\w.-]", "_", request.node.name)[:200]
    broker.create_topic(name)
    return name


@pytest.fixture
def make(broker: Broker) -> Iterator[Callable[..., KafkaProducer]]:
    made: list[KafkaProducer] = []

    def make(**configs: Any) -> KafkaProducer:
        configs.setdefault("bootstrap_servers", broker.bootstrap_servers)
        configs.setdefault("retry_backoff_ms", 5)
        configs.setdefault("reconnect_backoff_ms", 5)
        configs.setdefault("reconnect_backoff_max_ms", 20)
        producer = KafkaProducer(**configs)
        made.append(producer)
        return producer

    yield make
    for producer in made:
        producer.close(timeout=5)
