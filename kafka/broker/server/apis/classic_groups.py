"""Members of classic groups, and the groups' description."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from kafka.broker.groups.classic_group import ClassicGroup
from kafka.broker.groups.classic_member import JoinAsk, JoinResult, Member, State, SyncAsk, SyncResult
from kafka.broker.groups.service import check_group, coordinator, when_answered
from kafka.broker.server.api import BrokerResponseError, Call, Code, Operation
from kafka.broker.server.call import group_operations
from kafka.errors import GroupIdNotFoundError, InconsistentGroupProtocolError
from kafka.protocol.admin import DescribeGroupsRequest, DescribeGroupsResponse
from kafka.protocol.group import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

_ID_FIRST_FROM: Final = 4
_NULL_NAME_FROM: Final = 7
_SKIP_FROM: Final = 9
_BATCH_FROM: Final = 3
_PROTOCOL_FROM: Final = 5
_NOT_FOUND_FROM: Final = 6


def join_group(
    call: Call[JoinGroupResponse], request: JoinGroupRequest
) -> JoinGroupResponse | Awaitable[JoinGroupResponse]:
    """JoinGroup (11), versions 0-9: become a member of a classic group, or take part in its rebalance.

    * v0: the session timeout is the rebalance timeout too. v1: a separate rebalance timeout (KIP-62).
    * v2: throttle time. v3: clients expect throttling after the reply.
    * v4: a new member is given its id first: MEMBER_ID_REQUIRED (KIP-394).
    * v5: static members (KIP-345).
    * v6: flexible.
    * v7: the reply tells the protocol type; its protocol name may be null (KIP-559).
    * v8: a reason for joining, which is ignored (KIP-800).
    * v9: a returning static leader is instructed not to assign (KIP-814).

    Join; the reply comes when the rebalance has gathered everyone.
    """
    check_group(call, request.group_id)
    rebalance_ms = request.rebalance_timeout_ms if call.version >= 1 else request.session_timeout_ms
    ask = JoinAsk(
        request.member_id,
        request.group_instance_id,
        call.client_id,
        f"/{call.host}",
        request.session_timeout_ms / 1000,
        rebalance_ms / 1000,
        request.protocol_type,
        [(protocol.name, bytes(protocol.metadata)) for protocol in request.protocols],
        needs_id_first=call.version >= _ID_FIRST_FROM,
        can_skip_assignment=call.version >= _SKIP_FROM,
    )
    return when_answered(coordinator(call).join(request.group_id, ask), lambda result: _joined(call, result))


def refuse_join_group(call: Call[JoinGroupResponse], request: JoinGroupRequest, code: int) -> JoinGroupResponse:
    """Name the member as it did itself; MEMBER_ID_REQUIRED is about the id that it brings (KIP-394)."""
    member_id = request.member_id
    if code == Code.MEMBER_ID_REQUIRED and not member_id:
        member_id = f"{call.client_id}-{call.cluster.new_uuid()}"
    return _joined(call, JoinResult(code, member_id))


def _joined(call: Call[JoinGroupResponse], result: JoinResult) -> JoinGroupResponse:
    no_name = None if call.version >= _NULL_NAME_FROM else ""
    reply = call.response(
        error_code=result.error_code,
        generation_id=result.generation,
        protocol_type=result.protocol_type,
        protocol_name=no_name if result.protocol_name is None else result.protocol_name,
        leader=result.leader,
        member_id=result.member_id,
        members=[
            call.response.JoinGroupResponseMember(member_id=member_id, group_instance_id=instance_id, metadata=metadata)
            for member_id, instance_id, metadata in result.members
        ],
    )
    if call.version >= _SKIP_FROM:
        reply.skip_assignment = result.skip_assignment
    return reply


def heartbeat(call: Call[HeartbeatResponse], request: HeartbeatRequest) -> HeartbeatResponse:
    """Heartbeat (12), versions 0-4: a member of a classic group is alive, and learns of rebalances.

    * v1: throttle time. v2: clients expect throttling after the reply.
    * v3: static members (KIP-345).
    * v4: flexible.
    """
    check_group(call, request.group_id)
    coordinator(call).heartbeat(request.group_id, request.member_id, request.group_instance_id, request.generation_id)
    return call.response(error_code=0)


def leave_group(call: Call[LeaveGroupResponse], request: LeaveGroupRequest) -> LeaveGroupResponse:
    """LeaveGroup (13), versions 0-5: members leave a classic group.

    * v0: one member. v1: throttle time. v2: clients expect throttling after the reply.
    * v3: several members, also static ones by their instance ids (KIP-345).
    * v4: flexible.
    * v5: a reason, which is ignored (KIP-800).
    """
    check_group(call, request.group_id)
    batched = call.version >= _BATCH_FROM
    leaving: list[tuple[str, str | None]] = (
        [(member.member_id, member.group_instance_id) for member in request.members]
        if batched
        else [(request.member_id, None)]
    )
    codes = coordinator(call).leave(request.group_id, leaving)
    if not batched:
        return call.response(error_code=codes[0])
    members = [
        call.response.MemberResponse(member_id=member_id, group_instance_id=instance_id, error_code=code)
        for (member_id, instance_id), code in zip(leaving, codes, strict=True)
    ]
    return call.response(error_code=0, members=members)


def sync_group(
    call: Call[SyncGroupResponse], request: SyncGroupRequest
) -> SyncGroupResponse | Awaitable[SyncGroupResponse]:
    """SyncGroup (14), versions 0-5: the leader of a classic group hands out the assignment, the others ask for theirs.

    * v1: throttle time. v2: clients expect throttling after the reply.
    * v3: static members (KIP-345).
    * v4: flexible.
    * v5: protocol type and name must be said and must be the group's (KIP-559).

    Synchronise; the reply comes when the leader has handed out the assignment.
    """
    check_group(call, request.group_id)
    if call.version >= _PROTOCOL_FROM and None in (request.protocol_type, request.protocol_name):
        raise InconsistentGroupProtocolError
    ask = SyncAsk(
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        request.protocol_type,
        request.protocol_name,
        tuple((each.member_id, bytes(each.assignment)) for each in request.assignments),
    )
    return when_answered(coordinator(call).sync(request.group_id, ask), lambda result: _synced(call, result))


def _synced(call: Call[SyncGroupResponse], result: SyncResult) -> SyncGroupResponse:
    return call.response(
        error_code=result.error_code,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name,
        assignment=result.assignment,
    )


def describe_groups(call: Call[DescribeGroupsResponse], request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    """DescribeGroups (15), versions 0-6: members of classic groups and what they were assigned.

    * v1: throttle time. v2: clients expect throttling after the reply.
    * v3: which operations the client may do. v4: instance ids (KIP-345).
    * v5: flexible.
    * v6: a group that is not there is an error with a message, no longer "Dead" (KIP-1043).
    """
    return call.response(groups=[_describe(call, request, group_id) for group_id in request.groups])


def _describe(
    call: Call[DescribeGroupsResponse], request: DescribeGroupsRequest, group_id: str
) -> DescribeGroupsResponse.DescribedGroup:
    described = call.response.DescribedGroup(group_id=group_id)
    try:
        check_group(call, group_id, Operation.DESCRIBE)
    except BrokerResponseError as error:
        described.error_code = error.code
        return described
    if request.include_authorized_operations:
        described.authorized_operations = group_operations(call, group_id)
    try:
        group = coordinator(call).find(ClassicGroup, group_id)
    except GroupIdNotFoundError as error:
        described.group_state = State.DEAD.value
        if call.version >= _NOT_FOUND_FROM:
            described.error_code = error.code
            described.error_message = error.args[0]
        return described
    # Members' metadata mean something only while the group has agreed on a protocol.
    protocol = group.protocol_name if group.state is State.STABLE else None
    described.group_state = group.state.value
    described.protocol_type = group.protocol_type or ""
    described.protocol_data = protocol or ""
    described.members = [_member(call, member, protocol) for member in group.roster]
    return described


def _member(
    call: Call[DescribeGroupsResponse], member: Member, protocol: str | None
) -> DescribeGroupsResponse.DescribedGroupMember:
    return call.response.DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=b"" if protocol is None else member.metadata(protocol),
        member_assignment=member.assignment,
    )
