"""Brokers whose answers take seconds, and names one of whose addresses leads nowhere, over loopback TCP."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest

from kafka import KafkaClient, KafkaProducer
from kafka.broker import Broker
from kafka.errors import NoBrokersAvailable
from kafka.net.environment import Environment
from test.network import Proxy

pytestmark = [pytest.mark.slow, pytest.mark.kafka_broker(topics=["events"])]


TOO_LONG_FOR_EACH_RUN = [pytest.param(seconds, marks=pytest.mark.soak) for seconds in (4.0, 10.0)]


@pytest.mark.parametrize("seconds", [1.0, 1.8, 2.5, *TOO_LONG_FOR_EACH_RUN])
def test_a_slow_broker_is_connected_to_over_one_connection(broker: Broker, seconds: float) -> None:
    with Proxy() as proxy:
        proxy.target = "127.0.0.1", broker.port()
        proxy.delay_down = seconds
        began = time.monotonic()
        with KafkaClient(bootstrap_servers=proxy.address) as client:
            assert 2 * seconds < time.monotonic() - began
            assert client.api_version > (4, 0)
        assert proxy.accepted == 1


def can_bind(host: str) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as sock:
        try:
            sock.bind((host, 0))
        except OSError:
            return False
    return True


@pytest.mark.parametrize("bad", ["127.0.0.2", "::1"])
@pytest.mark.parametrize("hangs_up", [True, False], ids=["hangs up", "says nothing"])
def test_the_second_address_of_a_name_is_tried(broker: Broker, bad: str, hangs_up: bool) -> None:
    if not can_bind(bad):
        pytest.skip(f"this machine has no address {bad}")
    with Proxy() as good, Proxy(bad, good.port) as wrong:
        good.target = "127.0.0.1", broker.port()
        wrong.hangs_up = hangs_up

        def lookup(host: str, port: int, *_hints: int) -> list[tuple[Any, ...]]:
            addresses = [bad, "127.0.0.1"] if host == "kafka.test" else [host]
            return [entry for each in addresses for entry in socket.getaddrinfo(each, port, 0, socket.SOCK_STREAM)]

        with KafkaProducer(
            bootstrap_servers=f"kafka.test:{good.port}",
            environment=Environment(lookup=lookup),
            socket_connection_setup_timeout_ms=1000,
        ) as producer:
            assert producer.send("events", b"x").get(timeout=30).offset == 0
        assert good.accepted == 1
        assert wrong.accepted


def test_a_producer_may_start_before_its_broker(broker: Broker) -> None:
    attempts: list[float] = []

    def make_socket(*words: Any) -> socket.socket:
        attempts.append(time.monotonic())
        if attempts[-1] - attempts[0] > 3:
            proxy.heal()
        return socket.socket(*words)

    with Proxy() as proxy:
        proxy.target = "127.0.0.1", broker.port()
        proxy.refuse()
        advice = "to wait for a cluster that starts later set bootstrap_timeout_ms"
        with pytest.raises(NoBrokersAvailable, match=advice):
            KafkaProducer(bootstrap_servers=proxy.address)
        with KafkaProducer(
            bootstrap_servers=proxy.address,
            bootstrap_timeout_ms=60_000,
            environment=Environment(make_socket=make_socket),
        ) as producer:
            assert producer.send("events", b"x").get(timeout=30).offset == 0
