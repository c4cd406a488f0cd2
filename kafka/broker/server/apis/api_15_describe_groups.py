"""DescribeGroups (15), versions 0-6: members of classic groups and what they were assigned.

* v1: throttle time. v2: clients expect throttling after the reply.
* v3: which operations the client may do. v4: instance ids (KIP-345).
* v5: flexible.
* v6: a group that is not there is an error with a message, no longer "Dead" (KIP-1043).
"""

from __future__ import annotations

from typing import Final

from kafka.broker.groups.classic_member import Member, State
from kafka.broker.groups.service import coordinator, message_of, refusal
from kafka.broker.server.api import Call, Operation
from kafka.broker.server.call import group_operations
from kafka.errors import GroupIdNotFoundError
from kafka.protocol.admin import DescribeGroupsRequest, DescribeGroupsResponse

_NOT_FOUND_FROM: Final = 6


def handle(call: Call[DescribeGroupsResponse], request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    """Describe each."""
    return call.response(groups=[_describe(call, request, group_id) for group_id in request.groups])


def _describe(
    call: Call[DescribeGroupsResponse], request: DescribeGroupsRequest, group_id: str
) -> DescribeGroupsResponse.DescribedGroup:
    described = call.response.DescribedGroup(group_id=group_id)
    described.error_code = refusal(call, group_id, Operation.DESCRIBE)
    if described.error_code:
        return described
    if request.include_authorized_operations:
        described.authorized_operations = group_operations(call, group_id)
    try:
        group = coordinator(call).classic(group_id)
    except GroupIdNotFoundError as error:
        described.group_state = State.DEAD.value
        if call.version >= _NOT_FOUND_FROM:
            described.error_code = error.code
            described.error_message = message_of(error)
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
