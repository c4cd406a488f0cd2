"""Heartbeat (12), versions 0-4: a member of a classic group is alive, and learns of rebalances.

* v1: throttle time. v2: clients expect throttling after the reply.
* v3: static members (KIP-345).
* v4: flexible.
"""

from __future__ import annotations

from kafka.broker.groups.service import coordinator, refusal
from kafka.broker.server.api import BrokerResponseError, Call
from kafka.protocol.group import HeartbeatRequest, HeartbeatResponse


def handle(call: Call[HeartbeatResponse], request: HeartbeatRequest) -> HeartbeatResponse:
    """Record that the member is alive; the reply has the error that it must know."""
    refused = refusal(call, request.group_id)
    if refused:
        return call.response(error_code=refused)
    try:
        coordinator(call).heartbeat(
            request.group_id, request.member_id, request.group_instance_id, request.generation_id
        )
    except BrokerResponseError as error:
        return call.response(error_code=error.code)
    return call.response(error_code=0)
