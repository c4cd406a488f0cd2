"""What is asked of both brokers about groups: each function is one script."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

from kafka.protocol.admin import (
    CreateTopicsRequest,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from kafka.protocol.commit import (
    FindCoordinatorRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
)
from kafka.protocol.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.protocol.group import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from kafka.protocol.metadata import MetadataRequest

from .script import Connection, Script

NOWHERE = UUID(int=12345)


def prepare(script: Script, *topics: tuple[str, int]) -> dict[str, UUID]:
    """Create topics and wait until the coordinator answers."""
    admin = script.connect()
    wanted = [(name, partitions, 1, [], []) for name, partitions in topics]
    if wanted:
        admin.ask(CreateTopicsRequest[4](topics=wanted, timeout_ms=30000))
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        probe = admin.ask(FindCoordinatorRequest[2](key="g", key_type=0))
        names = [(UUID(int=0), name) for name, _ in topics]
        found = admin.ask(MetadataRequest[12](topics=names)) if names else None
        ready = found is None or all(
            topic.error_code == 0 and all(part.leader_id >= 0 for part in topic.partitions) for topic in found.topics
        )
        if probe.error_code == 0 and ready and admin.ask(HeartbeatRequest[4]("g", 1, "m", None)).error_code == 25:
            ids = {topic.name: topic.topic_id for topic in found.topics} if found else {}
            if all(_is_known(admin, name, topic_id) for name, topic_id in ids.items()):
                return ids
        time.sleep(0.1)
    raise TimeoutError("the group coordinator did not come up")


def _is_known(admin: Connection, topic: str, topic_id: UUID) -> bool:
    """Whether the group coordinator, which learns of topics a little later, knows one."""
    reply = admin.ask(enter(f"probe-{topic_id}", "probe", [topic]))
    admin.ask(beat(f"probe-{topic_id}", "probe", -1))
    return bool(reply.assignment and reply.assignment.topic_partitions)


def subscription(*topics: str, version: int = 3, owned: Any = (), generation: int = -1) -> bytes:
    value = ConsumerProtocolSubscription[version](list(topics), None)
    if version >= 1:
        value.owned_partitions = list(owned)
    if version >= 2:
        value.generation_id = generation
    return version.to_bytes(2, "big") + value.encode()


def assignment(*parts: tuple[str, list[int]], version: int = 3) -> bytes:
    return version.to_bytes(2, "big") + ConsumerProtocolAssignment[version](list(parts), b"").encode()


def join(
    group: str,
    member: str = "",
    *,
    version: int = 9,
    instance: str | None = None,
    protocols: Any = (("range", b"meta"),),
    kind: str = "consumer",
    session: int = 10000,
    rebalance: int = 5000,
) -> JoinGroupRequest:
    request = JoinGroupRequest[version](
        group_id=group,
        session_timeout_ms=session,
        rebalance_timeout_ms=rebalance,
        member_id=member,
        protocol_type=kind,
        protocols=list(protocols),
    )
    if version >= 5:
        request.group_instance_id = instance
    return request


def sync(
    group: str, generation: int, member: str, plan: Any = (), *, version: int = 5, instance: str | None = None
) -> SyncGroupRequest:
    return SyncGroupRequest[version](
        group_id=group,
        generation_id=generation,
        member_id=member,
        group_instance_id=instance,
        protocol_type="consumer",
        protocol_name="range",
        assignments=list(plan),
    )


def full_join(script: Script, connection: Connection, group: str, **options: Any) -> Any:
    """Join in two steps, as clients do since KIP-394."""
    first = script.ask(connection, join(group, **options))
    return script.ask(connection, join(group, first.member_id, **options))


def one_member(script: Script) -> None:
    prepare(script, ("t1", 2))
    here = script.connect()
    reply = full_join(script, here, "g1")
    me, generation = reply.member_id, reply.generation_id
    script.ask(here, DescribeGroupsRequest[5](groups=["g1"], include_authorized_operations=True))
    script.ask(here, HeartbeatRequest[4]("g1", generation, me, None))
    script.ask(here, sync("g1", generation, me, [(me, b"plan")]))
    script.ask(here, sync("g1", generation, me))
    script.ask(here, HeartbeatRequest[4]("g1", generation, me, None))
    script.ask(here, HeartbeatRequest[4]("g1", generation + 1, me, None))
    script.ask(here, HeartbeatRequest[4]("g1", generation, "nobody", None))
    script.ask(here, HeartbeatRequest[4]("g1", generation, me, "instance"))
    script.ask(here, HeartbeatRequest[4]("", generation, me, None))
    script.ask(here, HeartbeatRequest[4]("no-such-group", generation, me, None))
    script.ask(here, DescribeGroupsRequest[5](groups=["g1", "no-such-group"], include_authorized_operations=True))
    script.ask(here, DescribeGroupsRequest[6](groups=["no-such-group"], include_authorized_operations=False))
    script.ask(here, DeleteGroupsRequest[2](["g1", "no-such-group"]))
    script.ask(here, join("g1", me))
    script.ask(here, LeaveGroupRequest[5]("g1", [(me, None, "done"), ("nobody", None, None), ("", "inst", None)]))
    script.ask(here, LeaveGroupRequest[5]("no-such-group", [(me, None, "done")]))
    script.ask(here, LeaveGroupRequest[2]("g1", me))
    script.ask(here, DescribeGroupsRequest[5](groups=["g1"], include_authorized_operations=False))
    script.ask(here, DeleteGroupsRequest[2](["g1"]))
    script.ask(here, DescribeGroupsRequest[5](groups=["g1"], include_authorized_operations=False))


def bad_joins(script: Script) -> None:
    prepare(script)
    here = script.connect()
    script.ask(here, join(""))
    script.ask(here, join("g2", session=1))
    script.ask(here, join("g2", session=100_000_000))
    script.ask(here, join("g2", protocols=()))
    script.ask(here, join("g2", kind=""))
    script.ask(here, join("g2", "nobody"))
    script.ask(here, join("g2", "nobody", instance="i"))
    full_join(script, here, "g2")
    other = script.connect()
    script.ask(other, join("g2", kind="connect"))
    script.ask(other, join("g2", protocols=[("other", b"")]))
    script.ask(other, sync("g2", 1, "nobody"))
    script.ask(other, SyncGroupRequest[5]("g2", 1, "nobody", None, None, None, []))
    script.ask(other, sync("", 1, "nobody"))
    for version in range(2, 10):
        script.ask(other, join(f"v{version}", version=version))


def static_members(script: Script) -> None:
    prepare(script, ("t4", 2))
    one, two = script.connect("one"), script.connect("two")
    first = script.ask(one, join("g4", instance="i1"))
    script.ask(one, sync("g4", first.generation_id, first.member_id, [(first.member_id, b"all")], instance="i1"))
    back = script.ask(two, join("g4", instance="i1"))
    script.ask(two, join("g4", instance="i1", version=8))
    back = script.ask(two, join("g4", instance="i1"))
    script.ask(one, HeartbeatRequest[4]("g4", first.generation_id, first.member_id, "i1"))
    script.ask(one, HeartbeatRequest[4]("g4", first.generation_id, first.member_id, "i2"))
    script.ask(one, join("g4", first.member_id, instance="i1"))
    script.ask(two, sync("g4", back.generation_id, back.member_id, instance="i1"))
    script.ask(one, commit("g4", [("t4", [(0, 5, -1, "")])], first.generation_id, first.member_id, instance="i1"))
    script.ask(two, DescribeGroupsRequest[5](groups=["g4"], include_authorized_operations=False))
    script.ask(two, join("g4", back.member_id, instance="i1", protocols=[("range", subscription("t4"))]))
    script.ask(two, LeaveGroupRequest[5]("g4", [("", "i1", "removed"), ("wrong", "i1", None)]))
    script.ask(two, DescribeGroupsRequest[5](groups=["g4"], include_authorized_operations=False))


def commit(
    group: str, topics: Any, generation: int = -1, member: str = "", *, version: int = 9, instance: str | None = None
) -> OffsetCommitRequest:
    request = OffsetCommitRequest[version](
        group_id=group, generation_id_or_member_epoch=generation, member_id=member, topics=list(topics)
    )
    if version >= 7:
        request.group_instance_id = instance
    return request


def fetch(group: str, topics: Any, *, version: int = 9, stable: bool = False, member: Any = (None, -1)) -> Any:
    part = OffsetFetchRequest[version].OffsetFetchRequestGroup(group_id=group, topics=topics)
    if version >= 9:
        part.member_id, part.member_epoch = member
    return OffsetFetchRequest[version](groups=[part], require_stable=stable)


def offsets(script: Script) -> None:
    ids = prepare(script, ("t5", 2))
    here = script.connect()
    script.ask(here, fetch("g5", [("t5", [0, 1])]))
    script.ask(here, fetch("g5", None))
    parts = [("t5", [(0, 5, 2, "hello"), (1, 6, -1, None), (7, 1, -1, "")]), ("nope", [(0, 1, -1, "")])]
    script.ask(here, commit("g5", parts))
    script.ask(here, commit("g5", [("t5", [(0, 5, -1, "x" * 5000), (1, 9, -1, "fine")])]))
    script.ask(here, commit("", parts))
    script.ask(here, commit("g5", parts, 3, "member"))
    script.ask(here, commit("g-other", parts, 3, "member"))
    script.ask(here, fetch("g5", [("t5", [0, 1, 7]), ("nope", [0])]))
    script.ask(here, fetch("g5", None, stable=True))
    script.ask(here, fetch("g5", None, member=("who", 1)))
    script.ask(here, OffsetFetchRequest[7](group_id="g5", topics=[("t5", [0, 1])], require_stable=False))
    script.ask(here, OffsetFetchRequest[5](group_id="g5", topics=None))
    script.ask(here, OffsetFetchRequest[1](group_id="g5", topics=[("t5", [0, 1]), ("nope", [0])]))
    by_id = OffsetCommitRequest[10](group_id="g5", generation_id_or_member_epoch=-1, member_id="")
    by_id.topics = [(ids["t5"], [(0, 11, -1, "by id")]), (NOWHERE, [(0, 1, -1, "")])]
    reply = script.ask(here, by_id, note=False)
    script.notes.append(str(sorted([part.error_code for part in topic.partitions] for topic in reply.topics)))
    reply = script.ask(here, fetch("g5", [(ids["t5"], [0]), (NOWHERE, [0])], version=10), note=False)
    script.notes.append(
        str([[(p.committed_offset, p.error_code) for p in topic.partitions] for topic in reply.groups[0].topics])
    )
    script.ask(here, DescribeGroupsRequest[5](groups=["g5"], include_authorized_operations=False))
    script.ask(here, ListGroupsRequest[5](states_filter=["empty"], types_filter=["Classic"]), note=False)
    script.ask(here, OffsetDeleteRequest[0]("g5", [("t5", [0, 9]), ("nope", [0])]))
    script.ask(here, OffsetDeleteRequest[0]("no-such-group", [("t5", [0])]))
    script.ask(here, fetch("g5", [("t5", [0, 1])]))
    script.ask(here, DeleteGroupsRequest[2](["g5", ""]))
    script.ask(here, DeleteGroupsRequest[2]([""]))
    script.ask(here, fetch("g5", [("t5", [0, 1])]))


def offsets_of_members(script: Script) -> None:
    prepare(script, ("t6", 2))
    here = script.connect()
    protocols = [("range", subscription("t6"))]
    reply = full_join(script, here, "g6", protocols=protocols)
    me, generation = reply.member_id, reply.generation_id
    one = [("t6", [(0, 5, -1, "")])]
    script.ask(here, commit("g6", one, generation, me))
    script.ask(here, sync("g6", generation, me, [(me, assignment(("t6", [0, 1])))]))
    script.ask(here, commit("g6", one, generation, me))
    script.ask(here, commit("g6", one, generation - 1, me))
    script.ask(here, commit("g6", one, generation, "nobody"))
    script.ask(here, commit("g6", one))
    script.ask(here, commit("g6", one, -1, me))
    script.ask(here, commit("g6", one, generation, me, instance="x"))
    script.ask(here, OffsetDeleteRequest[0]("g6", [("t6", [0])]))
    script.ask(here, OffsetDeleteRequest[0]("g6", [("u", [0])]))
    reply = script.ask(here, ListGroupsRequest[5](states_filter=["Stable"], types_filter=[]), note=False)
    script.notes.append(str([tuple(group) for group in reply.groups if group.group_id == "g6"]))
    reply = script.ask(here, ListGroupsRequest[5](states_filter=["Nonsense"], types_filter=["nonsense"]))
    script.ask(here, ConsumerGroupDescribeRequest[1](["g6"], False))


def coordinators(script: Script) -> None:
    prepare(script)
    here = script.connect()
    for version in range(7):
        for kind in (0, 1, 2, 3) if version else (0,):
            request = FindCoordinatorRequest[version]()
            if version:
                request.key_type = kind
            if version >= 4:
                request.coordinator_keys = ["a", ""]
            else:
                request.key = "a"
            if kind == 2 and version == 6:
                continue  # there are no share groups
            if kind == 1:
                deadline = time.monotonic() + 30
                while time.monotonic() < deadline:
                    reply = here.ask(request)
                    if not (reply.error_code or any(each.error_code for each in reply.coordinators)):
                        break
                    time.sleep(0.2)
            script.ask(here, request)


GROUP_SCRIPTS: list[Callable[[Script], None]] = [
    one_member,
    bad_joins,
    static_members,
    offsets,
    offsets_of_members,
    coordinators,
]


def beat(
    group: str,
    member: str,
    epoch: int,
    *,
    topics: Any = None,
    owned: Any = None,
    rebalance: int = -1,
    instance: str | None = None,
    assignor: str | None = None,
    regex: str | None = None,
    version: int = 1,
) -> ConsumerGroupHeartbeatRequest:
    request = ConsumerGroupHeartbeatRequest[version](
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        instance_id=instance,
        rebalance_timeout_ms=rebalance,
        subscribed_topic_names=topics,
        server_assignor=assignor,
        topic_partitions=owned,
    )
    if regex is not None:
        request.subscribed_topic_regex = regex
    return request


def enter(group: str, member: str, topics: Any, **options: Any) -> ConsumerGroupHeartbeatRequest:
    return beat(group, member, 0, topics=list(topics), owned=[], rebalance=5000, **options)


def bad_heartbeats(script: Script) -> None:
    prepare(script, ("u1", 2))
    here = script.connect()
    script.ask(here, enter("", "m", ["u1"]))
    script.ask(here, enter("c1", "", ["u1"]))
    script.ask(here, enter("c1", "m", ["u1"], instance=""))
    script.ask(here, enter("c1", "m", topics=()))
    script.ask(here, enter("c1", "m", ["u1"], assignor="magic"))
    script.ask(here, beat("c1", "m", 0, topics=["u1"], owned=[]))
    script.ask(here, beat("c1", "m", 0, topics=["u1"], rebalance=1000))
    script.ask(here, beat("c1", "m", 0, owned=[], rebalance=1000))
    script.ask(here, beat("c1", "m", 5))
    script.ask(here, beat("c1", "m", -1))
    script.ask(here, beat("c1", "m", -2))
    script.ask(here, beat("c1", "m", -2, instance="i"))
    script.ask(here, beat("c1", "m", -3))
    script.ask(here, beat("c1", "m", 0, owned=[], rebalance=1000, regex="(?=a)b"))
    script.ask(here, beat("c1", "m", 0, owned=[], rebalance=1000, regex="a("))
    script.ask(here, ConsumerGroupDescribeRequest[1](["c1"], False))
    script.ask(here, enter("c1", "", ["u1"], version=0))


def consumer_member(script: Script) -> None:
    ids = prepare(script, ("u2", 2))
    here = script.connect()
    group, me = "c2", "member"
    reply = script.ask(here, enter(group, me, ["u2"]))
    epoch = reply.member_epoch
    script.ask(here, ConsumerGroupDescribeRequest[1]([group, "nope"], True))
    script.ask(here, DescribeGroupsRequest[5](groups=[group], include_authorized_operations=False))
    script.ask(here, DescribeGroupsRequest[6](groups=[group], include_authorized_operations=False))
    script.ask(here, beat(group, me, epoch))
    script.ask(here, beat(group, me, epoch, owned=[(ids["u2"], [0, 1])]))
    script.ask(here, beat(group, me, epoch, topics=["u2"], owned=[(ids["u2"], [0, 1])], rebalance=5000))
    script.ask(here, beat(group, me, epoch + 1))
    script.ask(here, beat(group, me, epoch - 1))
    script.ask(here, beat(group, "other", epoch))
    one = [("u2", [(0, 5, -1, "")])]
    script.ask(here, commit(group, one, epoch, me))
    script.ask(here, commit(group, one, epoch - 1, me))
    script.ask(here, commit(group, one, epoch + 1, me))
    script.ask(here, commit(group, one, epoch, "other"))
    script.ask(here, commit(group, one))
    script.ask(here, commit(group, one, epoch, me, version=8))
    script.ask(here, fetch(group, None, member=(me, epoch)))
    script.ask(here, fetch(group, None, member=(me, epoch - 1)))
    script.ask(here, fetch(group, None, member=("other", epoch)))
    script.ask(here, fetch(group, None))
    reply = script.ask(here, ListGroupsRequest[5](states_filter=[], types_filter=["consumer"]), note=False)
    script.notes.append(str([tuple(each) for each in reply.groups if each.group_id == group]))
    script.ask(here, DeleteGroupsRequest[2]([group]))
    script.ask(here, OffsetDeleteRequest[0](group, [("u2", [0])]))
    script.ask(here, enter(group, me, ["u2"]))
    script.ask(here, beat(group, me, -1))
    script.ask(here, beat(group, me, -1))
    script.ask(here, ConsumerGroupDescribeRequest[1]([group], False))
    script.ask(here, commit(group, one))
    script.ask(here, OffsetDeleteRequest[0](group, [("u2", [0])]))
    script.ask(here, DeleteGroupsRequest[2]([group]))


def static_consumers(script: Script) -> None:
    prepare(script, ("u4", 2))
    here = script.connect()
    group = "c4"
    first = script.ask(here, enter(group, "a", ["u4"], instance="i"))
    script.ask(here, enter(group, "b", ["u4"], instance="i"))
    script.ask(here, beat(group, "b", first.member_epoch, instance="i"))
    script.ask(here, beat(group, "a", first.member_epoch, instance="j"))
    script.ask(here, beat(group, "a", -2, instance="i"))
    script.ask(here, ConsumerGroupDescribeRequest[1]([group], False))
    second = script.ask(here, enter(group, "b", ["u4"], instance="i"))
    script.ask(here, ConsumerGroupDescribeRequest[1]([group], False))
    script.ask(here, beat(group, "a", first.member_epoch, instance="i"))
    script.ask(here, beat(group, "b", second.member_epoch, instance="i"))
    script.ask(here, beat(group, "b", -1, instance="i"))
    script.ask(here, ConsumerGroupDescribeRequest[1]([group], False))


def going_over(script: Script) -> None:
    """A classic group becomes a consumer group and a classic one again."""
    ids = prepare(script, ("u5", 4))
    old, new = script.connect("old"), script.connect("new")
    group = "c5"
    protocols = [("range", subscription("u5", version=3))]
    first = full_join(script, old, group, protocols=protocols)
    me, generation = first.member_id, first.generation_id
    script.ask(old, sync(group, generation, me, [(me, assignment(("u5", [0, 1, 2, 3])))]))
    newcomer = script.ask(new, enter(group, "new", ["u5"]))
    script.ask(old, ConsumerGroupDescribeRequest[1]([group], False))
    script.ask(old, HeartbeatRequest[4](group, generation, me, None))
    script.ask(old, commit(group, [("u5", [(0, 5, -1, "")])], generation, me))
    owned = [("u5", [0, 1, 2, 3])]
    protocols = [("range", subscription("u5", owned=owned, generation=generation))]
    again = script.ask(old, join(group, me, protocols=protocols))
    script.ask(old, sync(group, again.generation_id, me))
    script.ask(old, HeartbeatRequest[4](group, again.generation_id, me, None))
    protocols = [("range", subscription("u5", owned=[("u5", [0, 1])], generation=again.generation_id))]
    again = script.ask(old, join(group, me, protocols=protocols))
    script.ask(old, sync(group, again.generation_id, me))
    script.ask(old, HeartbeatRequest[4](group, again.generation_id, me, None))
    script.ask(new, beat(group, "new", newcomer.member_epoch, owned=[]))
    script.ask(old, ConsumerGroupDescribeRequest[1]([group], False))
    script.ask(old, HeartbeatRequest[4](group, again.generation_id + 1, me, None))
    script.ask(old, join(group, "", protocols=[("other", subscription("u5"))]))
    script.ask(new, beat(group, "new", -1))
    script.ask(old, DescribeGroupsRequest[5](groups=[group], include_authorized_operations=False))
    script.ask(old, HeartbeatRequest[4](group, again.generation_id, me, None))
    back = script.ask(old, join(group, me, protocols=protocols))
    script.ask(old, sync(group, back.generation_id, me, [(me, assignment(("u5", [0, 1, 2, 3])))]))
    script.ask(old, LeaveGroupRequest[5](group, [(me, None, None)]))
    assert ids


CONSUMER_SCRIPTS: list[Callable[[Script], None]] = [
    bad_heartbeats,
    consumer_member,
    static_consumers,
    going_over,
]
