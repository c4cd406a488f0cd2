"""A broker for each test, and consumers that are closed with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from kafka.broker import Broker
from kafka.consumer import KafkaConsumer

MakeConsumer = Callable[..., KafkaConsumer]


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    return {"nodes": 2, "topics": {"events": 4}}


@pytest.fixture
def make_consumer(broker: Broker) -> Iterator[MakeConsumer]:
    """Makes consumers of the broker that read from the beginning."""
    with ExitStack() as opened:

        def make(*topics: str, **configs: Any) -> KafkaConsumer:
            chosen = {
                "bootstrap_servers": broker.bootstrap_servers,
                "auto_offset_reset": "earliest",
                "consumer_timeout_ms": 30_000,
                "retry_backoff_ms": 10,
                "reconnect_backoff_ms": 10,
                **configs,
            }
            consumer = KafkaConsumer(*topics, **chosen)
            opened.callback(consumer.close, timeout_ms=2000)
            return consumer

        yield make
