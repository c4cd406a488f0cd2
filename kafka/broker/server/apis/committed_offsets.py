"""The offsets that groups commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar
from uuid import UUID

from kafka.broker.groups.offsets import NO_EXPIRY, CommittedOffset
from kafka.broker.groups.service import check_group, coordinator
from kafka.broker.server.api import BrokerResponseError, Call, Code, Operation, Resource
from kafka.protocol.commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from kafka.protocol.fields import ZERO_UUID
from kafka.protocol.struct import Struct
from kafka.structs import TopicPartition

_GROUPS_FROM: Final = 1
_IDS_FROM: Final = 10
#: Partitions with these codes so far are for the group to look at: whether the member may commit comes first.
_FOR_THE_GROUP: Final = frozenset({Code.NONE, Code.OFFSET_METADATA_TOO_LARGE})
#: One partition of the request on its way: where it is, what is committed, its code so far.
_Row = tuple[TopicPartition, OffsetCommitRequest.OffsetCommitRequestPartition, int]
P = TypeVar("P", bound=Struct)
_TOP_LEVEL_FROM: Final = 2
_BATCH_FROM: Final = 8
_NOTHING: Final = CommittedOffset(-1)
# A topic, by its name or from v10 on by its id, and the partitions that the client wants.
_Wanted = tuple[str | UUID, list[int]]
# Name, topic id and rows of partition index, offset and code.
_Topic = tuple[str, UUID, list[tuple[int, CommittedOffset, int]]]


def offset_commit(call: Call[OffsetCommitResponse], request: OffsetCommitRequest) -> OffsetCommitResponse:
    """OffsetCommit (8), versions 0-10: how far a group has read.

    * v0: of the ZooKeeper era: kept apart from what groups commit, as ZooKeeper was, and not tied to any member.
    * v1: members and generations; a timestamp for each partition. v2: one retention time for all, until v4.
    * v3: throttle time. v4: clients expect throttling after the reply. v5: no retention time.
    * v6: leader epochs (KIP-320).
    * v7: static members (KIP-345).
    * v8: flexible.
    * v9: members of consumer groups with their epochs (KIP-848).
    * v10: topics by id.

    Commit, partition by partition; a client without the right gets an error for each.
    """
    refused = 0
    try:
        if call.version >= _GROUPS_FROM:
            check_group(call, request.group_id)
        else:
            call.require(Operation.READ, Resource.GROUP, request.group_id)
    except BrokerResponseError as error:
        refused = error.code
    topics = [(topic, [_check(call, topic, part, refused) for part in topic.partitions]) for topic in request.topics]
    rows = [row for _, rows in topics for row in rows]
    if not refused and any(code in _FOR_THE_GROUP for _, _, code in rows):
        # Where nothing is left to commit the group is not asked, and so does not come to be.
        refused = _commit(call, request, [row for row in rows if not row[2]])
    return call.response(
        topics=[
            call.response.OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    (part.partition_index, refused if refused and code in _FOR_THE_GROUP else code)
                    for _, part, code in rows
                ],
            )
            for topic, rows in topics
        ]
    )


def _check(
    call: Call[OffsetCommitResponse],
    topic: OffsetCommitRequest.OffsetCommitRequestTopic,
    part: OffsetCommitRequest.OffsetCommitRequestPartition,
    refused: int,
) -> _Row:
    by_id = call.version >= _IDS_FROM
    found = call.cluster.topic(topic_id=topic.topic_id) if by_id else call.cluster.topic(topic.name)
    name = topic.name if found is None else found.name
    where = TopicPartition(name, part.partition_index)
    if refused:
        return where, part, refused
    if name and not call.allows(Operation.READ, Resource.TOPIC, name):
        return where, part, Code.TOPIC_AUTHORIZATION_FAILED
    if found is None:
        return where, part, Code.UNKNOWN_TOPIC_ID if by_id else Code.UNKNOWN_TOPIC_OR_PARTITION
    if found.partition(part.partition_index) is None:
        return where, part, Code.UNKNOWN_TOPIC_OR_PARTITION
    longest = coordinator(call).settings.offset_metadata_max_bytes
    if len((part.committed_metadata or "").encode()) > longest:
        return where, part, Code.OFFSET_METADATA_TOO_LARGE
    return where, part, Code.NONE


def _commit(call: Call[OffsetCommitResponse], request: OffsetCommitRequest, rows: list[_Row]) -> int:
    groups = coordinator(call)
    if call.version < _GROUPS_FROM:
        for where, part, _ in rows:
            key = f"{request.group_id}/{where.topic}/{where.partition}"
            groups.zookeeper[key] = [part.committed_offset, part.committed_metadata or ""]
        return Code.NONE
    now = call.cluster.clock.now_ms()
    expires = NO_EXPIRY if request.retention_time_ms < 0 else now + request.retention_time_ms
    offsets = [
        (
            where,
            CommittedOffset(
                part.committed_offset,
                part.committed_leader_epoch,
                part.committed_metadata or "",
                now if part.commit_timestamp < 0 else part.commit_timestamp,
                expires,
            ),
        )
        for where, part, _ in rows
    ]
    try:
        groups.commit(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            offsets,
            version=call.version,
        )
    except BrokerResponseError as error:
        return error.code
    return Code.NONE


def offset_fetch(call: Call[OffsetFetchResponse], request: OffsetFetchRequest) -> OffsetFetchResponse:
    """OffsetFetch (9), versions 0-10: how far groups have read.

    * v0: of the ZooKeeper era: only what was committed in v0; a partition without an offset is an error.
    * v1: what groups have committed; without an offset it is -1.
    * v2: all of a group's partitions at once; one error for the whole group.
    * v3: throttle time. v4: clients expect throttling after the reply.
    * v5: leader epochs (KIP-320).
    * v6: flexible.
    * v7: only what no open transaction will move (KIP-447).
    * v8: several groups (KIP-709).
    * v9: members of consumer groups with their epochs (KIP-848).
    * v10: topics by id.
    """
    if call.version >= _BATCH_FROM:
        return call.response(groups=[_batched(call, request, group) for group in request.groups])
    wanted = None if request.topics is None else [(topic.name, topic.partition_indexes) for topic in request.topics]
    if call.version < _GROUPS_FROM:
        refused, topics = _from_zookeeper(call, request.group_id, wanted or ())
    else:
        refused, topics = _fetch(call, request.group_id, wanted, request.require_stable)
    if refused and call.version >= _TOP_LEVEL_FROM:
        return call.response(error_code=refused)
    if refused:
        topics = [
            (name, ZERO_UUID, [(index, _NOTHING, refused) for index in indexes]) for name, indexes in wanted or ()
        ]
    make = call.response.OffsetFetchResponsePartition
    return call.response(topics=[(name, [_partition(make, *row) for row in rows]) for name, _, rows in topics])


def _batched(
    call: Call[OffsetFetchResponse], request: OffsetFetchRequest, group: OffsetFetchRequest.OffsetFetchRequestGroup
) -> OffsetFetchResponse.OffsetFetchResponseGroup:
    reply = call.response.OffsetFetchResponseGroup(group_id=group.group_id)
    by_id = call.version >= _IDS_FROM
    wanted: list[_Wanted] | None = None
    if group.topics is not None:
        wanted = [(topic.topic_id if by_id else topic.name, topic.partition_indexes) for topic in group.topics]
    reply.error_code, topics = _fetch(
        call, group.group_id, wanted, request.require_stable, group.member_id, group.member_epoch
    )
    make = call.response.OffsetFetchResponsePartitions
    reply.topics = [
        call.response.OffsetFetchResponseTopics(
            name=name, topic_id=topic_id, partitions=[_partition(make, *row) for row in rows]
        )
        for name, topic_id, rows in topics
    ]
    return reply


def _partition(make: type[P], index: int, offset: CommittedOffset, code: int) -> P:
    return make(
        partition_index=index,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        error_code=code,
    )


def _fetch(
    call: Call[OffsetFetchResponse],
    group_id: str,
    wanted: Iterable[_Wanted] | None,
    stable_only: bool,
    member_id: str | None = None,
    epoch: int = -1,
) -> tuple[int, list[_Topic]]:
    """Return a code for the group and its topics."""
    try:
        check_group(call, group_id, Operation.DESCRIBE)
        coordinator(call).check_fetch(group_id, member_id, epoch)
    except BrokerResponseError as error:
        return error.code, []
    if wanted is None:
        return Code.NONE, _all(call, group_id, stable_only)
    return Code.NONE, [_topic(call, group_id, key, indexes, stable_only) for key, indexes in wanted]


def _topic(
    call: Call[OffsetFetchResponse], group_id: str, key: str | UUID, indexes: list[int], stable_only: bool
) -> _Topic:
    """Read some partitions of a topic given by its name or, from v10 on, by its id."""
    code = Code.NONE
    if isinstance(key, str):
        name, topic_id = key, ZERO_UUID
    else:
        found = call.cluster.topic(topic_id=key)
        name, topic_id = "" if found is None else found.name, key
        if found is None:
            code = Code.UNKNOWN_TOPIC_ID
    if not code and not call.allows(Operation.DESCRIBE, Resource.TOPIC, name):
        code = Code.TOPIC_AUTHORIZATION_FAILED
    if code:
        return name, topic_id, [(index, _NOTHING, code) for index in indexes]
    return name, topic_id, [_row(call, group_id, TopicPartition(name, index), stable_only) for index in indexes]


def _row(
    call: Call[OffsetFetchResponse], group_id: str, where: TopicPartition, stable_only: bool
) -> tuple[int, CommittedOffset, int]:
    offsets = coordinator(call).offsets.get(group_id)
    if offsets is None:
        return where.partition, _NOTHING, Code.NONE
    if stable_only and offsets.is_unstable(where):
        return where.partition, _NOTHING, Code.UNSTABLE_OFFSET_COMMIT
    return where.partition, offsets.committed.get(where, _NOTHING), Code.NONE


def _all(call: Call[OffsetFetchResponse], group_id: str, stable_only: bool) -> list[_Topic]:
    offsets = coordinator(call).offsets.get(group_id)
    topics: dict[str, _Topic] = {}
    for where in offsets.committed if offsets is not None else ():
        if where.topic not in topics:
            topic = call.cluster.topic(where.topic)
            if topic is None or not call.allows(Operation.DESCRIBE, Resource.TOPIC, where.topic):
                continue
            topics[where.topic] = (where.topic, topic.id, [])
        topics[where.topic][2].append(_row(call, group_id, where, stable_only))
    return list(topics.values())


def _from_zookeeper(
    call: Call[OffsetFetchResponse], group_id: str, wanted: Iterable[tuple[str, list[int]]]
) -> tuple[int, list[_Topic]]:
    if not call.allows(Operation.DESCRIBE, Resource.GROUP, group_id):
        return Code.GROUP_AUTHORIZATION_FAILED, []
    saved = coordinator(call).zookeeper
    topics: list[_Topic] = []
    for name, indexes in wanted:
        rows = []
        for index in indexes:
            found = saved.get(f"{group_id}/{name}/{index}") if call.cluster.partition(name, index) else None
            code = Code.UNKNOWN_TOPIC_OR_PARTITION if found is None else Code.NONE
            offset = _NOTHING if found is None else CommittedOffset(found[0], metadata=found[1])
            rows.append((index, offset, int(code)))
        topics.append((name, ZERO_UUID, rows))
    return Code.NONE, topics


def offset_delete(call: Call[OffsetDeleteResponse], request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    """OffsetDelete (47), version 0: delete committed offsets of topics that a group no longer reads (KIP-496)."""
    check_group(call, request.group_id, Operation.DELETE)
    may_delete = coordinator(call).deletable(request.group_id)
    topics = [
        (
            topic.name,
            [
                (part.partition_index, _delete(call, request.group_id, topic.name, part.partition_index, may_delete))
                for part in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return call.response(error_code=0, topics=topics)


def _delete(
    call: Call[OffsetDeleteResponse], group_id: str, topic: str, index: int, may_delete: Callable[[str], bool]
) -> int:
    if not call.allows(Operation.READ, Resource.TOPIC, topic):
        return Code.TOPIC_AUTHORIZATION_FAILED
    if call.cluster.partition(topic, index) is None:
        return Code.UNKNOWN_TOPIC_OR_PARTITION
    if not may_delete(topic):
        return Code.GROUP_SUBSCRIBED_TO_TOPIC
    coordinator(call).offsets_of(group_id).delete(TopicPartition(topic, index))
    return Code.NONE
