"""Fixtures for tests of applications: a broker for each test, and a cluster for the session.

Installed with the package (entry point ``pytest11``), so a test asks for them by name and nothing else is needed::

    def test_order_is_published(kafka_broker):
        publish_order(42, servers=kafka_broker.bootstrap_servers)
        assert [r.value for r in kafka_broker.records("orders")] == [b"42"]

    @pytest.mark.kafka_broker(nodes=3, topics={"orders": 6}, configs={"num.partitions": 6})
    def test_with_options(kafka_broker): ...
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kafka.broker import Broker

__all__ = ["kafka_broker", "kafka_cluster", "pytest_configure"]


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers", "kafka_broker(**options): how the fixture kafka_broker is made; takes what kafka.broker.Broker takes"
    )


@pytest.fixture
def kafka_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A running broker, fresh for this test; options come from the marker ``kafka_broker``."""
    # Imported here: the plugin is loaded in every test run of an environment that has the package.
    from kafka.broker import Broker

    marker = request.node.get_closest_marker("kafka_broker")
    with Broker(*(marker.args if marker else ()), **(marker.kwargs if marker else {})) as broker:
        yield broker


@pytest.fixture(scope="session")
def kafka_cluster() -> Iterator[Broker]:
    """A running cluster of three nodes, shared by the session: give your topics and groups names of their own."""
    from kafka.broker import Broker

    with Broker(nodes=3) as broker:
        yield broker
