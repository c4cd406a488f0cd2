"""A connection that breaks while a broker says what it speaks does not make an old broker of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka import KafkaProducer
from kafka.broker import Broker
from test.embedded.cutting import DOWN, UP, CuttingProxy

WAIT = 60
QUICK = {"retry_backoff_ms": 5, "reconnect_backoff_ms": 5, "reconnect_backoff_max_ms": 20}


@pytest.fixture
def proxy() -> Iterator[CuttingProxy]:
    with Broker(topics=["events"]) as broker, CuttingProxy(broker) as proxy:
        yield proxy


def releases(producer):
    return {link.versions.release for link in producer._core.client.links() if link.versions is not None}


@pytest.mark.parametrize("direction", [UP, DOWN])
@pytest.mark.parametrize("count", [0, 3, 20])
@pytest.mark.parametrize("times", [2, 3, 4])
def test_a_broker_that_has_answered_before_is_not_taken_for_an_old_one(proxy, direction, count, times):
    with KafkaProducer(bootstrap_servers=proxy.bootstrap_servers, **QUICK) as producer:
        producer.send("events", b"x").get(WAIT)
        (newest,) = releases(producer)
        proxy.cut_now()
        proxy.cut_after(count, direction, times)
        producer.send("events", b"x").get(WAIT)
        assert releases(producer) == {newest}


@pytest.mark.parametrize("direction", [UP, DOWN])
@pytest.mark.parametrize("count", [0, 3, 20])
def test_nor_at_the_first_connection(proxy, direction, count):
    proxy.cut_after(count, direction)
    with KafkaProducer(bootstrap_servers=proxy.bootstrap_servers, **QUICK) as producer:
        assert producer.send("events", b"x").get(WAIT).offset == 0
        assert releases(producer).pop() >= (4, 0)
        assert proxy.cuts == 1


def test_an_error_in_place_of_the_versions_does_not_mean_an_old_broker(proxy):
    with (
        proxy._broker.fail("ApiVersions", [7]),  # the code that time limits of ours have too
        KafkaProducer(bootstrap_servers=proxy.bootstrap_servers, **QUICK) as producer,
    ):
        assert producer.send("events", b"x").get(WAIT).offset == 0
