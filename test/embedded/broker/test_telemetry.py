"""Client metrics (KIP-714), in raw requests: which are asked for, and when they may be pushed."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from kafka.broker import Broker
from kafka.errors import Code
from kafka.protocol.admin import ApiVersionsRequest
from kafka.protocol.configs import IncrementalAlterConfigsRequest
from kafka.protocol.fields import ZERO_UUID
from kafka.protocol.telemetry import GetTelemetrySubscriptionsRequest, PushTelemetryRequest

from .wire import Wire, wire

PLUGIN = {"metric.reporters": "org.example.Telemetry"}


pytestmark = pytest.mark.kafka_broker(seed=1, configs=PLUGIN)


@pytest.fixture
def broker(kafka_broker: Broker) -> Broker:
    kafka_broker.clock.freeze()
    return kafka_broker


@pytest.fixture
def client(broker: Broker) -> Iterator[Wire]:
    with wire(broker) as connection:
        yield connection


def subscribe(client: Wire, name: str, **options: str) -> None:
    changes = [(option.replace("_ms", ".ms"), 0, value) for option, value in options.items()]
    (response,) = client.ask(IncrementalAlterConfigsRequest[1](resources=[(16, name, changes)])).responses
    assert response.error_code == 0, response


def ask(client: Wire, instance: uuid.UUID = ZERO_UUID) -> Any:
    return client.ask(GetTelemetrySubscriptionsRequest[0](client_instance_id=instance))


def push(client: Wire, known: Any, metrics: bytes = b"", **fields: Any) -> int:
    words = {"client_instance_id": known.client_instance_id, "subscription_id": known.subscription_id, **fields}
    code: int = client.ask(PushTelemetryRequest[0](metrics=metrics, **words)).error_code
    return code


@pytest.mark.parametrize(
    ("configs", "release", "is_offered"),
    [({}, None, False), (PLUGIN, None, True), (PLUGIN, "4.3", True), (PLUGIN, "3.7", True), (PLUGIN, "3.6", False)],
)
def test_the_apis_are_offered_where_a_plugin_takes_the_metrics(configs: Any, release: Any, is_offered: bool) -> None:
    with Broker(configs=configs, as_version=release) as broker, wire(broker) as client:
        offered = {one.api_key for one in client.ask(ApiVersionsRequest[0]()).api_keys}
        assert offered & {71, 72} == ({71, 72} if is_offered else set())


def test_a_test_can_offer_them(client: Wire) -> None:
    with Broker() as broker:
        broker.advertise("GetTelemetrySubscriptions", 0, 0)
        with wire(broker) as other:
            assert ask(other).error_code == 0


def test_without_a_subscription_a_client_gets_an_id_and_is_asked_for_nothing(client: Wire) -> None:
    reply = ask(client)
    assert (reply.error_code, reply.requested_metrics, reply.push_interval_ms) == (0, [], 300_000)
    assert (list(reply.accepted_compression_types), reply.telemetry_max_bytes) == ([4, 3, 1, 2], 1_048_576)
    assert reply.delta_temporality
    assert reply.client_instance_id.int > 1
    assert ask(client).client_instance_id != reply.client_instance_id


def test_all_subscriptions_that_match_count(client: Wire) -> None:
    subscribe(client, "one", interval_ms="2000", metrics="b.,a.", match="client_id=te.*")
    subscribe(client, "two", interval_ms="1000", metrics="c.", match="client_source_address=127[.].*,client_id=test")
    subscribe(client, "other", interval_ms="100", metrics="d.", match="client_id=es")
    subscribe(client, "not-all", interval_ms="100", metrics="e.", match="client_id=test,client_software_name=x")
    reply = ask(client)
    assert (reply.requested_metrics, reply.push_interval_ms) == (["a.", "b.", "c."], 1000)
    subscribe(client, "all", metrics="*")
    assert ask(client).requested_metrics == ["*"]


def test_a_client_asks_and_pushes_once_in_an_interval(broker: Broker, client: Wire) -> None:
    subscribe(client, "one", interval_ms="1000")
    known = ask(client)
    assert push(client, known) == 0  # the first push may come at once
    assert push(client, known) == Code.THROTTLING_QUOTA_EXCEEDED
    assert ask(client, known.client_instance_id).error_code == Code.THROTTLING_QUOTA_EXCEEDED
    broker.clock.advance(1)
    assert push(client, known) == 0
    broker.clock.advance(1)
    assert ask(client, known.client_instance_id).subscription_id == known.subscription_id


def test_a_change_of_subscriptions_is_noticed_at_the_next_push(client: Wire) -> None:
    known = ask(client)
    subscribe(client, "one", metrics="a.", interval_ms="1000")
    assert push(client, known) == Code.UNKNOWN_SUBSCRIPTION_ID
    again = ask(client, known.client_instance_id)
    assert (again.error_code, again.requested_metrics) == (0, ["a."])
    assert again.subscription_id != known.subscription_id
    assert push(client, again) == 0


def test_a_client_s_last_push_is_its_last(client: Wire) -> None:
    known = ask(client)
    assert push(client, known) == 0
    assert push(client, known, terminating=True) == 0  # not throttled
    assert push(client, known, terminating=True) == Code.INVALID_REQUEST


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"client_instance_id": ZERO_UUID}, Code.INVALID_REQUEST),
        ({"client_instance_id": uuid.UUID(int=77)}, Code.UNKNOWN_SUBSCRIPTION_ID),
        ({"compression_type": 9}, Code.UNSUPPORTED_COMPRESSION_TYPE),
        ({"metrics": b"x" * 1_048_577}, Code.TELEMETRY_TOO_LARGE),
    ],
)
def test_a_wrong_push_is_refused(client: Wire, fields: Any, code: Code) -> None:
    assert push(client, ask(client), **fields) == code
