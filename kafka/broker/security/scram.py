"""Credentials of SCRAM users, which a broker keeps instead of passwords (RFC 5802)."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Iterator, MutableMapping
from typing import Any, Final, NamedTuple

__all__ = ["MECHANISMS", "Credential", "Credentials", "derive", "of_password"]

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
