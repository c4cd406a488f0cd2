"""Scripts about share groups and streams groups.

Kafka sets a share group's state up in the background, so its epochs are compared where no topic is new to the group.
"""

from __future__ import annotations

from typing import Any

from kafka.protocol.admin import DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.commit import (
    FindCoordinatorRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
)
from kafka.protocol.group import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
)
from kafka.protocol.share import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
)
from kafka.protocol.streams import StreamsGroupDescribeRequest, StreamsGroupHeartbeatRequest

from .sessions import Transcript

ANN, BOB = "AAAAAAAAAAAAAAAAAAAAUQ", "BAAAAAAAAAAAAAAAAAAAUQ"
LOADING = (14, 15, 16)


def _wait_for_coordinators(say: Transcript) -> None:
    say.until(FindCoordinatorRequest[4](0, ["g"]), lambda reply: not reply.coordinators[0].error_code)
    key = f"g:{'A' * 21}Q:0"
    say.until(FindCoordinatorRequest[6](2, [key]), lambda reply: not reply.coordinators[0].error_code)
    for group in ("shared", "streamed", "half", "waiting", "stateful"):
        probe = ShareGroupHeartbeatRequest[1](group, "probe", -1)
        say.until(probe, lambda reply: reply.error_code not in LOADING)


def share_groups(say: Transcript) -> None:
    say.make_topic("shared-many", 3)
    say.make_topic("shared-one")
    _wait_for_coordinators(say)

    def beat(label: str, member: str, epoch: int, *names: str, group: str = "shared", **more: Any) -> Any:
        more.setdefault("subscribed_topic_names", list(names) or None)
        return say.ask(label, ShareGroupHeartbeatRequest[1](group, member, epoch, **more))

    for label, member, epoch, more in (
        ("no member", "", 0, {}),
        ("no group", ANN, 0, {"group": ""}),
        ("empty rack", ANN, 0, {"rack_id": ""}),
        ("no topics", ANN, 0, {"subscribed_topic_names": []}),
        ("unknown topics", ANN, 0, {"subscribed_topic_names": None}),
        ("strange epoch", ANN, -2, {}),
        ("not a member", ANN, 5, {}),
        ("leave nothing", ANN, -1, {}),
    ):
        beat(label, member, epoch, "shared-many", **more)
    joined = say.quietly(ShareGroupHeartbeatRequest[1]("shared", ANN, 0, "r1", ["shared-many"]))
    epoch = joined.member_epoch

    def has_partitions(reply: Any) -> bool:
        nonlocal epoch
        epoch = reply.member_epoch or epoch
        return bool(reply.assignment and reply.assignment.topic_partitions)

    # Again, until Kafka has set the state of the topic up: then the assignment has its partitions.
    say.until(ShareGroupHeartbeatRequest[1]("shared", ANN, 0, "r1", ["shared-many"]), has_partitions)
    say.note("member", _without_epochs(say.quietly(ShareGroupHeartbeatRequest[1]("shared", ANN, epoch)).to_json()))
    describe = ShareGroupDescribeRequest[1]
    reply = say.quietly(describe(group_ids=["shared"], include_authorized_operations=True))
    say.note("described", _without_epochs(reply.to_json()))
    for group in ("", "absent"):
        say.ask(f"describe {group!r}", describe(group_ids=[group]))
    beat("stranger", BOB, 3)
    say.ask("list", ListGroupsRequest[5](states_filter=[], types_filter=["share"]))
    say.ask("list by state", ListGroupsRequest[5](states_filter=["stable"], types_filter=["share"]))
    offsets = DescribeShareGroupOffsetsRequest[1]
    say.ask("offsets", offsets(groups=[("shared", None), ("absent", None)]))
    say.ask("offsets v0", DescribeShareGroupOffsetsRequest[0](groups=[("shared", [("shared-many", [0, 1])])]))
    say.ask("offsets of nobody", offsets(groups=[("absent", [("shared-many", [0]), ("no-such", [0])])]))
    alter, delete = AlterShareGroupOffsetsRequest[0], DeleteShareGroupOffsetsRequest[0]
    say.ask("alter in use", alter("shared", [("shared-many", [(0, 0)])]))
    say.ask("delete in use", delete("shared", [("shared-many",)]))
    say.ask("delete group in use", DeleteGroupsRequest[2](["shared"]))
    _ask_in_other_protocols(say, "shared", "shared-many")
    beat("leave", ANN, -1)
    beat("leave again", ANN, -1)
    say.note("empty", _without_epochs(say.quietly(describe(group_ids=["shared"])).to_json()))
    _join_as_classic(say, "shared", "join when empty")
    plan = [("shared-many", [(0, 0), (1, 5)]), ("no-such", [(0, 0)]), ("shared-one", [(0, 3)])]
    say.ask("alter", alter("shared", plan))
    say.ask("alter what is not there", alter("shared", [("shared-many", [(9, 0)])]))
    say.ask("alter a new group", alter("half", [("shared-one", [(0, 0)])]))
    say.ask("a new group", describe(group_ids=["half"]))
    say.ask("alter no group", alter("", [("shared-one", [(0, 0)])]))
    say.ask("alter nothing", alter("shared", []))
    altered = offsets(groups=[("shared", None)])
    say.ask("altered", altered)
    say.ask("delete", delete("shared", [("shared-many",), ("no-such",)]))
    for group in ("", "absent"):
        say.ask(f"delete of {group!r}", delete(group, [("shared-one",)]))
    say.ask("left", altered)
    for group in ("half", "absent"):
        say.ask(f"remove {group}", DeleteGroupsRequest[2]([group]))
    say.ask("removed", describe(group_ids=["half"]))
    # Kafka cannot always delete a group some of whose offsets were deleted: UNKNOWN_SERVER_ERROR.
    say.quietly(DeleteGroupsRequest[2](["shared"]))
    say.quietly(OffsetCommitRequest[9]("half", -1, "", None, [("shared-one", [(0, 5, -1, "")])]))
    beat("join a classic group", ANN, 0, "shared-one", group="half")
    say.ask("describe a classic group", describe(group_ids=["half"]))
    say.ask("alter a classic group", alter("half", [("shared-one", [(0, 0)])]))
    say.ask("delete of a classic group", delete("half", [("shared-one",)]))
    say.quietly(DeleteGroupsRequest[2](["half"]))


