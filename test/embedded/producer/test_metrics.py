"""What a producer tells of itself under the names of Kafka."""

from __future__ import annotations

import pytest

from kafka import TopicPartition
from kafka.broker.faults import NO_REPLY
from kafka.errors import KafkaTimeoutError

from .conftest import WAIT

FACES = "both"

CALLS = ("init", "begin", "send-offsets", "commit", "abort")


def times(producer):
    """Nanoseconds by call, of those that held the application up."""
    found = producer.metrics()["producer-metrics"]
    return {name.removesuffix("-time-ns-total"): value for name, value in found.items() if name.endswith("-ns-total")}


@pytest.mark.one_face  # start() of the asyncio producer is what takes the transactional_id over
def test_how_long_the_calls_of_transactions_took(make, broker, topic):
    producer = make(transactional_id=topic)
    assert not any(times(producer).values())
    producer.init_transactions()
    assert {name for name, took in times(producer).items() if took} == {"txn-init"}
    producer.begin_transaction()
    producer.send(topic, b"x")
    producer.send_offsets_to_transaction({TopicPartition(topic, 0): 1}, "group")
    producer.commit_transaction()
    producer.begin_transaction()
    producer.abort_transaction()
    found = times(producer)
    assert all(found[f"txn-{call}"] > 0 for call in CALLS)
    before = found["txn-commit"]
    with producer.transaction():
        producer.send(topic, b"x")
    assert before < times(producer)["txn-commit"] < WAIT * 1e9


def test_how_long_flush_and_metadata_were_waited_for(make, broker, topic):
    producer = make()
    assert times(producer)["metadata-wait"] == 0
    producer.send(topic, b"x").get(WAIT)
    first = times(producer)
    assert first["metadata-wait"] > 0
    assert first["flush"] == 0
    producer.send(topic, b"x")
    producer.flush()
    assert times(producer)["flush"] > 0
    assert times(producer)["metadata-wait"] == first["metadata-wait"]


def test_a_wait_without_success_counts(make, broker, topic):
    producer = make()
    producer.partitions_for(topic)
    with broker.intercept("Produce", lambda _exchange: NO_REPLY, before=True):
        producer.send(topic, b"x")
        with pytest.raises(KafkaTimeoutError):
            producer.flush(timeout=0.05)
        assert times(producer)["flush"] >= 0.05e9
        producer.close(timeout=0)
        broker.drop_connections()
