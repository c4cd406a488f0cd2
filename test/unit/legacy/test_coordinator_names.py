"""Names of kafka-python's coordinators that programs read and call, and those that a subclass cannot override here."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from kafka.coordinator.base import BaseCoordinator
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.errors import FencedInstanceIdError
from test.unit.consumer.conftest import cluster, make
from test.unit.consumer.scripted import T0, T1, Cluster, MakeConsumer, read, rest

__all__ = ["cluster", "make"]


@pytest.fixture
def consumer(cluster: Cluster, make: MakeConsumer) -> Any:
    cluster.fill(3)
    made = make("t", group_id="g", heartbeat_interval_ms=1000)
    assert len(read(made, 3)) == 3
    return made


def test_the_state_of_a_member_is_read_under_its_historic_names(consumer: Any) -> None:
    coordinator = consumer._coordinator
    assert coordinator._client is coordinator.client
    assert coordinator._subscription is consumer._subscription
    assert coordinator._cluster is consumer._client.cluster
    assert coordinator._auto_commit_task is coordinator.auto_commit
    assert coordinator._generation == coordinator.generation_if_stable() == coordinator.generation
    assert coordinator._generation.member_id == coordinator.member_id == "m"
    assert (coordinator.rejoining, coordinator.rebalance_in_progress(), coordinator.rejoin_needed) == (False,) * 3
    assert coordinator.coordinator() == coordinator.coordinator_id == 0
    assert coordinator.ensure_coordinator_ready(timeout_ms=1000)
    assert coordinator.join_group(timeout_ms=1000)
    assert 0 <= coordinator.time_to_next_heartbeat() <= 1


def test_a_program_makes_a_member_join_again(cluster: Cluster, consumer: Any) -> None:
    coordinator = consumer._coordinator
    coordinator.rejoin_needed = False
    rest(consumer, 2)
    assert len(cluster.asked("JoinGroup")) == 1
    coordinator.rejoin_needed = True
    consumer.poll(timeout_ms=2000)
    assert [request.member_id for request in cluster.asked("JoinGroup")] == ["", "m"]


@pytest.mark.parametrize(("member_id", "sent"), [("", ""), ("m", "m")])
def test_a_program_resets_the_generation(cluster: Cluster, consumer: Any, member_id: str, sent: str) -> None:
    consumer._coordinator.reset_generation(member_id)
    consumer.poll(timeout_ms=2000)
    assert [request.member_id for request in cluster.asked("JoinGroup")] == ["", sent]
    assert consumer.assignment() == {T0, T1}


def test_a_member_that_left_joins_again_with_the_next_poll(cluster: Cluster, consumer: Any) -> None:
    coordinator = consumer._coordinator
    coordinator.maybe_leave_group(timeout_ms=5000)
    assert len(cluster.asked("LeaveGroup")) == 1
    rest(consumer, 3)
    assert (coordinator.generation_if_stable(), len(cluster.asked("JoinGroup"))) == (None, 1)
    assert coordinator.poll(timeout_ms=5000)
    assert coordinator.generation_if_stable() is not None
    coordinator.maybe_leave_group()
    cluster.fill(2)
    assert len(read(consumer, 5)) == 5  # nothing was committed


def test_a_program_that_works_long_keeps_its_membership(cluster: Cluster, make: MakeConsumer) -> None:
    consumer: Any = make(
        "t", group_id="g", max_poll_interval_ms=5000, session_timeout_ms=4000, heartbeat_interval_ms=1000
    )
    consumer.poll(timeout_ms=1000)
    for _ in range(5):
        rest(consumer, 3)
        consumer._coordinator.poll_heartbeat()
    assert not cluster.asked("LeaveGroup")


def test_poll_heartbeat_raises_an_error_that_ended_the_membership(consumer: Any) -> None:
    consumer._coordinator.fail_with(FencedInstanceIdError("fenced"))
    with pytest.raises(FencedInstanceIdError):
        consumer._coordinator.poll_heartbeat()
    consumer._coordinator.poll_heartbeat()


@pytest.mark.parametrize("base", [BaseCoordinator, ConsumerCoordinator])
def test_a_method_that_is_never_called_is_reported_when_a_subclass_defines_it(base: type) -> None:
    def method(self: Any, *args: Any) -> None: ...

    with pytest.warns(RuntimeWarning, match=r"Old\._handle_join_success is never called"):
        type("Old", (base,), {"_handle_join_success": method})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        type("New", (base,), {"_on_join_prepare": method, "_own": method})
