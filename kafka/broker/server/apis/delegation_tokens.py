"""Delegation tokens (KIP-48)."""

from __future__ import annotations

from typing import Final

from kafka.broker.security.credentials import Token, Tokens
from kafka.broker.security.service import tokens_of
from kafka.broker.server.api import BrokerResponseError, Call, Operation, Resource
from kafka.errors import DelegationTokenAuthorizationFailedError, InvalidPrincipalTypeError
from kafka.protocol.sasl import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

_OWNER_FROM: Final = 3
_CREATE_TOKENS: Final = 13
_USER: Final = "User"
_REQUESTER_FROM: Final = 3
_DESCRIBE_TOKENS: Final = 14


def create_delegation_token(
    call: Call[CreateDelegationTokenResponse], request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    """CreateDelegationToken (38), versions 0-3: make a token that others can authenticate with (KIP-48).

    * v1: clients expect throttling after the reply. v2: flexible.
    * v3: for another owner, by who may (KIP-373).
    """
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


def renew_delegation_token(
    call: Call[RenewDelegationTokenResponse], request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    """RenewDelegationToken (39), versions 0-2: make a token live longer (KIP-48).

    * v1: clients expect throttling after the reply. v2: flexible.
    """
    try:
        expires_ms = tokens_of(call).renew(bytes(request.hmac), call.principal, request.renew_period_ms)
    except BrokerResponseError as error:
        return call.response(error_code=error.code, expiry_timestamp_ms=-1)
    return call.response(error_code=0, expiry_timestamp_ms=expires_ms)


def expire_delegation_token(
    call: Call[ExpireDelegationTokenResponse], request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    """ExpireDelegationToken (40), versions 0-2: say when a token expires, or that it is over now (KIP-48).

    * v1: clients expect throttling after the reply. v2: flexible.
    """
    try:
        expires_ms = tokens_of(call).expire(bytes(request.hmac), call.principal, request.expiry_time_period_ms)
    except BrokerResponseError as error:
        return call.response(error_code=error.code, expiry_timestamp_ms=-1)
    return call.response(error_code=0, expiry_timestamp_ms=expires_ms)


def describe_delegation_token(
    call: Call[DescribeDelegationTokenResponse], request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    """DescribeDelegationToken (41), versions 0-3: the tokens that a client may see (KIP-48).

    * v1: clients expect throttling after the reply. v2: flexible.
    * v3: the requester of a token (KIP-373).
    """
    tokens = tokens_of(call)
    owners = None
    if request.owners is not None:
        owners = {f"{each.principal_type}:{each.principal_name}" for each in request.owners}
    found = [
        _describe(call, tokens, token)
        for token in tokens.alive()
        if (owners is None or token.owner in owners)
        and (
            token.may_renew(call.principal)
            or call.allows(Operation.DESCRIBE, Resource.DELEGATION_TOKEN, token.token_id)
            or call.allows(_DESCRIBE_TOKENS, Resource.USER, token.owner)
        )
    ]
    return call.response(error_code=0, tokens=found)


def _describe(
    call: Call[DescribeDelegationTokenResponse], tokens: Tokens, token: Token
) -> DescribeDelegationTokenResponse.DescribedDelegationToken:
    shown = call.response.DescribedDelegationToken(
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.max_ms,
        token_id=token.token_id,
        hmac=tokens.hmac_of(token),
        renewers=[(kind, name) for kind, _, name in (each.partition(":") for each in token.renewers)],
    )
    shown.principal_type, _, shown.principal_name = token.owner.partition(":")
    if call.version >= _REQUESTER_FROM:
        requester = token.requester.partition(":")
        shown.token_requester_principal_type, _, shown.token_requester_principal_name = requester
    return shown
