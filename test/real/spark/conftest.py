"""Topics and sessions for the tests of kafka.spark against Apache Kafka."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from test.real.kafka_process import KafkaCluster
from test.spark_runs.killing import Plan
from test.spark_runs.quick_start import quick_home

MakePlan = Callable[..., Plan]


@pytest.fixture(scope="package", autouse=True)
def quick_starts() -> Iterator[None]:
    """Let Spark start quickly in the programs that tests run."""
    with quick_home():
        yield


@pytest.fixture
def plan(kafka: KafkaCluster, tmp_path: Path) -> MakePlan:
    """Return what makes the plan of a copy, between two new topics of two partitions."""

    def make(**given: object) -> Plan:
        mark = uuid.uuid4().hex[:8]
        source, target = (kafka.create_topic(f"{name}-{mark}", partitions=2) for name in ("events", "out"))
        return Plan(kafka.bootstrap_servers, str(tmp_path), source=source, target=target, **given)  # type: ignore[arg-type]

    return make
