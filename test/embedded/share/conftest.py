"""A broker for each test, and share consumers that are closed with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from kafka import KafkaAdminClient, KafkaShareConsumer
from kafka.admin import ConfigResource
from kafka.broker import Broker

GROUP = "workers"
MakeMember = Callable[..., Any]


def configure(broker: Broker, **configs: str) -> None:
    """Set configurations of the group; underscores stand for dots."""
    named = {name.replace("_", "."): value for name, value in configs.items()}
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.alter_configs([ConfigResource("GROUP", GROUP, named)])


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    return {"nodes": 2, "topics": {"jobs": 1, "more": 2}}


@pytest.fixture
def broker(kafka_broker: Broker) -> Broker:
    configure(kafka_broker, share_auto_offset_reset="earliest")
    return kafka_broker


@pytest.fixture
def member(broker: Broker, face: str) -> Iterator[MakeMember]:
    """Makes members of the group, on the face of the test, that acknowledge each record."""
    yield from members(KafkaShareConsumer, broker.bootstrap_servers)


def members(kind: Callable[..., Any], bootstrap_servers: str) -> Iterator[MakeMember]:
    """The same with the class that the face gives."""
    with ExitStack() as opened:

        def make(*topics: str, **configs: Any) -> Any:
            chosen = {
                "bootstrap_servers": bootstrap_servers,
                "group_id": GROUP,
                "share_acknowledgement_mode": "explicit",
                "consumer_timeout_ms": 30_000,
                "retry_backoff_ms": 10,
                "reconnect_backoff_ms": 10,
                **configs,
            }
            made = kind(*(topics or ("jobs",)), **chosen)
            opened.callback(made.close, timeout_ms=5000)
            return made

        yield make
