"""`AIOKafkaClient`: raw requests from a task of asyncio; and the options of all asyncio clients."""

from __future__ import annotations

import asyncio
import contextvars

import pytest

from kafka.aio import AIOKafkaClient
from kafka.aio.abc import AbstractTokenProvider
from kafka.aio.arguments import checked_config
from kafka.aio.client import ConnectionGroup, CoordinationType
from kafka.errors import KafkaConfigurationError, UnknownBrokerIdError
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kafka.testing import MemoryNetwork, ScriptedBroker
from test.unit.aio.virtual import live_in, run


@pytest.fixture
def network():
    return MemoryNetwork()


@pytest.fixture
def broker(network):
    broker = ScriptedBroker(network)
    reply = MetadataResponse

    def metadata(request, _session):
        names = ["events", "orders"] if request.topics is None else [topic.name for topic in request.topics]
        return {
            "brokers": [reply.MetadataResponseBroker(node_id=0, host="broker", port=9092, rack=None)],
            "controller_id": 0,
            "topics": [
                reply.MetadataResponseTopic(
                    error_code=0 if name in {"events", "orders"} else 3,
                    name=name,
                    partitions=[reply.MetadataResponsePartition(partition_index=0, leader_id=0)],
                )
                for name in names
            ],
        }

    broker.on("Metadata", metadata)
    broker.on("FindCoordinator", {"coordinators": [{"key": "g", "node_id": 0, "host": "broker", "port": 9092}]})
    return broker


def in_client(network, use, **options):
    async def main():
        async with live_in(network, AIOKafkaClient(bootstrap_servers="broker:9092", **options)) as client:
            return await use(client)

    return run(network, main())


def test_requests_metadata_and_coordinators(network, broker):
    async def use(client):
        assert client.get_random_node() == 0
        response = await client.send(0, MetadataRequest(topics=None))
        assert [topic.name for topic in response.topics] == ["events", "orders"]
        await client.send(0, MetadataRequest(topics=None), group=ConnectionGroup.COORDINATION)
        assert len(network.open_sockets) == 2
        assert await client.ready(0) is True
        assert await client.ready(7) is False
        assert await client.add_topic("events") is True
        assert client.cluster.topics() == {"events"}
        assert await client.set_topics(["orders"]) is True
        assert await client.force_metadata_update() is True
        assert "orders" in client.cluster.topics()
        assert (await client.fetch_all_metadata()).topics() == {"events", "orders"}
        assert await client.coordinator_lookup(CoordinationType.GROUP, "g") == 0
        health = client.health()
        assert health["ok"] is True
        await client.close()

    in_client(network, use)
    assert not network.open_sockets


def test_a_metadata_update_that_fails_is_false(network, broker):
    async def use(client):
        broker.stop()
        assert await client.force_metadata_update() is False
        with pytest.raises(UnknownBrokerIdError):
            await client.send(7, MetadataRequest(topics=None))
        assert client.health()["ok"] is False

    in_client(network, use, request_timeout_ms=1000)


def test_bootstrap_is_start(network, broker):
    async def main():
        client = live_in(network, AIOKafkaClient(bootstrap_servers="broker:9092"))
        assert client.health()["problems"] == ["the client is not started"]
        await client.bootstrap()
        await client.close()

    run(network, main())


def test_the_options_have_the_defaults_of_aiokafka_and_an_error_is_a_value_error():
    assert checked_config("client", "AIOKafkaClient", {}).seconds("request_timeout_ms") == 40
    with pytest.raises(ValueError, match="AIOKafkaClient has no option 'bootstrap_server': did you mean"):
        AIOKafkaClient(bootstrap_server="b")
    with pytest.raises(KafkaConfigurationError):
        AIOKafkaClient(security_protocol="TLS")


def test_the_mechanism_is_plain_by_default_and_without_effect_without_sasl():
    with pytest.raises(ValueError, match="sasl_plain"):
        AIOKafkaClient(security_protocol="SASL_PLAINTEXT")
    assert AIOKafkaClient(sasl_mechanism="PLAIN").config["sasl_mechanism"] is None
    with pytest.raises(ValueError, match="'SCRAM-SHA-256' has no effect with security_protocol='PLAINTEXT'"):
        AIOKafkaClient(sasl_mechanism="SCRAM-SHA-256")
    client = AIOKafkaClient(security_protocol="SASL_PLAINTEXT", sasl_plain_username="u", sasl_plain_password="p")
    assert client.config["sasl_mechanism"] == "PLAIN"


def test_api_version_is_ignored_with_a_warning():
    with pytest.deprecated_call(match="api_version has no effect on AIOKafkaClient"):
        AIOKafkaClient(api_version="0.10")
    AIOKafkaClient(api_version="auto")


def test_a_token_is_awaited_in_the_context_of_start(network, broker):
    where = contextvars.ContextVar("where", default="nowhere")
    seen = []

    class Provider(AbstractTokenProvider):
        async def token(self):
            await asyncio.sleep(0.5)
            seen.append(where.get())
            return "secret"

        def extensions(self):
            return {"color": "red"}

    broker.on("SaslHandshake", {"mechanisms": ["OAUTHBEARER"]})
    tokens = []
    broker.on("SaslAuthenticate", lambda request, _session: tokens.append(bytes(request.auth_bytes)) or {})

    async def main():
        client = AIOKafkaClient(
            bootstrap_servers="broker:9092",
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=Provider(),
        )
        live_in(network, client)
        # The environment of the test has inline workers; the client's own has what awaits the token.
        from kafka.aio.environment import AioEnvironment

        where.set("start")
        client._environment.workers = AioEnvironment(client.config).workers
        async with client:
            where.set("later")
            await client.send(0, MetadataRequest(topics=None))

    run(network, main())
    assert seen == ["start"]
    assert tokens[0] == b"n,,\x01auth=Bearer secret\x01color=red\x01\x01"
