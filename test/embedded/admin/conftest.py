"""A cluster of three embedded brokers, and an administrator of it, for tests that need no settings of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafka import KafkaAdminClient
from kafka.broker import Broker


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    return {"nodes": 3, "topics": {"events": 2}}


@pytest.fixture
def admin(broker: Broker) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        yield admin
