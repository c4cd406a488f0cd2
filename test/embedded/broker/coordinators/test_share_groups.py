"""Share groups (KIP-932) over TCP: members, what they are assigned, and the offsets that administrators see and set."""

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
from kafka.protocol.group import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from kafka.protocol.share import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
)
from test.embedded.broker.wire import Wire

UNKNOWN = "This server does not host this topic-partition."


pytestmark = pytest.mark.kafka_broker(topics={"many": 3, "one": 1}, seed=1)


@pytest.fixture
def wire(broker: Broker) -> Iterator[Wire]:
    with Wire(broker.port()) as connection:
        yield connection


def beat(wire: Wire, member: str, epoch: int, *names: str, group: str = "g", **fields: Any) -> Any:
    fields.setdefault("subscribed_topic_names", list(names) or None)
    return wire.ask(ShareGroupHeartbeatRequest[1](group_id=group, member_id=member, member_epoch=epoch, **fields))


def assigned(broker: Broker, reply: Any) -> dict[str, list[int]] | None:
    """The partitions of a reply by the topics' names."""
    if reply.assignment is None:
        return None
    names: dict[Any, str] = broker.run(lambda cluster: {topic.id: name for name, topic in cluster.topics.items()})
    return {names[one.topic_id]: list(one.partitions) for one in reply.assignment.topic_partitions}


def described(wire: Wire, group: str = "g") -> Any:
    (found,) = wire.ask(ShareGroupDescribeRequest[1](group_ids=[group])).groups
    return found


# Members


def test_members_share_the_partitions_of_their_topics(broker: Broker, wire: Wire) -> None:
    first = beat(wire, "a", 0, "many", "absent", rack_id="r1")
    assert (first.error_code, first.member_id, first.heartbeat_interval_ms) == (0, "a", 5000)
    assert assigned(broker, first) == {"many": [0, 1, 2]}
    second = beat(wire, "b", 0, "many", "one")
    assert second.member_epoch == first.member_epoch + 1
    assert assigned(broker, second) == {"many": [1], "one": [0]}
    again = beat(wire, "a", first.member_epoch)
    assert (again.member_epoch, assigned(broker, again)) == (second.member_epoch, {"many": [0, 2]})
    assert assigned(broker, beat(wire, "a", again.member_epoch)) is None  # nothing has changed
    third = beat(wire, "c", 0, "one")
    assert assigned(broker, third) == {"one": [0]}  # with b, both read it


def test_a_group_is_described_and_listed(wire: Wire) -> None:
    epoch = beat(wire, "a", 0, "many", rack_id="r1").member_epoch
    group = described(wire)
    assert (group.error_code, group.group_state, group.assignor_name) == (0, "Stable", "simple")
    assert group.group_epoch == group.assignment_epoch == epoch
    (member,) = group.members
    assert (member.member_id, member.rack_id, member.member_epoch) == ("a", "r1", epoch)
    assert (member.client_id, member.client_host, member.subscribed_topic_names) == ("test", "/127.0.0.1", ["many"])
    (topic,) = member.assignment.topic_partitions
    assert (topic.topic_name, topic.partitions) == ("many", [0, 1, 2])
    listed = wire.ask(ListGroupsRequest[5](states_filter=[], types_filter=["SHARE"])).groups
    expected = ("g", "share", "Stable", "share")
    assert [(one.group_id, one.protocol_type, one.group_state, one.group_type) for one in listed] == [expected]
    assert wire.ask(ListGroupsRequest[5](states_filter=[], types_filter=["streams"])).groups == []
    with_rights = ShareGroupDescribeRequest[1](group_ids=["g"], include_authorized_operations=True)
    assert wire.ask(with_rights).groups[0].authorized_operations == 3400


