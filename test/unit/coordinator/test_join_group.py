"""The requests of a round, and the errors in their responses."""

from __future__ import annotations

from typing import Any

import pytest

from kafka.coordinator import join_group
from kafka.coordinator.states import Generation
from kafka.errors import (
    InconsistentGroupProtocolError,
    InvalidGroupIdError,
    InvalidSessionTimeoutError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from kafka.protocol.group import JoinGroupResponse, SyncGroupResponse

MEMBER = Generation(5, "m", "range")


class Versions:
    """A broker whose newest version of each API is this one."""

    def __init__(self, version: int) -> None:
        self.version = version

    def version_for(self, _request: Any) -> int:
        return self.version


def test_a_join_offers_the_protocols_in_order() -> None:
    request = join_group.join_request(
        "g",
        "m",
        "static",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=20_000,
        protocol_type="consumer",
        protocols=[("range", b"1"), ("sticky", b"2")],
        reason="x" * 1000,
    )
    assert [(each.name, each.metadata) for each in request.protocols] == [("range", b"1"), ("sticky", b"2")]
    assert (request.group_instance_id, request.session_timeout_ms) == ("static", 10_000)
    assert len(request.reason) == 255


def test_a_response_without_an_error_is_accepted() -> None:
    response = JoinGroupResponse(protocol_type="consumer", protocol_name="range", leader="m", member_id="m", members=[])
    join_group.check_joined(response, "consumer")
    assert not join_group.is_member_id_required(response)
    join_group.check_synced(SyncGroupResponse(protocol_type="consumer", protocol_name="range"), "consumer", MEMBER)


def test_a_member_id_is_repeated_where_it_is_required() -> None:
    assert join_group.is_member_id_required(JoinGroupResponse(error_code=79))


def test_a_session_outside_the_limits_names_the_limits() -> None:
    with pytest.raises(InvalidSessionTimeoutError, match=r"group\.min\.session\.timeout\.ms"):
        join_group.check_joined(JoinGroupResponse(error_code=26), "consumer")


def test_a_group_without_a_name_says_what_to_set() -> None:
    with pytest.raises(InvalidGroupIdError, match="group_id must not be empty"):
        join_group.check_joined(JoinGroupResponse(error_code=24), "consumer")


@pytest.mark.parametrize(("code", "error"), [(25, UnknownMemberIdError), (27, RebalanceInProgressError)])
def test_other_errors_are_raised(code: int, error: type[Exception]) -> None:
    with pytest.raises(error):
        join_group.check_joined(JoinGroupResponse(error_code=code), "consumer")
    with pytest.raises(error):
        join_group.check_synced(SyncGroupResponse(error_code=code), "consumer", MEMBER)


def test_a_group_of_another_type_is_refused() -> None:
    with pytest.raises(InconsistentGroupProtocolError, match="type 'connect', this member uses 'consumer'"):
        join_group.check_joined(JoinGroupResponse(protocol_type="connect"), "consumer")


def test_an_assignment_of_another_protocol_is_refused() -> None:
    with pytest.raises(InconsistentGroupProtocolError, match="joined with range"):
        join_group.check_synced(SyncGroupResponse(protocol_type="consumer", protocol_name="sticky"), "consumer", MEMBER)


@pytest.mark.parametrize(("version", "by_list"), [(2, False), (3, True), (5, True)])
def test_leaving_has_the_form_of_the_broker_s_version(version: int, by_list: bool) -> None:
    request = join_group.leave_request("g", "m", "closed", Versions(version))  # type: ignore[arg-type]
    assert [member.member_id for member in request.members or ()] == (["m"] if by_list else [])
    assert (request.member_id == "m") is not by_list
