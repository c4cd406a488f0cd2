"""ListPartitionReassignments (46), version 0: moves under way (KIP-455).

* v0: none, ever: a move here is done when it is asked for.
"""

from __future__ import annotations

from kafka.broker.server.api import CLUSTER_NAME, Call, Code, Operation, Resource
from kafka.protocol.admin import ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse


def handle(
    call: Call[ListPartitionReassignmentsResponse], _request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """List none."""
    allowed = call.allows(Operation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME)
    return call.response(error_code=0 if allowed else Code.CLUSTER_AUTHORIZATION_FAILED, error_message=None)
