"""A member of a classic group: rounds, heartbeats, errors, leaving."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from kafka.coordinator.heartbeat import Heartbeat
from kafka.coordinator.states import MemberState
from kafka.errors import FencedInstanceIdError, MemberIdRequiredError
from kafka.protocol.group import JoinGroupResponse
from kafka.testing import HANG_UP, SILENCE
from test.unit.consumer.scripted import Cluster, MakeConsumer, read, rest

UNKNOWN_MEMBER, REBALANCE, ILLEGAL_GENERATION, FENCED, NOT_COORDINATOR = 25, 27, 22, 82, 16


def state(consumer: object) -> MemberState:
    return consumer._core.check_group().membership.state  # type: ignore[attr-defined,no-any-return]


def left(cluster: Cluster) -> list[str]:
    return [member.member_id for request in cluster.asked("LeaveGroup") for member in request.members]


def test_a_member_joins_syncs_and_sends_heartbeats(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(3)
    consumer = make("t", group_id="g", heartbeat_interval_ms=1000, session_timeout_ms=10_000)
    assert len(read(consumer, 3)) == 3
    assert (len(cluster.asked("JoinGroup")), len(cluster.asked("SyncGroup"))) == (1, 1)
    rest(consumer, 10)
    assert 8 <= len(cluster.asked("Heartbeat")) <= 11
    assert state(consumer) is MemberState.STABLE


def test_a_member_id_from_the_coordinator_is_used_for_the_join(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.script["JoinGroup"] = deque([JoinGroupResponse(error_code=79, member_id="given")])
    consumer = make("t", group_id="g")
    consumer.poll(timeout_ms=1000)
    assert [request.member_id for request in cluster.asked("JoinGroup")] == ["", "given"]


@pytest.mark.parametrize(("code", "keeps_id"), [(REBALANCE, True), (ILLEGAL_GENERATION, True), (UNKNOWN_MEMBER, False)])
def test_a_refused_heartbeat_leads_to_another_join(
    cluster: Cluster, make: MakeConsumer, code: int, keeps_id: bool
) -> None:
    consumer = make("t", group_id="g", heartbeat_interval_ms=1000)
    consumer.poll(timeout_ms=1000)
    cluster.script["Heartbeat"] = deque([code])
    rest(consumer, 1.5)
    consumer.poll(timeout_ms=2000)
    joins = cluster.asked("JoinGroup")
    assert [request.member_id for request in joins] == ["", "m" if keeps_id else ""]
    assert state(consumer) is MemberState.STABLE


@pytest.mark.parametrize("api", ["JoinGroup", "SyncGroup"])
def test_a_retriable_error_of_a_round_is_retried(cluster: Cluster, make: MakeConsumer, api: str) -> None:
    cluster.fill(3)
    cluster.script[api] = deque([14, REBALANCE, 15])
    consumer = make("t", group_id="g")
    assert len(read(consumer, 3)) == 3
    assert len(cluster.asked(api)) == 4


def test_a_session_that_ends_without_an_answer_is_logged(
    cluster: Cluster, make: MakeConsumer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    expired = Heartbeat.session_timeout_expired
    noticed: list[bool] = []

    def session_timeout_expired(self: Heartbeat) -> bool:  # as a tracer replaces it
        noticed.append(expired(self))
        return noticed[-1]

    monkeypatch.setattr(Heartbeat, "session_timeout_expired", session_timeout_expired)
    consumer = make("t", group_id="g", heartbeat_interval_ms=1000, session_timeout_ms=5000)
    consumer.poll(timeout_ms=1000)
    cluster.script["Heartbeat"] = deque([HANG_UP, SILENCE, HANG_UP])
    rest(consumer, 3)
    assert noticed == [False]
    rest(consumer, 10)
    assert noticed == [False, True, True]
    assert caplog.text.count("has not answered a heartbeat for 5 s (session_timeout_ms)") == 1, "of one outage"


def test_a_fenced_static_member_stops(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = make("t", group_id="g", group_instance_id="one", heartbeat_interval_ms=1000)
    consumer.poll(timeout_ms=1000)
    cluster.script["Heartbeat"] = deque([FENCED])
    rest(consumer, 2)
    with pytest.raises(FencedInstanceIdError):
        consumer.poll(timeout_ms=1000)


@pytest.mark.parametrize("answered", [True, False])
def test_a_member_that_is_closed_before_the_coordinator_gave_it_an_id_leaves(
    cluster: Cluster, make: MakeConsumer, answered: bool
) -> None:
    """The others would wait for it: the coordinator expects it to join with the id (KIP-394)."""

    def answer(session: Any) -> None:
        header, request = session.unanswered.pop(0)
        session.reply(header, request, {"error_code": MemberIdRequiredError.errno, "member_id": "given"})

    def join(_request: Any, session: Any) -> Any:
        assert cluster.loop is not None
        if answered:
            cluster.loop.call_later(0.3, answer, session)
        return SILENCE

    cluster.broker.on("JoinGroup", join)
    consumer = make("t", group_id="g")
    consumer.poll(timeout_ms=200)
    began = cluster.now
    consumer.close()
    assert len(cluster.asked("JoinGroup")) == 1
    assert left(cluster) == (["given"] if answered else [])
    assert cluster.now - began < 1.5


def test_a_join_waits_for_the_rebalance_timeout_that_it_names(cluster: Cluster, make: MakeConsumer) -> None:
    """In asyncio it is not max_poll_interval_ms, and the request was sent again and again."""

    def answer(session: Any) -> None:
        header, request = session.unanswered.pop(0)
        found = {"generation_id": 1, "protocol_name": "range", "leader": "other", "member_id": "m"}
        session.reply(header, request, found)

    def join(_request: Any, session: Any) -> Any:
        assert cluster.loop is not None
        cluster.loop.call_later(10.0, answer, session)
        return SILENCE

    cluster.broker.on("JoinGroup", join)
    consumer = make("t", group_id="g", max_poll_interval_ms=1200, heartbeat_interval_ms=1000, request_timeout_ms=2000)
    consumer._core.check_group().membership.rebalance_timeout = 45.0  # type: ignore[union-attr]
    consumer.poll(timeout_ms=12_000)
    assert [request.rebalance_timeout_ms for request in cluster.asked("JoinGroup")] == [45_000]


def test_a_member_leaves_while_its_coordinator_is_not_known(cluster: Cluster, make: MakeConsumer) -> None:
    """As right after its broker has crashed: without the request the group waits for the end of the session."""
    consumer = make("t", group_id="g", enable_auto_commit=False)
    consumer.poll(timeout_ms=1000)
    consumer._core.check_group().membership.coordinator.forget("a heartbeat failed")  # type: ignore[union-attr]
    consumer.close()
    assert left(cluster) == ["m"]


def test_a_member_leaves_at_the_coordinator_that_has_taken_over(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = make("t", group_id="g")
    consumer.poll(timeout_ms=1000)
    cluster.script["LeaveGroup"] = deque([NOT_COORDINATOR] * 3)  # while it moves, no broker may know that it is the one
    lookups = len(cluster.asked("FindCoordinator"))
    consumer.close()
    assert left(cluster) == ["m"] * 4
    assert len(cluster.asked("FindCoordinator")) == lookups + 3


@pytest.mark.parametrize(("unanswered", "requests"), [(1, 2), (5, 2)])
def test_a_request_to_leave_without_an_answer_is_sent_once_more(
    cluster: Cluster, make: MakeConsumer, unanswered: int, requests: int
) -> None:
    consumer = make("t", group_id="g", request_timeout_ms=2000, max_poll_interval_ms=1500)
    consumer.poll(timeout_ms=1000)
    cluster.script["LeaveGroup"] = deque([SILENCE] * unanswered)
    began = cluster.now
    consumer.close(timeout_ms=20_000)
    assert left(cluster) == ["m"] * requests
    assert cluster.now - began < 5


def test_a_request_to_leave_is_not_sent_again_after_the_time_that_close_has(
    cluster: Cluster, make: MakeConsumer
) -> None:
    consumer = make("t", group_id="g", request_timeout_ms=2000, max_poll_interval_ms=1500)
    consumer.poll(timeout_ms=1000)
    cluster.script["LeaveGroup"] = deque([SILENCE])
    consumer.close(timeout_ms=1000)
    assert left(cluster) == ["m"]


def test_a_member_that_leaves_does_not_ask_for_longer_than_a_second(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = make("t", group_id="g")
    consumer.poll(timeout_ms=1000)
    cluster.script["LeaveGroup"] = deque([NOT_COORDINATOR] * 1000)
    began = cluster.now
    consumer.close()
    assert 3 <= len(left(cluster)) <= 12
    assert cluster.now - began < 2.5


def test_a_member_that_leaves_looks_for_its_coordinator_for_a_second(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = make("t", group_id="g", enable_auto_commit=False)
    consumer.poll(timeout_ms=1000)
    consumer._core.check_group().membership.coordinator.forget("a heartbeat failed")  # type: ignore[union-attr]
    cluster.broker.on("FindCoordinator", lambda _request, _session: SILENCE)
    began = cluster.now
    consumer.close()
    assert cluster.now - began < 2
    assert not left(cluster)


@pytest.mark.parametrize(("static", "requests"), [(None, 1), ("one", 0)])
def test_only_a_dynamic_member_leaves(cluster: Cluster, make: MakeConsumer, static: str | None, requests: int) -> None:
    consumer = make("t", group_id="g", group_instance_id=static)
    consumer.poll(timeout_ms=1000)
    consumer.close()
    assert len(cluster.asked("LeaveGroup")) == requests
    assert state(consumer) is MemberState.CLOSED
