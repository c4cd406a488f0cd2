"""DescribeUserScramCredentials (50), version 0: which SCRAM mechanisms users have (KIP-554)."""

from __future__ import annotations

from collections import Counter

from kafka.broker.security.service import may_describe, security
from kafka.broker.server.api import Call, Code
from kafka.protocol.users import DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse


def handle(
    call: Call[DescribeUserScramCredentialsResponse], request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Describe each user, or all."""
    if not may_describe(call):
        return refuse(call, request, Code.CLUSTER_AUTHORIZATION_FAILED)
    credentials = security(call).credentials
    asked = Counter(user.name for user in request.users) if request.users else Counter(credentials.users())
    return call.response(
        error_code=0, error_message="", results=[_describe(call, user, times) for user, times in asked.items()]
    )


def refuse(
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
