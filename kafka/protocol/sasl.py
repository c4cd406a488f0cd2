"""Authentication and delegation tokens.

Written by tools/generate_protocol.py from Kafka's message specs; do not edit.
"""

from __future__ import annotations

from kafka.protocol.api import Request, Response
from kafka.protocol.fields import Array, field
from kafka.protocol.struct import Struct
from kafka.protocol.types import Bytes, Int16, Int32, Int64, String


class SaslHandshakeRequest(Request["SaslHandshakeResponse"], api_key=17, versions="0-1", flexible="none"):
    """Chooses a SASL mechanism."""

    mechanism: str = field(String, "0+")


class SaslHandshakeResponse(Response, api_key=17, versions="0-1", flexible="none"):
    error_code: int = field(Int16, "0+")
    mechanisms: list[str] = field(Array(String), "0+")


class SaslAuthenticateRequest(Request["SaslAuthenticateResponse"], api_key=36, versions="0-2", flexible="2+"):
    """Carries the messages of a SASL mechanism."""

    auth_bytes: bytes = field(Bytes, "0+", secret=True)


class SaslAuthenticateResponse(Response, api_key=36, versions="0-2", flexible="2+"):
    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", nullable="0+")
    auth_bytes: bytes = field(Bytes, "0+", secret=True)
    session_lifetime_ms: int = field(Int64, "1+", ignorable=True)


class CreateDelegationTokenRequest(Request["CreateDelegationTokenResponse"], api_key=38, versions="0-3", flexible="2+"):
    """Creates a delegation token."""

    class CreatableRenewers(Struct):
        principal_type: str = field(String, "0+")
        principal_name: str = field(String, "0+")

    owner_principal_type: str | None = field(String, "3+", nullable="3+")
    owner_principal_name: str | None = field(String, "3+", nullable="3+")
    renewers: list[CreatableRenewers] = field(Array(CreatableRenewers), "0+")
    max_lifetime_ms: int = field(Int64, "0+")


class CreateDelegationTokenResponse(Response, api_key=38, versions="0-3", flexible="2+"):
    error_code: int = field(Int16, "0+")
    principal_type: str = field(String, "0+")
    principal_name: str = field(String, "0+")
    token_requester_principal_type: str = field(String, "3+")
    token_requester_principal_name: str = field(String, "3+")
    issue_timestamp_ms: int = field(Int64, "0+")
    expiry_timestamp_ms: int = field(Int64, "0+")
    max_timestamp_ms: int = field(Int64, "0+")
    token_id: str = field(String, "0+")
    hmac: bytes = field(Bytes, "0+", secret=True)
    throttle_time_ms: int = field(Int32, "0+")


class RenewDelegationTokenRequest(Request["RenewDelegationTokenResponse"], api_key=39, versions="0-2", flexible="2+"):
    """Makes a delegation token live longer."""

    hmac: bytes = field(Bytes, "0+", secret=True)
    renew_period_ms: int = field(Int64, "0+")


class RenewDelegationTokenResponse(Response, api_key=39, versions="0-2", flexible="2+"):
    error_code: int = field(Int16, "0+")
    expiry_timestamp_ms: int = field(Int64, "0+")
    throttle_time_ms: int = field(Int32, "0+")


class ExpireDelegationTokenRequest(Request["ExpireDelegationTokenResponse"], api_key=40, versions="0-2", flexible="2+"):
    """Changes when a delegation token expires."""

    hmac: bytes = field(Bytes, "0+", secret=True)
    expiry_time_period_ms: int = field(Int64, "0+")


class ExpireDelegationTokenResponse(Response, api_key=40, versions="0-2", flexible="2+"):
    error_code: int = field(Int16, "0+")
    expiry_timestamp_ms: int = field(Int64, "0+")
    throttle_time_ms: int = field(Int32, "0+")


class DescribeDelegationTokenRequest(
    Request["DescribeDelegationTokenResponse"], api_key=41, versions="0-3", flexible="2+"
):
    """Lists delegation tokens."""

    class DescribeDelegationTokenOwner(Struct):
        principal_type: str = field(String, "0+")
        principal_name: str = field(String, "0+")

    owners: list[DescribeDelegationTokenOwner] | None = field(Array(DescribeDelegationTokenOwner), "0+", nullable="0+")


class DescribeDelegationTokenResponse(Response, api_key=41, versions="0-3", flexible="2+"):
    class DescribedDelegationTokenRenewer(Struct):
        principal_type: str = field(String, "0+")
        principal_name: str = field(String, "0+")

    class DescribedDelegationToken(Struct):
        principal_type: str = field(String, "0+")
        principal_name: str = field(String, "0+")
        token_requester_principal_type: str = field(String, "3+")
        token_requester_principal_name: str = field(String, "3+")
        issue_timestamp: int = field(Int64, "0+")
        expiry_timestamp: int = field(Int64, "0+")
        max_timestamp: int = field(Int64, "0+")
        token_id: str = field(String, "0+")
        hmac: bytes = field(Bytes, "0+", secret=True)
        renewers: list[DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer] = field(
            Array("DescribedDelegationTokenRenewer"), "0+"
        )

    error_code: int = field(Int16, "0+")
    tokens: list[DescribedDelegationToken] = field(Array(DescribedDelegationToken), "0+")
    throttle_time_ms: int = field(Int32, "0+")
