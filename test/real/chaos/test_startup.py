"""How long a producer takes from its making to the third acknowledged record, in bad circumstances; a row for each.

Run by ``make soak-chaos``; the rows are shown with ``-rP``.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from kafka import KafkaProducer
from kafka.net.environment import Environment
from test.network import Proxy
from test.real.chaos.conftest import Site
from test.real.producer.load import PARTITIONS, new_topic

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

PATIENCE = 200.0
NAME = "kafka.test"


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def topic(site: Site) -> str:
    return new_topic(site.cluster, f"startup-{time.monotonic_ns()}")


def start(case: str, topic: str, servers: str, **configs: Any) -> float:
    """Make a producer and send a record to each partition; seconds until all are acknowledged."""
    began = time.monotonic()
    with KafkaProducer(bootstrap_servers=servers, **configs) as producer:
        futures = [producer.send(topic, b"x", partition=partition) for partition in range(PARTITIONS)]
        for future in futures:
            assert future.get(timeout=PATIENCE).offset >= 0
        took = time.monotonic() - began
    print(f"\n| {case} | {took:.1f} |")
    return took


def test_nothing_is_wrong(site: Site, topic: str) -> None:
    start("nothing is wrong", topic, site.cluster.bootstrap_servers)


def refuses(proxy: Proxy) -> None:
    proxy.refuse()


def hangs_up(proxy: Proxy) -> None:
    proxy.hangs_up = True


def says_nothing(proxy: Proxy) -> None:
    proxy.hold()


WRONG = [refuses, hangs_up, says_nothing]


@pytest.mark.parametrize("wrong", WRONG)
def test_two_of_three_servers_are_wrong(
    site: Site, topic: str, opened: ExitStack, wrong: Callable[[Proxy], None]
) -> None:
    others = [opened.enter_context(Proxy()) for _ in range(2)]
    for other in others:
        wrong(other)
    servers = [other.address for other in others] + [site.proxies[1].address]
    start(f"two of three servers: {wrong.__name__}", topic, ",".join(servers))


@pytest.mark.parametrize("wrong", WRONG)
def test_the_first_address_of_the_name_is_wrong(
    site: Site, topic: str, opened: ExitStack, wrong: Callable[[Proxy], None]
) -> None:
    good = site.proxies[1]
    bad = opened.enter_context(Proxy("127.0.0.2", good.port))
    wrong(bad)

    def lookup(host: str, port: int, *_hints: int) -> list[tuple[Any, ...]]:
        addresses = [bad.host, good.host] if host == NAME else [host]
        return [entry for each in addresses for entry in socket.getaddrinfo(each, port, 0, socket.SOCK_STREAM)]

    environment = Environment(lookup=lookup)
    start(f"first address: {wrong.__name__}", topic, f"{NAME}:{good.port}", environment=environment)


@pytest.mark.parametrize("seconds", [1.0, 1.8, 2.4, 4.0, 10.0])
def test_each_answer_takes_its_time(site: Site, topic: str, seconds: float) -> None:
    before = sum(proxy.accepted for proxy in site.proxies.values())
    for proxy in site.proxies.values():
        proxy.delay_down = seconds
    start(f"each answer takes {seconds} s", topic, site.proxies[1].address)
    # One to the server, and one to each leader.
    assert sum(proxy.accepted for proxy in site.proxies.values()) - before <= 1 + 2 * PARTITIONS


def test_one_broker_is_silent(site: Site, topic: str) -> None:
    """Partitions of the other brokers do not wait for it, and its own has another leader soon if it is gone."""
    silent = site.cluster.leader(topic, 0)
    site.proxies[silent].hold()
    others = [number for number in range(PARTITIONS) if site.cluster.leader(topic, number) != silent]
    began = time.monotonic()
    with KafkaProducer(
        bootstrap_servers=site.cluster.bootstrap_servers, request_timeout_ms=5000, delivery_timeout_ms=20_000
    ) as producer:
        own = producer.send(topic, b"x", partition=0)
        for future in [producer.send(topic, b"x", partition=number) for number in others]:
            future.get(timeout=PATIENCE)
        took = time.monotonic() - began
        assert not own.is_done
        site.proxies[silent].heal()
        assert own.get(timeout=PATIENCE).offset >= 0
    print(f"\n| one of three brokers is silent, records of the others | {took:.1f} |")


@pytest.mark.parametrize("seconds", [18, 48])
def test_the_cluster_comes_up_later(site: Site, topic: str, seconds: float) -> None:
    cluster = site.cluster
    for node in cluster.nodes:
        cluster.kill(node)
    is_up: list[float] = []

    def come_up() -> None:
        with ThreadPoolExecutor() as pool:  # none is ready before most are
            list(pool.map(cluster.start, cluster.nodes))
        is_up.append(time.monotonic())

    timer = threading.Timer(seconds, come_up)
    timer.start()
    try:
        began = time.monotonic()
        took = start(
            f"the cluster comes up after {seconds} s", topic, cluster.bootstrap_servers, bootstrap_timeout_ms=180_000
        )
    finally:
        timer.join()
    print(f"\n| the same, after the last node answered | {began + took - is_up[0]:.1f} |")
