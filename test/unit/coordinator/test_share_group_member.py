"""A member of a share group: heartbeats, assignments, errors, leaving."""

from __future__ import annotations

from collections import deque
from typing import Any
from uuid import UUID

import pytest

from kafka import KafkaShareConsumer
from kafka.errors import (
    GroupIdNotFoundError,
    TopicAuthorizationFailedError,
    UnsupportedVersionError,
)
from kafka.protocol.share import ShareGroupHeartbeatResponse
from test.unit.consumer.scripted import Cluster, MakeConsumer

TOPIC_ID = UUID(int=7)
UNKNOWN_MEMBER, FENCED_EPOCH, NOT_COORDINATOR = 25, 110, 16


class Group:
    """The coordinator of a group with one member."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.script: deque[int] = deque()
        cluster.broker.on("ShareGroupHeartbeat", self.answer)
        cluster.broker.on("ShareFetch", lambda _request, _session: {"acquisition_lock_timeout_ms": 30_000})

    def answer(self, request: Any, _session: Any) -> Any:
        if self.script and (code := self.script.popleft()):
            return {"error_code": code, "error_message": "as the test says"}
        reply = ShareGroupHeartbeatResponse
        found: dict[str, Any] = {"member_id": request.member_id, "member_epoch": max(request.member_epoch, 1)}
        if request.member_epoch == 0:
            partitions = [reply.TopicPartitions(topic_id=TOPIC_ID, partitions=[0])]
            found["assignment"] = reply.Assignment(topic_partitions=partitions)
        return {**found, "heartbeat_interval_ms": 1000}

    @property
    def heartbeats(self) -> list[Any]:
        return self.cluster.asked("ShareGroupHeartbeat")


@pytest.fixture
def group(cluster: Cluster) -> Group:
    return Group(cluster)


@pytest.fixture
def consumer(group: Group, make: MakeConsumer) -> Any:
    make()  # the consumer of the fixture: it sets the network up
    made = KafkaShareConsumer("t", bootstrap_servers="b0", group_id="g", max_poll_interval_ms=10_000, client_rack="r1")
    yield made
    made.close(timeout_ms=0)


def epochs(group: Group) -> list[int]:
    return [request.member_epoch for request in group.heartbeats]


def test_the_first_poll_joins_and_heartbeats_follow(group: Group, consumer: Any) -> None:
    assert not group.heartbeats
    consumer.poll(timeout_ms=3500)
    first, second, *_ = group.heartbeats
    assert (first.member_epoch, first.subscribed_topic_names, first.rack_id) == (0, ["t"], "r1")
    assert 0 < len(first.member_id) <= 36
    assert (second.member_epoch, second.subscribed_topic_names, second.rack_id) == (1, None, None)
    assert 3 <= len(group.heartbeats) <= 5, "as often as the coordinator says"
    assert consumer._core.member.assigned == {TOPIC_ID: frozenset({0})}


@pytest.mark.parametrize("code", [UNKNOWN_MEMBER, FENCED_EPOCH, GroupIdNotFoundError.errno])
def test_a_removed_member_joins_again_under_its_id(group: Group, consumer: Any, code: int) -> None:
    group.script = deque([0, code])
    consumer.poll(timeout_ms=3000)
    assert epochs(group)[:4] == [0, 1, 0, 1]
    assert len({request.member_id for request in group.heartbeats}) == 1
    assert group.heartbeats[2].subscribed_topic_names == ["t"]


def test_a_coordinator_that_has_moved_is_looked_up(group: Group, consumer: Any) -> None:
    group.script = deque([0, NOT_COORDINATOR])
    consumer.poll(timeout_ms=4000)
    assert epochs(group)[:3] == [0, 1, 1], "it is still a member"
    assert len(group.cluster.asked("FindCoordinator")) == 2


def test_an_error_that_does_not_pass_is_raised_and_the_next_poll_tries_again(group: Group, consumer: Any) -> None:
    group.script = deque([GroupIdNotFoundError.errno])
    with pytest.raises(GroupIdNotFoundError):
        consumer.poll(timeout_ms=5000)
    assert "GroupIdNotFound" in consumer.health()["group"]["waiting_for"]
    consumer.poll(timeout_ms=1000)
    assert consumer.health()["group"]["waiting_for"] is None


def test_brokers_without_share_groups_are_named(group: Group, consumer: Any) -> None:
    group.script = deque([UnsupportedVersionError.errno])
    with pytest.raises(UnsupportedVersionError, match=r"Kafka 4\.2"):
        consumer.poll(timeout_ms=5000)


def test_a_topic_that_may_not_be_described_is_an_error_until_it_may(group: Group, consumer: Any) -> None:
    group.script = deque([TopicAuthorizationFailedError.errno] * 2)
    for _ in range(2):
        with pytest.raises(TopicAuthorizationFailedError):
            consumer.poll(timeout_ms=5000)
    consumer.poll(timeout_ms=2000)
    assert consumer._core.member.is_member


def test_a_member_whose_application_does_not_poll_leaves_until_it_does(group: Group, consumer: Any) -> None:
    consumer.poll(timeout_ms=1000)
    loop = group.cluster.loop
    loop.run_until(loop.spawn(loop.sleep(12.0)))
    assert epochs(group)[-1] == -1
    consumer.poll(timeout_ms=1000)
    assert epochs(group)[-1] >= 0


def test_unsubscribe_leaves_and_close_does_not_repeat_it(group: Group, consumer: Any) -> None:
    consumer.poll(timeout_ms=1000)
    consumer.unsubscribe()
    loop = group.cluster.loop
    loop.run_until(loop.spawn(loop.sleep(1.0)))
    assert epochs(group).count(-1) == 1
    consumer.close()
    assert epochs(group).count(-1) == 1


def test_a_member_leaves_at_the_coordinator_that_has_taken_over(group: Group, consumer: Any) -> None:
    consumer.poll(timeout_ms=1500)
    group.script = deque([NOT_COORDINATOR])
    consumer.close()
    assert epochs(group)[-2:] == [-1, -1]
    assert len(group.cluster.asked("FindCoordinator")) == 2


def test_a_member_leaves_while_its_coordinator_is_not_known(group: Group, consumer: Any) -> None:
    consumer.poll(timeout_ms=1500)
    consumer._core.member.coordinator.forget("a heartbeat failed")
    consumer.close()
    assert epochs(group)[-1] == -1