def test_a_group_that_is_not_a_share_group_is_not_described(wire: Wire) -> None:
    wire.ask(OffsetCommitRequest[9]("offsets", -1, "", None, [("many", [(0, 5, -1, "")])]))
    for group, code, message in (
        ("nope", Code.GROUP_ID_NOT_FOUND, "Group nope not found."),
        ("offsets", Code.GROUP_ID_NOT_FOUND, "Group offsets is not a share group."),
        ("", Code.INVALID_GROUP_ID, None),
    ):
        found = described(wire, group)
        assert (found.error_code, found.error_message) == (code, message)
        of_consumers = wire.ask(ConsumerGroupDescribeRequest[1]([group])).groups[0]
        assert of_consumers.error_code == code
    assert beat(wire, "a", 0, "many", group="offsets").error_message == "Group offsets is not a share group."


def test_a_member_leaves_or_is_expelled(broker: Broker, wire: Wire) -> None:
    for member in ("a", "b", "c"):
        epoch = beat(wire, member, 0, "many").member_epoch
    left = beat(wire, "b", -1)
    assert (left.error_code, left.member_epoch, left.heartbeat_interval_ms) == (0, -1, 0)
    broker.clock.advance(44)
    beat(wire, "a", beat(wire, "a", epoch - 2).member_epoch)
    broker.clock.advance(2)  # c's session has ended
    assert [member.member_id for member in described(wire).members] == ["a"]
    broker.clock.advance(46)
    assert (described(wire).group_state, described(wire).members) == ("Empty", [])
    gone = beat(wire, "a", epoch)
    assert (gone.error_code, gone.error_message) == (
        Code.UNKNOWN_MEMBER_ID,
        "Member a is not a member of group g.",
    )


def test_a_member_at_a_wrong_epoch_is_fenced(wire: Wire) -> None:
    first = beat(wire, "a", 0, "many").member_epoch
    beat(wire, "b", 0, "many")
    now = beat(wire, "a", first).member_epoch
    assert beat(wire, "a", first).error_code == 0  # it has missed the response
    too_old, too_new = beat(wire, "a", first - 1), beat(wire, "a", now + 5)
    assert too_old.error_code == too_new.error_code == Code.FENCED_MEMBER_EPOCH
    assert too_old.error_message == (
        f"The share group member has a smaller member epoch ({first - 1}) than the one known by the group coordinator"
        f" ({now}), and it does not match the previous member epoch ({first}). The member must abandon all its"
        " partitions and rejoin."
    )
    assert f"a greater member epoch ({now + 5}) than" in too_new.error_message


@pytest.mark.parametrize(
    ("member", "epoch", "fields", "message"),
    [
        ("", 0, {}, None),
        ("a", 0, {"group": ""}, "GroupId can't be empty."),
        ("a", 0, {"rack_id": ""}, "RackId can't be empty."),
        ("a", 0, {"subscribed_topic_names": None}, "SubscribedTopicNames must be set in first request."),
        ("a", 0, {"subscribed_topic_names": []}, "SubscribedTopicNames must be set in first request."),
        ("a", -2, {}, "MemberEpoch is invalid."),
    ],
)
def test_a_request_that_contradicts_itself_is_refused(
    wire: Wire, member: str, epoch: int, fields: Any, message: str | None
) -> None:
    reply = beat(wire, member, epoch, "many", **fields)
    assert (reply.error_code, reply.error_message) == (Code.INVALID_REQUEST, message)


def test_a_member_begins_with_epoch_0(wire: Wire) -> None:
    assert beat(wire, "a", 3, "many").error_message == "Share group g not found."
    assert beat(wire, "a", -1).error_message == "Group g not found."


def test_a_new_partition_is_assigned(broker: Broker, wire: Wire) -> None:
    epoch = beat(wire, "a", 0, "many", "late").member_epoch
    broker.create_topic("late", 2)
    reply = beat(wire, "a", epoch)
    assert assigned(broker, reply) == {"many": [0, 1, 2], "late": [0, 1]}
    assert reply.member_epoch == epoch + 1


def test_a_group_has_a_largest_size() -> None:
    with Broker(topics={"many": 3}, configs={"group.share.max.size": "1"}) as broker, Wire(broker.port()) as wire:
        beat(wire, "a", 0, "many")
        full = beat(wire, "b", 0, "many")
        assert full.error_code == Code.GROUP_MAX_SIZE_REACHED
        assert full.error_message == "The share group has reached its maximum capacity of 1 members."


