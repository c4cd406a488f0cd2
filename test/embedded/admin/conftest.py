"""A cluster of three embedded brokers, and an administrator of it, for tests that need no settings of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka import KafkaAdminClient
from kafka.broker import Broker


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(nodes=3, topics={"events": 2}) as broker:
        yield broker


@pytest.fixture
def admin(broker: Broker) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        yield admin