def _ask_in_other_protocols(say: Transcript, group: str, topic: str) -> None:
    say.ask("as consumer group", ConsumerGroupDescribeRequest[1]([group]))
    for version in (5, 6):
        say.ask(f"as classic group v{version}", DescribeGroupsRequest[version]([group]))
    say.ask("as share group", ShareGroupDescribeRequest[1]([group])) if group != "shared" else None
    say.ask("as streams group", StreamsGroupDescribeRequest[0]([group])) if group != "streamed" else None
    consumer = ConsumerGroupHeartbeatRequest[1](group, "z", 0, None, None, 1000, [topic], topic_partitions=[])
    say.ask("join as consumer", consumer)
    _join_as_classic(say, group, "join as classic")
    say.ask("heartbeat", HeartbeatRequest[4](group, 1, "z"))
    say.ask("leave as classic", LeaveGroupRequest[5](group, [("z", None)]))
    say.ask("commit", OffsetCommitRequest[9](group, -1, "", None, [(topic, [(0, 5, -1, "")])]))
    say.ask("fetch", OffsetFetchRequest[9](groups=[(group, None, -1, None)]))
    say.ask("delete offsets", OffsetDeleteRequest[0](group, [(topic, [(0,)])]))


def _join_as_classic(say: Transcript, group: str, label: str) -> None:
    reply = say.quietly(JoinGroupRequest[9](group, 10_000, 5_000, "", None, "consumer", [("range", b"")]))
    say.note(label, {"errorCode": reply.error_code})


def _without_epochs(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: "..." if key.endswith("Epoch") else _without_epochs(one) for key, one in value.items()}
    return [_without_epochs(one) for one in value] if isinstance(value, list) else value


