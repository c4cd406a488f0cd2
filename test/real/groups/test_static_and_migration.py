"""Static members that are bounced, and live groups that go over from one protocol to the other and back."""

from __future__ import annotations

import pytest

from test.real.conftest import QUICK_SESSIONS, StartKafka
from test.real.kafka_process import KafkaCluster

from .conftest import KINDS, MakeGroup
from .judge import check
from .members import Group, Member
from .waiting import wait_read
from .writer import Writer

PARTITIONS = 6


def listeners_calls(member: Member) -> int:
    """How often a listener heard that something came or went; an empty assignment is nothing."""
    return sum(event.kind in {"assigned", "revoked", "lost"} and bool(event.numbers) for event in member.events())


def bounce_static(group: Group, writer: Writer, *, times: int, hard: bool) -> None:
    """Bounce each member in turn; it comes back to what it had, and the others do not notice."""
    for _ in range(times):
        for index in range(len(group.live)):
            group.wait_shared_out()
            wait_read([group], writer)
            member = group.live[0]
            had, others = member.owned, group.live[1:]
            before = [listeners_calls(other) for other in others]
            if hard:
                member.kill()
            else:
                member.stop()
            (again,) = group.join(options=member.plan["options"])
            group.wait(lambda member=again, had=had: member.owned == had, f"{sorted(had)} for {again.name}")
            wait_read([group], writer)
            assert [listeners_calls(other) for other in others] == before, f"bounce {index} was noticed"


def static_members(
    cluster: KafkaCluster, make_group: MakeGroup, kind: str, *, members: int, times: int, hard: bool
) -> None:
    topic = cluster.create_topic(f"static-{kind}-{members}-{hard}", PARTITIONS)
    group = make_group(cluster, topic, topic, PARTITIONS, **KINDS[kind])
    with Writer(cluster.bootstrap_servers, topic, PARTITIONS) as writer:
        for number in range(members):
            group.join(options={"group_instance_id": f"{topic}-{number}"})
        bounce_static(group, writer, times=times, hard=hard)
        writer.stop()
        wait_read([group], writer)
    group.stop()
    print(f"static {kind}: {check(group.members, writer.written)}")


# In the protocol of KIP-848 the broker keeps a killed member's place for it alone until its session ends.
BOUNCES = [("range", True), ("cooperative-sticky", True), ("consumer", False)]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "hard"), [BOUNCES[0], BOUNCES[-1]])
def test_a_static_member_is_bounced_without_a_rebalance(
    kafka: KafkaCluster, make_group: MakeGroup, kind: str, hard: bool
) -> None:
    static_members(kafka, make_group, kind, members=2, times=1, hard=hard)


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("kind", "hard"), [*BOUNCES, ("range", False), ("cooperative-sticky", False)])
def test_static_members_are_bounced_five_times(
    kafka: KafkaCluster, make_group: MakeGroup, kind: str, hard: bool
) -> None:
    static_members(kafka, make_group, kind, members=3, times=5, hard=hard)


@pytest.mark.soak
@pytest.mark.slow
def test_a_killed_static_member_of_the_new_protocol_comes_back_when_its_session_ends(
    kafka_at: StartKafka, make_group: MakeGroup
) -> None:
    cluster = kafka_at(properties=QUICK_SESSIONS)
    topic = cluster.create_topic("static-killed", PARTITIONS)
    group = make_group(cluster, topic, topic, PARTITIONS, **KINDS["consumer"], options={"group_instance_id": "a"})
    with Writer(cluster.bootstrap_servers, topic, PARTITIONS) as writer:
        group.join()
        group.wait_shared_out()
        wait_read([group], writer)
        group.live[0].kill()
        group.join()
        group.wait_shared_out()
        writer.stop()
        wait_read([group], writer)
    group.stop()
    check(group.members, writer.written)


def migrate(cluster: KafkaCluster, make_group: MakeGroup, kinds: list[str], *, members: int) -> None:
    """Exchange one member after the other for one of the next kind, while records come."""
    topic = cluster.create_topic(f"migration-{members}-{'-'.join(kinds)}", PARTITIONS)
    group = make_group(cluster, topic, topic, PARTITIONS)
    with Writer(cluster.bootstrap_servers, topic, PARTITIONS) as writer:
        group.join(members, **KINDS[kinds[0]])
        group.wait_shared_out()
        for kind in kinds[1:]:
            for member in list(group.live):
                group.join(**KINDS[kind])
                group.wait_shared_out()
                member.stop()
                group.wait_shared_out()
                wait_read([group], writer)
        writer.stop()
        wait_read([group], writer)
    group.stop()
    print(f"{' -> '.join(kinds)}: {check(group.members, writer.written)}")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_group_goes_over_to_the_new_protocol_and_back(kafka: KafkaCluster, make_group: MakeGroup) -> None:
    migrate(kafka, make_group, ["cooperative-sticky", "consumer", "range"], members=1)


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("classic", ["range", "cooperative-sticky"])
def test_a_larger_group_goes_to_and_fro(kafka: KafkaCluster, make_group: MakeGroup, classic: str) -> None:
    migrate(kafka, make_group, [classic, "consumer", classic, "consumer", classic], members=4)
