"""Quotas and SCRAM credentials.

Written by tools/generate_protocol.py from Kafka's message specs; do not edit.
"""

from __future__ import annotations

from kafka.protocol.api import Request, Response
from kafka.protocol.fields import Array, field
from kafka.protocol.struct import Struct
from kafka.protocol.types import Boolean, Bytes, Float64, Int8, Int16, Int32, String


class DescribeClientQuotasRequest(Request["DescribeClientQuotasResponse"], api_key=48, versions="0-1", flexible="1+"):
    """Lists client quotas."""

    class ComponentData(Struct):
        entity_type: str = field(String, "0+")
        match_type: int = field(Int8, "0+")
        match: str | None = field(String, "0+", nullable="0+")

    components: list[ComponentData] = field(Array(ComponentData), "0+")
    strict: bool = field(Boolean, "0+")


class DescribeClientQuotasResponse(Response, api_key=48, versions="0-1", flexible="1+"):
    class EntityData(Struct):
        entity_type: str = field(String, "0+")
        entity_name: str | None = field(String, "0+", nullable="0+")

    class ValueData(Struct):
        key: str = field(String, "0+")
        value: float = field(Float64, "0+")

    class EntryData(Struct):
        entity: list[DescribeClientQuotasResponse.EntityData] = field(Array("EntityData"), "0+")
        values: list[DescribeClientQuotasResponse.ValueData] = field(Array("ValueData"), "0+")

    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", nullable="0+")
    entries: list[EntryData] | None = field(Array(EntryData), "0+", nullable="0+")


class AlterClientQuotasRequest(Request["AlterClientQuotasResponse"], api_key=49, versions="0-1", flexible="1+"):
    """Sets or removes client quotas."""

    class EntityData(Struct):
        entity_type: str = field(String, "0+")
        entity_name: str | None = field(String, "0+", nullable="0+")

    class OpData(Struct):
        key: str = field(String, "0+")
        value: float = field(Float64, "0+")
        remove: bool = field(Boolean, "0+")

    class EntryData(Struct):
        entity: list[AlterClientQuotasRequest.EntityData] = field(Array("EntityData"), "0+")
        ops: list[AlterClientQuotasRequest.OpData] = field(Array("OpData"), "0+")

    entries: list[EntryData] = field(Array(EntryData), "0+")
    validate_only: bool = field(Boolean, "0+")


class AlterClientQuotasResponse(Response, api_key=49, versions="0-1", flexible="1+"):
    class EntityData(Struct):
        entity_type: str = field(String, "0+")
        entity_name: str | None = field(String, "0+", nullable="0+")

    class EntryData(Struct):
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "0+", nullable="0+")
        entity: list[AlterClientQuotasResponse.EntityData] = field(Array("EntityData"), "0+")

    throttle_time_ms: int = field(Int32, "0+")
    entries: list[EntryData] = field(Array(EntryData), "0+")


class DescribeUserScramCredentialsRequest(
    Request["DescribeUserScramCredentialsResponse"], api_key=50, versions="0", flexible="0+"
):
    """Lists which SCRAM credentials users have."""

    class UserName(Struct):
        name: str = field(String, "0+")

    users: list[UserName] | None = field(Array(UserName), "0+", nullable="0+")


class DescribeUserScramCredentialsResponse(Response, api_key=50, versions="0", flexible="0+"):
    class CredentialInfo(Struct):
        mechanism: int = field(Int8, "0+")
        iterations: int = field(Int32, "0+")

    class DescribeUserScramCredentialsResult(Struct):
        user: str = field(String, "0+")
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "0+", nullable="0+")
        credential_infos: list[DescribeUserScramCredentialsResponse.CredentialInfo] = field(
            Array("CredentialInfo"), "0+"
        )

    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", nullable="0+")
    results: list[DescribeUserScramCredentialsResult] = field(Array(DescribeUserScramCredentialsResult), "0+")


class AlterUserScramCredentialsRequest(
    Request["AlterUserScramCredentialsResponse"], api_key=51, versions="0", flexible="0+"
):
    """Sets or deletes SCRAM credentials of users."""

    class ScramCredentialDeletion(Struct):
        name: str = field(String, "0+")
        mechanism: int = field(Int8, "0+")

    class ScramCredentialUpsertion(Struct):
        name: str = field(String, "0+")
        mechanism: int = field(Int8, "0+")
        iterations: int = field(Int32, "0+")
        salt: bytes = field(Bytes, "0+", secret=True)
        salted_password: bytes = field(Bytes, "0+", secret=True)

    deletions: list[ScramCredentialDeletion] = field(Array(ScramCredentialDeletion), "0+")
    upsertions: list[ScramCredentialUpsertion] = field(Array(ScramCredentialUpsertion), "0+")


class AlterUserScramCredentialsResponse(Response, api_key=51, versions="0", flexible="0+"):
    class AlterUserScramCredentialsResult(Struct):
        user: str = field(String, "0+")
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "0+", nullable="0+")

    throttle_time_ms: int = field(Int32, "0+")
    results: list[AlterUserScramCredentialsResult] = field(Array(AlterUserScramCredentialsResult), "0+")
