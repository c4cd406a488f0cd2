"""DescribeAcls (29), versions 0-3: list access control lists.

* v0: literal names only. v1: prefixes too (KIP-290); clients expect throttling after the reply.
* v2: flexible. v3: the resource type User.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka.broker.security.acls import Filter, Pattern
from kafka.broker.security.service import access_control, may_describe
from kafka.broker.server.api import Call, Code
from kafka.errors import InvalidRequestError
from kafka.protocol.acl import DescribeAclsRequest, DescribeAclsResponse

if TYPE_CHECKING:
    from kafka.protocol.acl import DeleteAclsRequest

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


def handle(call: Call[DescribeAclsResponse], request: DescribeAclsRequest) -> DescribeAclsResponse:
    """List the bindings that match the filter, by resource."""
    access = access_control(call)
    if access is None:
        # Brokers answer this one themselves, in other words than the controller has for the changes.
        message = NO_AUTHORIZER.replace(".", " on the broker")
        return call.response(error_code=Code.SECURITY_DISABLED, error_message=message)
    if not may_describe(call):
        return call.response(error_code=Code.CLUSTER_AUTHORIZATION_FAILED, error_message=None)
    resources: dict[tuple[int, str, int], list[tuple[str, str, int, int]]] = {}
    try:
        for each in access.find(filter_of(call.version, request)):
            if call.version < 1 and each.pattern_type != Pattern.LITERAL:
                continue
            entries = resources.setdefault(each[:3], [])
            entries.append((each.principal, each.host, each.operation, each.permission))
    except InvalidRequestError as error:
        return call.response(error_code=error.code, error_message=str(error.args[0]))
    make = call.response.DescribeAclsResource
    found = [
        make(resource_type=kind, resource_name=name, pattern_type=pattern, acls=entries)
        for (kind, name, pattern), entries in resources.items()
    ]
    return call.response(error_code=0, error_message=None, resources=found)
