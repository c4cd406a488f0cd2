"""Descriptions of groups whose members are not consumers, or that sent what cannot be decoded."""

from __future__ import annotations

from uuid import UUID

import pytest

from kafka.admin.group_description import GroupDescription, _assignment, _classic, _metadata, _of_consumers
from kafka.admin.streams_groups import TaskOffset
from kafka.errors import GroupAuthorizationFailedError, GroupIdNotFoundError
from kafka.protocol.admin import DescribeGroupsResponse
from kafka.protocol.group import ConsumerGroupDescribeResponse
from kafka.protocol.streams import StreamsGroupDescribeResponse

METADATA = b"\x00\x00\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff"
ASSIGNMENT = b"\x00\x00\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x01\x00\x00\x00\x02\xff\xff\xff\xff"


def described(protocol_type: str, metadata: bytes, assignment: bytes):
    member = DescribeGroupsResponse.DescribedGroupMember(
        member_id="m", client_id="c", client_host="/h", member_metadata=metadata, member_assignment=assignment
    )
    return _classic(
        DescribeGroupsResponse.DescribedGroup(
            error_code=0,
            group_id="g",
            group_state="Stable",
            protocol_type=protocol_type,
            protocol_data="p",
            members=[member],
        )
    )


def test_what_consumers_sent_is_decoded():
    (member,) = described("consumer", METADATA, ASSIGNMENT).members
    assert member.member_metadata == {"topics": ["t"], "user_data": None}
    assert member.member_assignment["assignment"] == [("t", [2])]


def test_what_others_sent_stays_bytes():
    (member,) = described("connect", b"\x00\x01junk", b"more").members
    assert (member.member_metadata, member.member_assignment) == (b"\x00\x01junk", b"more")


@pytest.mark.parametrize("data", [b"\x00", b"\x00\x00\x7f\xff\xff\xff", b"\x00\x00\x00\x00\x00\x01\x00"])
def test_what_cannot_be_decoded_stays_bytes(data: bytes):
    assert _metadata(data, True) == data
    assert _assignment(data, True) == data


def test_a_member_without_an_assignment_has_no_partitions():
    found = _assignment(b"", True)
    assert not isinstance(found, bytes)
    assert found.assignment == []


def test_an_error_takes_the_place_of_the_members():
    assert GroupDescription.unknown("g", GroupIdNotFoundError()).group_state == "Dead"
    refused = GroupDescription.unknown("g", GroupAuthorizationFailedError())
    assert isinstance(refused["error"], GroupAuthorizationFailedError)
    with pytest.raises(GroupAuthorizationFailedError):
        refused.as_information()


@pytest.mark.parametrize(("member_type", "is_classic"), [(-1, None), (0, True), (1, False)])
def test_a_member_of_a_consumer_group_has_epochs_and_a_target(member_type: int, is_classic: bool | None):
    kind = ConsumerGroupDescribeResponse

    def assigned(*numbers: int):
        topic = kind.TopicPartitions(topic_id=UUID(int=1), topic_name="t", partitions=list(numbers))
        return kind.Assignment(topic_partitions=[topic])

    member = kind.Member(
        member_id="m",
        instance_id="i",
        rack_id="r",
        member_epoch=4,
        client_id="c",
        client_host="/h",
        subscribed_topic_names=["t"],
        assignment=assigned(0),
        target_assignment=assigned(0, 1),
        member_type=member_type,
    )
    group = _of_consumers(
        kind.DescribedGroup(
            error_code=0,
            group_id="g",
            group_state="Reconciling",
            group_epoch=5,
            assignment_epoch=4,
            assignor_name="uniform",
            members=[member],
        )
    )
    assert (group.group_epoch, group.assignment_epoch) == (5, 4)
    (found,) = group.members
    assert (found.rack_id, found.member_epoch, found.is_classic) == ("r", 4, is_classic)
    assert found.member_assignment["assignment"] == [("t", [0])]
    assert found.target_assignment is not None
    assert found.target_assignment.assignment == [("t", [0, 1])]


def test_how_far_tasks_of_streams_members_are():
    entry = StreamsGroupDescribeResponse.TaskOffset(subtopology_id="counts", partition=1, offset=7)
    assert TaskOffset.of_entry(entry) == {"subtopology_id": "counts", "partition": 1, "offset": 7}
