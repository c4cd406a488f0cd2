"""`Cluster` against Apache Kafka, old and new: start, a broker killed, heal, stop; with TLS and SCRAM."""

from __future__ import annotations

import asyncio
import time

import pytest

from kafka.aio import Cluster
from kafka.aio.helpers import create_ssl_context
from kafka.errors import AuthenticationError, KafkaTimeoutError
from kafka.protocol.metadata import MetadataRequest
from test.real import sasl
from test.real.certificates import Authority, broker_tls
from test.real.conftest import StartKafka
from test.real.kafka_process import KafkaCluster

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


async def survives_a_kill(kafka: KafkaCluster, **options: object) -> None:
    names = [str(each) for each in str(options.pop("servers", kafka.bootstrap_servers)).split(",")]
    async with Cluster(names, **options) as cluster:
        await cluster.heal()
        assert sorted(cluster) == kafka.nodes
        assert cluster.topics["events"] == [0, 1, 2, 3]
        victim = cluster.get_leader("events", 0)
        connection = cluster[victim]
        kafka.kill(victim)
        deadline = time.monotonic() + PATIENCE
        while not connection.closing:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)
        await healed(cluster, victim, present=False)
        leader = cluster.get_leader("events", 0)
        assert leader != victim
        response = await cluster[leader].send(MetadataRequest(topics=[{"name": "events"}]))
        assert len(response.topics[0].partitions) == 4
        await asyncio.get_running_loop().run_in_executor(None, kafka.start, victim)
        await healed(cluster, victim, present=True)
        assert sorted(cluster) == kafka.nodes
    assert not cluster.conns


@pytest.mark.timeout(600)
@pytest.mark.slow
# The newest release is that of the test with TLS.
@pytest.mark.parametrize("version", ["0.8.2.2", pytest.param("2.8.2", marks=pytest.mark.soak)])
def test_a_broker_is_killed_and_comes_back(kafka_at: StartKafka, version: str) -> None:
    kafka = kafka_at(version, nodes=3)
    kafka.create_topic("events", partitions=4, replicas=3)
    asyncio.run(survives_a_kill(kafka))


@pytest.mark.timeout(600)
@pytest.mark.slow
def test_with_tls_and_scram(kafka_at: StartKafka, authority: Authority) -> None:
    server = authority.issue("cluster-server")
    security = (sasl.scram("SCRAM-SHA-512"), broker_tls(authority, server))
    kafka = kafka_at("4.3.1", nodes=3, listeners=("SASL_SSL",), security=security)
    kafka.add_scram_user("bob", "hunter2", "SCRAM-SHA-512")
    kafka.create_topic("events", partitions=4, replicas=3)
    options = {
        "servers": kafka.bootstrap("SASL_SSL"),
        "security_protocol": "SASL_SSL",
        "ssl_context": create_ssl_context(cafile=authority.cert),
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "bob",
        "sasl_plain_password": "hunter2",
    }
    asyncio.run(survives_a_kill(kafka, **options))

    async def wrong() -> None:
        with pytest.raises(AuthenticationError):
            await Cluster(kafka.bootstrap("SASL_SSL"), **{**options, "sasl_plain_password": "no"}).start()

    options.pop("servers")
    asyncio.run(wrong())
