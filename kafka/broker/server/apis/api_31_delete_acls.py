"""DeleteAcls (31), versions 0-3: remove from access control lists.

* v0: literal names only. v1: prefixes too (KIP-290); clients expect throttling after the reply.
* v2: flexible. v3: the resource type User.
"""

from __future__ import annotations

from kafka.broker.security.acls import AccessControl
from kafka.broker.security.service import access_control, may_alter
from kafka.broker.server.api import Call, Code
from kafka.broker.server.apis.api_29_describe_acls import NO_AUTHORIZER, filter_of
from kafka.errors import InvalidRequestError
from kafka.protocol.acl import DeleteAclsRequest, DeleteAclsResponse


def handle(call: Call[DeleteAclsResponse], request: DeleteAclsRequest) -> DeleteAclsResponse:
    """Remove what each filter means."""
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
