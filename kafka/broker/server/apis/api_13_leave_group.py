"""LeaveGroup (13), versions 0-5: members leave a classic group.

* v0: one member. v1: throttle time. v2: clients expect throttling after the reply.
* v3: several members, also static ones by their instance ids (KIP-345).
* v4: flexible.
* v5: a reason, which is ignored (KIP-800).
"""

from __future__ import annotations

from typing import Final

from kafka.broker.groups.service import coordinator, refusal
from kafka.broker.server.api import BrokerResponseError, Call
from kafka.protocol.group import LeaveGroupRequest, LeaveGroupResponse

_BATCH_FROM: Final = 3


def handle(call: Call[LeaveGroupResponse], request: LeaveGroupRequest) -> LeaveGroupResponse:
    """Let them go."""
    refused = refusal(call, request.group_id)
    if refused:
        return call.response(error_code=refused)
    batched = call.version >= _BATCH_FROM
    leaving: list[tuple[str, str | None]] = (
        [(member.member_id, member.group_instance_id) for member in request.members]
        if batched
        else [(request.member_id, None)]
    )
    try:
        codes = coordinator(call).leave(request.group_id, leaving)
    except BrokerResponseError as error:
        return call.response(error_code=error.code)
    if not batched:
        return call.response(error_code=codes[0])
    members = [
        call.response.MemberResponse(member_id=member_id, group_instance_id=instance_id, error_code=code)
        for (member_id, instance_id), code in zip(leaving, codes, strict=True)
    ]
    return call.response(error_code=0, members=members)
