"""Groups over TCP: who waits for whom, time that is pushed, coordinators that move, disks that remember."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka.broker import Broker
from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.commit import FindCoordinatorRequest, OffsetCommitRequest, OffsetFetchRequest
from kafka.protocol.group import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from test.embedded.broker.wire import Wire

MEMBER_ID_REQUIRED, REBALANCE_IN_PROGRESS, UNKNOWN_MEMBER_ID, NOT_COORDINATOR = 79, 27, 25, 16


def join(member: str = "", version: int = 9, group: str = "g") -> JoinGroupRequest:
    return JoinGroupRequest[version](
        group_id=group,
        session_timeout_ms=10000,
        rebalance_timeout_ms=60000,
        member_id=member,
        protocol_type="consumer",
        protocols=[("range", b"")],
    )


def sync(member: str, generation: int, plan: Any = ()) -> SyncGroupRequest:
    return SyncGroupRequest[5](
        group_id="g",
        generation_id=generation,
        member_id=member,
        protocol_type="consumer",
        protocol_name="range",
        assignments=list(plan),
    )


def joined(wire: Wire, version: int = 9) -> Any:
    first = wire.ask(join(version=version))
    return wire.ask(join(first.member_id, version)) if first.error_code == MEMBER_ID_REQUIRED else first


def test_a_member_waits_on_its_connection_until_the_other_has_joined_and_assigned() -> None:
    with Broker() as broker, Wire(broker.port()) as one, Wire(broker.port()) as two:
        first = joined(one)
        one.ask(sync(first.member_id, 1, [(first.member_id, b"all")]))
        second = two.ask(join()).member_id
        two.send(join(second))
        # The other's request is served before its reply is due: heartbeats tell when it has arrived.
        while one.ask(HeartbeatRequest[4]("g", 1, first.member_id, None)).error_code != REBALANCE_IN_PROGRESS:
            pass
        again = one.ask(join(first.member_id))
        assert {member.member_id for member in again.members} == {first.member_id, second}
        assert two.receive(JoinGroupResponse[9])[1].generation_id == again.generation_id == 2
        two.send(sync(second, 2))
        plan = [(first.member_id, b"left"), (second, b"right")]
        assert one.ask(sync(first.member_id, 2, plan)).assignment == b"left"
        assert two.receive(SyncGroupResponse[5])[1].assignment == b"right"


@pytest.mark.parametrize("version", range(10))
def test_every_version_of_joining_works(version: int) -> None:
    with Broker() as broker, Wire(broker.port()) as wire:
        reply = joined(wire, version)
        assert (reply.error_code, reply.generation_id, reply.leader) == (0, 1, reply.member_id)


def test_pushing_the_clock_ends_sessions() -> None:
    with Broker() as broker, Wire(broker.port()) as wire:
        member = joined(wire).member_id
        broker.clock.advance(11)
        assert wire.ask(HeartbeatRequest[4]("g", 1, member, None)).error_code == UNKNOWN_MEMBER_ID
        reply = wire.ask(DescribeGroupsRequest[5](groups=["g"], include_authorized_operations=False))
        assert reply.groups[0].group_state == "Empty"


def test_a_client_that_goes_away_while_it_waits_does_not_disturb_the_others() -> None:
    with Broker() as broker, Wire(broker.port()) as one:
        first = joined(one).member_id
        one.ask(sync(first, 1))
        with Wire(broker.port()) as two:
            second = two.ask(join()).member_id
            two.send(join(second))
            while one.ask(HeartbeatRequest[4]("g", 1, first, None)).error_code != REBALANCE_IN_PROGRESS:
                pass
        assert one.ask(join(first)).generation_id == 2
        assert one.ask(LeaveGroupRequest[5]("g", [(second, None, None)])).error_code == 0


def test_waiting_members_get_an_error_when_the_coordinator_moves() -> None:
    with Broker(nodes=3) as broker, Wire(broker.port()) as anyone:

        def where() -> int:
            found = anyone.ask(FindCoordinatorRequest[4](key_type=0, coordinator_keys=["g"]))
            return int(found.coordinators[0].port)

        here = where()
        with Wire(here) as one, Wire(here) as two:
            first = joined(one).member_id
            one.ask(sync(first, 1))
            second = two.ask(join()).member_id
            two.send(join(second))
            while one.ask(HeartbeatRequest[4]("g", 1, first, None)).error_code != REBALANCE_IN_PROGRESS:
                pass
            broker.rehash_coordinators()
            assert two.receive(JoinGroupResponse[9])[1].error_code == NOT_COORDINATOR
            assert one.ask(join(first)).error_code == NOT_COORDINATOR
        assert where() != here
        with Wire(where()) as one:
            assert one.ask(join(first)).error_code == 0


def test_topics_that_are_created_later_are_handed_out_by_pattern() -> None:
    with Broker(topics={"orders-1": 1}) as broker, Wire(broker.port()) as wire:

        def beat(epoch: int, **fields: Any) -> Any:
            return wire.ask(ConsumerGroupHeartbeatRequest[1](group_id="g", member_id="m", member_epoch=epoch, **fields))

        reply = beat(0, subscribed_topic_regex="orders-.*", rebalance_timeout_ms=1000, topic_partitions=[])
        assert len(reply.assignment.topic_partitions) == 1
        broker.create_topic("orders-2", partitions=2)
        broker.create_topic("other")
        reply = beat(reply.member_epoch)
        assert sorted(len(part.partitions) for part in reply.assignment.topic_partitions) == [1, 2]


def test_offsets_of_the_oldest_clients_are_kept_apart_as_in_zookeeper() -> None:
    with Broker(topics={"t": 1}) as broker, Wire(broker.port()) as wire:
        assert wire.ask(OffsetCommitRequest[0]("g", [("t", [(0, 7, "old")])])).topics[0].partitions[0].error_code == 0
        old = wire.ask(OffsetFetchRequest[0]("g", [("t", [0])])).topics[0].partitions[0]
        assert (old.committed_offset, old.metadata, old.error_code) == (7, "old", 0)
        new = wire.ask(OffsetFetchRequest[1]("g", [("t", [0])])).topics[0].partitions[0]
        assert (new.committed_offset, new.error_code) == (-1, 0)
        absent = wire.ask(OffsetFetchRequest[0]("h", [("t", [0])])).topics[0].partitions[0]
        assert (absent.committed_offset, absent.error_code) == (-1, 3)


def test_a_commit_of_nothing_makes_no_group() -> None:
    # Kafka answers for the partitions that are not there by itself, and does not ask the group.
    with Broker(topics={"t": 1}) as broker, Wire(broker.port()) as wire:
        reply = wire.ask(OffsetCommitRequest[8](group_id="g", topics=[("t", [(9, 1, -1, None)])]))
        assert reply.topics[0].partitions[0].error_code == 3
        assert wire.ask(OffsetCommitRequest[8](group_id="g", topics=[])).topics == []
        assert wire.ask(ListGroupsRequest[4]()).groups == []


def test_a_commit_without_the_right_is_refused_before_a_wrong_offset_is() -> None:
    with Broker(topics={"t": 1}) as broker, Wire(broker.port()) as wire:
        joined(wire)
        parts = [(0, 1, -1, "m" * 5000), (9, 1, -1, None)]
        commit = OffsetCommitRequest[8](group_id="g", generation_id_or_member_epoch=1, member_id="stranger")
        commit.topics = [("t", parts)]
        codes = [part.error_code for part in wire.ask(commit).topics[0].partitions]
        assert codes == [UNKNOWN_MEMBER_ID, 3]


def test_a_broker_with_a_disk_remembers_members_and_offsets(tmp_path: Path) -> None:
    commit = OffsetCommitRequest[9](group_id="g", topics=[("t", [(0, 7, -1, "")])])
    with Broker(topics={"t": 1}, data_dir=tmp_path) as broker, Wire(broker.port()) as wire:
        member = joined(wire).member_id
        wire.ask(sync(member, 1, [(member, b"all")]))
        commit.generation_id_or_member_epoch, commit.member_id = 1, member
        assert wire.ask(commit).topics[0].partitions[0].error_code == 0
    with Broker(data_dir=tmp_path) as broker, Wire(broker.port()) as wire:
        assert wire.ask(HeartbeatRequest[4]("g", 1, member, None)).error_code == 0
        reply = wire.ask(OffsetFetchRequest[7](group_id="g", topics=None, require_stable=True))
        assert reply.topics[0].partitions[0].committed_offset == 7


def test_the_offsets_of_a_deleted_topic_are_gone() -> None:
    with Broker(topics={"kept": 1, "deleted": 1}) as broker, Wire(broker.port()) as wire:
        topics = [(name, [(0, 5, -1, None)]) for name in ("kept", "deleted")]
        wire.ask(OffsetCommitRequest[8](group_id="g", topics=topics))
        broker.delete_topic("deleted")
        answer = wire.ask(OffsetFetchRequest[7](group_id="g", topics=None))
        assert [topic.name for topic in answer.topics] == ["kept"]
