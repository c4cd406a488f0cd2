"""Access control lists."""

from __future__ import annotations

from kafka.broker.security.acls import AccessControl, Binding, Filter, Pattern
from kafka.broker.security.service import access_control, may_alter
from kafka.broker.server.api import Call, Code, Operation, Resource
from kafka.errors import InvalidRequestError, SecurityDisabledError
from kafka.protocol.acl import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)

NO_AUTHORIZER = "No Authorizer is configured."


def filter_of(version: int, asked: DescribeAclsRequest | DeleteAclsRequest.DeleteAclsFilter) -> Filter:
    """Return a request's filter; before v1 there were literal names only."""
    pattern = asked.pattern_type_filter if version >= 1 else Pattern.LITERAL
    return Filter(
        asked.resource_type_filter,
        asked.resource_name_filter,
        pattern,
        asked.principal_filter,
        asked.host_filter,
        asked.operation,
        asked.permission_type,
    )


def describe_acls(call: Call[DescribeAclsResponse], request: DescribeAclsRequest) -> DescribeAclsResponse:
    """DescribeAcls (29), versions 0-3: list access control lists.

    * v0: literal names only. v1: prefixes too (KIP-290); clients expect throttling after the reply.
    * v2: flexible. v3: the resource type User.
    """
    access = access_control(call)
    if access is None:
        # Brokers answer this one themselves, in other words than the controller has for the changes.
        raise SecurityDisabledError(NO_AUTHORIZER.replace(".", " on the broker"))
    call.require(Operation.DESCRIBE, Resource.CLUSTER)
    resources: dict[tuple[int, str, int], list[tuple[str, str, int, int]]] = {}
    for each in access.find(filter_of(call.version, request)):
        if call.version >= 1 or each.pattern_type == Pattern.LITERAL:
            entries = resources.setdefault(each[:3], [])
            entries.append((each.principal, each.host, each.operation, each.permission))
    make = call.response.DescribeAclsResource
    found = [
        make(resource_type=kind, resource_name=name, pattern_type=pattern, acls=entries)
        for (kind, name, pattern), entries in resources.items()
    ]
    return call.response(error_code=0, error_message=None, resources=found)


def create_acls(call: Call[CreateAclsResponse], request: CreateAclsRequest) -> CreateAclsResponse:
    """CreateAcls (30), versions 0-3: add to access control lists.

    * v0: literal names only. v1: prefixes too (KIP-290); clients expect throttling after the reply.
    * v2: flexible. v3: the resource type User.
    """
    access = access_control(call)
    if access is None:
        refused = (Code.SECURITY_DISABLED, NO_AUTHORIZER)
        return call.response(results=[refused for _ in request.creations])
    if not may_alter(call):
        return call.response(results=[(Code.CLUSTER_AUTHORIZATION_FAILED, None) for _ in request.creations])
    return call.response(results=[_create(call, access, each) for each in request.creations])


def _create(
    call: Call[CreateAclsResponse], access: AccessControl, asked: CreateAclsRequest.AclCreation
) -> tuple[int, str | None]:
    pattern = asked.resource_pattern_type if call.version >= 1 else Pattern.LITERAL
    binding = Binding(
        asked.resource_type,
        asked.resource_name,
        pattern,
        asked.principal,
        asked.host,
        asked.operation,
        asked.permission_type,
    )
    try:
        access.create(binding)
    except InvalidRequestError as error:
        return error.code, str(error.args[0])
    return Code.NONE, None


def delete_acls(call: Call[DeleteAclsResponse], request: DeleteAclsRequest) -> DeleteAclsResponse:
    """DeleteAcls (31), versions 0-3: remove from access control lists.

    * v0: literal names only. v1: prefixes too (KIP-290); clients expect throttling after the reply.
    * v2: flexible. v3: the resource type User.
    """
    access = access_control(call)
    if access is None:
        refused: tuple[int, str, list[object]] = (Code.SECURITY_DISABLED, NO_AUTHORIZER, [])
        return call.response(filter_results=[refused for _ in request.filters])
    if not may_alter(call):
        return call.response(filter_results=[(Code.CLUSTER_AUTHORIZATION_FAILED, None, []) for _ in request.filters])
    return call.response(filter_results=[_delete(call, access, each) for each in request.filters])


def _delete(
    call: Call[DeleteAclsResponse], access: AccessControl, asked: DeleteAclsRequest.DeleteAclsFilter
) -> DeleteAclsResponse.DeleteAclsFilterResult:
    try:
        gone = access.delete(filter_of(call.version, asked))
    except InvalidRequestError as error:
        return call.response.DeleteAclsFilterResult(error_code=error.code, error_message=str(error.args[0]))
    make = call.response.DeleteAclsMatchingAcl
    matching = [
        make(
            resource_type=each.resource_type,
            resource_name=each.resource_name,
            pattern_type=each.pattern_type,
            principal=each.principal,
            host=each.host,
            operation=each.operation,
            permission_type=each.permission,
            error_code=0,
            error_message=None,
        )
        for each in gone
    ]
    return call.response.DeleteAclsFilterResult(error_code=0, error_message=None, matching_acls=matching)
