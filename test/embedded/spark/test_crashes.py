"""Processes of Spark that are killed anywhere: each row of an exactly-once sink is seen once.

Each is several minutes of Spark starting, so they run with ``-m soak``. Those that are killed at chosen points run
against Apache Kafka, in test/real/spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kafka.broker import Broker
from test.spark_runs import matrix
from test.spark_runs.killing import Plan, fill, run_to_the_end

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'purekafka[spark]'")
pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

ROWS = 20_000


@pytest.fixture
def plan(tmp_path: Path) -> Iterator[Plan]:
    """A copy of some numbers that are there."""
    with Broker(nodes=2, topics={"events": 2, "out": 2}) as running:
        copy = Plan(running.bootstrap_servers, str(tmp_path))
        fill(copy.servers, copy.source, range(ROWS))
        yield copy


def test_a_driver_that_is_killed_repeatedly(plan: Plan) -> None:
    matrix.killed_at_random(plan, kills=3, seed=1)
    matrix.assert_copied(plan, ROWS)


def test_workers_that_are_killed_in_their_tasks(plan: Plan) -> None:
    assert matrix.workers_killed_at_random(replace(plan, master="local[2,20]"), kills=8, seed=2)
    matrix.assert_copied(plan, ROWS)


def test_two_executors_on_a_cluster(plan: Plan) -> None:
    run_to_the_end(replace(plan, master="local-cluster[2,1,1024]"))
    matrix.assert_copied(plan, ROWS)
