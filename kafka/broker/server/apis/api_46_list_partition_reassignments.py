"""ListPartitionReassignments (46), version 0: moves under way (KIP-455).

* v0: none, ever: a move here is done when it is asked for.
"""

from __future__ import annotations

from kafka.broker.server.api import CLUSTER_NAME, Call, Code, Operation, Resource
from kafka.protocol.admin import ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse


def handle(
    call: Call[ListPartitionReassignmentsResponse], request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """List none."""
    if not call.allows(Operation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME):
        return refuse(call, request, Code.CLUSTER_AUTHORIZATION_FAILED)
    return call.response(error_code=0, error_message=None)


def refuse(
    call: Call[ListPartitionReassignmentsResponse], request: ListPartitionReassignmentsRequest, code: int
) -> ListPartitionReassignmentsResponse:
    """As Kafka does, name what was asked for beside the error."""
    topics: list[tuple[str, list[tuple[int, list[int], list[int], list[int]]]]] = [
        (topic.name, [(index, [], [], []) for index in topic.partition_indexes]) for topic in request.topics or ()
    ]
    return call.response(error_code=code, error_message=None, topics=topics)