def test_a_group_s_own_settings_are_in_force(wire: Wire) -> None:
    change = IncrementalAlterConfigsRequest[1](resources=[(32, "g", [("share.heartbeat.interval.ms", 0, "9000")])])
    assert wire.ask(change).responses[0].error_code == 0
    assert beat(wire, "a", 0, "many").heartbeat_interval_ms == 9000


def test_the_feature_can_be_disabled(wire: Wire) -> None:
    assert wire.ask(UpdateFeaturesRequest[2](feature_updates=[("share.version", 0, 2)])).error_code == 0
    assert beat(wire, "a", 0, "many").error_code == Code.UNSUPPORTED_VERSION


def test_other_protocols_are_refused(wire: Wire) -> None:
    beat(wire, "a", 0, "many")
    join = JoinGroupRequest[9]("g", 10_000, 5_000, "", None, "consumer", [("range", b"")])
    assert wire.ask(join).error_code == Code.INCONSISTENT_GROUP_PROTOCOL
    assert wire.ask(SyncGroupRequest[4]("g", 1, "a")).error_code == Code.UNKNOWN_MEMBER_ID
    assert wire.ask(HeartbeatRequest[4]("g", 1, "a")).error_code == Code.UNKNOWN_MEMBER_ID
    assert wire.ask(LeaveGroupRequest[5]("g", [("a", None)])).members[0].error_code == Code.UNKNOWN_MEMBER_ID
    cls = ConsumerGroupHeartbeatRequest[1]
    consumer = cls("g", "z", 0, None, None, 1000, ["many"], topic_partitions=[])
    assert wire.ask(consumer).error_message == "Group g is not a consumer group."
    assert wire.ask(ConsumerGroupDescribeRequest[1](["g"])).groups[0].error_code == Code.GROUP_ID_NOT_FOUND
    assert wire.ask(DescribeGroupsRequest[6](["g"])).groups[0].error_message == "Group g is not a classic group."
    commit = OffsetCommitRequest[9]("g", -1, "", None, [("many", [(0, 5, -1, "")])])
    assert wire.ask(commit).topics[0].partitions[0].error_code == Code.GROUP_ID_NOT_FOUND
    assert wire.ask(OffsetDeleteRequest[0]("g", [("many", [(0,)])])).error_code == Code.GROUP_ID_NOT_FOUND
    assert wire.ask(OffsetFetchRequest[9](groups=[("g", None, -1, None)])).groups[0].topics == []


# Offsets


def offsets(
    wire: Wire, topics: Any = None, group: str = "g", version: int = 1
) -> dict[tuple[str, int], tuple[int, int]]:
    """Start offset and lag of each partition."""
    (found,) = wire.ask(DescribeShareGroupOffsetsRequest[version](groups=[(group, topics)])).groups
    assert found.error_code == 0
    return {
        (topic.topic_name, part.partition_index): (part.start_offset, part.lag if version else -1)
        for topic in found.topics
        for part in topic.partitions
    }


def alter(wire: Wire, *topics: Any, group: str = "g") -> Any:
    return wire.ask(AlterShareGroupOffsetsRequest[0](group_id=group, topics=list(topics)))


def delete(wire: Wire, *names: str, group: str = "g") -> Any:
    return wire.ask(DeleteShareGroupOffsetsRequest[0](group_id=group, topics=[(name,) for name in names]))


def outcomes(reply: Any) -> list[tuple[str, int, int, str | None]]:
    assert reply.error_code == 0, reply
    return [
        (one.topic_name, part.partition_index, part.error_code, part.error_message)
        for one in reply.responses
        for part in one.partitions
    ]


def test_a_group_s_offsets_begin_when_it_reads_a_topic(wire: Wire) -> None:
    assert offsets(wire) == offsets(wire, group="nope") == {}
    beat(wire, "a", 0, "one")
    assert offsets(wire) == {("one", 0): (-1, -1)}
    asked = [("many", [2]), ("absent", [0])]
    assert offsets(wire, asked) == {("many", 2): (-1, -1), ("absent", 0): (-1, -1)}


