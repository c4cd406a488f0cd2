"""ExpireDelegationToken (40), versions 0-2: say when a token expires, or that it is over now (KIP-48).

* v1: clients expect throttling after the reply. v2: flexible.
"""

from __future__ import annotations

from kafka.broker.security.service import tokens_of
from kafka.broker.server.api import BrokerResponseError, Call
from kafka.protocol.sasl import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse


def handle(
    call: Call[ExpireDelegationTokenResponse], request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    """Set its end."""
    try:
        expires_ms = tokens_of(call).expire(bytes(request.hmac), call.principal, request.expiry_time_period_ms)
    except BrokerResponseError as error:
        return call.response(error_code=error.code, expiry_timestamp_ms=-1)
    return call.response(error_code=0, expiry_timestamp_ms=expires_ms)
