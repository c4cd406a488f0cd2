"""KIP-714 against Apache Kafka with a plugin that takes metrics, beside what Java's own consumer pushes there."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import ConfigResource
from test.real import jvm, kafka_jars
from test.real.java_client import JavaClient
from test.real.kafka_process import KafkaCluster

official = pytest.importorskip("opentelemetry.proto.metrics.v1.metrics_pb2", reason="pip install opentelemetry-proto")

FACES = "both"
SOURCE = Path(__file__).parents[1] / "java" / "MetricsToFiles.java"
PREFIX = "org.apache.kafka."
TIMEOUT = 60.0
CONSUMER = {
    "consumer.connection.creation.rate", "consumer.connection.creation.total", "consumer.node.request.latency.avg",
    "consumer.node.request.latency.max", "consumer.poll.idle.ratio.avg", "consumer.coordinator.commit.latency.avg",
    "consumer.coordinator.commit.latency.max", "consumer.coordinator.assigned.partitions",
    "consumer.coordinator.rebalance.latency.avg", "consumer.coordinator.rebalance.latency.max",
    "consumer.coordinator.rebalance.latency.total", "consumer.fetch.manager.fetch.latency.avg",
    "consumer.fetch.manager.fetch.latency.max",
}  # fmt: skip


@pytest.fixture(scope="module")
def pushes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the plugin writes."""
    return tmp_path_factory.mktemp("pushes")


@pytest.fixture(scope="module")
def cluster(kafka_version: str, pushes: Path) -> Iterator[KafkaCluster]:
    """A broker with the plugin, and a subscription to all metrics each 200 ms."""
    path = kafka_jars.classpath(kafka_version)
    path = os.pathsep.join((path, str(jvm.compiled(SOURCE, path))))
    with KafkaCluster(
        kafka_version,
        properties={"metric.reporters": "MetricsToFiles"},
        java_args=(*jvm.QUICK_START, f"-Dpurekafka.pushes={pushes}", "-cp", path),
    ) as running:
        with KafkaAdminClient(bootstrap_servers=running.bootstrap_servers, enable_metrics_push=False) as admin:
            admin.alter_configs([ConfigResource("client_metrics", "all", {"metrics": "*", "interval.ms": 200})])
        yield running


class Pushed:
    """What one client has pushed so far."""

    def __init__(self, directory: Path, client_id: str) -> None:
        self.files = sorted(path for path in directory.glob(f"[0-9]*-{client_id}-*"))
        self.values: dict[str, list[float]] = {}
        self.labels: dict[str, dict[str, str]] = {}
        self.resource: dict[str, str] = {}
        for path in self.files:
            parsed: Any = official.MetricsData.FromString(path.read_bytes())
            for resource in parsed.resource_metrics:
                self.resource |= {one.key: one.value.string_value for one in resource.resource.attributes}
                for metric in (one for scope in resource.scope_metrics for one in scope.metrics):
                    name = metric.name.removeprefix(PREFIX)
                    assert name != metric.name
                    for point in getattr(metric, metric.WhichOneof("data")).data_points:
                        self.values.setdefault(name, []).append(point.as_double or point.as_int)
                        self.labels.setdefault(name, {}).update(
                            {one.key: one.value.string_value for one in point.attributes}
                        )


def wait_for(condition: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + TIMEOUT
    while not (found := condition()):
        assert time.monotonic() < deadline, f"no {what} in {TIMEOUT:g} s"
        time.sleep(0.05)
    return found


def last_push(directory: Path, client_id: str) -> Pushed:
    """Wait for the push of close(): close() waits for the broker's answer a second at most, which may take longer."""

    def ended() -> Pushed | None:
        found = Pushed(directory, client_id)
        return found if found.files[-1].name.endswith("-true") else None

    found: Pushed = wait_for(ended, f"last push of {client_id}")
    return found


def write(cluster: KafkaCluster, topic: str, count: int) -> None:
    with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, enable_metrics_push=False) as producer:
        for _ in range(count):
            producer.send(topic, b"x", partition=0)


def test_a_consumer_pushes_what_java_s_does(cluster: KafkaCluster, pushes: Path, kafka_version: str, face: str) -> None:
    ours, java_s, topic = f"ours-{face}", f"java-{face}", f"read-{face}"
    write(cluster, topic, 20)
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=cluster.bootstrap_servers,
        group_id=ours,
        client_id=ours,
        auto_offset_reset="earliest",
    )
    try:
        wait_for(lambda: consumer.poll(500), "records")
        consumer.commit()

        def complete() -> bool:
            consumer.poll(100)
            found = Pushed(pushes, ours)  # all metrics have a value before it is a member, too
            return found.values.keys() >= CONSUMER and "group_member_id" in found.resource

        wait_for(complete, f"push with all of {CONSUMER - Pushed(pushes, ours).values.keys()}")
        assert consumer.client_instance_id()
    finally:
        consumer.close()
    found = last_push(pushes, ours)
    assert found.labels["consumer.node.request.latency.avg"].keys() == {"node_id"}
    assert found.resource.keys() == {"group_id", "group_member_id"}
    assert sum(found.values["consumer.fetch.manager.records.consumed.total"]) == 20, "sums are since the last push"

    with ThreadPoolExecutor(1) as pool, JavaClient(kafka_version) as java:
        # It reads until the 21st record, which is written when it has pushed: how long it takes to begin is not known.
        reading = pool.submit(
            java.consume, cluster.bootstrap_servers, topic, count=21, timeout=2 * TIMEOUT, group_id=java_s,
            client_id=java_s, auto_offset_reset="earliest",
        )  # fmt: skip
        wait_for(lambda: reading.done() or len(CONSUMER & Pushed(pushes, java_s).values.keys()) > 8, "push of Java's")
        write(cluster, topic, 1)
        assert len(reading.result(TIMEOUT)) == 21
    theirs = Pushed(pushes, java_s)
    common = found.values.keys() & theirs.values.keys()
    print(f"{len(found.values)} metrics of ours, {len(theirs.values)} of Java's, {len(common)} in both")
    assert len(CONSUMER & common) > 8, CONSUMER - theirs.values.keys()
    assert theirs.labels["consumer.node.request.latency.avg"].keys() == {"node_id"}
    assert found.resource.keys() <= theirs.resource.keys() | {"group_member_id"}


def test_a_producer_pushes(cluster: KafkaCluster, pushes: Path, face: str) -> None:
    name = f"writer-{face}"
    with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, client_id=name) as producer:
        for _ in range(5):
            producer.send(name, b"x").get(TIMEOUT)
        wait_for(lambda: Pushed(pushes, name).files, "push")
    assert sum(last_push(pushes, name).values["producer.record.send.total"]) == 5
