"""The requests that commit offsets and read them, in the form of each version, and their responses. Sans-IO.

Topics have names up to version 9 and ids since 10 (KIP-848); a request reads one group's offsets up to version 7 and
several groups' since 8 (KIP-709). In version 0 the offsets are in ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from kafka.coordinator.protocol import by_topic
from kafka.protocol.commit import OffsetCommitRequest, OffsetFetchRequest
from kafka.structs import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka.protocol.commit import OffsetCommitResponse, OffsetFetchResponse

_BY_ID_SINCE: Final = 10
_BY_GROUPS_SINCE: Final = 8
_STABLE_SINCE: Final = 7
_NO_OFFSET: Final = -1

TopicIds = Callable[[str], "UUID | None"]
TopicNames = Callable[[UUID], "str | None"]


class Identity(NamedTuple):
    """The identity in a commit: a member in its generation, or by default a client outside of the group."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


def commit_request(
    version: int, who: Identity, offsets: Mapping[TopicPartition, OffsetAndMetadata], topic_id: TopicIds
) -> OffsetCommitRequest:
    """Return the request, in `version`, or in 9 if the id of a topic is unknown."""
    if version >= _BY_ID_SINCE and any(topic_id(partition.topic) is None for partition in offsets):
        version = _BY_ID_SINCE - 1
    partition_type = OffsetCommitRequest.OffsetCommitRequestPartition
    topic_type = OffsetCommitRequest.OffsetCommitRequestTopic
    topics = []
    for topic, numbers in by_topic(offsets):
        entries = []
        for number in numbers:
            offset = OffsetAndMetadata(*offsets[TopicPartition(topic, number)])
            entries.append(
                partition_type(
                    partition_index=number,
                    committed_offset=offset.offset,
                    committed_leader_epoch=-1 if offset.leader_epoch is None else offset.leader_epoch,
                    committed_metadata=offset.metadata or "",
                )
            )
        name = {"topic_id": topic_id(topic)} if version >= _BY_ID_SINCE else {"name": topic}
        topics.append(topic_type(partitions=entries, **name))
    fields: dict[str, object] = {"group_id": who.group_id, "topics": topics}
    if version >= 1:
        fields |= {"generation_id_or_member_epoch": who.generation_id, "member_id": who.member_id}
    if who.group_instance_id is not None and version >= 7:
        fields["group_instance_id"] = who.group_instance_id
    return OffsetCommitRequest[version](**fields)


def committed_codes(response: OffsetCommitResponse, name_of: TopicNames) -> Iterator[tuple[TopicPartition, int]]:
    """Yield the partitions of a response with their error codes."""
    for topic in response.topics:
        name = _name(topic, name_of)
        for partition in topic.partitions:
            yield TopicPartition(name, partition.partition_index), partition.error_code


def fetch_request(
    version: int, who: Identity, partitions: Iterable[TopicPartition], topic_id: TopicIds, *, stable: bool
) -> OffsetFetchRequest:
    """Return the request for a group's committed offsets."""
    wanted = by_topic(partitions)
    if version >= _BY_ID_SINCE and any(topic_id(topic) is None for topic, _ in wanted):
        version = _BY_ID_SINCE - 1
    fields: dict[str, object] = {"require_stable": stable} if version >= _STABLE_SINCE else {}
    if version < _BY_GROUPS_SINCE:
        topic_type = OffsetFetchRequest.OffsetFetchRequestTopic
        topics = [topic_type(name=topic, partition_indexes=numbers) for topic, numbers in wanted]
        return OffsetFetchRequest[version](group_id=who.group_id, topics=topics, **fields)
    topics_type = OffsetFetchRequest.OffsetFetchRequestTopics
    entries = []
    for topic, numbers in wanted:
        name = {"topic_id": topic_id(topic)} if version >= _BY_ID_SINCE else {"name": topic}
        entries.append(topics_type(partition_indexes=numbers, **name))
    group_type = OffsetFetchRequest.OffsetFetchRequestGroup
    member: dict[str, object] = {}
    if version > _BY_GROUPS_SINCE and who.member_id:
        member = {"member_id": who.member_id, "member_epoch": who.generation_id}
    return OffsetFetchRequest[version](groups=[group_type(group_id=who.group_id, topics=entries, **member)], **fields)


def fetched_group_code(response: OffsetFetchResponse) -> int:
    """Return the error code of the whole response; 0 without an error."""
    return next((group.error_code for group in response.groups or ()), response.error_code or 0)


def fetched_entries(
    response: OffsetFetchResponse, name_of: TopicNames
) -> Iterator[tuple[TopicPartition, int, OffsetAndMetadata | None]]:
    """Yield the partitions of a response, each with its error code and its offset, or None without one."""
    topics = response.topics or (topic for group in response.groups or () for topic in group.topics)
    for topic in topics:
        name = _name(topic, name_of)
        for entry in topic.partitions:
            found = None
            if entry.committed_offset > _NO_OFFSET:
                epoch = getattr(entry, "committed_leader_epoch", -1)
                found = OffsetAndMetadata(entry.committed_offset, entry.metadata or "", -1 if epoch is None else epoch)
            yield TopicPartition(name, entry.partition_index), entry.error_code, found


def _name(
    topic: OffsetCommitResponse.OffsetCommitResponseTopic
    | OffsetFetchResponse.OffsetFetchResponseTopic
    | OffsetFetchResponse.OffsetFetchResponseTopics,
    name_of: TopicNames,
) -> str:
    if topic.name:
        return str(topic.name)
    return name_of(topic.topic_id) or str(topic.topic_id)
