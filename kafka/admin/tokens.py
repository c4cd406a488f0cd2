"""Delegation tokens: create, renew, expire and describe them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from kafka.admin.calls import Calls, call
from kafka.admin.results import Result
from kafka.errors import IllegalArgumentError
from kafka.protocol.sasl import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)

_OWNERS_SINCE: Final = 3


class DelegationToken(Result):
    """A token: `token_id` and `hmac` are its user name and password. Times are milliseconds since 1970."""

    __slots__ = ()
    _hidden: ClassVar = frozenset({"hmac"})
    token_id: str
    hmac: bytes
    owner: str
    requester: str
    renewers: list[str]
    issue_timestamp: int
    expiry_timestamp: int
    max_timestamp: int


class Tokens(Calls):
    """The calls about delegation tokens; brokers refuse them to clients that use a token, or no authentication."""

    @call
    async def create_delegation_token(
        self,
        renewers: Iterable[str | tuple[str, str]] = (),
        max_lifetime_ms: int = -1,
        owner: str | tuple[str, str] | None = None,
        timeout_ms: float | None = None,
    ) -> DelegationToken:
        """Create a token for this client's user (Kafka 1.1), or for another `owner` (3.3).

        Principals are written ``User:name``. `renewers` may renew it beside its owner; -1 for `max_lifetime_ms` is the
        broker's ``delegation.token.max.lifetime.ms``.
        """
        deadline = self._core.deadline(timeout_ms)
        wanted = [_principal(one) for one in renewers]
        chosen = None if owner is None else _principal(owner)
        kind = CreateDelegationTokenRequest
        await self._core.require(deadline, kind.API_KEY, 0, "create_delegation_token()", "1.1")
        if chosen is not None:
            await self._core.require(deadline, kind.API_KEY, _OWNERS_SINCE, "a token for another owner", "3.3")
        more = {} if chosen is None else {"owner_principal_type": chosen[0], "owner_principal_name": chosen[1]}
        request = kind(
            renewers=[kind.CreatableRenewers(principal_type=one[0], principal_name=one[1]) for one in wanted],
            max_lifetime_ms=max_lifetime_ms,
            **more,
        )
        response = await self._core.ask(request, deadline, "create_delegation_token()", checked=True)
        own = f"{response.principal_type}:{response.principal_name}"
        requester = response.token_requester_principal_name
        return DelegationToken(
            token_id=response.token_id,
            hmac=bytes(response.hmac),
            owner=own,
            requester=f"{response.token_requester_principal_type}:{requester}" if requester else own,
            renewers=[":".join(one) for one in wanted],
            issue_timestamp=response.issue_timestamp_ms,
            expiry_timestamp=response.expiry_timestamp_ms,
            max_timestamp=response.max_timestamp_ms,
        )

    @call
    async def renew_delegation_token(
        self, hmac: bytes, renew_period_ms: int = -1, timeout_ms: float | None = None
    ) -> int:
        """Renew a token; return when it expires. -1 is the broker's ``delegation.token.expiry.time.ms``."""
        return await self._change_token(
            self._core.deadline(timeout_ms),
            RenewDelegationTokenRequest(hmac=bytes(hmac), renew_period_ms=renew_period_ms),
            "renew_delegation_token()",
        )

    @call
    async def expire_delegation_token(
        self, hmac: bytes, expiry_time_period_ms: int = -1, timeout_ms: float | None = None
    ) -> int:
        """Have a token expire after a time, at once for -1; return when."""
        return await self._change_token(
            self._core.deadline(timeout_ms),
            ExpireDelegationTokenRequest(hmac=bytes(hmac), expiry_time_period_ms=expiry_time_period_ms),
            "expire_delegation_token()",
        )

    async def _change_token(
        self, deadline: float, request: RenewDelegationTokenRequest | ExpireDelegationTokenRequest, what: str
    ) -> int:
        await self._core.require(deadline, request.API_KEY, 0, what, "1.1")
        response = await self._core.ask(request, deadline, what, checked=True)
        return int(response.expiry_timestamp_ms)

    @call
    async def describe_delegation_token(
        self, owners: Iterable[str | tuple[str, str]] | None = None, timeout_ms: float | None = None
    ) -> list[DelegationToken]:
        """Return the tokens of owners, all that this client's user may see for None (Kafka 1.1)."""
        deadline = self._core.deadline(timeout_ms)
        wanted = None if owners is None else [_principal(one) for one in owners]
        kind = DescribeDelegationTokenRequest
        await self._core.require(deadline, kind.API_KEY, 0, "describe_delegation_token()", "1.1")
        owner = kind.DescribeDelegationTokenOwner
        request = kind(
            owners=None if wanted is None else [owner(principal_type=one[0], principal_name=one[1]) for one in wanted]
        )
        response = await self._core.ask(request, deadline, "describe_delegation_token()", checked=True)
        return [_token(token) for token in response.tokens]


def _token(token: DescribeDelegationTokenResponse.DescribedDelegationToken) -> DelegationToken:
    own = f"{token.principal_type}:{token.principal_name}"
    requester = token.token_requester_principal_name
    return DelegationToken(
        token_id=token.token_id,
        hmac=bytes(token.hmac),
        owner=own,
        requester=f"{token.token_requester_principal_type}:{requester}" if requester else own,
        renewers=[f"{one.principal_type}:{one.principal_name}" for one in token.renewers],
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiry_timestamp,
        max_timestamp=token.max_timestamp,
    )


def _principal(given: str | tuple[str, str]) -> tuple[str, str]:
    parts = given.split(":", 1) if isinstance(given, str) else given
    if not isinstance(parts, (list, tuple)) or len(parts) != 2 or not all(isinstance(one, str) for one in parts):
        raise IllegalArgumentError(f"a principal is a type and a name, as 'User:alice', not {given!r}")
    return parts[0], parts[1]
