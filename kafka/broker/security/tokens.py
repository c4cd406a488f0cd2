"""Delegation tokens (KIP-48): credentials that a user hands on, and that authenticate by SCRAM.

A token is an id and the HMAC of it under the broker's secret. A client that shows both is its owner, until it expires.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from kafka.errors import (
    DelegationTokenExpiredError,
    DelegationTokenNotFoundError,
    DelegationTokenOwnerMismatchError,
)

__all__ = ["Token", "Tokens"]


@dataclass(frozen=True)
class Token:
    """One token; principals are as ``User:alice``, times are milliseconds since the epoch."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int

    def may_renew(self, principal: str) -> bool:
        """Whether a principal may make it live longer, or shorter."""
        return principal in (self.owner, self.requester, *self.renewers)


class Tokens:
    """All tokens.

    >>> tokens = Tokens(b"secret", {}, lambda: 1000, lambda: "id", lifetime_ms=50, max_lifetime_ms=100)
    >>> tokens.create("User:ann", "User:ann", [], -1).expires_ms
    1050
    """

    def __init__(
        self,
        secret: bytes,
        table: MutableMapping[str, Any],
        now_ms: Callable[[], int],
        new_id: Callable[[], str],
        *,
        lifetime_ms: int,
        max_lifetime_ms: int,
    ) -> None:
        self._secret = secret
        self._table = table
        self._now_ms = now_ms
        self._new_id = new_id
        self._lifetime_ms = lifetime_ms
        self._max_lifetime_ms = max_lifetime_ms

    def create(self, owner: str, requester: str, renewers: Iterable[str], max_lifetime_ms: int) -> Token:
        """Make a token; a negative lifetime means the longest."""
        now = self._now_ms()
        longest = self._max_lifetime_ms if max_lifetime_ms <= 0 else min(max_lifetime_ms, self._max_lifetime_ms)
        token = Token(
            self._new_id(),
            owner,
            requester,
            tuple(renewers),
            now,
            min(now + self._lifetime_ms, now + longest),
            now + longest,
        )
        self._save(token)
        return token

    def hmac_of(self, token: Token) -> bytes:
        """Return what proves the possession of a token."""
        return hmac.digest(self._secret, token.token_id.encode(), "sha512")

    def renew(self, proof: bytes, principal: str, period_ms: int) -> int:
        """Make a token live longer; return when it expires."""
        token = self._owned(proof, principal)
        period = self._lifetime_ms if period_ms < 0 else period_ms
        return self._save(replace(token, expires_ms=min(token.max_ms, self._now_ms() + period)))

    def expire(self, proof: bytes, principal: str, period_ms: int) -> int:
        """Set when a token expires, a negative period means now; return when that is."""
        token = self._owned(proof, principal)
        if period_ms < 0:
            del self._table[token.token_id]
            return self._now_ms()
        return self._save(replace(token, expires_ms=min(token.max_ms, self._now_ms() + period_ms)))

    def alive(self) -> list[Token]:
        """Return the tokens that have not expired; forget the others."""
        now = self._now_ms()
        for token_id in [key for key, saved in self._table.items() if saved["expires_ms"] < now]:
            del self._table[token_id]
        return [_read(saved) for saved in self._table.values()]

    def find(self, token_id: str) -> tuple[Token, str] | None:
        """Return a token and its password, for clients that authenticate with it."""
        saved = self._table.get(token_id)
        if saved is None or saved["expires_ms"] < self._now_ms():
            return None
        token = _read(saved)
        return token, b64encode(self.hmac_of(token)).decode()

    def _owned(self, proof: bytes, principal: str) -> Token:
        tokens = map(_read, self._table.values())
        token = next((each for each in tokens if hmac.compare_digest(self.hmac_of(each), proof)), None)
        if token is None:
            raise DelegationTokenNotFoundError
        if not token.may_renew(principal):
            raise DelegationTokenOwnerMismatchError
        if token.expires_ms < self._now_ms():
            raise DelegationTokenExpiredError
        return token

    def _save(self, token: Token) -> int:
        self._table[token.token_id] = {**asdict(token), "renewers": list(token.renewers)}
        return token.expires_ms


def _read(saved: Mapping[str, Any]) -> Token:
    return Token(**{**saved, "renewers": tuple(saved["renewers"])})
