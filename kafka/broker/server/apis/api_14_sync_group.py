"""SyncGroup (14), versions 0-5: the leader of a classic group hands out the assignment, the others ask for theirs.

* v1: throttle time. v2: clients expect throttling after the reply.
* v3: static members (KIP-345).
* v4: flexible.
* v5: protocol type and name must be said and must be the group's (KIP-559).
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from kafka.broker.groups.classic_member import SyncAsk, SyncResult
from kafka.broker.groups.service import coordinator, refusal, when_answered
from kafka.broker.server.api import Call, Code
from kafka.protocol.group import SyncGroupRequest, SyncGroupResponse

_PROTOCOL_FROM: Final = 5


def handle(
    call: Call[SyncGroupResponse], request: SyncGroupRequest
) -> SyncGroupResponse | Awaitable[SyncGroupResponse]:
    """Synchronise; the reply comes when the leader has handed out the assignment."""
    refused = refusal(call, request.group_id)
    if not refused and call.version >= _PROTOCOL_FROM and None in (request.protocol_type, request.protocol_name):
        refused = Code.INCONSISTENT_GROUP_PROTOCOL
    if refused:
        return _reply(call, SyncResult(refused))
    ask = SyncAsk(
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        request.protocol_type,
        request.protocol_name,
        tuple((each.member_id, bytes(each.assignment)) for each in request.assignments),
    )
    return when_answered(coordinator(call).sync(request.group_id, ask), lambda result: _reply(call, result))


def _reply(call: Call[SyncGroupResponse], result: SyncResult) -> SyncGroupResponse:
    return call.response(
        error_code=result.error_code,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name,
        assignment=result.assignment,
    )
