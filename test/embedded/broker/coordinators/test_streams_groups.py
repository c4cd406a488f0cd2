"""Streams groups (KIP-1071) over TCP: the topology, the tasks of members, and how tasks move."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka.broker import Broker
from kafka.errors import Code
from kafka.protocol.admin import DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest, UpdateFeaturesRequest
from kafka.protocol.commit import OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest
from kafka.protocol.configs import IncrementalAlterConfigsRequest
from kafka.protocol.group import ConsumerGroupHeartbeatRequest, JoinGroupRequest
from kafka.protocol.streams import StreamsGroupDescribeRequest, StreamsGroupHeartbeatRequest
from test.embedded.broker.wire import Wire

Heartbeat = StreamsGroupHeartbeatRequest[0]
Described = StreamsGroupDescribeRequest[0]


pytestmark = pytest.mark.kafka_broker(topics={"in": 2, "three": 3}, seed=1)


@pytest.fixture
def wire(broker: Broker) -> Iterator[Wire]:
    with Wire(broker.port()) as connection:
        yield connection


def topology(*sources: str, epoch: int = 0, **parts: Any) -> Any:
    """One subtopology, called 0."""
    return Heartbeat.Topology(epoch, [Heartbeat.Subtopology(subtopology_id="0", source_topics=list(sources), **parts)])


def join(wire: Wire, member: str, *sources: str, plan: Any = None, **fields: Any) -> Any:
    joining: dict[str, Any] = {
        "rebalance_timeout_ms": 10_000,
        "active_tasks": [],
        "standby_tasks": [],
        "warmup_tasks": [],
        "process_id": f"process of {member}",
        "topology": plan or topology(*(sources or ("in",))),
    }
    return beat(wire, member, 0, **{**joining, **fields})


def beat(wire: Wire, member: str, epoch: int, *, group: str = "g", owned: Any = None, **fields: Any) -> Any:
    if owned is not None:
        fields = {"active_tasks": [("0", owned)] if owned else [], "standby_tasks": [], "warmup_tasks": [], **fields}
    return wire.ask(Heartbeat(group_id=group, member_id=member, member_epoch=epoch, **fields))


def tasks(reply: Any) -> list[int] | None:
    """The active tasks in a reply, None if it has none to tell."""
    if reply.active_tasks is None:
        return None
    return [index for one in reply.active_tasks for index in one.partitions]


def described(wire: Wire, group: str = "g") -> Any:
    (found,) = wire.ask(Described(group_ids=[group])).groups
    return found


# Members and tasks


def test_the_first_member_has_all_tasks(wire: Wire) -> None:
    reply = join(wire, "a", "in", "three", rack_id="r", user_endpoint=("h", 99), client_tags=[("k", "v")])
    assert (reply.error_code, reply.member_id, reply.heartbeat_interval_ms, reply.status) == (0, "a", 5000, [])
    assert (tasks(reply), reply.standby_tasks, reply.warmup_tasks) == ([0, 1, 2], [], [])
    assert tasks(beat(wire, "a", reply.member_epoch)) is None
    group = described(wire)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", *[reply.member_epoch] * 2)
    assert [(one.subtopology_id, one.source_topics) for one in group.topology.subtopologies] == [("0", ["in", "three"])]
    (member,) = group.members
    assert (member.member_id, member.rack_id, member.process_id) == ("a", "r", "process of a")
    assert (member.client_id, member.client_host, member.is_classic) == ("test", "/127.0.0.1", False)
    assert (member.user_endpoint.host, member.user_endpoint.port) == ("h", 99)
    assert [(tag.key, tag.value) for tag in member.client_tags] == [("k", "v")]
    for assignment in (member.assignment, member.target_assignment):
        assert [(one.subtopology_id, one.partitions) for one in assignment.active_tasks] == [("0", [0, 1, 2])]


def test_a_task_moves_when_its_member_has_given_it_up(wire: Wire) -> None:
    first = join(wire, "a").member_epoch
    newcomer = join(wire, "b")
    assert (newcomer.member_epoch, tasks(newcomer)) == (first + 1, [])
    assert described(wire).group_state == "Reconciling"
    asked = beat(wire, "a", first, owned=[0, 1])
    assert (asked.member_epoch, tasks(asked)) == (first, [0])
    assert tasks(beat(wire, "b", newcomer.member_epoch, owned=[])) is None  # a has not confirmed
    done = beat(wire, "a", first, owned=[0])
    assert (done.member_epoch, tasks(done)) == (first + 1, None)
    assert tasks(beat(wire, "b", newcomer.member_epoch, owned=[])) == [1]
    assert described(wire).group_state == "Stable"


def test_a_member_that_does_not_give_up_a_task_is_expelled(broker: Broker, wire: Wire) -> None:
    first = join(wire, "a").member_epoch
    other = join(wire, "b").member_epoch
    beat(wire, "a", first, owned=[0, 1])
    broker.clock.advance(11)  # its rebalance timeout
    assert [member.member_id for member in described(wire).members] == ["b"]
    assert tasks(beat(wire, "b", other, owned=[])) == [0, 1]


def test_a_member_leaves_or_is_expelled(broker: Broker, wire: Wire) -> None:
    epoch = join(wire, "a").member_epoch
    left = beat(wire, "a", -1)
    assert (left.error_code, left.member_epoch, left.active_tasks) == (0, -1, None)
    assert (described(wire).group_state, described(wire).group_epoch) == ("Empty", epoch + 1)
    join(wire, "a")
    broker.clock.advance(46)
    assert described(wire).members == []
    assert beat(wire, "a", epoch).error_message == "Member a is not a member of group g."


def test_a_member_at_a_wrong_epoch_is_fenced(wire: Wire) -> None:
    epoch = join(wire, "a").member_epoch
    ahead, behind = beat(wire, "a", epoch + 5), beat(wire, "a", epoch - 1)
    assert ahead.error_code == behind.error_code == Code.FENCED_MEMBER_EPOCH
    assert ahead.error_message == (
        f"The streams group member has a greater member epoch ({epoch + 5}) than the one known by the group coordinator"
        f" ({epoch}). The member must abandon all its partitions and rejoin."
    )
    assert "has a smaller member epoch" in behind.error_message


def test_a_member_that_joins_again_keeps_its_tasks(wire: Wire) -> None:
    first = join(wire, "a")
    again = join(wire, "a")
    assert (again.member_epoch, tasks(again)) == (first.member_epoch, [0, 1])


def test_members_receive_each_other_s_endpoints(wire: Wire) -> None:
    first = join(wire, "a", user_endpoint=("h", 99))
    (one,) = first.partitions_by_user_endpoint
    assert (one.user_endpoint.host, one.user_endpoint.port) == ("h", 99)
    assert [(part.topic, part.partitions) for part in one.active_partitions] == [("in", [0, 1])]
    known = beat(wire, "a", first.member_epoch, endpoint_information_epoch=first.endpoint_information_epoch)
    assert known.partitions_by_user_endpoint is None
    join(wire, "b")
    moved = beat(wire, "a", first.member_epoch, owned=[0, 1])
    assert moved.endpoint_information_epoch > first.endpoint_information_epoch
    assert [part.partitions for part in moved.partitions_by_user_endpoint[0].active_partitions] == [[0]]


def test_stateful_tasks_have_standbys(wire: Wire) -> None:
    change = IncrementalAlterConfigsRequest[1](resources=[(32, "g", [("streams.num.standby.replicas", 0, "1")])])
    assert wire.ask(change).responses[0].error_code == 0
    plan = topology("in", state_changelog_topics=[("g-store-changelog", 0, 0, [])])
    first = join(wire, "a", plan=plan)
    assert first.standby_tasks == []
    join(wire, "b", plan=plan)
    beat(wire, "a", first.member_epoch, owned=[0, 1])
    reply = beat(wire, "a", first.member_epoch, owned=[0])
    (member, _) = described(wire).members
    assert reply.error_code == 0
    assert [(one.subtopology_id, one.partitions) for one in member.assignment.standby_tasks] == [("0", [1])]


# The topology


def test_a_group_waits_for_its_source_topics(broker: Broker, wire: Wire) -> None:
    reply = join(wire, "a", "in", "missing")
    assert (reply.error_code, tasks(reply)) == (0, [])
    assert [(one.status_code, one.status_detail) for one in reply.status] == [(1, "Source topics missing are missing.")]
    assert described(wire).group_state == "NotReady"
    broker.create_topic("missing", 4)
    ready = beat(wire, "a", reply.member_epoch)
    assert (ready.status, tasks(ready)) == ([], [0, 1, 2, 3])


def test_topics_that_are_joined_have_equally_many_partitions(wire: Wire) -> None:
    plan = topology("in", "three", copartition_groups=[([0, 1], [], [])])
    (status,) = join(wire, "a", plan=plan).status
    assert status.status_code == 2
    assert status.status_detail == "Following topics do not have the same number of partitions: [{in=2, three=3}]"


@pytest.mark.parametrize("groups", [[([2], [], [])], [([-1], [], [])], [([0], [], [0])]])
def test_joined_topics_that_the_subtopology_does_not_have_are_refused(wire: Wire, groups: Any) -> None:
    reply = join(wire, "a", plan=topology("in", "three", copartition_groups=groups))
    assert reply.error_code == Code.INVALID_REQUEST
    assert "A copartition group has topics [" in reply.error_message


def test_internal_topics_are_created(broker: Broker, wire: Wire) -> None:
    store = ("g-store-changelog", 0, 0, [("cleanup.policy", "compact")])
    parts = [
        Heartbeat.Subtopology(subtopology_id="0", source_topics=["three"], repartition_sink_topics=["g-repartition"]),
        Heartbeat.Subtopology(
            subtopology_id="1",
            repartition_source_topics=[("g-repartition", 0, 0, [])],
            state_changelog_topics=[store],
        ),
    ]
    reply = join(wire, "a", plan=Heartbeat.Topology(0, parts))
    assert [(one.subtopology_id, one.partitions) for one in reply.active_tasks] == [("0", [0, 1, 2]), ("1", [0, 1, 2])]
    made = broker.run(
        lambda cluster: {name: (len(one.partitions), one.configs) for name, one in cluster.topics.items()}
    )
    assert made["g-repartition"] == (3, {})
    assert made["g-store-changelog"] == (3, {"cleanup.policy": "compact"})
    second = described(wire).topology.subtopologies[1]
    assert [(one.name, one.partitions) for one in second.state_changelog_topics] == [("g-store-changelog", 3)]


def test_the_topology_stays(wire: Wire) -> None:
    join(wire, "a")
    refused = join(wire, "a", "three")
    assert (refused.error_code, refused.error_message) == (
        Code.INVALID_REQUEST,
        "Topology updates are not supported yet.",
    )
    assert join(wire, "b", plan=topology("in", epoch=1)).error_code == Code.INVALID_REQUEST


def test_a_member_can_end_the_application(wire: Wire) -> None:
    epoch = join(wire, "a").member_epoch
    detail = "Streams group member a encountered a fatal error and requested a shutdown for the entire application."
    asked = beat(wire, "a", epoch, shutdown_application=True)
    assert [(one.status_code, one.status_detail) for one in asked.status] == [(4, detail)]
    assert [one.status_code for one in join(wire, "b").status] == [4]


# What is refused


@pytest.mark.parametrize(
    ("member", "fields", "message"),
    [
        ("", {}, "MemberId can't be empty."),
        ("a", {"group": ""}, "GroupId can't be empty."),
        ("a", {"rack_id": ""}, "RackId can't be empty."),
        ("a", {"instance_id": "i"}, "Static membership is not yet supported."),
        ("a", {"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ("a", {"topology": None}, "Topology must be non-null when (re-)joining."),
        ("a", {"active_tasks": None}, "ActiveTasks must be empty when (re-)joining."),
        ("a", {"standby_tasks": [("0", [1])]}, "StandbyTasks must be empty when (re-)joining."),
        ("a", {"warmup_tasks": None}, "WarmupTasks must be empty when (re-)joining."),
    ],
)
def test_a_join_that_contradicts_itself_is_refused(wire: Wire, member: str, fields: Any, message: str) -> None:
    reply = join(wire, member, **fields)
    assert (reply.error_code, reply.error_message, reply.status) == (Code.INVALID_REQUEST, message, [])


@pytest.mark.parametrize(
    ("epoch", "message"),
    [(-2, "InstanceId can't be null."), (-3, "MemberEpoch is -3, but must be greater than or equal to -2.")],
)
def test_a_wrong_epoch_is_refused(wire: Wire, epoch: int, message: str) -> None:
    assert beat(wire, "a", epoch).error_message == message


def test_a_group_is_of_one_kind(wire: Wire) -> None:
    join(wire, "a")
    listed = wire.ask(ListGroupsRequest[5](states_filter=[], types_filter=["streams"])).groups
    expected = ("g", "streams", "Stable", "streams")
    assert [(one.group_id, one.protocol_type, one.group_state, one.group_type) for one in listed] == [expected]
    consumer = ConsumerGroupHeartbeatRequest[1]("g", "z", 0, None, None, 1000, ["in"], topic_partitions=[])
    assert wire.ask(consumer).error_message == "Group g is not a consumer group."
    classic = JoinGroupRequest[9]("g", 10_000, 5_000, "", None, "consumer", [("range", b"")])
    assert wire.ask(classic).error_code == Code.INCONSISTENT_GROUP_PROTOCOL
    assert wire.ask(DescribeGroupsRequest[6](["g"])).groups[0].error_message == "Group g is not a classic group."
    assert described(wire, "nope").error_message == "Group nope not found."
    assert beat(wire, "a", 3, group="nope").error_message == "Streams group nope not found."
    beat(wire, "a", -1)
    assert wire.ask(classic).error_code == Code.MEMBER_ID_REQUIRED  # an empty group gives way
    assert described(wire).error_message == "Group g is not a streams group."


def test_the_feature_can_be_disabled(wire: Wire) -> None:
    assert wire.ask(UpdateFeaturesRequest[2](feature_updates=[("streams.version", 0, 2)])).error_code == 0
    assert join(wire, "a").error_code == Code.UNSUPPORTED_VERSION


# Offsets


def commit(wire: Wire, member: str, epoch: int) -> int:
    request = OffsetCommitRequest[9]("g", epoch, member, None, [("in", [(0, 5, -1, "")])])
    code: int = wire.ask(request).topics[0].partitions[0].error_code
    return code


def test_members_commit_and_others_only_while_there_is_none(wire: Wire) -> None:
    epoch = join(wire, "a").member_epoch
    assert commit(wire, "a", epoch) == 0
    assert commit(wire, "a", epoch + 1) == Code.STALE_MEMBER_EPOCH
    assert commit(wire, "", -1) == Code.UNKNOWN_MEMBER_ID
    deletion = OffsetDeleteRequest[0]("g", [("in", [(0,)])])
    assert wire.ask(deletion).topics[0].partitions[0].error_code == Code.GROUP_SUBSCRIBED_TO_TOPIC
    (group,) = wire.ask(DeleteGroupsRequest[2](["g"])).results
    assert group.error_code == Code.NON_EMPTY_GROUP
    beat(wire, "a", -1)
    assert commit(wire, "", -1) == 0
    (fetched,) = wire.ask(OffsetFetchRequest[9](groups=[("g", None, -1, None)])).groups
    assert fetched.topics[0].partitions[0].committed_offset == 5
    assert wire.ask(deletion).topics[0].partitions[0].error_code == 0
    assert wire.ask(DeleteGroupsRequest[2](["g"])).results[0].error_code == 0


def test_a_group_survives_a_restart(tmp_path: Path) -> None:
    options: Any = {"topics": {"in": 2}, "data_dir": tmp_path / "data"}
    plan = topology("in", state_changelog_topics=[("g-store-changelog", 0, 0, [("a", "b")])])
    with Broker(**options) as broker, Wire(broker.port()) as wire:
        epoch = join(wire, "a", plan=plan, user_endpoint=("h", 9), client_tags=[("k", "v")]).member_epoch
        before = described(wire)
    with Broker(**options) as broker, Wire(broker.port()) as wire:
        assert described(wire) == before
        again = beat(wire, "a", epoch)
        assert (again.error_code, again.member_epoch, tasks(again)) == (0, epoch, None)
