"""Users that authenticate with SCRAM: their credentials."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from enum import IntEnum
from typing import ClassVar, Final

from kafka.acl import Named
from kafka.admin.calls import Calls, call
from kafka.admin.results import Outcome, Result, error_of, raise_first
from kafka.errors import IllegalArgumentError, KafkaError
from kafka.protocol.users import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
)

_SALT_BYTES: Final = 24


class ScramMechanism(Named, IntEnum):
    """A mechanism of SCRAM."""

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def hash_name(self) -> str:
        """The hash of the mechanism, as `hashlib` names it."""
        if self is ScramMechanism.UNKNOWN:
            raise IllegalArgumentError("the mechanism UNKNOWN has no hash")
        return self.name.removeprefix("SCRAM_").replace("_", "").lower()


class UserScramCredentialDeletion:
    """The credential of a user that is to be deleted.

    >>> UserScramCredentialDeletion("alice", "SCRAM-SHA-256")
    UserScramCredentialDeletion('alice', SCRAM_SHA_256)
    """

    __slots__ = ("mechanism", "user")

    def __init__(self, user: str, mechanism: ScramMechanism | str) -> None:
        self.user = user
        found = ScramMechanism.build_from(mechanism)
        if found is ScramMechanism.UNKNOWN:
            raise IllegalArgumentError("the mechanism must be SCRAM_SHA_256 or SCRAM_SHA_512, not UNKNOWN")
        self.mechanism = found

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.user!r}, {self.mechanism.name})"


class UserScramCredentialUpsertion(UserScramCredentialDeletion):
    """A password for a user, new or changed. It is salted at once, and not kept.

    >>> UserScramCredentialUpsertion("alice", "SCRAM-SHA-512", "secret")
    UserScramCredentialUpsertion('alice', SCRAM_SHA_512, iterations=4096)
    """

    __slots__ = ("iterations", "salt", "salted_password")

    DEFAULT_ITERATIONS: ClassVar[int] = 4096

    def __init__(
        self,
        user: str,
        mechanism: ScramMechanism | str,
        password: str | bytes,
        iterations: int | None = None,
        salt: bytes | None = None,
    ) -> None:
        super().__init__(user, mechanism)
        if not password:
            raise IllegalArgumentError(f"the password of user {user!r} must not be empty")
        if iterations is None:
            iterations = self.DEFAULT_ITERATIONS
        if not 1 <= iterations < 2**31:
            raise IllegalArgumentError(f"iterations must be at least 1 and below 2**31, not {iterations}")
        self.iterations = iterations
        self.salt = os.urandom(_SALT_BYTES) if salt is None else bytes(salt)
        secret = password.encode() if isinstance(password, str) else bytes(password)
        self.salted_password = hashlib.pbkdf2_hmac(self.mechanism.hash_name, secret, self.salt, iterations)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.user!r}, {self.mechanism.name}, iterations={self.iterations})"


class CredentialInfo(Result):
    """A credential of a user: the mechanism, and how often the password is hashed."""

    __slots__ = ()
    mechanism: ScramMechanism
    iterations: int


class UserScramCredentials(Result):
    """The credentials of a user, or the error."""

    __slots__ = ()
    error: KafkaError | None
    credential_infos: list[CredentialInfo]

    @property
    def ok(self) -> bool:
        """Whether the credentials are known."""
        return self.error is None


class Users(Calls):
    """The calls about users of SCRAM."""

    @call
    async def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None, timeout_ms: float | None = None
    ) -> dict[str, UserScramCredentials]:
        """Return which credentials users have, all users for None (Kafka 2.7); never passwords or salts.

        >>> from kafka import KafkaAdminClient
        >>> from kafka.broker import Broker
        >>> secret = UserScramCredentialUpsertion("alice", "SCRAM-SHA-256", "secret")
        >>> with Broker() as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...     changed = admin.alter_user_scram_credentials([secret])
        ...     found = admin.describe_user_scram_credentials()
        >>> found["alice"].credential_infos
        [CredentialInfo(mechanism=<ScramMechanism.SCRAM_SHA_256: 1>, iterations=4096)]
        """
        deadline = self._core.deadline(timeout_ms)
        if isinstance(users, str):
            raise TypeError(f"users must be a list of names, not {users!r}; for one user, a list with one element")
        wanted = None if users is None else list(dict.fromkeys(users))
        kind = DescribeUserScramCredentialsRequest
        await self._core.require(deadline, kind.API_KEY, 0, "describe_user_scram_credentials()", "2.7")
        request = kind(users=None if wanted is None else [kind.UserName(name=user) for user in wanted])
        response = await self._core.ask(request, deadline, "describe_user_scram_credentials()", checked=True)
        return {
            entry.user: UserScramCredentials(
                error=error_of(entry.error_code, f"user {entry.user!r}", entry.error_message),
                credential_infos=[
                    CredentialInfo(mechanism=ScramMechanism.known(info.mechanism), iterations=info.iterations)
                    for info in entry.credential_infos
                ],
            )
            for entry in response.results
        }

    @call
    async def alter_user_scram_credentials(
        self,
        alterations: Iterable[UserScramCredentialDeletion],
        timeout_ms: float | None = None,
        *,
        raise_errors: bool = True,
    ) -> dict[str, Outcome | None]:
        """Set or delete credentials of users (Kafka 2.7).

        The first error of a user is raised; with ``raise_errors=False`` the result has None or the text of the error
        for each, which is a `str` with the exception in its ``error``.
        """
        deadline = self._core.deadline(timeout_ms)
        wanted = list(alterations)
        for one in wanted:
            if not isinstance(one, UserScramCredentialDeletion):
                raise TypeError(
                    "alterations must be UserScramCredentialUpsertion or UserScramCredentialDeletion objects, "
                    f"not {type(one).__name__}"
                )
        kind = AlterUserScramCredentialsRequest
        await self._core.require(deadline, kind.API_KEY, 0, "alter_user_scram_credentials()", "2.7")

        def request(users: list[str]) -> AlterUserScramCredentialsRequest:
            some = [one for one in wanted if one.user in users]
            return kind(
                deletions=[
                    kind.ScramCredentialDeletion(name=one.user, mechanism=int(one.mechanism))
                    for one in some
                    if not isinstance(one, UserScramCredentialUpsertion)
                ],
                upsertions=[
                    kind.ScramCredentialUpsertion(
                        name=one.user,
                        mechanism=int(one.mechanism),
                        iterations=one.iterations,
                        salt=one.salt,
                        salted_password=one.salted_password,
                    )
                    for one in some
                    if isinstance(one, UserScramCredentialUpsertion)
                ],
            )

        def read(response: AlterUserScramCredentialsResponse) -> dict[str, Outcome]:
            return {
                entry.user: Outcome(error_of(entry.error_code, f"user {entry.user!r}", entry.error_message))
                for entry in response.results
            }

        users = list(dict.fromkeys(one.user for one in wanted))
        answers = await self._core.ask_controller(users, request, read, deadline, "alter_user_scram_credentials()")
        found = {user: None if outcome.ok else outcome for user, outcome in answers.items()}
        if raise_errors:
            raise_first((outcome.error for outcome in found.values() if outcome is not None), found)
        return found
