"""Ours in one group with members of kafka-python, confluent-kafka and Java: nobody loses or doubles a record."""

from __future__ import annotations

from typing import Any

import pytest

from kafka.broker import Broker
from test.real.kafka_process import KafkaCluster

from .conftest import MakeGroup
from .judge import check
from .members import Group
from .waiting import wait_read
from .writer import Writer

PARTITIONS = 12  # so that two, three, four and six members have equal shares
JAVA = "org.apache.kafka.clients.consumer."
JAVA_NAMES = {
    "range": JAVA + "RangeAssignor",
    "roundrobin": JAVA + "RoundRobinAssignor",
    "sticky": JAVA + "StickyAssignor",
    "cooperative-sticky": JAVA + "CooperativeStickyAssignor",
}
PEERS = {
    "range": ["kafka-python", "confluent-kafka", "java"],
    "roundrobin": ["kafka-python", "confluent-kafka", "java"],
    "sticky": ["kafka-python", "java"],  # librdkafka has none
    "cooperative-sticky": ["kafka-python", "confluent-kafka", "java"],
    "consumer": ["confluent-kafka", "java"],  # kafka-python has no KIP-848
}


def plan_of(kind: str) -> dict[str, Any]:
    if kind == "consumer":
        return {"protocol": "consumer", "java": {"group.protocol": "consumer"}}
    java = {"partition.assignment.strategy": JAVA_NAMES[kind]}
    options = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 500}
    return {"assignors": [kind], "java": java, "options": options}


def settle(group: Group, writer: Writer) -> None:
    group.wait_shared_out()
    wait_read([group], writer)


def come_and_go(group: Group, writer: Writer, peers: list[str], *, rounds: int, kill: bool) -> None:
    """Ours first, then each peer; then each leaves, ours too; and again."""
    group.join()
    settle(group, writer)
    for _ in range(rounds):
        for peer in peers:
            group.join(kind=peer)
            settle(group, writer)
        group.join()
        settle(group, writer)
        for member in list(group.live)[:-1]:
            if kill and member.kind != "java":
                member.kill()
            else:
                member.stop()
            settle(group, writer)


def in_one_group(servers: Any, make_group: MakeGroup, topic: str, kind: str, **how: Any) -> None:
    group = make_group(servers, topic, topic, PARTITIONS, **plan_of(kind))
    with Writer(servers.bootstrap_servers, topic, PARTITIONS) as writer:
        come_and_go(group, writer, PEERS[kind], **how)
        writer.stop()
        settle(group, writer)
    group.stop()
    print(f"{kind}: {check(group.members, writer.written)}")


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["cooperative-sticky"])
def test_all_kinds_of_members_come_and_go(kafka: KafkaCluster, make_group: MakeGroup, kind: str) -> None:
    topic = kafka.create_topic(f"together-{kind}", PARTITIONS)
    in_one_group(kafka, make_group, topic, kind, rounds=1, kill=False)


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kill", [False, True], ids=["leave", "kill"])
@pytest.mark.parametrize("kind", list(PEERS))
def test_they_come_and_go_twice(kafka: KafkaCluster, make_group: MakeGroup, kind: str, kill: bool) -> None:
    topic = kafka.create_topic(f"together-{kind}-{kill}", PARTITIONS)
    in_one_group(kafka, make_group, topic, kind, rounds=2, kill=kill)


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", list(PEERS))
def test_they_come_and_go_at_the_embedded_broker(make_group: MakeGroup, kind: str) -> None:
    configs = {"group.initial.rebalance.delay.ms": 0}
    with Broker(nodes=2, topics={"together": PARTITIONS}, configs=configs) as broker:
        in_one_group(broker, make_group, "together", kind, rounds=1, kill=False)
