"""Many members, many partitions: a rebalance moves what has to move, and all else is read meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from kafka.broker import Broker
from kafka.structs import TopicPartition

from .crowd import Crowd

KINDS: dict[str, dict[str, Any]] = {
    "cooperative-sticky": {"partition_assignment_strategy": ["cooperative-sticky"], "heartbeat_interval_ms": 500},
    "consumer": {"group_protocol": "consumer"},
}
CONFIGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.heartbeat.interval.ms": 500,
    "group.consumer.max.size": 1000,
}
HELD_UP = 2.0  # seconds that the end of the rebalance is kept away


def read_everywhere(broker: Broker, crowd: Crowd, seconds: float) -> None:
    """Write a record to each partition that someone keeps, and see each of them read."""
    kept = [(person, partition) for person in crowd.people for partition in sorted(person.owned)]
    for _, partition in kept:
        broker.append(partition.topic, b"now", partition=partition.partition)
    ends = {partition: broker.offsets(*partition)[1] for _, partition in kept}

    def read() -> bool:
        return all(person.read.get(partition) == ends[partition] for person, partition in kept)

    crowd.poll_until(read, "record of each partition", seconds)


def come_and_go(kind: str, members: int, partitions: int, patience: float) -> None:
    with (
        Broker(topics={"t": partitions}, configs=CONFIGS) as broker,
        Crowd(broker.bootstrap_servers, "t", partitions, group_id="crowd", **KINDS[kind]) as crowd,
    ):
        crowd.join(members)
        took = crowd.poll_until(crowd.shared_out, "share for each", patience)
        print(f"{kind}: {members} members have {partitions} partitions {took:.1f} s after the last one came")
        read_everywhere(broker, crowd, patience)

        crowd.forget()
        crowd.join()
        took = crowd.poll_until(crowd.shared_out, "share for each", patience)
        print(f"{kind}: one more came, {crowd.moved()} partitions moved in {took:.1f} s")
        assert crowd.moved() == len(crowd.people[-1].owned) <= -(-partitions // len(crowd.people))

        crowd.forget()
        had = crowd.leave()
        took = crowd.poll_until(crowd.shared_out, "share for each", patience)
        print(f"{kind}: one left, {len(had)} partitions went to others in {took:.1f} s, {crowd.moved()} besides")
        assert crowd.moved() == 0
        assert set().union(*(person.given for person in crowd.people)) == had


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(KINDS))
def test_a_rebalance_moves_no_more_than_it_has_to(kind: str) -> None:
    come_and_go(kind, members=20, partitions=200, patience=30)


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", list(KINDS))
def test_a_hundred_members_of_a_thousand_partitions(kind: str) -> None:
    come_and_go(kind, members=100, partitions=1000, patience=200)


def read_during_a_rebalance(members: int, partitions: int, patience: float) -> None:
    with (
        Broker(topics={"t": partitions}, configs=CONFIGS) as broker,
        Crowd(broker.bootstrap_servers, "t", partitions, group_id="crowd", **KINDS["cooperative-sticky"]) as crowd,
    ):
        crowd.join(members)
        crowd.poll_until(crowd.shared_out, "share for each", patience)
        slow = broker.delay("SyncGroup", patience)
        crowd.join()
        old = crowd.people[:-1]
        crowd.poll_until(lambda: all("assignment" in one.state for one in old), "member that waits", patience)
        read_everywhere(broker, crowd, patience / 2)
        assert all("assignment" in one.state for one in old)
        slow.remove()
        broker.drop_connections()  # what waits at the broker comes again
        crowd.poll_until(crowd.shared_out, "share for each", patience)


@pytest.mark.slow
def test_what_members_keep_is_read_while_the_group_rebalances() -> None:
    read_during_a_rebalance(members=10, partitions=100, patience=20)


@pytest.mark.slow
def test_partitions_that_a_member_keeps_are_read_while_another_is_slow_to_revoke() -> None:
    """In the protocol of KIP-848 nobody waits for anybody: only the partitions that go are late."""
    with (
        Broker(topics={"t": 40}, configs=CONFIGS) as broker,
        Crowd(broker.bootstrap_servers, "t", 40, group_id="crowd", **KINDS["consumer"]) as crowd,
    ):
        crowd.join(4)
        crowd.poll_until(crowd.shared_out, "share for each", 20)
        laggard = crowd.people.pop()
        crowd.join()
        # Eight for each, of which the newcomer lacks the two that the laggard has yet to give up.
        crowd.poll_until(lambda: [len(one.owned) for one in crowd.people] == [8, 8, 8, 6], "share", 20)
        read_everywhere(broker, crowd, 10)
        assert len(crowd.people[-1].owned) == 6
        crowd.people.append(laggard)
        crowd.poll_until(crowd.shared_out, "share for each", 20)
        assert TopicPartition("t", 0) in set().union(*(one.owned for one in crowd.people))
