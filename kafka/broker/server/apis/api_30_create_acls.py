"""CreateAcls (30), versions 0-3: add to access control lists.

* v0: literal names only. v1: prefixes too (KIP-290); clients expect throttling after the reply.
* v2: flexible. v3: the resource type User.
"""

from __future__ import annotations

from kafka.broker.security.acls import AccessControl, Binding, Pattern
from kafka.broker.security.service import access_control, may_alter
from kafka.broker.server.api import Call, Code
from kafka.broker.server.apis.api_29_describe_acls import NO_AUTHORIZER
from kafka.errors import InvalidRequestError
from kafka.protocol.acl import CreateAclsRequest, CreateAclsResponse


def handle(call: Call[CreateAclsResponse], request: CreateAclsRequest) -> CreateAclsResponse:
    """Add each that makes sense."""
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
