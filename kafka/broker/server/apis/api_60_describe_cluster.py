"""DescribeCluster (60), versions 0-2: id, nodes, controller (KIP-700).

* v0: all of that, with what the client may do. v1: brokers or controllers (KIP-919); controllers are not served here.
* v2: fenced brokers too, marked; the stopped nodes of this broker.
"""

from __future__ import annotations

from kafka.broker.server.api import Call, Code
from kafka.broker.server.call import cluster_operations
from kafka.protocol.metadata import DescribeClusterRequest, DescribeClusterResponse

_BROKERS, _CONTROLLERS = 1, 2
_MISMATCH = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"


def handle(call: Call[DescribeClusterResponse], request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Describe the cluster."""
    cluster = call.cluster
    if request.endpoint_type != _BROKERS:
        known = request.endpoint_type == _CONTROLLERS
        reply = call.response(
            error_code=Code.MISMATCHED_ENDPOINT_TYPE if known else Code.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=_MISMATCH if known else f"Unsupported endpoint type {request.endpoint_type}",
        )
        reply.endpoint_type = _BROKERS
        return reply
    fenced = [node for node in cluster.nodes.values() if node.is_registered and not node.is_running]
    reply = call.response(
        cluster_id=cluster.cluster_id,
        controller_id=cluster.controller_id,
        brokers=[
            call.response.DescribeClusterBroker(broker_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
            for node in cluster.live_nodes()
        ],
    )
    for node in fenced if request.include_fenced_brokers else ():
        reply.brokers.append(
            call.response.DescribeClusterBroker(
                broker_id=node.node_id, host=node.host, port=node.port, rack=node.rack, is_fenced=True
            )
        )
    if request.include_cluster_authorized_operations:
        reply.cluster_authorized_operations = cluster_operations(call)
    return reply
