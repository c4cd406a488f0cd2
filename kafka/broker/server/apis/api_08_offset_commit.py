"""OffsetCommit (8), versions 0-10: how far a group has read.

* v0: of the ZooKeeper era: kept apart from what groups commit, as ZooKeeper was, and not tied to any member.
* v1: members and generations; a timestamp for each partition. v2: one retention time for all, until v4.
* v3: throttle time. v4: clients expect throttling after the reply. v5: no retention time.
* v6: leader epochs (KIP-320).
* v7: static members (KIP-345).
* v8: flexible.
* v9: members of consumer groups with their epochs (KIP-848).
* v10: topics by id.
"""

from __future__ import annotations

from typing import Final

from kafka.broker.groups.offsets import NO_EXPIRY, CommittedOffset
from kafka.broker.groups.service import coordinator, refusal
from kafka.broker.server.api import BrokerResponseError, Call, Code, Operation, Resource
from kafka.protocol.commit import OffsetCommitRequest, OffsetCommitResponse
from kafka.structs import TopicPartition

_GROUPS_FROM: Final = 1
_IDS_FROM: Final = 10
#: Partitions with these codes so far are for the group to look at: whether the member may commit comes first.
_FOR_THE_GROUP: Final = frozenset({Code.NONE, Code.OFFSET_METADATA_TOO_LARGE})

#: One partition of the request on its way: where it is, what is committed, its code so far.
_Row = tuple[TopicPartition, OffsetCommitRequest.OffsetCommitRequestPartition, int]


def handle(call: Call[OffsetCommitResponse], request: OffsetCommitRequest) -> OffsetCommitResponse:
    """Commit, partition by partition; a client without the right gets an error for each."""
    refused = 0
    if call.version >= _GROUPS_FROM:
        refused = refusal(call, request.group_id)
    elif not call.allows(Operation.READ, Resource.GROUP, request.group_id):
        refused = Code.GROUP_AUTHORIZATION_FAILED
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
