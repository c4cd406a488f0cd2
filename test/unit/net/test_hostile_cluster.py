"""P10 and P13 of the design: a cluster that answers anything at any step. Only a KafkaError, in bounded time."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka.client_async import KafkaClient
from kafka.errors import KafkaError
from kafka.protocol.admin import ListGroupsRequest
from kafka.protocol.metadata import MetadataResponse
from kafka.testing import HANG_UP, SILENCE, MemoryNetwork, ScriptedBroker

APIS = ["ApiVersions", "Metadata", "ListGroups", "FindCoordinator"]


def metadata(*_):
    broker = MetadataResponse.MetadataResponseBroker(node_id=0, host="broker", port=9092, rack=None)
    return {"brokers": [broker], "controller_id": 0, "topics": []}


answers = st.one_of(
    st.just(HANG_UP),
    st.just(SILENCE),
    st.binary(max_size=40),
    st.binary(max_size=40).map(lambda body: (len(body) + 4).to_bytes(4, "big") + b"\0\0\0\x01" + body),
    st.binary(max_size=40).map(lambda body: (len(body) + 4).to_bytes(4, "big") + b"\0\0\0\x02" + body),
)


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(st.sampled_from(APIS), st.lists(answers, min_size=1, max_size=4), min_size=1))
def test_a_hostile_cluster_gets_kafka_errors_out_of_us_and_nothing_else(script):
    network = MemoryNetwork()
    broker = ScriptedBroker(network)
    broker.on("Metadata", metadata)
    broker.on("ListGroups", {"groups": []})
    for api, given_answers in script.items():
        remaining = list(given_answers)
        honest = broker.handlers.get(api, lambda *_: SILENCE)

        def handler(request, session, remaining=remaining, honest=honest):
            return remaining.pop(0) if remaining else honest(request, session)

        broker.on(api, handler)
    began = network.clock.monotonic()
    client = KafkaClient(
        environment=network.environment(),
        bootstrap_servers="broker",
        bootstrap=False,
        bootstrap_timeout_ms=5000,
        request_timeout_ms=2000,
    )
    for coro in (
        client.core.bootstrap(),
        client.core.request(ListGroupsRequest()),
        client.core.coordinator(0, "g", client.core.loop.time() + 3),
    ):
        task = client.core.loop.spawn(coro)
        with contextlib.suppress(KafkaError):
            client.core.loop.run_until(task, client.core.loop.time() + 60)
    assert network.clock.monotonic() - began < 120
    assert client.core.loop.turns < 3000
    client.close()
    assert not network.open_sockets


@pytest.mark.parametrize("error_code", [-1, 35, 41, 129, 12345])
def test_an_error_instead_of_metadata_is_raised_or_waited_out(error_code):
    network = MemoryNetwork()
    broker = ScriptedBroker(network)
    broker.on("Metadata", lambda *_: {**metadata(), "error_code": error_code})
    client = KafkaClient(
        environment=network.environment(), bootstrap_servers="broker", bootstrap=False, bootstrap_timeout_ms=3000
    )
    with pytest.raises(KafkaError):
        client.core.loop.run_until(client.core.loop.spawn(client.core.bootstrap()), client.core.loop.time() + 60)
    assert client.core.loop.turns < 500
    client.close()
