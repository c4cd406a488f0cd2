"""RenewDelegationToken (39), versions 0-2: make a token live longer (KIP-48).

* v1: clients expect throttling after the reply. v2: flexible.
"""

from __future__ import annotations

from kafka.broker.security.service import tokens_of
from kafka.broker.server.api import BrokerResponseError, Call
from kafka.protocol.sasl import RenewDelegationTokenRequest, RenewDelegationTokenResponse


def handle(
    call: Call[RenewDelegationTokenResponse], request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    """Renew it."""
    try:
        expires_ms = tokens_of(call).renew(bytes(request.hmac), call.principal, request.renew_period_ms)
    except BrokerResponseError as error:
        return call.response(error_code=error.code, expiry_timestamp_ms=-1)
    return call.response(error_code=0, expiry_timestamp_ms=expires_ms)
