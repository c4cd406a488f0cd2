"""Users: quotas and SCRAM credentials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from kafka.broker.cluster import quotas
from kafka.broker.security.credentials import MECHANISMS, derive
from kafka.broker.security.service import may_alter, security
from kafka.broker.server.api import CLUSTER_NAME, BrokerResponseError, Call, Code, Operation, Resource
from kafka.errors import (
    DuplicateResourceError,
    ResourceNotFoundError,
    UnacceptableCredentialError,
    UnsupportedSaslMechanismError,
)
from kafka.protocol.users import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

_Deletion: TypeAlias = AlterUserScramCredentialsRequest.ScramCredentialDeletion
_Upsertion: TypeAlias = AlterUserScramCredentialsRequest.ScramCredentialUpsertion
#: As Kafka has it: RFC 5802's minimum, and a bound on what a client would have to hash.
_ITERATIONS: Final = range(4096, 16385)


def describe_client_quotas(
    call: Call[DescribeClientQuotasResponse], request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """DescribeClientQuotas (48), versions 0-1: the quotas that match (KIP-546).

    * v0: components to match exactly (0), by default (1) or whatever the name (2). v1: flexible.
    """
    call.require(Operation.DESCRIBE_CONFIGS, Resource.CLUSTER)
    components = [(one.entity_type, one.match_type, one.match) for one in request.components]
    found = quotas.matching(call.cluster, components, strict=request.strict)
    return call.response(error_message="", entries=[(list(entity), sorted(values.items())) for entity, values in found])


def alter_client_quotas(
    call: Call[AlterClientQuotasResponse], request: AlterClientQuotasRequest
) -> AlterClientQuotasResponse:
    """AlterClientQuotas (49), versions 0-1: set or remove quotas (KIP-546). They are kept, not enforced.

    * v0: entities and operations; validate only. v1: flexible.
    """
    allowed = call.allows(Operation.ALTER_CONFIGS, Resource.CLUSTER, CLUSTER_NAME)
    entries = []
    for entry in request.entries:
        # Of a type that is named twice the last one counts, as in Kafka; so types alone are sorted by.
        entity = {one.entity_type: one.entity_name for one in entry.entity}
        code, message = 0, None
        if not allowed:
            code = Code.CLUSTER_AUTHORIZATION_FAILED
        else:
            ops = [(op.key, None if op.remove else op.value) for op in entry.ops]
            try:
                quotas.alter(call.cluster, tuple(sorted(entity.items())), ops, validate_only=request.validate_only)
            except BrokerResponseError as error:
                code, message = error.code, str(error.args[0])
        entries.append((code, message, list(entity.items())))
    return call.response(entries=entries)


def refuse_alter_client_quotas(
    call: Call[AlterClientQuotasResponse], request: AlterClientQuotasRequest, code: int
) -> AlterClientQuotasResponse | None:
    """Give each entity the error."""
    entries = [(code, None, [(one.entity_type, one.entity_name) for one in entry.entity]) for entry in request.entries]
    return call.response(entries=entries) if entries else None


def describe_user_scram_credentials(
    call: Call[DescribeUserScramCredentialsResponse], request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """DescribeUserScramCredentials (50), version 0: which SCRAM mechanisms users have (KIP-554)."""
    call.require(Operation.DESCRIBE, Resource.CLUSTER)
    credentials = security(call).credentials
    asked = Counter(user.name for user in request.users) if request.users else Counter(credentials.users())
    return call.response(
        error_code=0, error_message="", results=[_describe(call, user, times) for user, times in asked.items()]
    )


def refuse_describe_user_scram_credentials(
    call: Call[DescribeUserScramCredentialsResponse], request: DescribeUserScramCredentialsRequest, code: int
) -> DescribeUserScramCredentialsResponse:
    """Give users their own errors; any other to the whole reply and, as Kafka does, to a nameless user for each."""
    is_of_users = code in {Code.RESOURCE_NOT_FOUND, Code.DUPLICATE_RESOURCE}
    make = call.response.DescribeUserScramCredentialsResult
    return call.response(
        error_code=0 if is_of_users else code,
        error_message=None,
        results=[make(user=user.name if is_of_users else "", error_code=code) for user in request.users or ()],
    )


def _describe(
    call: Call[DescribeUserScramCredentialsResponse], user: str, times: int
) -> DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult:
    make = call.response.DescribeUserScramCredentialsResult
    if times > 1:
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
        return make(user=user, error_code=Code.DUPLICATE_RESOURCE, error_message=message)
    found = security(call).credentials.of_user(user)
    if not found:
        message = f"Attempt to describe a user credential that does not exist: {user}"
        return make(user=user, error_code=Code.RESOURCE_NOT_FOUND, error_message=message)
    infos = [(number, credential.iterations) for number, credential in found.items()]
    return make(user=user, error_code=0, error_message="", credential_infos=infos)


def alter_user_scram_credentials(
    call: Call[AlterUserScramCredentialsResponse], request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    """AlterUserScramCredentials (51), version 0: give and take SCRAM credentials (KIP-554).

    Change each user's; where one change of a user is wrong, none of that user's is made.
    """
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


def refuse_alter_user_scram_credentials(
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
