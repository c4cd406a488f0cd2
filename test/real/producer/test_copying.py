"""Consume, transform, produce against Apache Kafka, with the program killed in the middle: each record once."""

from __future__ import annotations

import uuid

import pytest

from kafka import KafkaProducer
from test.copying import PARTITIONS, check_copy, copy_with_kills, fill


@pytest.mark.timeout(1500)
@pytest.mark.parametrize(
    ("records", "kills", "after"), [(9_000, 2, (1, 2)), pytest.param(100_000, 12, (2, 8), marks=pytest.mark.soak)]
)
def test_a_copy_has_each_record_once_and_in_order(kafka, records, kills, after):
    name = uuid.uuid4().hex[:8]
    source = kafka.create_topic(f"source-{name}", PARTITIONS)
    target = kafka.create_topic(f"target-{name}", PARTITIONS)
    servers = kafka.bootstrap_servers
    fill(servers, source, records)
    assert copy_with_kills(servers, source, target, f"copiers-{name}", kills, after) == kills
    # Whatever the last of those that were killed left open is aborted by who comes next.
    with KafkaProducer(bootstrap_servers=servers, transactional_id=f"copiers-{name}") as last:
        last.init_transactions()
    check_copy(servers, target, records)
