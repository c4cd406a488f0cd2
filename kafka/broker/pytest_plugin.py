"""Fixtures for tests of applications: a broker and a schema registry for each test, and a cluster for the session.

Installed with the package (entry point ``pytest11``), so a test asks for them by name and nothing else is needed::

    def test_order_is_published(kafka_broker):
        publish_order(42, servers=kafka_broker.bootstrap_servers)
        assert [r.value for r in kafka_broker.records("orders")] == [b"42"]

    @pytest.mark.kafka_broker(nodes=3, topics={"orders": 6}, configs={"num.partitions": 6})
    def test_with_options(kafka_broker): ...

    @pytest.fixture
    def kafka_broker_options():  # in a module or a conftest.py: options for the tests without a marker
        return {"topics": {"orders": 6}}

    def test_on_the_shared_cluster(kafka_cluster):  # restored after each test, but for records in topics that stay
        kafka_cluster.stop_node(2)

    @pytest.mark.schema_registry(compatibility="FULL")
    def test_with_schemas(kafka_broker, schema_registry):
        publish_order(42, servers=kafka_broker.bootstrap_servers, registry=schema_registry.url)

    @pytest.fixture(scope="session")
    def kafka_cluster_options():  # in conftest.py: other options for the shared cluster
        return {"nodes": 1, "topics": {"orders": 6}}
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kafka.broker import Broker
    from kafka.schema_registry import SchemaRegistryServer


def pytest_configure(config: pytest.Config) -> None:
    """Make the markers known."""
    config.addinivalue_line(
        "markers",
        "schema_registry(**options): how the fixture schema_registry is made; takes what "
        "kafka.schema_registry.SchemaRegistryServer takes",
    )
    config.addinivalue_line(
        "markers", "kafka_broker(**options): how the fixture kafka_broker is made; takes what kafka.broker.Broker takes"
    )


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    """How the fixture kafka_broker is made without a marker; a module or a conftest.py may have one of this name."""
    return {}


@pytest.fixture
def kafka_broker(request: pytest.FixtureRequest, kafka_broker_options: dict[str, Any]) -> Iterator[Broker]:
    """A running broker, fresh for this test; its options come from the marker, or from kafka_broker_options."""
    # Imported here: the plugin is loaded in every test run of an environment that has the package.
    from kafka.broker import Broker

    marker = request.node.get_closest_marker("kafka_broker")
    with Broker(*marker.args, **marker.kwargs) if marker else Broker(**kafka_broker_options) as broker:
        yield broker


@pytest.fixture
def schema_registry(request: pytest.FixtureRequest) -> Iterator[SchemaRegistryServer]:
    """A running schema registry, fresh for this test; options come from the marker ``schema_registry``."""
    from kafka.schema_registry import SchemaRegistryServer

    marker = request.node.get_closest_marker("schema_registry")
    with SchemaRegistryServer(**(marker.kwargs if marker else {})) as server:
        yield server


@pytest.fixture(scope="session")
def kafka_cluster_options() -> dict[str, Any]:
    """How the fixture kafka_cluster is made; a conftest.py may have one of this name, of session scope, instead."""
    return {"nodes": 3}


@pytest.fixture(scope="session")
def kafka_cluster(kafka_cluster_options: dict[str, Any]) -> Iterator[Broker]:
    """A running cluster of three nodes, at the same addresses for the session and as it was for each test."""
    from kafka.broker import Broker

    with Broker(**kafka_cluster_options) as broker:
        yield broker


@pytest.fixture(autouse=True)
def _kafka_cluster_as_it_was(request: pytest.FixtureRequest) -> Iterator[None]:
    """Restore kafka_cluster after each test that uses it.

    Fixtures of wider scope have run before: what they made is part of the state that is restored.
    """
    if "kafka_cluster" not in request.fixturenames:
        yield
        return
    from kafka.broker import Broker

    cluster = request.getfixturevalue("kafka_cluster")
    if not isinstance(cluster, Broker):  # a fixture of the application that has the same name
        yield
        return
    before = cluster.snapshot()
    yield
    cluster.restore(before)
