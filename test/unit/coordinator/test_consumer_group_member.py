"""A member in the protocol of KIP-848: heartbeats, reconciling with the target assignment, errors."""

from __future__ import annotations

from collections import deque
from typing import Any
from uuid import UUID

import pytest

from kafka.consumer import KafkaConsumer
from kafka.coordinator.states import MemberState
from kafka.errors import (
    CommitFailedError,
    GroupAuthorizationFailedError,
    GroupIdNotFoundError,
    UnsupportedVersionError,
)
from kafka.protocol.group import ConsumerGroupHeartbeatResponse
from kafka.protocol.metadata import MetadataResponse
from kafka.structs import SubscriptionPattern
from kafka.testing import SILENCE
from test.unit.consumer.scripted import T0, T1, Cluster, MakeConsumer, read, rest

FENCED_EPOCH, UNKNOWN_MEMBER, UNRELEASED, NOT_COORDINATOR, NO_GROUP = 110, 25, 111, 16, 69
TOPIC_ID = UUID(int=7)


class Group:
    """The coordinator of a group with one member. `target` has the partitions of "t" that it assigns."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.target = [0, 1]
        self.epoch = 1
        self.script: deque[int] = deque()
        cluster.broker.on("ConsumerGroupHeartbeat", self.answer)
        metadata = cluster.broker.handlers["Metadata"]

        def with_ids(request: Any, session: Any) -> Any:
            found = metadata(request, session)
            for topic in found["topics"]:
                topic.topic_id = TOPIC_ID
            return found

        cluster.broker.on("Metadata", with_ids)

    def answer(self, request: Any, _session: Any) -> Any:
        if self.script and (code := self.script.popleft()):
            return {"error_code": code, "error_message": "as the test says"}
        if request.member_epoch < 0:
            return {"member_id": request.member_id, "member_epoch": request.member_epoch}
        reply = ConsumerGroupHeartbeatResponse
        partitions = [reply.TopicPartitions(topic_id=TOPIC_ID, partitions=list(self.target))] if self.target else []
        return {
            "member_id": request.member_id or "given",
            "member_epoch": self.epoch,
            "heartbeat_interval_ms": 1000,
            "assignment": reply.Assignment(topic_partitions=partitions),
        }

    @property
    def heartbeats(self) -> list[Any]:
        return self.cluster.asked("ConsumerGroupHeartbeat")

    def owned(self, at: int) -> list[int] | None:
        entries = self.heartbeats[at].topic_partitions
        return None if entries is None else [number for entry in entries for number in entry.partitions]


@pytest.fixture
def group(cluster: Cluster) -> Group:
    assert MetadataResponse.MetadataResponseTopic
    return Group(cluster)


@pytest.fixture
def consumer(group: Group, make: MakeConsumer) -> KafkaConsumer:
    return make("t", group_id="g", group_protocol="consumer", max_poll_interval_ms=60_000)


def state(consumer: KafkaConsumer) -> MemberState:
    return consumer._core.check_group().membership.state  # type: ignore[union-attr,no-any-return]


def test_a_member_joins_with_a_heartbeat_and_reports_what_it_owns(group: Group, consumer: KafkaConsumer) -> None:
    consumer.poll(timeout_ms=1000)
    assert consumer.assignment() == {T0, T1}
    first = group.heartbeats[0]
    assert (first.member_epoch, first.subscribed_topic_names, first.rebalance_timeout_ms) == (0, ["t"], 60_000)
    assert first.member_id  # which the member chooses
    assert group.owned(1) == [0, 1]
    assert state(consumer) is MemberState.STABLE
    assert not group.cluster.asked("JoinGroup")


def test_fields_that_have_not_changed_are_left_out(group: Group, consumer: KafkaConsumer) -> None:
    consumer.poll(timeout_ms=1000)
    before = len(group.heartbeats)
    rest(consumer, 5.5)
    later = group.heartbeats[before:]
    assert 4 <= len(later) <= 6  # the interval is the coordinator's
    assert {(each.subscribed_topic_names, each.topic_partitions) for each in later} == {(None, None)}


@pytest.mark.parametrize("refusals", [[], [NOT_COORDINATOR]])
def test_names_take_the_place_of_a_pattern_also_if_a_heartbeat_between_is_refused(
    group: Group, make: MakeConsumer, refusals: list[int]
) -> None:
    consumer = make(group_id="g", group_protocol="consumer")
    consumer.subscribe(pattern=SubscriptionPattern("t|u"))
    consumer.poll(timeout_ms=1000)
    assert group.heartbeats[0].subscribed_topic_regex == "t|u"
    before = len(group.heartbeats)
    group.script.extend(refusals)
    consumer.subscribe(["t"])
    rest(consumer, 5)
    patterns = [each.subscribed_topic_regex for each in group.heartbeats[before:]]
    assert patterns[: len(refusals) + 1] == [""] * (len(refusals) + 1)
    assert set(patterns[len(refusals) + 1 :]) == {None}


def test_a_smaller_target_is_reported_after_the_revocation(group: Group, consumer: KafkaConsumer) -> None:
    consumer.poll(timeout_ms=1000)
    group.target, group.epoch = [1], 2
    rest(consumer, 2)
    assert consumer.assignment() == {T0, T1}  # the application has not polled
    assert all(group.owned(at) is None for at in range(2, len(group.heartbeats)))
    for _ in range(3):
        consumer.poll(timeout_ms=500)
    assert consumer.assignment() == {T1}
    assert [1] in [group.owned(at) for at in range(2, len(group.heartbeats))]


def test_a_partition_that_was_assigned_and_lost_again_between_two_polls_is_given_back(
    group: Group, consumer: KafkaConsumer
) -> None:
    """The coordinator waits for that, and with it the member that is to have the partition."""
    group.target = []
    consumer.poll(timeout_ms=1000)
    for group.epoch, group.target in ((2, [0]), (3, [0, 1])):
        rest(consumer, 3)  # the application does not poll: the second target waits for the first
    group.target = [0]
    at = len(group.heartbeats)
    rest(consumer, 3)
    assert [0] in [group.owned(each) for each in range(at, len(group.heartbeats))]
    for _ in range(3):
        consumer.poll(timeout_ms=500)
    assert consumer.assignment() == {T0}


def test_a_partition_of_the_target_is_owned_before_the_application_knows_of_it(
    group: Group, consumer: KafkaConsumer
) -> None:
    """This member may begin to read it while a heartbeat is on its way, so no heartbeat says that it is free."""
    group.target = [0]
    consumer.poll(timeout_ms=1000)
    before = len(group.heartbeats)
    group.target, group.epoch = [1], 2
    rest(consumer, 2)  # partition 0 is revoked by the next poll(), and then 1 is assigned
    group.script.append(NOT_COORDINATOR)  # the heartbeat after it has all fields
    rest(consumer, 3)
    told = [owned for at in range(before, len(group.heartbeats)) if (owned := group.owned(at)) is not None]
    assert told
    assert all(owned == [0, 1] for owned in told)


def test_a_member_that_is_closed_before_the_first_heartbeat_is_answered_leaves(
    group: Group, consumer: KafkaConsumer
) -> None:
    group.cluster.broker.on("ConsumerGroupHeartbeat", lambda _request, _session: SILENCE)
    consumer.poll(timeout_ms=1000)
    group.cluster.broker.on("ConsumerGroupHeartbeat", group.answer)
    consumer.close(timeout_ms=1000)
    joined, left = group.heartbeats
    assert (joined.member_epoch, left.member_epoch) == (0, -1)
    assert joined.member_id == left.member_id


def test_a_consumer_that_the_coordinator_does_not_know_does_not_leave(group: Group, consumer: KafkaConsumer) -> None:
    group.script.extend([UNKNOWN_MEMBER] * 50)
    consumer.poll(timeout_ms=50)
    consumer.close()
    assert {each.member_epoch for each in group.heartbeats} == {0}


# A group without members and offsets is deleted after a while, so a process that was stopped for longer finds none.
@pytest.mark.parametrize("code", [FENCED_EPOCH, UNKNOWN_MEMBER, NO_GROUP])
def test_a_removed_member_loses_its_partitions_and_joins_again(
    group: Group, consumer: KafkaConsumer, code: int
) -> None:
    consumer.poll(timeout_ms=1000)
    group.script.append(code)
    rest(consumer, 1.5)
    for _ in range(3):
        consumer.poll(timeout_ms=500)
    assert [each.member_epoch for each in group.heartbeats].count(0) == 2
    assert consumer.assignment() == {T0, T1}
    assert len({each.member_id for each in group.heartbeats}) == 1


def test_a_commit_to_a_group_that_is_gone_is_a_commit_of_a_removed_member(
    cluster: Cluster, group: Group, consumer: KafkaConsumer
) -> None:
    consumer.poll(timeout_ms=1000)
    cluster.script["OffsetCommit"] = deque([NO_GROUP])
    group.script.append(NO_GROUP)
    with pytest.raises(CommitFailedError, match="the coordinator removed this consumer from the group"):
        consumer.commit({T0: 3})
    for _ in range(3):
        consumer.poll(timeout_ms=500)
    assert consumer.assignment() == {T0, T1}


def test_a_group_of_another_kind_is_an_error(group: Group, consumer: KafkaConsumer) -> None:
    group.script.append(NO_GROUP)  # Kafka's answer where a share group has the name
    with pytest.raises(GroupIdNotFoundError, match="as the test says"):
        consumer.poll(timeout_ms=1000)


def test_a_fatal_error_is_raised(group: Group, consumer: KafkaConsumer) -> None:
    group.script.append(GroupAuthorizationFailedError.errno)
    with pytest.raises(GroupAuthorizationFailedError, match="as the test says"):
        consumer.poll(timeout_ms=1000)


def test_a_retriable_error_is_retried(group: Group, consumer: KafkaConsumer) -> None:
    group.script.extend([14, 15, 16])
    consumer.poll(timeout_ms=10_000)
    assert consumer.assignment() == {T0, T1}
    assert [each.member_epoch for each in group.heartbeats[:4]] == [0, 0, 0, 0]


def test_a_static_member_waits_until_its_former_process_has_expired(group: Group, make: MakeConsumer) -> None:
    group.script.extend([UNRELEASED] * 5)
    consumer = make("t", group_id="g", group_protocol="consumer", group_instance_id="one", retry_backoff_ms=1000)
    consumer.poll(timeout_ms=40_000)
    assert consumer.assignment() == {T0, T1}
    consumer.close()
    assert group.heartbeats[-1].member_epoch == -2  # it keeps its place


def test_a_member_leaves_with_a_heartbeat(group: Group, consumer: KafkaConsumer) -> None:
    consumer.poll(timeout_ms=1000)
    consumer.close()
    assert group.heartbeats[-1].member_epoch == -1


def test_a_member_leaves_while_its_coordinator_is_not_known(group: Group, make: MakeConsumer) -> None:
    consumer = make("t", group_id="g", group_protocol="consumer", enable_auto_commit=False)
    consumer.poll(timeout_ms=1000)
    consumer._core.check_group().membership.coordinator.forget("a heartbeat failed")  # type: ignore[union-attr]
    consumer.close()
    assert group.heartbeats[-1].member_epoch == -1


def test_a_member_leaves_at_the_coordinator_that_has_taken_over(group: Group, consumer: KafkaConsumer) -> None:
    consumer.poll(timeout_ms=1000)
    group.script.append(NOT_COORDINATOR)
    consumer.close()
    assert [heartbeat.member_epoch for heartbeat in group.heartbeats[-2:]] == [-1, -1]


@pytest.mark.parametrize("protocol", ["consumer", "auto"])
def test_brokers_without_the_protocol(cluster: Cluster, make: MakeConsumer, protocol: str) -> None:
    cluster.broker.ranges.pop(68)
    cluster.fill(3)
    consumer = make("t", group_id="g", group_protocol=protocol)
    if protocol == "auto":
        assert len(read(consumer, 3)) == 3
        assert len(cluster.asked("JoinGroup")) == 1
    else:
        with pytest.raises(UnsupportedVersionError, match="'auto' falls back to 'classic'"):
            consumer.poll(timeout_ms=5000)
