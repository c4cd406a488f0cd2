"""DescribeDelegationToken (41), versions 0-3: the tokens that a client may see (KIP-48).

* v1: clients expect throttling after the reply. v2: flexible.
* v3: the requester of a token (KIP-373).
"""

from __future__ import annotations

from typing import Final

from kafka.broker.security.credentials import Token, Tokens
from kafka.broker.security.service import tokens_of
from kafka.broker.server.api import BrokerResponseError, Call, Operation, Resource
from kafka.protocol.sasl import DescribeDelegationTokenRequest, DescribeDelegationTokenResponse

_REQUESTER_FROM: Final = 3
_DESCRIBE_TOKENS: Final = 14


def handle(
    call: Call[DescribeDelegationTokenResponse], request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    """List them."""
    try:
        tokens = tokens_of(call)
    except BrokerResponseError as error:
        return call.response(error_code=error.code)
    owners = None
    if request.owners is not None:
        owners = {f"{each.principal_type}:{each.principal_name}" for each in request.owners}
    found = [
        _describe(call, tokens, token)
        for token in tokens.alive()
        if (owners is None or token.owner in owners) and _may_see(call, token)
    ]
    return call.response(error_code=0, tokens=found)


def _may_see(call: Call[DescribeDelegationTokenResponse], token: Token) -> bool:
    return (
        token.may_renew(call.principal)
        or call.allows(Operation.DESCRIBE, Resource.DELEGATION_TOKEN, token.token_id)
        or call.allows(_DESCRIBE_TOKENS, Resource.USER, token.owner)
    )


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
