"""Clients of each kind, on the face of the test, and the samples that Prometheus's own parser finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, KafkaShareConsumer
from kafka.broker import Broker
from kafka.metrics import prometheus

WAIT = 60


def shown(max_series: int = prometheus.MAX_SERIES) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Return what text() shows: by name and labels, none of them twice."""
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(prometheus.text(max_series)):
        for sample in family.samples:
            labels = tuple(sorted(sample.labels.items()))
            of_name = found.setdefault(sample.name, {})
            assert labels not in of_name, f"{sample.name}{labels} twice"
            of_name[labels] = sample.value
    return found


def value(found: Any, name: str, **labels: str) -> float:
    """Return the one sample of a name that has these labels."""
    (only,) = [number for having, number in found[name].items() if set(labels.items()) <= set(having)]
    return float(only)


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    return {"nodes": 2, "topics": {"orders": 2, "payments": 1}}


@pytest.fixture
def make(broker: Broker, face: str) -> Iterator[Callable[..., Any]]:
    """Makes clients by the name of their kind."""
    with ExitStack() as opened:

        def make(kind: str, *topics: str, **configs: Any) -> Any:
            chosen = {
                "bootstrap_servers": broker.bootstrap_servers,
                "retry_backoff_ms": 5,
                "reconnect_backoff_ms": 5,
                **configs,
            }
            if kind in {"consumer", "share"}:
                chosen.setdefault("consumer_timeout_ms", 30_000)
            if kind == "producer":
                made = KafkaProducer(**chosen)
            elif kind == "consumer":
                made = KafkaConsumer(*topics, **{"auto_offset_reset": "earliest", **chosen})
            elif kind == "share":
                made = KafkaShareConsumer(*topics, **chosen)
            else:
                made = KafkaAdminClient(**chosen)
            opened.callback(made.close)
            return made

        yield make
