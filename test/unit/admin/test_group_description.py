"""Descriptions of groups whose members are not consumers, or that sent what cannot be decoded."""

from __future__ import annotations

import pytest

from kafka.admin.group_description import _assignment, _classic, _metadata, _unknown
from kafka.errors import GroupAuthorizationFailedError, GroupIdNotFoundError
from kafka.protocol.admin import DescribeGroupsResponse

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
    assert _unknown("g", GroupIdNotFoundError()).group_state == "Dead"
    refused = _unknown("g", GroupAuthorizationFailedError())
    assert isinstance(refused["error"], GroupAuthorizationFailedError)
    with pytest.raises(GroupAuthorizationFailedError):
        refused.as_information()
