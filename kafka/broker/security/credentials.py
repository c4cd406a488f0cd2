"""The credentials that a broker keeps: SCRAM users (RFC 5802) and delegation tokens (KIP-48).

A delegation token is an id and the HMAC of it under the broker's secret; a user hands it on, and it authenticates by
SCRAM. A client that shows both is its owner, until it expires.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, NamedTuple

from kafka.errors import DelegationTokenExpiredError, DelegationTokenNotFoundError, DelegationTokenOwnerMismatchError

#: Number on the wire -> mechanism and hash.
MECHANISMS: Final = {1: ("SCRAM-SHA-256", "sha256"), 2: ("SCRAM-SHA-512", "sha512")}
DEFAULT_ITERATIONS: Final = 4096


class Credential(NamedTuple):
    """What proves that a client knows its password, and that we do."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes


def derive(hash_name: str, salt: bytes, iterations: int, salted_password: bytes) -> Credential:
    """Return the credential of a salted password.

    >>> derive("sha256", b"salt", 4096, b"salted").iterations
    4096
    """
    client_key = hmac.digest(salted_password, b"Client Key", hash_name)
    stored_key = hashlib.new(hash_name, client_key).digest()
    return Credential(salt, iterations, stored_key, hmac.digest(salted_password, b"Server Key", hash_name))


def of_password(hash_name: str, password: str, salt: bytes) -> Credential:
    """Return the credential of a password."""
    salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), salt, DEFAULT_ITERATIONS)
    return derive(hash_name, salt, DEFAULT_ITERATIONS, salted)


class Credentials:
    """The credentials of all users, by mechanism's number and user's name."""

    def __init__(self, table: MutableMapping[str, Any] | None = None) -> None:
        self._table: MutableMapping[str, Any] = {} if table is None else table

    def set(self, mechanism: int, user: str, credential: Credential) -> None:
        """Give a user a credential."""
        salt, iterations, stored_key, server_key = credential
        parts = [b64encode(part).decode() for part in (salt, stored_key, server_key)]
        self._table[f"{mechanism}/{user}"] = [iterations, *parts]

    def set_password(self, mechanism: int, user: str, password: str, salt: bytes) -> None:
        """Give a user the credential of a password."""
        self.set(mechanism, user, of_password(MECHANISMS[mechanism][1], password, salt))

    def get(self, mechanism: int, user: str) -> Credential | None:
        """Return a user's credential."""
        saved = self._table.get(f"{mechanism}/{user}")
        if saved is None:
            return None
        salt, stored_key, server_key = map(b64decode, saved[1:])
        return Credential(salt, saved[0], stored_key, server_key)

    def delete(self, mechanism: int, user: str) -> None:
        """Take a credential away."""
        del self._table[f"{mechanism}/{user}"]

    def of_user(self, user: str) -> dict[int, Credential]:
        """Return a user's credentials by mechanism."""
        found = ((number, self.get(number, user)) for number in MECHANISMS)
        return {number: credential for number, credential in found if credential is not None}

    def users(self) -> Iterator[str]:
        """Return everyone who has a credential, each once."""
        yield from dict.fromkeys(key.partition("/")[2] for key in self._table)


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
