"""A consumer in a classic group: its offer, its work as the leader, its assignment."""

from __future__ import annotations

import re
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from kafka import KafkaConsumer
from kafka.aio import AIOKafkaConsumer
from kafka.coordinator.assignors import make_assignors
from kafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from kafka.errors import UnsupportedVersionError
from kafka.protocol.group import JoinGroupResponse
from test.unit.consumer.scripted import T0, T1, Cluster, MakeConsumer, read, rest


def offers(cluster: Cluster, at: int = -1) -> dict[str, ConsumerProtocolMemberMetadata]:
    request = cluster.asked("JoinGroup")[at]
    return {each.name: ConsumerProtocolMemberMetadata.decode(each.metadata) for each in request.protocols}


def leads(cluster: Cluster, *members: tuple[str, list[str]]) -> None:
    """The next join makes this member the leader of a group with these members."""
    kind: Any = JoinGroupResponse.JoinGroupResponseMember
    entries = [
        kind(member_id=name, metadata=ConsumerProtocolMemberMetadata(0, topics).encode()) for name, topics in members
    ]
    cluster.script["JoinGroup"] = deque(
        [
            JoinGroupResponse(
                generation_id=1,
                protocol_type="consumer",
                protocol_name="range",
                leader="m",
                member_id="m",
                members=entries,
            )
        ]
    )


def test_a_member_offers_its_topics_with_each_assignor(cluster: Cluster, make: MakeConsumer) -> None:
    make("t", group_id="g", client_rack="r1").poll(timeout_ms=1000)
    found = offers(cluster)
    assert list(found) == ["range", "cooperative-sticky", "roundrobin"]
    assert [(list(each.topics), each.rack_id) for each in found.values()] == [(["t"], "r1")] * 3


def test_by_default_members_of_other_libraries_have_an_assignor_in_common() -> None:
    java, kafka_python, aiokafka = ("range", "cooperative-sticky"), ("range", "roundrobin"), ("roundrobin",)
    threads, tasks = (
        [assignor.name for assignor in make_assignors(kind.DEFAULT_CONFIG["partition_assignment_strategy"])]
        for kind in (KafkaConsumer, AIOKafkaConsumer)
    )
    assert (threads[:2], tasks[:1]) == (list(java), list(aiokafka))  # preferred as in what they replace
    for group in ((java, threads, tasks), (kafka_python, aiokafka, threads, tasks)):
        assert set.intersection(*map(set, group))


