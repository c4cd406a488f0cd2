"""KafkaConsumer against Apache Kafka: every release, every codec, transactions, brokers that die."""

from __future__ import annotations

import time
import uuid
from typing import Any

import pytest

from kafka._core.metadata_updater import MetadataUpdater
from kafka.consumer import KafkaConsumer
from kafka.errors import UnsupportedVersionError
from kafka.producer import KafkaProducer
from kafka.structs import TopicPartition
from test.embedded.faces import AIOConsumer
from test.real.java_client import JavaClient
from test.real.kafka_process import KafkaCluster

FACES = "both"

TIMEOUT = 60.0


def read(consumer: KafkaConsumer, count: int) -> list[Any]:
    found: list[Any] = []
    deadline = time.monotonic() + TIMEOUT
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count}: {consumer.health()}"
        for records in consumer.poll(timeout_ms=500).values():
            found += records
    return found


def new_topic(cluster: KafkaCluster, partitions: int = 1, **options: Any) -> str:
    name = f"consumer-{uuid.uuid4().hex[:10]}"
    cluster.create_topic(name, partitions=partitions, **options)
    return name


def consume(cluster: KafkaCluster, *partitions: TopicPartition, kind: Any = None, **configs: Any) -> Any:
    """Open a consumer of the test's face, or of a kind."""
    made = kind or KafkaConsumer  # the name is another one's on the other face
    consumer = made(bootstrap_servers=cluster.bootstrap_servers, **{"auto_offset_reset": "earliest", **configs})
    consumer.assign(partitions)
    return consumer


def fill(cluster: KafkaCluster, topic: str, count: int, **configs: Any) -> None:
    with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, **configs) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number, key=b"k%d" % number, partition=0)


def test_topics_used_one_after_the_other_are_asked_about_once(
    kafka: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def note(updater: Any, *args: Any, ask: Any = MetadataUpdater._request) -> Any:
        request, whole = ask(updater, *args)
        asked.append([topic.name for topic in request.topics])
        return request, whole

    monkeypatch.setattr(MetadataUpdater, "_request", note)
    prefix = uuid.uuid4().hex[:8]
    names = [f"{prefix}-{number}" for number in range(12)]  # the broker creates them
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        for name in names:
            producer.send(name, b"v").get(TIMEOUT)
    assert {name for request in asked for name in request} == set(names)
    assert all(len(request) <= 2 for request in asked)


@pytest.mark.matrix
@pytest.mark.parametrize("codec", [None, "gzip"])
def test_each_release_is_read(kafka_matrix: KafkaCluster, codec: str | None) -> None:
    topic = new_topic(kafka_matrix)
    fill(kafka_matrix, topic, 300, compression_type=codec)
    partition = TopicPartition(topic, 0)
    with consume(kafka_matrix, partition, max_poll_records=70) as consumer:
        records = read(consumer, 300)
        assert [record.offset for record in records] == list(range(300))
        assert [(record.key, record.value) for record in records] == [(b"k%d" % n, b"%d" % n) for n in range(300)]
        assert consumer.beginning_offsets([partition]) == {partition: 0}
        assert consumer.end_offsets([partition]) == {partition: 300}
        consumer.seek(partition, 123)
        assert read(consumer, 1)[0].offset == 123
        consumer.seek_to_end()
        assert consumer.position(partition) == 300
        if kafka_matrix.version.startswith("0.8") or kafka_matrix.version.startswith("0.9"):
            with pytest.raises(UnsupportedVersionError):
                consumer.offsets_for_times({partition: 0})
        else:
            found = consumer.offsets_for_times({partition: 0})[partition]
            assert found is not None
            assert found.offset == 0


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_java_wrote_is_read(kafka: KafkaCluster, java_client: JavaClient, codec: str) -> None:
    topic = new_topic(kafka)
    values = [b"%d-" % n + b"x" * 50 for n in range(500)]
    records = [{"partition": 0, "value": value} for value in values]
    java_client.produce(kafka.bootstrap_servers, topic, records, compression_type=codec, linger_ms="50")
    with consume(kafka, TopicPartition(topic, 0)) as consumer:
        assert [record.value for record in read(consumer, 500)] == values


def test_read_committed_returns_what_was_committed(kafka: KafkaCluster, java_client: JavaClient) -> None:
    topic = new_topic(kafka)
    for number, end in enumerate(("commit", "abort", "commit", "abort")):
        values = [{"partition": 0, "value": b"%d-%d" % (number, n)} for n in range(50)]
        java_client.produce(
            kafka.bootstrap_servers, topic, values, transaction=end, transactional_id=f"{topic}-{number}"
        )
    partition = TopicPartition(topic, 0)
    wanted = [b"%d-%d" % (number, n) for number in (0, 2) for n in range(50)]
    with consume(kafka, partition, isolation_level="read_committed", max_poll_records=30) as consumer:
        assert [record.value for record in read(consumer, 100)] == wanted
        last = consumer.end_offsets([partition])[partition]
        deadline = time.monotonic() + TIMEOUT
        while consumer.position(partition) < last and time.monotonic() < deadline:
            assert consumer.poll(timeout_ms=100) == {}
        assert consumer.position(partition) == last  # past the aborted records and the markers
    with consume(kafka, partition) as consumer:
        assert len(read(consumer, 200)) == 200


@pytest.mark.one_face  # both at once: each death of a broker costs seconds of a processor
def test_reading_continues_while_brokers_die_one_after_another(kafka_cluster: KafkaCluster) -> None:
    cluster = kafka_cluster
    topic = new_topic(cluster, replicas=3)
    partition = TopicPartition(topic, 0)
    configs = {"retry_backoff_ms": 50, "request_timeout_ms": 5000, "fetch_max_wait_ms": 200}
    with (
        KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, acks="all") as producer,
        consume(cluster, partition, **configs) as on_threads,
        consume(cluster, partition, kind=AIOConsumer, **configs) as on_asyncio,
    ):
        offsets: dict[Any, list[int]] = {on_threads: [], on_asyncio: []}
        for end in (lambda node: (cluster.kill(node), cluster.start(node)), cluster.restart):
            for number in range(100):
                producer.send(topic, b"%d" % number, partition=0)
            producer.flush()
            for consumer, found in offsets.items():
                found += [record.offset for record in read(consumer, 100)]
            end(cluster.leader(topic))
        producer.send(topic, b"last", partition=0).get(timeout=TIMEOUT)
        for consumer, found in offsets.items():
            found += [record.offset for record in read(consumer, 1)]
            assert found == list(range(201))
