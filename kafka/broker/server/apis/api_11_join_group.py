"""JoinGroup (11), versions 0-9: become a member of a classic group, or take part in its rebalance.

* v0: the session timeout is the rebalance timeout too. v1: a separate rebalance timeout (KIP-62).
* v2: throttle time. v3: clients expect throttling after the reply.
* v4: a new member is given its id first: MEMBER_ID_REQUIRED (KIP-394).
* v5: static members (KIP-345).
* v6: flexible.
* v7: the reply tells the protocol type; its protocol name may be null (KIP-559).
* v8: a reason for joining, which is ignored (KIP-800).
* v9: a returning static leader is instructed not to assign (KIP-814).
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from kafka.broker.groups.classic_member import JoinAsk, JoinResult
from kafka.broker.groups.service import coordinator, refusal, when_answered
from kafka.broker.server.api import Call, Code
from kafka.protocol.group import JoinGroupRequest, JoinGroupResponse

_ID_FIRST_FROM: Final = 4
_NULL_NAME_FROM: Final = 7
_SKIP_FROM: Final = 9


def handle(
    call: Call[JoinGroupResponse], request: JoinGroupRequest
) -> JoinGroupResponse | Awaitable[JoinGroupResponse]:
    """Join; the reply comes when the rebalance has gathered everyone."""
    refused = refusal(call, request.group_id)
    if refused:
        return _reply(call, JoinResult(refused, request.member_id))
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
    return when_answered(coordinator(call).join(request.group_id, ask), lambda result: _reply(call, result))


def refuse(call: Call[JoinGroupResponse], request: JoinGroupRequest, code: int) -> JoinGroupResponse:
    """Name the member as it did itself; MEMBER_ID_REQUIRED is about the id that it brings (KIP-394)."""
    member_id = request.member_id
    if code == Code.MEMBER_ID_REQUIRED and not member_id:
        member_id = f"{call.client_id}-{call.cluster.new_uuid()}"
    return _reply(call, JoinResult(code, member_id))


def _reply(call: Call[JoinGroupResponse], result: JoinResult) -> JoinGroupResponse:
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
