"""The requests of one round of a classic group, and what their responses mean. Sans-IO."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafka.errors import (
    Code,
    InconsistentGroupProtocolError,
    InvalidGroupIdError,
    InvalidSessionTimeoutError,
    for_code,
)
from kafka.protocol.group import (
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)

if TYPE_CHECKING:
    from kafka.coordinator.states import Generation
    from kafka.protocol.group import JoinGroupResponse, SyncGroupResponse
    from kafka.protocol.negotiation import ApiVersions

_LEAVES_BY_LIST_SINCE: Final = 3
# A longer reason would be refused (KIP-800).
_LONGEST_REASON: Final = 255


def as_bytes(value: Any) -> bytes:
    """Return metadata or an assignment as bytes; it is bytes, or has encode().

    >>> as_bytes(b"x"), as_bytes("x")
    (b'x', b'x')
    """
    return bytes(value) if isinstance(value, (bytes, bytearray, memoryview)) else bytes(value.encode())


def join_request(
    group_id: str,
    member_id: str,
    group_instance_id: str | None,
    *,
    session_timeout_ms: int,
    rebalance_timeout_ms: int,
    protocol_type: str,
    protocols: Iterable[tuple[str, object]],
    reason: str,
) -> JoinGroupRequest:
    """Return the request to join."""
    protocol = JoinGroupRequest.JoinGroupRequestProtocol
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_ms,
        member_id=member_id,
        group_instance_id=group_instance_id,
        protocol_type=protocol_type,
        protocols=[protocol(name=name, metadata=as_bytes(metadata)) for name, metadata in protocols],
        reason=reason[:_LONGEST_REASON] or None,
    )


def is_member_id_required(response: JoinGroupResponse) -> bool:
    """Whether the coordinator assigned the member id and the member must join again with it (KIP-394)."""
    return bool(response.error_code == Code.MEMBER_ID_REQUIRED)


def check_joined(response: JoinGroupResponse, protocol_type: str) -> None:
    """Raise the response's error, or a mismatch of the protocol."""
    if response.error_code == InvalidSessionTimeoutError.errno:
        raise InvalidSessionTimeoutError(
            "session_timeout_ms is outside of what the broker allows: group.min.session.timeout.ms (6000 unless it is "
            "configured) to group.max.session.timeout.ms (1800000, before Kafka 2.6 300000, before 0.10.1 30000)"
        )
    if response.error_code == InvalidGroupIdError.errno:
        raise InvalidGroupIdError("brokers take no members of a group without a name: group_id must not be empty")
    if response.error_code:
        raise for_code(response.error_code)("the coordinator refused the join")
    _check_type(response.protocol_type, protocol_type)


def sync_request(
    group_id: str,
    generation: Generation,
    group_instance_id: str | None,
    protocol_type: str,
    assignments: Mapping[str, bytes],
) -> SyncGroupRequest:
    """Return the request for the assignment; the leader sends the assignments of all members with it."""
    entry = SyncGroupRequest.SyncGroupRequestAssignment
    return SyncGroupRequest(
        group_id=group_id,
        generation_id=generation.generation_id,
        member_id=generation.member_id,
        group_instance_id=group_instance_id,
        protocol_type=protocol_type,
        protocol_name=generation.protocol,
        assignments=[entry(member_id=member, assignment=part) for member, part in assignments.items()],
    )


def check_synced(response: SyncGroupResponse, protocol_type: str, generation: Generation) -> None:
    """Raise the response's error, or a mismatch of the protocol."""
    if response.error_code:
        raise for_code(response.error_code)("the coordinator refused the sync")
    _check_type(response.protocol_type, protocol_type)
    if response.protocol_name not in {None, "", generation.protocol}:
        raise InconsistentGroupProtocolError(
            f"this member joined with {generation.protocol}, and the assignment was made with {response.protocol_name}"
        )


def _check_type(answered: str | None, ours: str) -> None:
    # Before JoinGroup v7 and SyncGroup v5 the response does not have it; the coordinator checks it there.
    if answered not in {None, "", ours}:
        raise InconsistentGroupProtocolError(f"the group has protocol type {answered!r}, this member uses {ours!r}")


def leave_request(group_id: str, member_id: str, reason: str, versions: ApiVersions) -> LeaveGroupRequest:
    """Return the request to leave, in the form of the broker's version."""
    if versions.version_for(LeaveGroupRequest(group_id=group_id)) < _LEAVES_BY_LIST_SINCE:
        return LeaveGroupRequest(group_id=group_id, member_id=member_id)
    member = LeaveGroupRequest.MemberIdentity
    return LeaveGroupRequest(
        group_id=group_id,
        members=[member(member_id=member_id, group_instance_id=None, reason=reason[:_LONGEST_REASON] or None)],
    )
