"""AlterUserScramCredentials (51), version 0: give and take SCRAM credentials (KIP-554)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from kafka.broker.security.credentials import MECHANISMS, derive
from kafka.broker.security.service import may_alter, security
from kafka.broker.server.api import BrokerResponseError, Call, Code
from kafka.errors import (
    DuplicateResourceError,
    ResourceNotFoundError,
    UnacceptableCredentialError,
    UnsupportedSaslMechanismError,
)
from kafka.protocol.users import AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse

_Deletion: TypeAlias = AlterUserScramCredentialsRequest.ScramCredentialDeletion
_Upsertion: TypeAlias = AlterUserScramCredentialsRequest.ScramCredentialUpsertion

#: As Kafka has it: RFC 5802's minimum, and a bound on what a client would have to hash.
_ITERATIONS: Final = range(4096, 16385)


def handle(
    call: Call[AlterUserScramCredentialsResponse], request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    """Change each user's; where one change of a user is wrong, none of that user's is made."""
    changes: list[_Deletion | _Upsertion] = [*request.deletions, *request.upsertions]
    if not may_alter(call):
        return _refuse_each(call, changes, Code.CLUSTER_AUTHORIZATION_FAILED)
    failed: dict[str, BrokerResponseError] = {}
    # As in Kafka, not even for two mechanisms.
    for user in [name for name, times in Counter(each.name for each in changes).items() if times > 1]:
        failed[user] = DuplicateResourceError("A user credential cannot be altered twice in the same request")
    for change in request.deletions:
        _note(failed, change.name, _check_deletion, call, change)
    for wanted in request.upsertions:
        _note(failed, wanted.name, _check_upsertion, wanted)
    credentials = security(call).credentials
    for change in request.deletions:
        if change.name not in failed:
            credentials.delete(change.mechanism, change.name)
    for wanted in request.upsertions:
        if wanted.name not in failed:
            hash_name = MECHANISMS[wanted.mechanism][1]
            made = derive(hash_name, bytes(wanted.salt), wanted.iterations, bytes(wanted.salted_password))
            credentials.set(wanted.mechanism, wanted.name, made)
    return call.response(results=[_result(user, failed.get(user)) for user in _users(changes)])


def refuse(
    call: Call[AlterUserScramCredentialsResponse], request: AlterUserScramCredentialsRequest, code: int
) -> AlterUserScramCredentialsResponse | None:
    """Give each user the error, whether of a deletion or an upsertion."""
    changes: list[_Deletion | _Upsertion] = [*request.deletions, *request.upsertions]
    reply = _refuse_each(call, changes, code)
    return reply if reply.results else None


def _users(changes: Iterable[_Deletion | _Upsertion]) -> dict[str, None]:
    return dict.fromkeys(change.name for change in changes)


def _refuse_each(
    call: Call[AlterUserScramCredentialsResponse], changes: Iterable[_Deletion | _Upsertion], code: int
) -> AlterUserScramCredentialsResponse:
    return call.response(results=[(user, code, None) for user in _users(changes)])


def _result(user: str, error: BrokerResponseError | None) -> tuple[str, int, str | None]:
    return (user, 0, None) if error is None else (user, error.code, str(error.args[0]))


def _note(failed: dict[str, BrokerResponseError], user: str, check: Callable[..., None], *args: object) -> None:
    try:
        check(*args)
    except BrokerResponseError as error:
        failed.setdefault(user, error)


def _check_name(change: _Deletion | _Upsertion) -> None:
    if not change.name:
        raise UnacceptableCredentialError("Username must not be empty")
    if change.mechanism not in MECHANISMS:
        raise UnsupportedSaslMechanismError("Unknown SCRAM mechanism")


def _check_deletion(call: Call[AlterUserScramCredentialsResponse], change: _Deletion) -> None:
    _check_name(change)
    if security(call).credentials.get(change.mechanism, change.name) is None:
        raise ResourceNotFoundError("Attempt to delete a user credential that does not exist")


def _check_upsertion(change: _Upsertion) -> None:
    _check_name(change)
    if change.iterations < _ITERATIONS.start:
        raise UnacceptableCredentialError("Too few iterations")
    if change.iterations >= _ITERATIONS.stop:
        raise UnacceptableCredentialError("Too many iterations")
