"""kafka.producer.producer_id: where the producer id comes from, and what is sent without one."""

from __future__ import annotations

from typing import Any

import pytest

from kafka.errors import ClusterAuthorizationFailedError, KafkaTimeoutError
from test.unit.producer.memory_cluster import Cluster

NOT_AVAILABLE = 15
NOT_AUTHORIZED = 31


def header(cluster: Cluster) -> tuple[int, int]:
    """Return producer id and first sequence number of the last batch on the wire."""
    (topic,) = cluster.asked("Produce")[-1].topic_data
    data = bytes(topic.partition_data[0].records)
    return int.from_bytes(data[43:51], "big", signed=True), int.from_bytes(data[53:57], "big", signed=True)


def test_the_id_is_requested_once_and_numbers_every_batch(make_producer: Any) -> None:
    cluster = Cluster({"events": 2})
    producer = make_producer(cluster, enable_idempotence=True)
    for _ in range(2):
        producer.send("events", b"x", partition=0).get(10)
        producer.send("events", b"x", partition=1).get(10)
        assert header(cluster)[0] == 7
    assert header(cluster)[1] == 1
    assert len(cluster.asked("InitProducerId")) == 1


def test_a_request_for_the_id_is_repeated_after_a_retriable_error(make_producer: Any) -> None:
    cluster = Cluster({"events": 1})
    answers = [{"error_code": NOT_AVAILABLE}, {"error_code": NOT_AVAILABLE}, {"producer_id": 9, "producer_epoch": 2}]
    cluster.brokers[0].on("InitProducerId", lambda _request, _session: answers.pop(0))
    producer = make_producer(cluster, enable_idempotence=True)
    producer.send("events", b"x").get(10)
    assert header(cluster) == (9, 0)


def test_without_an_id_the_error_of_a_record_names_the_reason(make_producer: Any) -> None:
    cluster = Cluster({"events": 1})
    cluster.brokers[0].on("InitProducerId", {"error_code": NOT_AVAILABLE})
    producer = make_producer(cluster, enable_idempotence=True, delivery_timeout_ms=2000, request_timeout_ms=1000)
    with pytest.raises(KafkaTimeoutError, match="no producer id yet: "):
        producer.send("events", b"x").get(10)


def test_a_principal_that_may_not_write_idempotently_writes_without_unless_it_is_required(
    make_producer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster({"events": 1})
    cluster.brokers[0].on("InitProducerId", {"error_code": NOT_AUTHORIZED})
    producer = make_producer(cluster, enable_idempotence=True)
    producer.core.producer._required = False  # as by default
    assert producer.send("events", b"x").get(10).offset == 0
    assert header(cluster) == (-1, -1)
    assert "continuing without idempotence" in caplog.text
    another = Cluster({"events": 1})
    another.brokers[0].on("InitProducerId", {"error_code": NOT_AUTHORIZED})
    required = make_producer(another, enable_idempotence=True)
    with pytest.raises(ClusterAuthorizationFailedError):
        required.send("events", b"x").get(10)
    assert "Cannot obtain a producer id" in caplog.text