def test_a_cooperative_member_keeps_its_partitions_through_a_rebalance(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = make("t", group_id="g", partition_assignment_strategy=["cooperative-sticky"], heartbeat_interval_ms=1000)
    consumer.poll(timeout_ms=1000)
    cluster.script["Heartbeat"] = deque([27])
    cluster.assigns = [0]
    rest(consumer, 1.5)
    assert consumer.assignment() == {T0, T1}
    for _ in range(5):
        consumer.poll(timeout_ms=1000)
    assert consumer.assignment() == {T0}
    assert list(offers(cluster, 1)["cooperative-sticky"].owned_partitions) == [T0, T1]
    assert list(offers(cluster, 2)["cooperative-sticky"].owned_partitions) == [T0]  # joined again after the revocation


def test_the_leader_assigns_the_partitions_of_all_members(cluster: Cluster, make: MakeConsumer) -> None:
    leads(cluster, ("m", ["t"]), ("n", ["t"]))
    make("t", group_id="g").poll(timeout_ms=1000)
    sent = {each.member_id: each.assignment for each in cluster.asked("SyncGroup")[0].assignments}
    found = {name: ConsumerProtocolMemberAssignment.decode(data).partitions() for name, data in sent.items()}
    assert found == {"m": [T0], "n": [T1]}


def test_a_leader_rebalances_when_partitions_are_added(cluster: Cluster, make: MakeConsumer) -> None:
    leads(cluster, ("m", ["t"]))
    consumer = make("t", group_id="g", metadata_max_age_ms=1000)
    consumer.poll(timeout_ms=1000)
    rest(consumer, 3)
    assert len(cluster.asked("JoinGroup")) == 1
    cluster.topics["t"] = 3
    rest(consumer, 3)
    consumer.poll(timeout_ms=1000)
    assert len(cluster.asked("JoinGroup")) == 2


def test_a_member_that_does_not_lead_leaves_new_partitions_to_the_leader(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = make("t", group_id="g", metadata_max_age_ms=1000)
    consumer.poll(timeout_ms=1000)
    cluster.topics["t"] = 3
    rest(consumer, 5)
    consumer.poll(timeout_ms=1000)
    assert len(cluster.asked("JoinGroup")) == 1


def test_another_subscription_leads_to_another_join(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.topics["u"] = 1
    consumer = make("t", group_id="g")
    consumer.poll(timeout_ms=1000)
    consumer.subscribe(["t", "u"])
    for _ in range(3):
        consumer.poll(timeout_ms=1000)
    assert list(offers(cluster)["range"].topics) == ["t", "u"]


def test_a_pattern_follows_the_cluster_s_topics(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.assigns = []
    consumer = make(group_id="g", metadata_max_age_ms=1000)
    consumer.subscribe(pattern="t.*")
    consumer.poll(timeout_ms=1000)
    assert consumer.subscription() == {"t"}
    cluster.topics["t2"] = 1
    rest(consumer, 2)
    consumer.poll(timeout_ms=1000)
    assert consumer.subscription() == {"t", "t2"}
    consumer.poll(timeout_ms=1000)
    assert list(offers(cluster)["range"].topics) == ["t", "t2"]


def test_topics_that_another_leader_assigns_without_a_subscription_are_refused_at_growing_intervals(
    cluster: Cluster, make: MakeConsumer
) -> None:
    cluster.topics["u"] = 1
    consumer = make("u", group_id="g", retry_backoff_ms=100, retry_backoff_max_ms=1000)
    for _ in range(10):
        consumer.poll(timeout_ms=1000)  # each assignment is of "t"
    assert consumer.assignment() == set()
    assert 10 <= len(cluster.asked("JoinGroup")) <= 20
    cluster.assigns = []
    joins = len(cluster.asked("JoinGroup"))
    for _ in range(5):
        consumer.poll(timeout_ms=1000)
    assert len(cluster.asked("JoinGroup")) == joins + 1


def test_a_pattern_finds_a_new_topic_that_a_leader_with_newer_metadata_assigns(
    cluster: Cluster, make: MakeConsumer
) -> None:
    partitions = cluster.topics.pop("t")
    cluster.topics["u"] = 1
    cluster.assigns = []
    consumer = make(group_id="g", heartbeat_interval_ms=1000)
    consumer.subscribe(pattern="t.*")
    consumer.poll(timeout_ms=1000)
    assert not consumer.subscription()
    cluster.topics["t"] = partitions
    cluster.assigns = [0]
    cluster.script["Heartbeat"] = deque([27])
    rest(consumer, 1.5)
    for _ in range(3):
        consumer.poll(timeout_ms=1000)
    assert consumer.subscription() == {"t"}
    assert consumer.assignment() == {T0}


def test_an_own_assignor_runs_in_the_application(cluster: Cluster, make: MakeConsumer) -> None:
    class Mine:
        name = "mine"
        version = 0
        seen: list[str] = []

        def metadata(self, topics: Any) -> ConsumerProtocolMemberMetadata:
            self.seen.append("metadata")
            return ConsumerProtocolMemberMetadata(0, list(topics), b"")

        def assign(self, cluster: Any, members: Any) -> Any:
            raise AssertionError("it does not lead")

        def on_assignment(self, assignment: Any) -> None:
            self.seen.append("assigned")

    cluster.fill(3)
    consumer = make("t", group_id="g", partition_assignment_strategy=[Mine])
    rest(consumer, 2)
    assert Mine.seen == []
    assert len(read(consumer, 3)) == 3
    assert Mine.seen == ["metadata", "assigned"]


def test_brokers_without_groups_are_named(cluster: Cluster, make: MakeConsumer) -> None:
    group: Any = make(group_id="g")._core.check_group()  # type: ignore[union-attr]
    group.client.versions = SimpleNamespace(release=(0, 8, 2))
    with pytest.raises(UnsupportedVersionError, match=r"brokers of 0\.8\.2 have no consumer groups"):
        group.assignment.check_groups_exist()


def test_the_application_may_unsubscribe_while_metadata_comes(
    cluster: Cluster, make: MakeConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.assigns = []
    consumer = make(group_id="g")
    consumer.subscribe(pattern="t.*")
    consumer.poll(timeout_ms=1000)
    member = consumer._core.check_group()
    looks: deque[re.Pattern[str] | None] = deque([re.compile("t.*"), None])

    class Leaving(type(member.subscription)):
        @property
        def pattern(self) -> re.Pattern[str] | None:
            return looks.popleft()

    with monkeypatch.context() as patch:
        patch.setattr(member.subscription, "__class__", Leaving)
        member._metadata_changed(member.client.cluster)
