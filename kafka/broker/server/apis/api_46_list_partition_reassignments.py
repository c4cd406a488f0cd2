"""ListPartitionReassignments (46), version 0: moves under way (KIP-455).

* v0: none, ever: a move here is done when it is asked for.
"""

from __future__ import annotations

from typing import Any

from kafka.broker.server.api import CLUSTER_NAME, Call, Code, Operation, Resource
from kafka.protocol.admin import ListPartitionReassignmentsRequest


def handle(call: Call, _request: ListPartitionReassignmentsRequest) -> Any:
    """List none."""
    allowed = call.allows(Operation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME)
    return call.response(error_code=0 if allowed else Code.CLUSTER_AUTHORIZATION_FAILED, error_message=None)