def streams_groups(say: Transcript) -> None:
    say.make_topic("streamed-in", 2)
    say.make_topic("streamed-three", 3)
    _wait_for_coordinators(say)
    cls = StreamsGroupHeartbeatRequest[0]
    empty: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}

    def topology(*sources: str, epoch: int = 0, **parts: Any) -> Any:
        return cls.Topology(epoch, [cls.Subtopology(subtopology_id="0", source_topics=list(sources), **parts)])

    def beat(label: str, member: str, epoch: int, group: str = "streamed", **fields: Any) -> Any:
        return say.ask(label, cls(group_id=group, member_id=member, member_epoch=epoch, **fields))

    def join(label: str, member: str, group: str = "streamed", **fields: Any) -> Any:
        words = {"rebalance_timeout_ms": 10_000, "process_id": member, "topology": topology("streamed-in"), **empty}
        return beat(label, member, 0, group, **{**words, **fields})

    for label, member, fields in (
        ("no member", "", {}),
        ("no group", ANN, {"group": ""}),
        ("empty rack", ANN, {"rack_id": ""}),
        ("static", ANN, {"instance_id": "i"}),
        ("no timeout", ANN, {"rebalance_timeout_ms": -1}),
        ("no topology", ANN, {"topology": None}),
        ("active tasks", ANN, {"active_tasks": None}),
        ("standby tasks", ANN, {"standby_tasks": [("0", [1])]}),
        ("warm-up tasks", ANN, {"warmup_tasks": None}),
    ):
        join(label, member, **fields)
    beat("static leave", ANN, -2)
    beat("strange epoch", ANN, -3)
    beat("not a member", ANN, 5)
    first = join("join", ANN, user_endpoint=("h", 99), client_tags=[("k", "v")], rack_id="r")
    beat("member", ANN, first.member_epoch)
    beat("ahead", ANN, first.member_epoch + 3)
    beat("knows endpoints", ANN, first.member_epoch, endpoint_information_epoch=first.endpoint_information_epoch)
    describe = StreamsGroupDescribeRequest[0]
    say.ask("described", describe(group_ids=["streamed"], include_authorized_operations=True))
    for group in ("", "absent"):
        say.ask(f"describe {group!r}", describe(group_ids=[group]))
    join("join again", ANN)
    join("other topology", ANN, topology=topology("streamed-three"))
    join("newer topology", ANN, topology=topology("streamed-in", epoch=1))
    second = join("second", BOB)
    say.ask("reconciling", describe(group_ids=["streamed"]))
    owned = {**empty, "active_tasks": [("0", [0, 1])]}
    asked = beat("give up", ANN, first.member_epoch, **owned)
    left = [(one.subtopology_id, list(one.partitions)) for one in asked.active_tasks]
    done = beat("given up", ANN, first.member_epoch, **{**empty, "active_tasks": left})
    beat("taken over", BOB, second.member_epoch, **empty)
    beat("far behind", ANN, first.member_epoch - 1)
    say.ask("stable", describe(group_ids=["streamed"]))
    beat("stranger", "nobody", 3)
    say.ask("list", ListGroupsRequest[5](states_filter=[], types_filter=["streams"]))
    _ask_in_other_protocols(say, "streamed", "streamed-in")
    commit = OffsetCommitRequest[9]("streamed", done.member_epoch, ANN, None, [("streamed-in", [(0, 5, -1, "")])])
    say.ask("member commits", commit)
    say.ask("delete in use", DeleteGroupsRequest[2](["streamed"]))
    beat("leave", BOB, -1)
    beat("last leaves", ANN, -1)
    say.ask("empty", describe(group_ids=["streamed"]))
    say.ask(
        "commit from outside", OffsetCommitRequest[9]("streamed", -1, "", None, [("streamed-in", [(0, 6, -1, "")])])
    )
    say.ask("fetched", OffsetFetchRequest[9](groups=[("streamed", None, -1, None)]))
    say.ask("delete", DeleteGroupsRequest[2](["streamed"]))
    waits = join("missing topic", ANN, "waiting", topology=topology("streamed-missing"))
    say.ask("not ready", describe(group_ids=["waiting"]))
    beat("still missing", ANN, waits.member_epoch, "waiting")
    beat("shut down", ANN, waits.member_epoch, "waiting", shutdown_application=True)
    beat("leave the waiting", ANN, -1, "waiting")
    plan = topology("streamed-in", "streamed-three", copartition_groups=[([0, 1], [], [])])
    join("unequal", ANN, "stateful", topology=plan)
    beat("leave the unequal", ANN, -1, "stateful")
    for group in ("waiting", "stateful"):
        say.quietly(DeleteGroupsRequest[2]([group]))


SCRIPTS = [share_groups, streams_groups]