def test_the_offsets_of_an_empty_group_are_set_and_deleted(broker: Broker, wire: Wire) -> None:
    broker.append_many("one", ["x"] * 10)
    topics = [("many", [(0, 0), (9, 1)]), ("absent", [(0, 0)]), ("one", [(0, 3)])]
    assert outcomes(alter(wire, *topics)) == [
        ("absent", 0, Code.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN),
        ("many", 0, 0, None),
        ("many", 9, Code.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN),
        ("one", 0, 0, None),
    ]
    assert (described(wire).group_state, described(wire).group_epoch) == ("Empty", 1)
    assert offsets(wire) == {("many", 0): (0, 0), ("one", 0): (3, 7)}
    assert offsets(wire, [("one", [0])], version=0) == {("one", 0): (3, -1)}
    reply = delete(wire, "absent", "many")
    assert [(one.topic_name, one.error_code, one.error_message) for one in reply.responses] == [
        ("many", 0, None),
        ("absent", Code.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN),
    ]
    assert offsets(wire) == {("one", 0): (3, 7)}


def test_the_offsets_of_a_group_with_members_stay(wire: Wire) -> None:
    beat(wire, "a", 0, "one")
    for reply in (alter(wire, ("one", [(0, 0)])), delete(wire, "one")):
        assert (reply.error_code, reply.error_message) == (Code.NON_EMPTY_GROUP, "The group is not empty.")
    removed = wire.ask(DeleteGroupsRequest[2](groups_names=["g"])).results[0]
    assert removed.error_code == Code.NON_EMPTY_GROUP


def test_offsets_belong_to_a_share_group(wire: Wire) -> None:
    wire.ask(OffsetCommitRequest[9]("other", -1, "", None, [("many", [(0, 5, -1, "")])]))
    for reply in (alter(wire, ("one", [(0, 0)]), group="other"), delete(wire, "one", group="other")):
        assert reply.error_message == "Group other is not a share group."
    for reply in (alter(wire, ("one", [(0, 0)]), group=""), delete(wire, "one", group="")):
        assert (reply.error_code, reply.error_message) == (Code.INVALID_GROUP_ID, "The group id is invalid.")
    assert delete(wire, "one", group="nope").error_message == "Group nope not found."
    assert offsets(wire, group="other") == {}


def test_a_deleted_group_leaves_no_offsets(wire: Wire) -> None:
    alter(wire, ("one", [(0, 3)]))
    (result,) = wire.ask(DeleteGroupsRequest[2](groups_names=["g"])).results
    assert result.error_code == 0
    assert described(wire).error_code == Code.GROUP_ID_NOT_FOUND
    alter(wire)
    assert offsets(wire) == {}


def test_groups_and_offsets_survive_a_restart(tmp_path: Path) -> None:
    options: Any = {"topics": {"many": 3}, "data_dir": tmp_path / "data"}
    with Broker(**options) as broker, Wire(broker.port()) as wire:
        alter(wire, ("many", [(1, 7)]))
        epoch = beat(wire, "a", 0, "many").member_epoch
    with Broker(**options) as broker, Wire(broker.port()) as wire:
        assert offsets(wire)["many", 1][0] == 7
        again = beat(wire, "a", epoch)
        assert (again.error_code, again.member_epoch, again.assignment) == (0, epoch, None)
        assert described(wire).members[0].assignment.topic_partitions[0].partitions == [0, 1, 2]


def test_rights_are_asked_for(broker: Broker) -> None:
    acls = {"authorizer.class.name": "StandardAuthorizer"}
    with Broker(topics={"many": 3}, configs=acls) as guarded, Wire(guarded.port()) as wire:
        assert beat(wire, "a", 0, "many").error_code == Code.GROUP_AUTHORIZATION_FAILED
        assert described(wire).error_code == Code.GROUP_AUTHORIZATION_FAILED
        assert alter(wire).error_code == delete(wire).error_code == Code.GROUP_AUTHORIZATION_FAILED
