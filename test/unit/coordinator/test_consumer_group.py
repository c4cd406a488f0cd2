"""A consumer's side of its group: what poll() does for it, its identity, how it leaves."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from kafka._runtime.network_thread import complete
from kafka.errors import IllegalStateError
from kafka.structs import OffsetAndMetadata
from test.unit.consumer.scripted import T0, T1, Cluster, MakeConsumer, read, rest


def member(consumer: Any) -> Any:
    return consumer._coordinator


class Listener:
    def __init__(self) -> None:
        self.calls: list[tuple[str, list[Any]]] = []

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.calls.append(("assigned", sorted(assigned)))

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.calls.append(("revoked", sorted(revoked)))

    def on_partitions_lost(self, lost: Any) -> None:
        self.calls.append(("lost", sorted(lost)))


def test_serving_is_due_for_a_call_and_not_without_one(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = make("t", group_id="g", enable_auto_commit=False)
    assert member(consumer).due
    consumer.poll(timeout_ms=1000)
    assert not member(consumer).due
    consumer.commit_async({T0: OffsetAndMetadata(1)}, lambda _offsets, _outcome: None)
    rest(consumer, 1)
    assert member(consumer).due
    complete(member(consumer).serve())
    assert not member(consumer).due


@pytest.mark.parametrize(
    ("strategy", "first"), [("range", [("revoked", [])]), ("cooperative-sticky", [])], ids=["eager", "cooperative"]
)
def test_an_eager_rebalance_begins_with_a_revocation_also_of_nothing_but_once(
    cluster: Cluster, make: MakeConsumer, strategy: str, first: list[Any]
) -> None:
    listener = Listener()
    cluster.script["JoinGroup"] = deque([7, 7])
    consumer = make(group_id="g", partition_assignment_strategy=[strategy])
    consumer.subscribe(["t"], listener=listener)
    while not consumer.assignment():
        consumer.poll(timeout_ms=500)
    assert listener.calls == [*first, ("assigned", [T0, T1])]


def test_lost_partitions_are_reported_as_lost_and_not_committed(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(10)
    listener = Listener()
    consumer = make(group_id="g", heartbeat_interval_ms=1000, auto_commit_interval_ms=3_600_000)
    consumer.subscribe(["t"], listener=listener)
    read(consumer, 10)
    cluster.script["Heartbeat"] = deque([25])
    rest(consumer, 1.5)
    consumer.poll(timeout_ms=500)
    assert listener.calls == [("revoked", []), ("assigned", [T0, T1]), ("lost", [T0, T1]), ("assigned", [T0, T1])]
    assert not cluster.committed


REBALANCE = 27


def test_an_error_of_a_listener_comes_out_of_poll_and_the_rebalance_continues(
    cluster: Cluster, make: MakeConsumer
) -> None:
    class Broken(Listener):
        def on_partitions_assigned(self, assigned: Any) -> None:
            raise ValueError("mine")

    cluster.fill(3)
    consumer = make(group_id="g")
    consumer.subscribe(["t"], listener=Broken())
    with pytest.raises(ValueError, match="mine"):
        consumer.poll(timeout_ms=5000)
    assert len(read(consumer, 3)) == 3


def test_the_identity_after_a_removal_is_the_last_one(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = make("t", group_id="g", heartbeat_interval_ms=1000)
    assert consumer.group_metadata().member_id == ""
    consumer.poll(timeout_ms=1000)
    identity = consumer.group_metadata()
    assert (identity.generation_id, identity.member_id) == (1, "m")
    cluster.script["Heartbeat"] = deque([25])
    cluster.script["JoinGroup"] = deque([14] * 1000)
    rest(consumer, 3)
    assert (consumer.group_metadata().generation_id, consumer.group_metadata().member_id) == (1, "m")


def test_health_has_the_group_s_state(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = make("t", group_id="g")
    consumer.poll(timeout_ms=1000)
    assert consumer.health()["group"] == {
        "group_id": "g",
        "protocol": "classic",
        "state": "in the group",
        "generation": 1,
        "member_id": "m",
        "coordinator": 0,
        "waiting_for": None,
    }


def test_unsubscribing_leaves_and_a_subscription_joins_again(cluster: Cluster, make: MakeConsumer) -> None:
    listener = Listener()
    consumer = make(group_id="g")
    consumer.subscribe(["t"], listener=listener)
    consumer.poll(timeout_ms=1000)
    consumer.unsubscribe()
    assert listener.calls[-1] == ("revoked", [T0, T1])
    assert len(cluster.asked("LeaveGroup")) == 1
    consumer.subscribe(["t"])
    consumer.poll(timeout_ms=1000)
    assert consumer.assignment() == {T0, T1}


def test_a_member_that_was_too_slow_does_not_join_while_its_consumer_unsubscribes(
    cluster: Cluster, make: MakeConsumer
) -> None:
    """In asyncio another task may call a method that polls; what it would join is left at once."""
    consumer = make(group_id="g", max_poll_interval_ms=5000, session_timeout_ms=4000, heartbeat_interval_ms=1000)
    seen = []

    class Polls(Listener):
        def on_partitions_lost(self, lost: Any) -> None:
            member(consumer).polled()
            consumer.topics()  # the loop runs meanwhile
            seen.append(member(consumer).state.name)

    consumer.subscribe(["t"], listener=Polls())
    while not consumer.assignment():
        consumer.poll(timeout_ms=500)
    rest(consumer, 20)
    consumer.unsubscribe()
    assert seen == ["LEFT"]
    consumer.subscribe(["t"])
    while not consumer.assignment():
        consumer.poll(timeout_ms=500)


def test_a_group_that_was_left_does_not_take_an_assignment(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = make("t", group_id="g")
    consumer.poll(timeout_ms=1000)
    consumer.unsubscribe()
    with pytest.raises(IllegalStateError):
        consumer._core.subscription.assign_from_group([T0])  # type: ignore[union-attr]
    assert consumer.assignment() == set()


def test_the_historic_calls_block(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(10)
    consumer = make(group_id="g", enable_auto_commit=False)
    coordinator = member(consumer)
    coordinator.commit_offsets_sync({T0: OffsetAndMetadata(4)})
    assert coordinator.fetch_committed_offsets([T0, T1]) == {T0: OffsetAndMetadata(4)}
    consumer.assign([T0])
    coordinator.refresh_committed_offsets_if_needed()
    assert consumer.position(T0) == 4
    coordinator.close()
    coordinator.close()


def test_health_names_the_poll_that_a_rebalance_waits_for(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = make("t", group_id="g", max_poll_interval_ms=60_000, heartbeat_interval_ms=1000)
    consumer.poll(timeout_ms=1000)
    cluster.script["Heartbeat"] = deque([REBALANCE])
    rest(consumer, 5)
    assert consumer.health()["problems"] == [
        "group 'g': the application: a rebalance waits for its next poll(), the last one was 5 s ago"
    ]
    rest(consumer, 60)
    assert consumer.health()["problems"] == [
        "group 'g': the application: poll() was not called for 60 s (max_poll_interval_ms)"
    ]
    consumer.poll(timeout_ms=1000)
    assert consumer.health()["ok"]
