"""A membership: errors for the application, and an application that is stuck."""

from __future__ import annotations

import inspect
from collections import deque
from typing import Any

import pytest

from kafka.coordinator.classic_member import ClassicMember
from kafka.coordinator.consumer_group_member import ConsumerGroupMember
from kafka.coordinator.membership import GroupMember
from kafka.coordinator.share_group_member import ShareGroupMember
from kafka.coordinator.states import MemberState
from kafka.errors import FencedInstanceIdError, GroupAuthorizationFailedError, MemberIdRequiredError
from test.unit.consumer.scripted import SILENCE, Cluster, MakeConsumer, read, rest

UNKNOWN_MEMBER, REBALANCE, ILLEGAL_GENERATION, FENCED, DENIED = 25, 27, 22, 82, 30
COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR = 15, 16


def state(consumer: object) -> MemberState:
    return consumer._core.check_group().membership.state  # type: ignore[attr-defined,no-any-return]


def test_a_fatal_error_is_raised_and_the_poll_after_it_tries_again(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(3)
    cluster.script["JoinGroup"] = deque([DENIED])
    consumer = make("t", group_id="g")
    with pytest.raises(GroupAuthorizationFailedError):
        consumer.poll(timeout_ms=5000)
    assert state(consumer) is MemberState.FAILED
    assert len(read(consumer, 3)) == 3


def test_a_fatal_error_that_came_before_a_poll_is_raised_by_it_and_nothing_is_tried_before_the_next(
    cluster: Cluster, make: MakeConsumer
) -> None:
    consumer = make("t", group_id="g", heartbeat_interval_ms=1000)
    consumer.poll(timeout_ms=1000)
    cluster.script["Heartbeat"] = deque([FENCED])
    rest(consumer, 2)
    joins = len(cluster.asked("JoinGroup"))
    with pytest.raises(FencedInstanceIdError):
        consumer.poll(timeout_ms=1000)
    rest(consumer, 10)
    assert state(consumer) is MemberState.FAILED
    assert len(cluster.asked("JoinGroup")) == joins
    consumer.poll(timeout_ms=1000)
    assert state(consumer) is MemberState.STABLE


def test_a_member_whose_application_does_not_poll_leaves(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = make("t", group_id="g", max_poll_interval_ms=5000, session_timeout_ms=4000, heartbeat_interval_ms=1000)
    consumer.poll(timeout_ms=1000)
    rest(consumer, 10)
    assert state(consumer) is MemberState.LEFT
    assert len(cluster.asked("LeaveGroup")) == 1
    consumer.poll(timeout_ms=1000)
    assert state(consumer) is MemberState.STABLE


def test_a_consumer_that_is_closed_while_it_leaves_because_of_max_poll_interval_waits_for_that(
    cluster: Cluster, make: MakeConsumer
) -> None:
    """close() ended the task that was to leave, and the others waited for it to join with the id that it was given."""

    def answer(session: Any) -> None:
        header, request = session.unanswered.pop(0)
        session.reply(header, request, {"error_code": MemberIdRequiredError.errno, "member_id": "m"})

    def join(_request: object, session: Any) -> Any:
        assert cluster.loop is not None
        cluster.loop.call_later(2.0, answer, session)
        return SILENCE

    cluster.broker.on("JoinGroup", join)
    consumer = make("t", group_id="g", max_poll_interval_ms=1200, heartbeat_interval_ms=1000)
    consumer.poll(timeout_ms=100)
    while state(consumer) is not MemberState.LEFT:
        rest(consumer, 0.05)
    consumer.close()
    assert [one.member_id for request in cluster.asked("LeaveGroup") for one in request.members] == ["m"]


def test_a_member_leaves_because_of_max_poll_interval_when_its_brokers_are_there_again(
    cluster: Cluster, make: MakeConsumer
) -> None:
    """The group would wait for the end of its session; no caller waits for this request."""
    consumer = make("t", group_id="g", max_poll_interval_ms=5000, session_timeout_ms=4000, heartbeat_interval_ms=1000)
    consumer.poll(timeout_ms=1000)
    consumer._core.check_group().membership.coordinator.forget("a heartbeat failed")  # type: ignore[union-attr]
    cluster.script["FindCoordinator"] = deque([COORDINATOR_NOT_AVAILABLE] * 30)
    rest(consumer, 40)
    assert not cluster.script["FindCoordinator"]
    assert [one.member_id for request in cluster.asked("LeaveGroup") for one in request.members] == ["m"]


def test_an_application_that_takes_a_record_within_each_max_poll_interval_is_not_stuck(
    cluster: Cluster, make: MakeConsumer
) -> None:
    cluster.fill(100)
    consumer = make("t", group_id="g", max_poll_interval_ms=5000, session_timeout_ms=4000, heartbeat_interval_ms=1000)
    for offset, record in zip(range(20), consumer, strict=False):
        assert record.offset == offset
        rest(consumer, 4)
    assert state(consumer) is MemberState.STABLE
    assert len(cluster.asked("JoinGroup")) == 1
    rest(consumer, 10)
    assert state(consumer) is MemberState.LEFT, "it takes no records any more"


def test_a_poll_that_waits_while_the_member_leaves_because_of_max_poll_interval_joins_again(
    cluster: Cluster, make: MakeConsumer
) -> None:
    """On a machine that was suspended the timer may be faster than the application."""
    cluster.assigns = []
    consumer = make("t", group_id="g")
    consumer.poll(timeout_ms=1000)
    member = consumer._core.check_group().membership  # type: ignore[union-attr]
    member.loop.call_later(1.0, member._poll_timed_out)
    consumer.poll(timeout_ms=5000)
    assert state(consumer) is MemberState.STABLE
    assert len(cluster.asked("JoinGroup")) == 2


def test_a_member_that_has_left_is_not_stuck(
    cluster: Cluster, make: MakeConsumer, caplog: pytest.LogCaptureFixture
) -> None:
    consumer = make("t", group_id="g", max_poll_interval_ms=5000, session_timeout_ms=4000, heartbeat_interval_ms=1000)
    consumer.poll(timeout_ms=1000)
    consumer.unsubscribe()
    rest(consumer, 60)
    assert state(consumer) is MemberState.UNJOINED
    assert "max_poll_interval_ms" not in caplog.text


def test_a_poll_that_waits_longer_than_the_interval_is_not_stuck(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = make("t", group_id="g", max_poll_interval_ms=5000, session_timeout_ms=4000, heartbeat_interval_ms=1000)
    consumer.poll(timeout_ms=30_000)
    assert state(consumer) is MemberState.STABLE
    assert not cluster.asked("LeaveGroup")


@pytest.mark.parametrize("kind", [ClassicMember, ConsumerGroupMember, ShareGroupMember])
def test_each_protocol_has_a_member_with_the_interface_of_all(kind: type) -> None:
    calls = [name for name in vars(GroupMember) if not name.startswith("_")]
    assert calls == ["run", "stop", "leave"]
    for name in calls:
        assert inspect.signature(getattr(kind, name)) == inspect.signature(getattr(GroupMember, name))
    assert kind.protocol in {"classic", "consumer", "share"}  # type: ignore[attr-defined]
