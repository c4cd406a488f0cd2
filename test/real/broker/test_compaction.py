"""What compaction leaves, here and in Apache Kafka."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.broker import Broker
from test.real.kafka_process import KafkaCluster
from test.real.releases import NEWEST

DAY_MS = 86_400_000
QUICK = {"log.cleaner.backoff.ms": "50"}
TOPIC = {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01"}


@pytest.fixture(scope="module")
def both() -> Iterator[list[str]]:
    with KafkaCluster(NEWEST, properties=QUICK) as real, Broker(configs=QUICK) as ours:
        yield [real.bootstrap_servers, ours.bootstrap_servers]


def compacted(servers: str, topic: str, now: int) -> list[tuple[int, bytes | None, bytes | None, int]]:
    """Write a table with old tombstones and transactions; what is left once compaction has removed offset 1."""
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic(topic, 1, 1, topic_configs=TOPIC)])
    old = now - 3 * DAY_MS
    with KafkaProducer(bootstrap_servers=servers, transactional_id=topic) as producer:
        producer.init_transactions()
        for committed in (True, False):
            producer.begin_transaction()
            for key, value in ((b"gone", None), (b"k", b"superseded"), (b"k", b"latest")):
                producer.send(topic, value, key=key, timestamp_ms=old)
                producer.flush()
            producer.commit_transaction() if committed else producer.abort_transaction()
    with KafkaProducer(bootstrap_servers=servers) as producer:
        # Each begins a segment: those before it can be compacted.
        for number in (1, 2):
            producer.send(topic, b"new", key=b"new-%d" % number, timestamp_ms=now + number * 10_000).get(10)
    deadline = time.monotonic() + 60
    while True:
        found = read(servers, topic)
        if not any(row[0] == 1 for row in found) or time.monotonic() > deadline:
            return found


def read(servers: str, topic: str) -> list[tuple[int, bytes | None, bytes | None, int]]:
    partition = TopicPartition(topic, 0)
    with KafkaConsumer(bootstrap_servers=servers, isolation_level="read_uncommitted") as consumer:
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        end, rows = consumer.end_offsets([partition])[partition], []
        while consumer.position(partition) < end:
            for batch in consumer.poll(100).values():
                rows += [(row.offset, row.key, row.value, row.timestamp) for row in batch]
    return rows


def test_old_tombstones_outlive_the_first_compaction(both: list[str]) -> None:
    now = int(time.time() * 1000) - DAY_MS
    real, ours = [compacted(servers, "tombstones", now) for servers in both]
    assert ours == real
    assert ours[0][:3] == (0, b"gone", None)
