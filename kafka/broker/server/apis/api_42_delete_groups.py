"""DeleteGroups (42), versions 0-2: delete empty groups with their offsets.

* v1: clients expect throttling after the reply.
* v2: flexible.
"""

from __future__ import annotations

from kafka.broker.groups.service import GroupService, coordinator, refusal
from kafka.broker.server.api import BrokerResponseError, Call, Operation
from kafka.protocol.admin import DeleteGroupsRequest, DeleteGroupsResponse


def handle(call: Call[DeleteGroupsResponse], request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    """Delete each."""
    # A name that comes twice is deleted once and answered once, as in Kafka.
    return call.response(results=[(name, _delete(call, name)) for name in dict.fromkeys(request.groups_names)])


def _delete(call: Call[DeleteGroupsResponse], group_id: str) -> int:
    refused = refusal(call, group_id, Operation.DELETE)
    if refused:
        return refused
    try:
        coordinator(call).delete(group_id)
        call.cluster.service(GroupService).share_group_deleted(group_id)
    except BrokerResponseError as error:
        return error.code
    return 0
