"""Groups as JSON data, for a broker with a data directory: their state outlives the process.

Kafka keeps the same in ``__consumer_offsets``. A classic group is kept as it was when its assignment was last handed
out; a consumer group after each change of an epoch or of what a member holds.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any
from uuid import UUID

from kafka.broker.groups.classic_group import ClassicGroup
from kafka.broker.groups.classic_member import Member, Protocols, State
from kafka.broker.groups.consumer_group import ConsumerGroup
from kafka.broker.groups.consumer_member import ClassicTerms, ConsumerMember, Holding, MemberState
from kafka.broker.groups.share_group import ShareGroup, ShareMember
from kafka.broker.groups.streams_group import StreamsGroup, StreamsMember, Target
from kafka.broker.groups.streams_topology import InternalTopic, Subtopology, Task, Topology

__all__ = ["restore_group", "save_group"]


def save_group(group: ClassicGroup | ConsumerGroup | ShareGroup | StreamsGroup) -> dict[str, Any]:
    """Return what the store keeps of a group."""
    if isinstance(group, ShareGroup):
        return {**_epochs(group), "members": [_share_member(member) for member in group.members.values()]}
    if isinstance(group, StreamsGroup):
        return {
            **_epochs(group),
            "topology": None if group.topology is None else asdict(group.topology),
            "targets": {
                member_id: [sorted(target.active), sorted(target.standby)]
                for member_id, target in group.targets.items()
            },
            "members": [_streams_member(member) for member in group.members.values()],
        }
    if isinstance(group, ConsumerGroup):
        return {
            "kind": "consumer",
            "epoch": group.epoch,
            "assignment_epoch": group.assignment_epoch,
            "targets": {member_id: _partitions(target) for member_id, target in group.targets.items()},
            "members": [_consumer_member(member) for member in group.members.values()],
        }
    return {
        "kind": "classic",
        "generation": group.generation,
        "since": group.state_since_ms,
        "type": group.protocol_type,
        "protocol": group.protocol_name,
        "leader": group.roster.leader,
        "members": [_classic_member(member) for member in group.roster] if group.state is State.STABLE else [],
    }


def restore_group(group: ClassicGroup | ConsumerGroup | ShareGroup | StreamsGroup, saved: Mapping[str, Any]) -> None:
    """Make a fresh group what it was."""
    if isinstance(group, (ShareGroup, StreamsGroup)):
        group.epoch, group.assignment_epoch = saved["epoch"], saved["assignment_epoch"]
        _restore_members(group, saved)
        group.resume()
        return
    if isinstance(group, ConsumerGroup):
        group.epoch = saved["epoch"]
        group.assignment_epoch = saved["assignment_epoch"]
        for each in saved["members"]:
            member, holding = _read_consumer_member(each)
            group.add(member)
            group.adopt(member, holding)
        group.targets = {member_id: _read_partitions(target) for member_id, target in saved["targets"].items()}
        group.note_topics()
        group.resume()
        return
    group.generation = saved["generation"]
    group.roster.protocol_type = saved["type"]
    if saved["members"]:
        group.restore(map(_read_classic_member, saved["members"]), saved["type"], saved["protocol"], saved["leader"])
    group.state_since_ms = saved["since"]


def _restore_members(group: ShareGroup | StreamsGroup, saved: Mapping[str, Any]) -> None:
    if isinstance(group, ShareGroup):
        for each in saved["members"]:
            group.add(
                ShareMember(
                    *_read_epoch_member(each), names=tuple(each["names"]), assigned=_read_partitions(each["assigned"])
                )
            )
        group.note_topics()
        return
    group.topology = None if saved["topology"] is None else _read_topology(saved["topology"])
    for each in saved["members"]:
        group.add(_read_streams_member(each))
    for member_id, (active, standby) in saved["targets"].items():
        group.targets[member_id] = Target(_read_tasks(active), _read_tasks(standby))


def _epochs(group: ShareGroup | StreamsGroup) -> dict[str, Any]:
    return {"kind": group.protocol_type, "epoch": group.epoch, "assignment_epoch": group.assignment_epoch}


def _epoch_member(member: ShareMember | StreamsMember) -> dict[str, Any]:
    return {
        "id": member.member_id,
        "client": member.client_id,
        "host": member.client_host,
        "rack": member.rack_id,
        "epochs": [member.epoch, member.previous_epoch],
    }


def _read_epoch_member(saved: Mapping[str, Any]) -> tuple[str, str, str, str | None, int, int]:
    epoch, previous = saved["epochs"]
    return saved["id"], saved["client"], saved["host"], saved["rack"], epoch, previous


def _share_member(member: ShareMember) -> dict[str, Any]:
    return {**_epoch_member(member), "names": list(member.names), "assigned": _partitions(member.assigned)}


def _streams_member(member: StreamsMember) -> dict[str, Any]:
    return {
        **_epoch_member(member),
        "rebalance": member.rebalance_timeout,
        "topology_epoch": member.topology_epoch,
        "process": member.process_id,
        "endpoint": member.endpoint,
        "tags": [list(tag) for tag in member.tags],
        "tasks": [sorted(member.active), sorted(member.standby), sorted(member.revoking)],
    }


def _read_streams_member(saved: Mapping[str, Any]) -> StreamsMember:
    active, standby, revoking = map(_read_tasks, saved["tasks"])
    return StreamsMember(
        *_read_epoch_member(saved),
        rebalance_timeout=saved["rebalance"],
        topology_epoch=saved["topology_epoch"],
        process_id=saved["process"],
        endpoint=None if saved["endpoint"] is None else tuple(saved["endpoint"]),
        tags=tuple((key, value) for key, value in saved["tags"]),
        active=active,
        standby=standby,
        revoking=revoking,
    )


def _read_tasks(saved: Iterable[tuple[str, int]]) -> frozenset[Task]:
    return frozenset((subtopology, index) for subtopology, index in saved)


def _read_topology(saved: Mapping[str, Any]) -> Topology:
    return Topology(saved["epoch"], tuple(_read_subtopology(each) for each in saved["subtopologies"]))


def _read_subtopology(saved: Mapping[str, Any]) -> Subtopology:
    def topics(name: str) -> tuple[InternalTopic, ...]:
        return tuple(
            InternalTopic(**{**topic, "configs": tuple((key, value) for key, value in topic["configs"])})
            for topic in saved[name]
        )

    return Subtopology(
        saved["subtopology_id"],
        tuple(saved["source_topics"]),
        tuple(saved["source_regexes"]),
        topics("changelogs"),
        tuple(saved["sinks"]),
        topics("repartition_sources"),
        tuple(map(tuple, saved["copartitions"])),
    )


def _protocols(protocols: Protocols) -> list[list[str]]:
    return [[name, b64encode(metadata).decode()] for name, metadata in protocols]


def _read_protocols(saved: Iterable[list[str]]) -> Protocols:
    return [(name, b64decode(metadata)) for name, metadata in saved]


def _classic_member(member: Member) -> dict[str, Any]:
    return {
        "id": member.member_id,
        "instance": member.instance_id,
        "client": member.client_id,
        "host": member.client_host,
        "session": member.session_timeout,
        "rebalance": member.rebalance_timeout,
        "protocols": _protocols(member.protocols),
        "assignment": b64encode(member.assignment).decode(),
    }


def _read_classic_member(saved: Mapping[str, Any]) -> Member:
    return Member(
        saved["id"],
        saved["instance"],
        saved["client"],
        saved["host"],
        saved["session"],
        saved["rebalance"],
        _read_protocols(saved["protocols"]),
        b64decode(saved["assignment"]),
    )


def _partitions(assignment: Mapping[UUID, frozenset[int]]) -> dict[str, list[int]]:
    return {str(topic): sorted(indexes) for topic, indexes in assignment.items()}


def _read_partitions(saved: Mapping[str, list[int]]) -> dict[UUID, frozenset[int]]:
    return {UUID(topic): frozenset(indexes) for topic, indexes in saved.items()}


def _consumer_member(member: ConsumerMember) -> dict[str, Any]:
    holding, classic = member.holding, member.classic
    return {
        "id": member.member_id,
        "instance": member.instance_id,
        "rack": member.rack_id,
        "client": member.client_id,
        "host": member.client_host,
        "rebalance": member.rebalance_timeout,
        "names": sorted(member.names),
        "regex": member.regex,
        "assignor": member.assignor,
        "epochs": [holding.epoch, holding.previous_epoch, int(holding.state)],
        "assigned": _partitions(holding.assigned),
        "revoking": _partitions(holding.pending_revocation),
        "since": [[str(topic), index, epoch] for (topic, index), epoch in holding.assignment_epochs.items()],
        "classic": None if classic is None else [classic.session_timeout, _protocols(classic.protocols)],
    }


def _read_consumer_member(saved: Mapping[str, Any]) -> tuple[ConsumerMember, Holding]:
    classic = saved["classic"]
    epoch, previous, state = saved["epochs"]
    assigned, revoking = _read_partitions(saved["assigned"]), _read_partitions(saved["revoking"])
    member = ConsumerMember(
        saved["id"],
        saved["instance"],
        saved["rack"],
        saved["client"],
        saved["host"],
        saved["rebalance"],
        frozenset(saved["names"]),
        saved["regex"],
        saved["assignor"],
        classic=None if classic is None else ClassicTerms(classic[0], _read_protocols(classic[1])),
    )
    # Earlier releases of this broker have not kept these.
    since = {(UUID(topic), index): epoch for topic, index, epoch in saved.get("since", ())}
    return member, Holding(epoch, previous, MemberState(state), assigned, revoking, since)
