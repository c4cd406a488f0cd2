"""A scripted cluster in memory, and consumers of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kafka._core.client import Client, make_client
from kafka.consumer import KafkaConsumer
from test.unit.consumer.scripted import Cluster, HereDriver, MakeConsumer


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def make(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeConsumer]:
    """Makes consumers of the cluster that read from the beginning; closes them, and looks for what they left."""
    made: list[KafkaConsumer] = []
    threads = threading.active_count()

    def client(config: Any) -> Client:
        found = make_client(config, cluster.network.environment())
        cluster.loop = found.loop
        return found

    monkeypatch.setattr("kafka._core.client.make_client", client)
    monkeypatch.setattr("kafka._runtime.network_thread.ThreadDriver", HereDriver)

    def make(*topics: str, **configs: Any) -> KafkaConsumer:
        chosen = {"bootstrap_servers": "b0", "auto_offset_reset": "earliest", "client_id": "c", **configs}
        consumer = KafkaConsumer(*topics, **chosen)
        made.append(consumer)
        return consumer

    yield make
    for consumer in made:
        consumer.close(timeout_ms=0)
    assert not cluster.network.open_sockets
    assert threading.active_count() <= threads
