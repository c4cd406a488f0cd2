"""ListGroups (16), versions 0-5: the groups that this node coordinates.

* v0: ids and protocol types. v1: throttle time. v2: clients expect throttling after the reply.
* v3: flexible.
* v4: states, and a filter by them (KIP-518).
* v5: types, and a filter by them (KIP-848).
"""

from __future__ import annotations

from kafka.broker.cluster.coordinators import GROUP
from kafka.broker.groups.service import coordinator
from kafka.broker.server.api import CLUSTER_NAME, Call, Operation, Resource
from kafka.protocol.admin import ListGroupsRequest, ListGroupsResponse


def handle(call: Call[ListGroupsResponse], request: ListGroupsRequest) -> ListGroupsResponse:
    """List the groups that the client may see."""
    sees_all = call.allows(Operation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME)
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    groups = [
        call.response.ListedGroup(group_id=group_id, protocol_type=protocol, group_state=state, group_type=kind)
        for group_id, protocol, state, kind in coordinator(call).listed()
        if call.cluster.coordinators.is_at(call.node, GROUP, group_id)
        and (not states or state.lower() in states)
        and (not types or kind.lower() in types)
        and (sees_all or call.allows(Operation.DESCRIBE, Resource.GROUP, group_id))
    ]
    return call.response(error_code=0, groups=groups)
