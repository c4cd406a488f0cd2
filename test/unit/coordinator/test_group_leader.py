"""What a leader makes of the members' subscriptions and of an assignor's result."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafka._runtime.loop import Loop
from kafka._runtime.network_thread import CallerDriver, complete
from kafka.coordinator import group_leader
from kafka.coordinator.assignors import RangePartitionAssignor
from kafka.coordinator.group_leader import AssignorCalls
from kafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from kafka.coordinator.rebalance import Rendezvous
from kafka.errors import KafkaError
from kafka.structs import TopicPartition
from test.unit.coordinator.clusters import make_cluster

CLUSTER: Any = make_cluster({"t": 2})


def member(member_id: str, metadata: bytes) -> Any:
    return SimpleNamespace(member_id=member_id, metadata=metadata, group_instance_id=None)


def wants(*topics: str, owned: tuple[TopicPartition, ...] = ()) -> ConsumerProtocolMemberMetadata:
    return ConsumerProtocolMemberMetadata(0, topics, b"", owned)


class Assignor:
    """Assigns what a test says."""

    name = "mine"

    def __init__(self, result: Any) -> None:
        self.result = result

    def assign(self, _cluster: Any, _members: Any) -> Any:
        if isinstance(self.result, Exception):
            raise self.result
        return {name: ConsumerProtocolMemberAssignment(0, [("t", numbers)]) for name, numbers in self.result.items()}


def assigned(result: Any, members: Any, *, cooperative: bool = False) -> Any:
    return group_leader.assign(Assignor(result), CLUSTER, members, cooperative=cooperative)


def test_a_member_with_an_invalid_subscription_gets_nothing(caplog: pytest.LogCaptureFixture) -> None:
    found = group_leader.read_members([member("a", wants("t").encode()), member("b", b"\0")])
    assert (list(found["a"].topics), list(found["b"].topics)) == (["t"], [])
    assert "Member b sent a subscription that cannot be read" in caplog.text
    assert group_leader.topics_of(found) == {"t"}


def test_errors_of_an_assignor_name_it() -> None:
    with pytest.raises(KafkaError, match=r"the assignor 'mine' failed: ValueError\('no'\)"):
        assigned(ValueError("no"), {"a": wants("t")})


def test_an_assignor_may_assign_to_members_only() -> None:
    with pytest.raises(KafkaError, match="which are not members"):
        assigned({"a": [0], "x": [1]}, {"a": wants("t")})


def test_a_cooperative_assignor_must_not_assign_a_partition_that_another_member_owns() -> None:
    members = {"a": wants("t", owned=(TopicPartition("t", 0),)), "b": wants("t")}
    assert assigned({"a": [0], "b": [1]}, members, cooperative=True).keys() == {"a", "b"}
    with pytest.raises(KafkaError, match="gave t-0 to b while"):
        assigned({"a": [1], "b": [0]}, members, cooperative=True)
    assert assigned({"a": [1], "b": [0]}, members)  # an eager one may: nothing is owned at that moment


def test_a_snapshot_changes_with_partitions_and_not_with_other_topics() -> None:
    before = group_leader.take_snapshot(CLUSTER, {"t", "missing"})
    assert before["missing"] is None
    assert group_leader.take_snapshot(make_cluster({"t": 2, "other": 1}), {"t", "missing"}) == before
    assert group_leader.take_snapshot(make_cluster({"t": 3}), {"t", "missing"}) != before


@pytest.fixture
def loop() -> Any:
    loop = Loop()
    yield loop
    loop.close()


def test_a_builtin_assignor_runs_on_the_loop_and_another_one_in_the_application(loop: Loop) -> None:
    builtin, own, rendezvous = RangePartitionAssignor(), Assignor({}), Rendezvous()
    calls = AssignorCalls([builtin, own], rendezvous)
    assert loop.run_until(loop.spawn(calls.ask(builtin, lambda: "here"))) == "here"
    task = loop.spawn(calls.ask(own, lambda: "there"))
    loop.turn(0)
    assert not task.is_done
    call = rendezvous.take()
    assert call is not None
    complete(call.run(CallerDriver(loop), loop))
    assert loop.run_until(task) == "there"


def test_an_error_of_the_application_s_assignor_is_the_member_s_not_the_listener_s(loop: Loop) -> None:
    own, rendezvous = Assignor({}), Rendezvous()

    def fail() -> None:
        raise ValueError("no")

    task = loop.spawn(AssignorCalls([own], rendezvous).ask(own, fail))
    loop.turn(0)
    call = rendezvous.take()
    assert call is not None
    complete(call.run(CallerDriver(loop), loop))
    with pytest.raises(KafkaError, match="the assignor 'mine' failed"):
        loop.run_until(task)


def test_the_group_may_choose_an_offered_assignor_only() -> None:
    calls = AssignorCalls([RangePartitionAssignor()], Rendezvous())
    assert calls.named("range").name == "range"
    with pytest.raises(KafkaError, match="'sticky', which this member did not offer"):
        calls.named("sticky")
