"""The fixtures that come with the package, in a test run of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


def test_cluster(kafka_cluster):
    assert len(kafka_cluster.bootstrap_servers.split(",")) == 3
    names.append(kafka_cluster)


def test_cluster_is_shared(kafka_cluster):
    assert names == [kafka_cluster]
"""


def test_a_project_gets_a_broker_by_asking_for_a_fixture(tmp_path: Path) -> None:
    (tmp_path / "test_orders.py").write_text(TESTS, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-W", "error", "-p", "no:randomly"]
    if not _is_installed():
        command += ["-p", "kafka.broker.pytest_plugin"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert "5 passed" in result.stdout, result.stdout + result.stderr


def _is_installed() -> bool:
    """Whether pytest finds the plugin by itself; not so in a checkout that was installed before it had one."""
    from importlib.metadata import entry_points

    return any(point.value == "kafka.broker.pytest_plugin" for point in entry_points(group="pytest11"))


def test_the_plugin_costs_runs_without_a_broker_nothing() -> None:
    program = (
        "import kafka.broker.pytest_plugin, sys; print('asyncio' in sys.modules, 'kafka.broker.broker' in sys.modules)"
    )
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.split() == ["False", "False"]
