"""Apache Kafka with what the promises of ``test/embedded/share`` ask of their broker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from kafka import KafkaAdminClient, KafkaProducer, KafkaShareConsumer, TopicPartition
from kafka.admin import ConfigResource, NewTopic
from test.embedded.share.conftest import GROUP, MakeMember, members
from test.real.kafka_process import KafkaCluster
from test.real.sasl import access_control, scram

#: Kafka's own limits are seconds: a member that joins would wait 5 s for its partitions, and a lock would take 15 s.
QUICK = {
    "auto.create.topics.enable": "false",  # by a member that looks for a topic that a test has deleted
    "group.share.heartbeat.interval.ms": "300",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.assignment.interval.ms": "0",
}
SHORT_LOCK = 1.5  # seconds
LOCK = 30.0


@pytest.fixture(scope="package")
def share_kafka(kafka_version: str) -> Iterator[KafkaCluster]:
    """One node with quick share groups, for this directory; the clients of its first listener may do all."""
    with KafkaCluster(
        kafka_version,
        listeners=["PLAINTEXT", "SASL_PLAINTEXT"],
        security=[scram(), access_control(kafka_version)],
        properties=QUICK,
    ) as cluster:
        yield cluster


class Clock:
    """The broker's clock, which only goes by itself."""

    def __init__(self, lock: float) -> None:
        self._lock = lock

    def advance(self, seconds: float) -> None:
        """Wait for that part of a lock that these seconds are of a usual one."""
        time.sleep(seconds / LOCK * self._lock)


class Kafka:
    """Apache Kafka as a `kafka.broker.Broker`, as far as a test can see into it."""

    def __init__(self, cluster: KafkaCluster, lock: float) -> None:
        self.bootstrap_servers = cluster.bootstrap_servers
        self.clock = Clock(lock)
        self.requests: list[Any] = []
        """None: what a client has sent is seen at the embedded broker."""
        self._lock = lock
        self._admin = KafkaAdminClient(bootstrap_servers=self.bootstrap_servers)
        self._producer = KafkaProducer(bootstrap_servers=self.bootstrap_servers, linger_ms=1000)

    def close(self) -> None:
        self._producer.close()
        self._admin.close()

    def forget_requests(self) -> None:
        """There are none."""

    def configure(self, **configs: str) -> None:
        """Set configurations of the group; underscores stand for dots."""
        named = {name.replace("_", "."): value for name, value in configs.items()}
        self._admin.alter_configs([ConfigResource("GROUP", GROUP, named)])

    def create_topic(self, name: str, partitions: int) -> None:
        self._admin.create_topics([NewTopic(name, partitions, 1)], wait_for_metadata=True)

    def delete_topic(self, name: str) -> None:
        """Delete a topic, and wait until the broker has done so."""
        self._admin.delete_topics([name])
        deadline = time.monotonic() + 30
        while any(topic.name == name for one in self._admin.describe_log_dirs().log_dirs for topic in one.topics):
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def append(self, topic: str, value: str | bytes, partition: int = 0) -> None:
        self.append_many(topic, [value], partition)

    def append_many(self, topic: str, values: Sequence[str | bytes], partition: int = 0) -> None:
        """Append records as one batch."""
        for value in values:
            self._producer.send(topic, value.encode() if isinstance(value, str) else value, partition=partition)
        self._producer.flush()

    def share_records(self, group: str, topic: str, partition: int = 0) -> dict[int, str]:
        """Return {} if all records are finished, as the lag shows, which may take a moment."""
        deadline = time.monotonic() + 10
        while True:
            found = self._admin.list_share_group_offsets(group)[group][TopicPartition(topic, partition)]
            if found.lag == 0:
                return {}
            if time.monotonic() > deadline:
                return {found.start_offset: f"and {found.lag} records in all are not finished"}
            time.sleep(0.02)

    def expire_share_locks(self, _group: str, _topic: str) -> None:
        """Wait until all locks have run out."""
        time.sleep(self._lock + 0.3)


@pytest.fixture
def broker(share_kafka: KafkaCluster, request: pytest.FixtureRequest) -> Iterator[Kafka]:
    """The node with new topics."""
    lock = SHORT_LOCK if request.node.get_closest_marker("short_locks") else LOCK
    kafka = Kafka(share_kafka, lock)
    try:
        kafka.configure(share_auto_offset_reset="earliest", share_record_lock_duration_ms=str(round(lock * 1000)))
        kafka.create_topic("jobs", 1)
        kafka.create_topic("more", 2)
        yield kafka
    finally:
        for topic in ("jobs", "more"):
            kafka.delete_topic(topic)
        kafka.close()


@pytest.fixture
def member(broker: Kafka, face: str) -> Iterator[MakeMember]:
    """Makes members of the group, on the face of the test."""
    make: Callable[..., Any] = KafkaShareConsumer  # the other face replaces it here
    yield from members(make, broker.bootstrap_servers)
