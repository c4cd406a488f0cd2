"""Access control lists.

Written by tools/generate_protocol.py from Kafka's message specs; do not edit.
"""

from __future__ import annotations

from kafka.protocol.api import Request, Response
from kafka.protocol.fields import Array, field
from kafka.protocol.struct import Struct
from kafka.protocol.types import Int8, Int16, Int32, String


class DescribeAclsRequest(Request["DescribeAclsResponse"], api_key=29, versions="0-3", flexible="2+"):
    """Lists the access control lists that match a filter."""

    resource_type_filter: int = field(Int8, "0+")
    resource_name_filter: str | None = field(String, "0+", nullable="0+")
    pattern_type_filter: int = field(Int8, "1+", default=3)
    principal_filter: str | None = field(String, "0+", nullable="0+")
    host_filter: str | None = field(String, "0+", nullable="0+")
    operation: int = field(Int8, "0+")
    permission_type: int = field(Int8, "0+")


class DescribeAclsResponse(Response, api_key=29, versions="0-3", flexible="2+"):
    class AclDescription(Struct):
        principal: str = field(String, "0+")
        host: str = field(String, "0+")
        operation: int = field(Int8, "0+")
        permission_type: int = field(Int8, "0+")

    class DescribeAclsResource(Struct):
        resource_type: int = field(Int8, "0+")
        resource_name: str = field(String, "0+")
        pattern_type: int = field(Int8, "1+", default=3)
        acls: list[DescribeAclsResponse.AclDescription] = field(Array("AclDescription"), "0+")

    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", nullable="0+")
    resources: list[DescribeAclsResource] = field(Array(DescribeAclsResource), "0+")


class CreateAclsRequest(Request["CreateAclsResponse"], api_key=30, versions="0-3", flexible="2+"):
    """Creates access control lists."""

    class AclCreation(Struct):
        resource_type: int = field(Int8, "0+")
        resource_name: str = field(String, "0+")
        resource_pattern_type: int = field(Int8, "1+", default=3)
        principal: str = field(String, "0+")
        host: str = field(String, "0+")
        operation: int = field(Int8, "0+")
        permission_type: int = field(Int8, "0+")

    creations: list[AclCreation] = field(Array(AclCreation), "0+")


class CreateAclsResponse(Response, api_key=30, versions="0-3", flexible="2+"):
    class AclCreationResult(Struct):
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "0+", nullable="0+")

    throttle_time_ms: int = field(Int32, "0+")
    results: list[AclCreationResult] = field(Array(AclCreationResult), "0+")


class DeleteAclsRequest(Request["DeleteAclsResponse"], api_key=31, versions="0-3", flexible="2+"):
    """Deletes the access control lists that match a filter."""

    class DeleteAclsFilter(Struct):
        resource_type_filter: int = field(Int8, "0+")
        resource_name_filter: str | None = field(String, "0+", nullable="0+")
        pattern_type_filter: int = field(Int8, "1+", default=3)
        principal_filter: str | None = field(String, "0+", nullable="0+")
        host_filter: str | None = field(String, "0+", nullable="0+")
        operation: int = field(Int8, "0+")
        permission_type: int = field(Int8, "0+")

    filters: list[DeleteAclsFilter] = field(Array(DeleteAclsFilter), "0+")


class DeleteAclsResponse(Response, api_key=31, versions="0-3", flexible="2+"):
    class DeleteAclsMatchingAcl(Struct):
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "0+", nullable="0+")
        resource_type: int = field(Int8, "0+")
        resource_name: str = field(String, "0+")
        pattern_type: int = field(Int8, "1+", default=3)
        principal: str = field(String, "0+")
        host: str = field(String, "0+")
        operation: int = field(Int8, "0+")
        permission_type: int = field(Int8, "0+")

    class DeleteAclsFilterResult(Struct):
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "0+", nullable="0+")
        matching_acls: list[DeleteAclsResponse.DeleteAclsMatchingAcl] = field(Array("DeleteAclsMatchingAcl"), "0+")

    throttle_time_ms: int = field(Int32, "0+")
    filter_results: list[DeleteAclsFilterResult] = field(Array(DeleteAclsFilterResult), "0+")
