"""What a producer measures, and what the documentation says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka.errors import BufferExhaustedError, KafkaTimeoutError
from kafka.testing import SILENCE
from test.unit.producer.memory_cluster import Cluster

OPERATIONS = Path(__file__).parents[3] / "docs" / "operations.rst"


def measured(producer) -> dict[str, float]:
    return producer.metrics()["producer-metrics"]


def test_the_time_that_send_waits_for_the_buffer_is_measured(make_producer):
    cluster = Cluster({"events": 1})
    producer = make_producer(cluster, buffer_memory=20_000, batch_size=10_000, max_block_ms=4000)
    producer.partitions_for("events")
    assert measured(producer)["bufferpool-wait-time-ns-total"] == 0
    cluster.script.extend([SILENCE] * 100)
    with pytest.raises(BufferExhaustedError):
        producer.send_many("events", [b"x" * 1000] * 100)
    found = measured(producer)
    assert found["bufferpool-wait-time-ns-total"] == pytest.approx(4e9)
    assert found["bufferpool-wait-ratio"] > 0
    assert found["buffer-exhausted-total"] == 1
    assert found["buffer-exhausted-rate"] > 0
    assert found["waiting-threads"] == 0


def test_calls_that_wait_for_the_buffer_are_counted_while_they_wait(make_producer):
    cluster = Cluster({"events": 1})
    producer = make_producer(cluster, buffer_memory=20_000, batch_size=10_000, max_block_ms=4000)
    producer.partitions_for("events")
    cluster.script.extend([SILENCE] * 100)
    seen = []
    producer.core.loop.call_later(2.0, lambda: seen.append(measured(producer)["waiting-threads"]))
    with pytest.raises(BufferExhaustedError):
        producer.send_many("events", [b"x" * 1000] * 100)
    assert seen == [1]


def test_the_time_that_send_waits_for_metadata_is_measured(make_producer):
    producer = make_producer(Cluster({}), max_block_ms=3000)
    with pytest.raises(KafkaTimeoutError):
        producer.send("events", b"x")
    assert 3e9 <= measured(producer)["metadata-wait-time-ns-total"] < 4e9


def test_every_metric_is_in_the_documentation_with_its_unit(make_producer):
    producer = make_producer(Cluster({"events": 1}))
    producer.send("events", b"x").get(1)
    documented = {}
    for line in OPERATIONS.read_text(encoding="utf-8").splitlines():
        name, _, rest = line.partition("  ")
        if name.startswith("``") and rest:
            documented[name.strip("`")] = rest.split()[0]
    assert measured(producer).keys() <= documented.keys()
    units = {
        "bytes",
        "bytes/s",
        "ms",
        "ns",
        "records",
        "records/s",
        "1/s",
        "ratio",
        "connections",
        "connections/s",
        "calls",
    }
    assert {documented[name] for name in measured(producer)} <= units
