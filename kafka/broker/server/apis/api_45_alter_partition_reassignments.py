"""AlterPartitionReassignments (45), versions 0-1: other replicas for partitions (KIP-455).

* v0: replicas, or null to cancel. v1: whether the number of replicas may change.

Replicas are notional, so a move is done when it is asked for; there is never one to cancel.
"""

from __future__ import annotations

from kafka.broker.cluster.creation import check_assignment
from kafka.broker.cluster.topics import replace_replicas
from kafka.broker.server.api import CLUSTER_NAME, BrokerResponseError, Call, Code, Operation, Resource
from kafka.broker.server.error_replies import error_reply
from kafka.protocol.admin import AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse


def handle(
    call: Call[AlterPartitionReassignmentsResponse], request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Move them."""
    if not call.allows(Operation.ALTER, Resource.CLUSTER, CLUSTER_NAME):
        refused = error_reply(request, Code.CLUSTER_AUTHORIZATION_FAILED)
        assert refused is not None
        return refused
    may_resize = request.allow_replication_factor_change
    return call.response(
        error_message=None,
        responses=[
            (topic.name, [_move(call, topic.name, part, may_resize) for part in topic.partitions])
            for topic in request.topics
        ],
    )


def _move(
    call: Call[AlterPartitionReassignmentsResponse],
    name: str,
    part: AlterPartitionReassignmentsRequest.ReassignablePartition,
    may_resize: bool,
) -> tuple[int, int, str | None]:
    cluster = call.cluster
    index = part.partition_index
    partition = cluster.partition(name, index)
    if partition is None:
        what = f"partition {name}:{index}." if name in cluster.topics else f"a topic named {name}."
        return index, Code.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find {what}"
    if part.replicas is None:
        return index, Code.NO_REASSIGNMENT_IN_PROGRESS, None
    replicas = list(part.replicas)
    try:
        check_assignment(cluster, [replicas])
    except BrokerResponseError as error:
        return index, error.code, str(error.args[0])
    if not may_resize and len(replicas) != len(partition.replicas):
        return (
            index,
            Code.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {len(partition.replicas)} to {len(replicas)}",
        )
    replace_replicas(partition, replicas, {node.node_id for node in cluster.live_nodes()})
    cluster.save_topic(partition.topic)
    return index, 0, None
