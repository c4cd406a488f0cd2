"""Three nodes of Apache Kafka that clients reach through proxies, so that the network can fail as the nodes do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from random import Random

import pytest

from test.network import Proxy
from test.real import ports
from test.real.conftest import QUICK_SESSIONS
from test.real.kafka_process import KafkaCluster

NODES = (1, 2, 3)


@dataclass
class Site:
    """A cluster and the ways to its nodes."""

    cluster: KafkaCluster
    proxies: dict[int, Proxy]

    def heal(self) -> None:
        """Start what was killed, let run what was frozen, and open all ways."""
        for node in self.cluster.nodes:
            if node in self.cluster.running():
                self.cluster.resume(node)
            else:
                self.cluster.start(node)
            self.proxies[node].heal()


@pytest.fixture(scope="module")
def whole_site(kafka_version: str) -> Iterator[Site]:
    with ExitStack() as opened:
        proxies = {}
        for node in NODES:
            port = ports.reserve()
            opened.callback(ports.release, port)
            proxies[node] = opened.enter_context(Proxy(port=port))
        cluster = opened.enter_context(
            KafkaCluster(
                kafka_version,
                nodes=len(NODES),
                listeners=["CLIENT:PLAINTEXT"],
                advertised_ports={node: proxy.port for node, proxy in proxies.items()},
                properties=QUICK_SESSIONS,
            )
        )
        for node, proxy in proxies.items():
            proxy.target = cluster.address(node, "CLIENT")
        yield Site(cluster, proxies)


@pytest.fixture
def site(whole_site: Site) -> Iterator[Site]:
    """The cluster for a test, whole again after it."""
    yield whole_site
    whole_site.heal()


@pytest.fixture
def seconds() -> float:
    """How long faults come: PUREKAFKA_SECONDS, 300 if it is not set."""
    return float(os.environ.get("PUREKAFKA_SECONDS", "300"))


@pytest.fixture
def rng() -> Random:
    """Chance, from PUREKAFKA_SEED, 1 if it is not set."""
    return Random(os.environ.get("PUREKAFKA_SEED", "1"))
