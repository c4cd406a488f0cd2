"""CreateDelegationToken (38), versions 0-3: make a token that others can authenticate with (KIP-48).

* v1: clients expect throttling after the reply. v2: flexible.
* v3: for another owner, by who may (KIP-373).
"""

from __future__ import annotations

from typing import Final

from kafka.broker.security.service import tokens_of
from kafka.broker.server.api import BrokerResponseError, Call, Resource
from kafka.errors import DelegationTokenAuthorizationFailedError, InvalidPrincipalTypeError
from kafka.protocol.sasl import CreateDelegationTokenRequest, CreateDelegationTokenResponse

_OWNER_FROM: Final = 3
_CREATE_TOKENS: Final = 13
_USER: Final = "User"


def handle(
    call: Call[CreateDelegationTokenResponse], request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    """Make one."""
    owner = call.principal
    if call.version >= _OWNER_FROM and request.owner_principal_name:
        owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
    reply = call.response()
    reply.principal_type, _, reply.principal_name = owner.partition(":")
    if call.version >= _OWNER_FROM:
        requester = call.principal.partition(":")
        reply.token_requester_principal_type, _, reply.token_requester_principal_name = requester
    try:
        tokens = tokens_of(call)
        if any(each.principal_type != _USER for each in request.renewers):
            raise InvalidPrincipalTypeError
        if owner != call.principal and not call.allows(_CREATE_TOKENS, Resource.USER, owner):
            raise DelegationTokenAuthorizationFailedError
        renewers = [f"{each.principal_type}:{each.principal_name}" for each in request.renewers]
        token = tokens.create(owner, call.principal, renewers, request.max_lifetime_ms)
    except BrokerResponseError as error:
        reply.error_code = error.code
        reply.issue_timestamp_ms = reply.expiry_timestamp_ms = reply.max_timestamp_ms = -1
        return reply
    reply.issue_timestamp_ms, reply.expiry_timestamp_ms = token.issued_ms, token.expires_ms
    reply.max_timestamp_ms, reply.token_id, reply.hmac = token.max_ms, token.token_id, tokens.hmac_of(token)
    return reply
