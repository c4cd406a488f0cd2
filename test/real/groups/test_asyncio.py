"""Groups of synchronous and asyncio members, ours and other libraries', while members are restarted one by one."""

from __future__ import annotations

from typing import Any

import pytest

from test.real.kafka_process import KafkaCluster

from .conftest import MakeGroup
from .judge import check
from .members import Group
from .test_interoperation import PARTITIONS, plan_of, settle
from .writer import Writer

MEMBERS = {
    "default": ["ours", "ours-asyncio", "aiokafka", "kafka-python"],
    "range": ["ours", "ours-asyncio", "aiokafka", "confluent-kafka"],
    "roundrobin": ["ours", "ours-asyncio", "aiokafka", "confluent-kafka"],
    "sticky": ["ours", "ours-asyncio", "aiokafka", "kafka-python"],
    "cooperative-sticky": ["ours", "ours-asyncio", "kafka-python", "confluent-kafka"],  # aiokafka has none
    "consumer": ["ours", "ours-asyncio", "ours-asyncio", "confluent-kafka"],  # nor KIP-848
}


def restart_each(group: Group, writer: Writer, *, kill: bool) -> None:
    """End each member in turn, and let another of its kind take its place."""
    for member in list(group.live):
        if kill:
            member.kill()
        else:
            member.stop()
        group.join(kind=member.kind)
        settle(group, writer)


def run(cluster: KafkaCluster, make_group: MakeGroup, kind: str, ways: list[bool]) -> None:
    topic = cluster.create_topic(f"asyncio-{kind}-{len(ways)}", PARTITIONS)
    plan: dict[str, Any] = plan_of("range" if kind == "default" else kind)
    if kind == "default":
        plan["assignors"] = None
    if kind == "consumer":
        plan["options"] = {}
    group = make_group(cluster, topic, topic, PARTITIONS, **plan)
    with Writer(cluster.bootstrap_servers, topic, PARTITIONS) as writer:
        for member in MEMBERS[kind]:
            group.join(kind=member)
        settle(group, writer)
        for kill in ways:
            restart_each(group, writer, kill=kill)
        writer.stop()
        settle(group, writer)
    group.stop()
    print(f"{kind}: {len(group.members)} members, {check(group.members, writer.written)}")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_members_of_both_faces_and_of_other_libraries_with_their_defaults_are_restarted_one_by_one(
    kafka: KafkaCluster, make_group: MakeGroup
) -> None:
    run(kafka, make_group, "default", [False])


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", list(MEMBERS))
def test_they_are_restarted_twice_and_killed_twice(kafka: KafkaCluster, make_group: MakeGroup, kind: str) -> None:
    run(kafka, make_group, kind, [False, True, False, True])
