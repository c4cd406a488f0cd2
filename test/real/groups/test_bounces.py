"""Groups go on while each broker in turn is restarted or killed: nothing lost, nothing doubled without need."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import pytest

from test.real.kafka_process import KafkaCluster

from .conftest import KINDS, MakeGroup
from .judge import check
from .waiting import wait_read
from .writer import Writer

OPTIONS = {"session_timeout_ms": 6000, "request_timeout_ms": 5000}


def options(kind: str) -> dict[str, int]:
    if kind == "consumer":
        return {"request_timeout_ms": 5000}
    return OPTIONS | {"heartbeat_interval_ms": 1000}


def bounce(cluster: KafkaCluster, node: int, how: str) -> None:
    if how == "kill":
        cluster.kill(node)
    else:
        cluster.stop(node)
    time.sleep(1.0)  # the time in which a person starts it again
    cluster.start(node)


def go_away(cluster: KafkaCluster, seconds: float) -> None:
    """Kill all nodes, and start them again later."""
    for node in cluster.nodes:
        cluster.kill(node)
    time.sleep(seconds)
    cluster.start_all()


def run(
    cluster: KafkaCluster, make_group: MakeGroup, kinds: list[str], members: int, troubles: list[Callable[[], None]]
) -> None:
    topic = cluster.create_topic(f"bounces-{'-'.join(kinds)}-{members}", 6, 3, {"min.insync.replicas": "2"})
    groups = []
    with Writer(cluster.bootstrap_servers, topic, 6) as writer:
        for kind in kinds:
            group = make_group(cluster, topic, f"{topic}-{kind}", options=options(kind), **KINDS[kind])
            group.join(members)
            groups.append(group)
        for group in groups:
            group.wait_shared_out()
        wait_read(groups, writer)
        for trouble in troubles:
            trouble()
            wait_read(groups, writer)
        writer.stop()
        wait_read(groups, writer)
    for kind, group in zip(kinds, groups, strict=True):
        group.wait_shared_out()
        for member in group.members:
            assert member.running(), member.log()
        group.stop()
        print(f"{kind}: {check(group.members, writer.written)}")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_groups_outlive_a_broker_that_is_killed_and_restarted(
    kafka_cluster: KafkaCluster, make_group: MakeGroup
) -> None:
    """The short form: two members of each kind at once."""
    run(kafka_cluster, make_group, list(KINDS), 2, [partial(bounce, kafka_cluster, 1, "kill")])


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", list(KINDS))
def test_six_members_outlive_clean_and_hard_bounces(
    kafka_cluster: KafkaCluster, make_group: MakeGroup, kind: str
) -> None:
    bounces = [
        partial(bounce, kafka_cluster, node, how) for how in ("stop", "kill") * 2 for node in kafka_cluster.nodes
    ]
    run(kafka_cluster, make_group, [kind], 6, [*bounces])


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_groups_outlive_a_minute_without_any_broker(kafka_cluster: KafkaCluster, make_group: MakeGroup) -> None:
    run(kafka_cluster, make_group, list(KINDS), 3, [partial(go_away, kafka_cluster, 60.0)])
