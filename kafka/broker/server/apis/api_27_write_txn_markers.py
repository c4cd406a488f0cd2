"""WriteTxnMarkers (27), versions 0-2: end a producer's transaction on partitions, whatever its coordinator knows.

Between brokers; administrators use it against transactions that hang (KIP-664).

* v1: flexible.
* v2: the transaction's version (KIP-1228); nothing changes here.
"""

from __future__ import annotations

from typing import Final

from kafka.broker.server.api import CLUSTER_NAME, Call, Code, Operation, Resource
from kafka.errors import KafkaError
from kafka.protocol.transaction import WriteTxnMarkersRequest, WriteTxnMarkersResponse

_REFUSED: Final = Code.CLUSTER_AUTHORIZATION_FAILED


def handle(call: Call[WriteTxnMarkersResponse], request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    """Write them."""
    allowed = call.allows(Operation.CLUSTER_ACTION, Resource.CLUSTER, CLUSTER_NAME) or call.allows(
        Operation.ALTER, Resource.CLUSTER, CLUSTER_NAME
    )
    markers = [
        (
            marker.producer_id,
            [
                (
                    topic.name,
                    [
                        (index, _write(call, marker, topic.name, index) if allowed else _REFUSED)
                        for index in topic.partition_indexes
                    ],
                )
                for topic in marker.topics
            ],
        )
        for marker in request.markers
    ]
    return call.response(markers=markers)


def _write(
    call: Call[WriteTxnMarkersResponse], marker: WriteTxnMarkersRequest.WritableTxnMarker, topic: str, index: int
) -> int:
    partition = call.cluster.partition(topic, index)
    if partition is None:
        return Code.UNKNOWN_TOPIC_OR_PARTITION
    if partition.leader != call.node.node_id:
        return Code.NOT_LEADER_OR_FOLLOWER
    try:
        call.cluster.append_marker(
            partition,
            marker.producer_id,
            marker.producer_epoch,
            committed=marker.transaction_result,
            coordinator_epoch=marker.coordinator_epoch,
        )
    except KafkaError as error:
        return getattr(error, "code", Code.UNKNOWN_SERVER_ERROR)
    return Code.NONE
