"""`Cluster` over TCP: a broker is killed, heal, stop; with TLS and SCRAM; under asyncio, uvloop and Tornado."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from kafka.aio import Cluster
from kafka.aio.helpers import create_ssl_context
from kafka.broker import Broker
from kafka.errors import AuthenticationError, KafkaError, SslAuthenticationError
from kafka.protocol.metadata import MetadataRequest

CERTS = Path(__file__).parents[2] / "unit" / "net" / "certs"
PATIENCE = 30.0


async def until(ready):
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while not ready():
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("release", [None, "0.8.2"])
def test_a_broker_is_killed_and_comes_back(run, release):
    topics, configs = {"events": 6, "orders": 1}, {"default.replication.factor": 3}
    with Broker(nodes=3, topics=topics, configs=configs, as_version=release) as broker:

        async def main():
            cluster = Cluster(broker.bootstrap_servers.split(","))
            await cluster.start()
            assert sorted(cluster) == [1, 2, 3]
            assert cluster.topics["events"] == [0, 1, 2, 3, 4, 5]
            victim = cluster.get_leader("events", 0)
            lost = cluster[victim]
            broker.stop_node(victim, crash=True)
            await until(lambda: lost.closing)
            await cluster.heal()
            assert victim not in cluster
            assert len(cluster) == 2
            leader = cluster.get_leader("events", 0)
            assert leader != victim
            response = await cluster[leader].send(MetadataRequest(topics=[{"name": "events"}]))
            assert len(response.topics[0].partitions) == 6
            broker.start_node(victim)
            deadline = asyncio.get_running_loop().time() + PATIENCE
            while victim not in cluster:
                assert asyncio.get_running_loop().time() < deadline
                await cluster.heal()
            await cluster.stop()

        run(main())


def test_start_with_a_dead_bootstrap_host_and_with_all_of_them_dead(run_once):
    with Broker(topics=["events"]) as broker:

        async def main():
            async with Cluster(["127.0.0.1:1", broker.bootstrap_servers]) as cluster:
                assert cluster.get_leader("events", 0) == 1
            with pytest.raises(KafkaError, match="No bootstrap host answered"):
                await Cluster("127.0.0.1:1").start()

        run_once(main())


def test_tls_and_scram(run):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTS / "server.pem", CERTS / "server.key")
    users = [("SCRAM-SHA-256", "ann", "secret")]
    configs = {"default.replication.factor": 2}
    with Broker(nodes=2, topics=["events"], ssl_context=context, sasl=users, configs=configs) as broker:
        options = {
            "security_protocol": "SASL_SSL",
            "ssl_context": create_ssl_context(cafile=CERTS / "ca.pem"),
            "sasl_mechanism": "SCRAM-SHA-256",
            "sasl_plain_username": "ann",
            "sasl_plain_password": "secret",
        }

        async def main():
            async with Cluster(broker.bootstrap_servers, **options) as cluster:
                assert len(cluster) == 2
                broker.stop_node(2, crash=True)
                await until(lambda: cluster[2].closing)
                await cluster.heal()
                assert list(cluster) == [1]
                broker.start_node(2)
            began = asyncio.get_running_loop().time()
            with pytest.raises(AuthenticationError):
                await Cluster(broker.bootstrap_servers, **{**options, "sasl_plain_password": "wrong"}).start()
            with pytest.raises(SslAuthenticationError):
                await Cluster(broker.bootstrap_servers, **{**options, "ssl_context": create_ssl_context()}).start()
            assert asyncio.get_running_loop().time() - began < 10

        run(main())


def test_tornado():
    tornado = pytest.importorskip("tornado.ioloop")
    gen = pytest.importorskip("tornado.gen")
    with Broker(topics=["events"]) as broker:
        cluster = Cluster([broker.bootstrap_servers])

        @gen.coroutine
        def program():
            yield cluster.start()
            response = yield cluster[1].send(MetadataRequest(topics=None))
            yield cluster.heal(response)
            cluster.stop()
            raise gen.Return(cluster.get_leader("events", 0))

        io_loop = tornado.IOLoop(make_current=False)
        assert io_loop.run_sync(program) == 1
        io_loop.close(all_fds=True)
