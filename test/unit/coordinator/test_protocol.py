"""Subscriptions and assignments on the wire."""

from __future__ import annotations

import pytest

from kafka.coordinator.protocol import (
    ConsumerProtocol,
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
    by_topic,
    flat,
)
from kafka.errors import KafkaProtocolError
from kafka.protocol.consumer_protocol import ConsumerProtocolSubscription
from kafka.protocol.versioned import encode_versioned
from kafka.structs import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def test_a_subscription_comes_back_as_it_was() -> None:
    member = ConsumerProtocolMemberMetadata(0, ["t", "u"], b"data", [T0, T1], 7, "r1")
    found = ConsumerProtocolMemberMetadata.decode(member.encode(), "static")
    assert found == member._replace(version=3, group_instance_id="static")
    assert found.topics == ["t", "u"]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_older_member_s_subscription_has_no_later_fields(version: int) -> None:
    fields = {} if version == 0 else {"owned_partitions": [("t", [0])]}
    data = encode_versioned(ConsumerProtocolSubscription[version](topics=["t"], user_data=b"", **fields))
    found = ConsumerProtocolMemberMetadata.decode(data)
    assert (found.version, list(found.subscription), found.generation_id, found.rack_id) == (version, ["t"], -1, None)
    assert list(found.owned_partitions) == ([T0] if version else [])


def test_an_assignment_comes_back_as_it_was() -> None:
    assignment = ConsumerProtocolMemberAssignment(1, [("t", [0, 1])], b"data")
    assert ConsumerProtocolMemberAssignment.decode(assignment.encode()) == assignment
    assert assignment.partitions() == [T0, T1]


def test_no_bytes_are_an_empty_assignment() -> None:
    assert ConsumerProtocolMemberAssignment.decode(b"").partitions() == []


@pytest.mark.parametrize("data", [b"\0", b"\0\0\xff\xff\xff", b"\0\0\0\0\0\x01\0\x05ab"])
def test_invalid_bytes_raise_an_error_of_kafka(data: bytes) -> None:
    with pytest.raises(KafkaProtocolError):
        ConsumerProtocolMemberMetadata.decode(data)
    with pytest.raises(KafkaProtocolError):
        ConsumerProtocolMemberAssignment.decode(data)


def test_grouping_by_topic_and_back() -> None:
    partitions = [TopicPartition("u", 3), T1, T0]
    assert by_topic(partitions) == [("t", [0, 1]), ("u", [3])]
    assert flat(by_topic(partitions)) == sorted(partitions)


def test_the_historic_names() -> None:
    assert ConsumerProtocol.PROTOCOL_TYPE == "consumer"
    assert ConsumerProtocol.METADATA is ConsumerProtocolMemberMetadata
    assert ConsumerProtocol.ASSIGNMENT is ConsumerProtocolMemberAssignment
