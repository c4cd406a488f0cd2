"""The fixtures that come with the package, in a test run of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

TESTS = """
import pytest

names = []


def test_fresh(kafka_broker):
    kafka_broker.create_topic("orders")
    kafka_broker.append("orders", "42")
    assert [record.value for record in kafka_broker.records("orders")] == [b"42"]


def test_fresh_again(kafka_broker):
    assert kafka_broker.run(lambda cluster: list(cluster.topics)) == []
    assert len(kafka_broker.bootstrap_servers.split(",")) == 1


@pytest.mark.kafka_broker(nodes=2, topics={"orders": 6}, as_version="2.8")
def test_options(kafka_broker):
    assert len(kafka_broker.node_ids) == 2
    assert kafka_broker.run(lambda cluster: len(cluster.topics["orders"].partitions)) == 6


def test_registry(schema_registry):
    from kafka.schema_registry import SchemaRegistry

    assert SchemaRegistry(schema_registry.url).compatibility() == "BACKWARD"


@pytest.mark.schema_registry(compatibility="FULL")
def test_registry_with_options(schema_registry):
    from kafka.schema_registry import SchemaRegistry

    assert SchemaRegistry(schema_registry.url).compatibility() == "FULL"


def test_cluster(kafka_cluster):
    assert len(kafka_cluster.bootstrap_servers.split(",")) == 3
    names.append(kafka_cluster)


def test_cluster_is_shared(kafka_cluster):
    assert names == [kafka_cluster]


@pytest.fixture(scope="module")
def topic_of_the_module(kafka_cluster):
    kafka_cluster.create_topic("of-the-module")
    kafka_cluster.append("of-the-module", "a")


@pytest.mark.parametrize("time", [1, 2])
def test_changes_of_a_test_do_not_reach_the_next_one(kafka_cluster, topic_of_the_module, time):
    names = kafka_cluster.run(lambda cluster: sorted(cluster.topics))
    assert names == ["of-the-module"]
    assert len(kafka_cluster.records("of-the-module")) == 1
    assert not kafka_cluster.clock.is_frozen
    assert kafka_cluster.run(lambda cluster: len(cluster.live_nodes())) == 3
    assert not kafka_cluster.run(lambda cluster: cluster.faults.is_active)
    kafka_cluster.create_topic("mine")
    kafka_cluster.stop_node(2)
    kafka_cluster.clock.freeze()
    kafka_cluster.fail("Fetch", "NOT_CONTROLLER")
"""
OPTIONS = """
import pytest


@pytest.fixture(scope="session")
def kafka_cluster_options():
    return {"nodes": 2, "topics": {"orders": 6}}


def test_the_cluster_is_as_the_project_wants_it(kafka_cluster):
    assert len(kafka_cluster.node_ids) == 2
    assert kafka_cluster.offsets("orders", 5) == (0, 0, 0)
"""


A_CLUSTER_OF_THE_PROJECT = """
import pytest


@pytest.fixture(scope="session")
def kafka_cluster():
    return "what the project calls its cluster"


def test_the_project_s_fixture_is_left_alone(kafka_cluster):
    assert kafka_cluster == "what the project calls its cluster"
"""

IN_PARALLEL = """
import json
import os

import pytest

from kafka import KafkaConsumer, KafkaProducer


@pytest.fixture(scope="session")
def kafka_cluster_options():
    return {"nodes": 2}


@pytest.fixture(scope="module")
def of_the_module(kafka_cluster):
    kafka_cluster.create_topic("of-the-module")
    kafka_cluster.append("of-the-module", "a")


def check_and_use(broker, names):
    assert broker.run(lambda cluster: sorted(cluster.topics)) == names
    servers = broker.bootstrap_servers
    with KafkaProducer(bootstrap_servers=servers) as producer:
        producer.send("payments", b"42").get(30)
    options = {"bootstrap_servers": servers, "auto_offset_reset": "earliest", "group_id": "readers"}
    with KafkaConsumer("payments", **options) as consumer:
        assert next(consumer).value == b"42"
        consumer.commit()
    with open(os.environ["NOTES"], "a") as file:
        print(json.dumps([os.environ["PYTEST_XDIST_WORKER"], len(names), servers]), file=file)


@pytest.mark.parametrize("number", range(8))
def test_on_the_cluster_of_the_session(kafka_cluster, of_the_module, number):
    assert len(kafka_cluster.records("of-the-module")) == 1
    check_and_use(kafka_cluster, ["of-the-module"])
    kafka_cluster.stop_node(2)


@pytest.mark.kafka_broker(as_version="2.8", topics={"orders": 1, "payments": 1})
@pytest.mark.parametrize("number", range(8))
def test_on_a_broker_of_a_marker(kafka_broker, number):
    check_and_use(kafka_broker, ["orders", "payments"])
"""


def test_a_suite_in_several_processes_of_xdist_has_a_cluster_in_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = tmp_path / "notes"
    monkeypatch.setenv("NOTES", str(notes))
    (tmp_path / "test_orders.py").write_text(IN_PARALLEL, encoding="utf-8")
    assert "16 passed" in (printed := pytest_in(tmp_path, "-n", "4")), printed
    seen = [json.loads(line) for line in notes.read_text(encoding="utf-8").splitlines()]
    clusters = {(worker, servers) for worker, topics, servers in seen if topics == 1}
    workers = {worker for worker, _ in clusters}
    assert len(workers) > 1
    assert (
        len({servers for _, servers in clusters}) == len(clusters) == len(workers)
    )  # each at one address all the time
    assert len({servers for _, topics, servers in seen if topics == 2}) == 8


@pytest.mark.parametrize(
    ("tests", "count"),
    [(TESTS, 9), (OPTIONS, 1), (A_CLUSTER_OF_THE_PROJECT, 1)],
    ids=["fixtures", "options", "the same name in a project"],
)
def test_a_project_gets_a_broker_by_asking_for_a_fixture(tmp_path: Path, tests: str, count: int) -> None:
    (tmp_path / "test_orders.py").write_text(tests, encoding="utf-8")
    assert f"{count} passed" in pytest_in(tmp_path)


def pytest_in(directory: Path, *options: str) -> str:
    """Run the tests of a project of its own; return what pytest prints."""
    command = [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-W", "error", "-p", "no:randomly", *options]
    if not _is_installed():
        command += ["-p", "kafka.broker.pytest_plugin"]
    result = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=180, check=False)
    return result.stdout + result.stderr


def _is_installed() -> bool:
    """Whether pytest finds the plugin by itself; not so in a checkout that was installed before it had one."""
    from importlib.metadata import entry_points

    return any(point.value == "kafka.broker.pytest_plugin" for point in entry_points(group="pytest11"))


def test_the_plugin_costs_runs_without_a_broker_nothing() -> None:
    program = (
        "import kafka.broker.pytest_plugin, sys; print('asyncio' in sys.modules, 'kafka.broker.broker' in sys.modules, "
        "'kafka.schema_registry' in sys.modules)"
    )
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.split() == ["False", "False", "False"]
