"""Finding a group's coordinator."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Any

import pytest

from kafka._core.attempts import pause_after
from kafka._runtime.network_thread import complete
from kafka._runtime.timers import Backoff
from kafka.coordinator.group_coordinator import COMMITS, JOINS, check_left
from kafka.errors import (
    GroupAuthorizationFailedError,
    KafkaConnectionError,
    RequestTimedOutError,
    UnknownMemberIdError,
)
from kafka.protocol.group import LeaveGroupResponse
from test.unit.consumer.scripted import T0, Cluster, MakeConsumer, read, rest


def test_a_coordinator_that_is_not_available_is_looked_up_until_it_is(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(3)
    cluster.script["FindCoordinator"] = deque([15] * 1000)
    consumer = make("t", group_id="g", retry_backoff_ms=100, retry_backoff_max_ms=1000)
    consumer.poll(timeout_ms=40_000)
    assert "the coordinator of group g" in consumer.health()["group"]["waiting_for"]
    assert 20 < len(cluster.asked("FindCoordinator")) < 80
    cluster.script["FindCoordinator"].clear()
    assert len(read(consumer, 3)) == 3
    assert consumer.health()["group"]["waiting_for"] is None


def test_without_the_right_poll_raises(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.script["FindCoordinator"] = deque([GroupAuthorizationFailedError.errno])
    consumer = make("t", group_id="g")
    with pytest.raises(GroupAuthorizationFailedError):
        consumer.poll(timeout_ms=5000)


def test_the_coordinator_is_asked_for_once_and_again_after_it_moved(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = make("t", group_id="g", heartbeat_interval_ms=500)
    consumer.poll(timeout_ms=1000)
    coordinator = consumer._core.check_group().membership.coordinator  # type: ignore[union-attr]
    assert coordinator.node_id == 0
    assert not coordinator.is_unknown()
    assert len(cluster.asked("FindCoordinator")) == 1
    cluster.script["Heartbeat"] = deque([16])
    rest(consumer, 3)
    assert len(cluster.asked("FindCoordinator")) == 2
    assert consumer.health()["group"]["state"] == "in the group"


def test_joins_have_a_separate_connection(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = make("t", group_id="g")
    consumer.poll(timeout_ms=1000)
    client = consumer._core.client  # type: ignore[union-attr]
    assert client.link(0, JOINS) is not client.link(0, COMMITS)
    assert client.link(0, JOINS).ready


def test_the_historic_call_waits_for_the_coordinator(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.script["FindCoordinator"] = deque([15] * 1000)
    consumer = make(group_id="g")
    coordinator: Any = consumer._coordinator  # type: ignore[attr-defined]
    assert not coordinator.ensure_coordinator_known(timeout_ms=2000)
    cluster.script["FindCoordinator"].clear()
    assert coordinator.ensure_coordinator_known(timeout_ms=2000)


def test_a_failed_connection_has_its_own_backoff() -> None:
    backoff = Backoff(0.1, 100.0, Random(1))
    assert pause_after(KafkaConnectionError("refused"), 9, backoff) < 1
    assert pause_after(RequestTimedOutError(), 9, backoff) > 1


def test_requests_to_a_silent_coordinator_time_out(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = make(group_id="g", request_timeout_ms=5000)
    group = consumer._core.check_group()  # type: ignore[union-attr]
    consumer.assign([T0])
    consumer.poll(timeout_ms=1000)
    cluster.go_silent()
    from kafka.protocol.group import HeartbeatRequest

    began = cluster.now
    with pytest.raises(RequestTimedOutError):
        complete(group.application.run(group.membership.coordinator.ask(HeartbeatRequest(group_id="g"), COMMITS)))
    assert cluster.now - began == pytest.approx(5, abs=1)


def test_an_error_of_one_member_is_an_error() -> None:
    check_left(LeaveGroupResponse(members=[]))
    gone = LeaveGroupResponse.MemberResponse(member_id="m", group_instance_id=None, error_code=25)
    with pytest.raises(UnknownMemberIdError):
        check_left(LeaveGroupResponse(members=[gone]))
