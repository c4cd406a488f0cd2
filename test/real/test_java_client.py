"""The Java client, driven over its pipe, produces and consumes."""

from __future__ import annotations

from .java_client import JavaClient
from .kafka_process import KafkaCluster


def test_records_come_back_as_they_were_sent(kafka: KafkaCluster, java_client: JavaClient) -> None:
    topic = kafka.create_topic("java-records", partitions=2)
    record = {"key": b"k", "value": b"v\xff", "partition": 1, "timestamp": 1234567890123}
    sent = java_client.produce(
        kafka.bootstrap_servers,
        topic,
        [{**record, "headers": [("h", b"1"), ("n", None)]}, {"value": None, "partition": 0}],
        compression_type="zstd",
    )
    assert [(one["partition"], one["offset"]) for one in sent] == [(1, 0), (0, 0)]
    seen = java_client.consume(kafka.bootstrap_servers, topic, count=2)
    (full,) = [one for one in seen if one["partition"] == 1]
    assert {key: full[key] for key in record} == record
    assert full["headers"] == [("h", b"1"), ("n", None)]
    (empty,) = [one for one in seen if one["partition"] == 0]
    assert (empty["key"], empty["value"]) == (None, None)


def test_a_group_continues_where_it_was(kafka: KafkaCluster, java_client: JavaClient) -> None:
    topic = kafka.create_topic("java-group")
    for value in (b"first", b"second"):
        java_client.produce(kafka.bootstrap_servers, topic, [{"value": value}])
        (record,) = java_client.consume(kafka.bootstrap_servers, topic, count=1, group_id="java-group")
        assert record["value"] == value


def test_aborted_records_are_not_read_committed(kafka: KafkaCluster, java_client: JavaClient) -> None:
    topic = kafka.create_topic("java-transactions")
    for outcome in ("abort", "commit"):
        records = [{"value": outcome.encode()}]
        java_client.produce(
            kafka.bootstrap_servers, topic, records, transaction=outcome, transactional_id="java-transactions"
        )
    seen = java_client.consume(kafka.bootstrap_servers, topic, count=1, isolation_level="read_committed")
    assert [record["value"] for record in seen] == [b"commit"]
