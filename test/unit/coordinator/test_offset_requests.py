"""Commits and reads of offsets in every version, there and back."""

from __future__ import annotations

from uuid import UUID

import pytest

from kafka.coordinator.offset_requests import (
    Identity,
    commit_request,
    committed_codes,
    fetch_request,
    fetched_entries,
    fetched_group_code,
)
from kafka.protocol.commit import OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse
from kafka.structs import OffsetAndMetadata, TopicPartition

WHO = Identity("g", 5, "m")
OFFSETS = {TopicPartition("t", 1): OffsetAndMetadata(7, "note", 3), TopicPartition("t", 0): OffsetAndMetadata(8)}
IDS = {"t": UUID(int=9)}
NAMES = {UUID(int=9): "t"}


@pytest.mark.parametrize("version", range(11))
def test_a_commit_says_the_same_in_every_version(version: int) -> None:
    request = commit_request(version, WHO, OFFSETS, IDS.get)
    again = OffsetCommitRequest[version].decode(request.encode())
    (topic,) = again.topics
    assert (topic.topic_id == UUID(int=9)) if version >= 10 else (topic.name == "t")
    assert [(p.partition_index, p.committed_offset, p.committed_metadata) for p in topic.partitions] == [
        (0, 8, ""),
        (1, 7, "note"),
    ]
    if version >= 1:
        assert (again.generation_id_or_member_epoch, again.member_id) == (5, "m")
    if version >= 6:
        assert topic.partitions[1].committed_leader_epoch == 3


def test_a_topic_whose_id_is_not_known_is_committed_by_name() -> None:
    assert commit_request(10, WHO, OFFSETS, lambda _name: None).API_VERSION == 9
    assert fetch_request(10, WHO, OFFSETS, lambda _name: None, stable=True).API_VERSION == 9


@pytest.mark.parametrize("version", range(11))
def test_answers_to_commits_are_read_in_every_version(version: int) -> None:
    response = OffsetCommitResponse
    partition = response.OffsetCommitResponsePartition(partition_index=1, error_code=25)
    name = {"topic_id": UUID(int=9)} if version >= 10 else {"name": "t"}
    data = response[version](topics=[response.OffsetCommitResponseTopic(partitions=[partition], **name)]).encode()
    assert list(committed_codes(response[version].decode(data), NAMES.get)) == [(TopicPartition("t", 1), 25)]


@pytest.mark.parametrize("version", range(11))
def test_reading_asks_for_the_same_in_every_version(version: int) -> None:
    request = fetch_request(version, WHO, OFFSETS, IDS.get, stable=True)
    again = OffsetFetchRequest[version].decode(request.encode())
    if version < 8:
        assert again.group_id == "g"
        assert again.topics[0].partition_indexes == [0, 1]
    else:
        (group,) = again.groups
        assert group.group_id == "g"
        assert group.topics[0].partition_indexes == [0, 1]
    if version >= 9:
        assert (again.groups[0].member_id, again.groups[0].member_epoch) == ("m", 5)
    if version >= 7:
        assert again.require_stable


@pytest.mark.parametrize("version", range(11))
def test_committed_offsets_are_read_in_every_version(version: int) -> None:
    response = OffsetFetchResponse
    values = [
        {"partition_index": 0, "committed_offset": -1, "metadata": "", "error_code": 0},
        {"partition_index": 1, "committed_offset": 7, "metadata": "note", "error_code": 0},
    ]
    if version < 8:
        entries = [response.OffsetFetchResponsePartition(**value) for value in values]
        data = response[version](topics=[response.OffsetFetchResponseTopic(name="t", partitions=entries)]).encode()
    else:
        entries = [response.OffsetFetchResponsePartitions(**value) for value in values]
        name = {"topic_id": UUID(int=9)} if version >= 10 else {"name": "t"}
        topics = [response.OffsetFetchResponseTopics(partitions=entries, **name)]
        group = response.OffsetFetchResponseGroup(group_id="g", topics=topics, error_code=15)
        data = response[version](groups=[group]).encode()
    again = response[version].decode(data)
    assert list(fetched_entries(again, NAMES.get)) == [
        (TopicPartition("t", 0), 0, None),
        (TopicPartition("t", 1), 0, OffsetAndMetadata(7, "note")),
    ]
    assert fetched_group_code(again) == (15 if version >= 8 else 0)
