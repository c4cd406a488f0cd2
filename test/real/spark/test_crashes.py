"""Processes of Spark that are killed while they copy a topic of Apache Kafka.

At least once loses nothing, exactly once shows each row once to consumers of committed records, whatever died and when.
Each is minutes of Spark starting again and again, so they run with ``-m soak``.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from test.spark_runs import matrix
from test.spark_runs.killing import Plan, fill

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'purekafka[spark]'")
pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

ROWS = 12_000
MakePlan = Callable[..., Plan]
LOCAL = "local[2,8]"
CLUSTER = "local-cluster[2,1,1024]"
both_guarantees = pytest.mark.parametrize("exactly_once", [True, False], ids=["exactly_once", "at_least_once"])


def filled(plan: Plan) -> Plan:
    fill(plan.servers, plan.source, range(ROWS))
    return plan


@both_guarantees
def test_a_driver_that_is_killed_at_each_point(plan: MakePlan, exactly_once: bool) -> None:
    copy = filled(plan(exactly_once=exactly_once))
    matrix.killed_drivers(copy)
    repeated = matrix.assert_copied(copy, ROWS)
    print(f"killed drivers, exactly once {exactly_once}: {repeated} of {ROWS} rows repeated")
    assert exactly_once or repeated, "a batch that is done again is written again"


@pytest.mark.parametrize(
    ("master", "exactly_once"),
    [(LOCAL, True), (LOCAL, False), (CLUSTER, True)],
    ids=["once", "at_least_once", "cluster"],
)
def test_workers_that_are_killed_at_each_point(plan: MakePlan, exactly_once: bool, master: str) -> None:
    copy = filled(plan(exactly_once=exactly_once, master=master))
    matrix.killed_workers(copy)
    repeated = matrix.assert_copied(copy, ROWS)
    print(f"killed workers of {master}, exactly once {exactly_once}: {repeated} of {ROWS} rows repeated")


def test_the_executors_of_a_cluster_that_are_killed(plan: MakePlan) -> None:
    copy = filled(plan(master=CLUSTER))
    matrix.killed_executors(copy)
    assert matrix.assert_copied(copy, ROWS) == 0


def test_a_start_at_the_latest_offsets_is_kept_when_the_driver_is_killed_before_its_first_batch(plan: MakePlan) -> None:
    found = matrix.anchor_of_a_latest_start(plan(start="latest"))
    assert sorted(found) == list(range(100, 600))
    assert found.total() == 500
