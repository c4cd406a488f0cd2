"""`Cluster` against Apache Kafka, old and new: start, a broker killed, heal, stop."""

from __future__ import annotations

import asyncio
import time

import pytest

from kafka.aio import Cluster
from kafka.errors import KafkaTimeoutError
from kafka.protocol.metadata import MetadataRequest
from test.real.conftest import StartKafka
from test.real.kafka_process import KafkaCluster
from test.real.releases import NEWEST

PATIENCE = 90.0


async def healed(cluster: Cluster, victim: int, *, present: bool) -> None:
    """Heal until nothing is missing, and the cluster lists a broker, or lists it no longer."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            await cluster.heal(timeout_ms=1000)
        except KafkaTimeoutError:  # the other brokers have not noticed yet
            assert time.monotonic() < deadline
            continue
        if (victim in cluster) == present:
            return
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)


async def survives_a_kill(kafka: KafkaCluster, topic: str) -> None:
    async with Cluster(kafka.bootstrap_servers.split(",")) as cluster:
        await cluster.heal()
        assert sorted(cluster) == kafka.nodes
        assert cluster.topics[topic] == [0, 1, 2, 3]
        victim = cluster.get_leader(topic, 0)
        connection = cluster[victim]
        kafka.kill(victim)
        deadline = time.monotonic() + PATIENCE
        while not connection.closing:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)
        await healed(cluster, victim, present=False)
        leader = cluster.get_leader(topic, 0)
        assert leader != victim
        response = await cluster[leader].send(MetadataRequest(topics=[{"name": topic}]))
        assert len(response.topics[0].partitions) == 4
        await asyncio.get_running_loop().run_in_executor(None, kafka.start, victim)
        await healed(cluster, victim, present=True)
        assert sorted(cluster) == kafka.nodes
    assert not cluster.conns


# Nodes of its own: heal() waits for leaders of all topics, and other tests have topics with one replica. That takes
# twelve seconds of a processor; test/embedded/aio/test_cluster.py shows the same in one.
@pytest.mark.timeout(600)
@pytest.mark.soak
@pytest.mark.parametrize("version", ["0.8.2.2", "2.8.2", NEWEST])
def test_a_broker_is_killed_and_comes_back(kafka_at: StartKafka, version: str) -> None:
    kafka = kafka_at(version, nodes=3)
    asyncio.run(survives_a_kill(kafka, kafka.create_topic("events", partitions=4, replicas=3)))
