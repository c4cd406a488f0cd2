"""Producers in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from test.unit.producer.memory_cluster import Cluster, InlineDriver, Producer


@pytest.fixture
def make_producer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Producer]]:
    monkeypatch.setattr("kafka.producer.kafka.ThreadDriver", InlineDriver)
    made: list[Producer] = []

    def make(cluster: Cluster, **options: Any) -> Producer:
        made.append(cluster.producer(**options))
        return made[-1]

    yield make
    for producer in made:
        producer.close(timeout=0)
        assert not producer.cluster.network.open_sockets
