"""UnregisterBroker (64), version 0: forget a broker (KIP-500).

A node that runs stays reachable, but the cluster no longer lists it; a restart registers it again.
"""

from __future__ import annotations

from kafka.broker.server.api import CLUSTER_NAME, Call, Code, Operation, Resource
from kafka.protocol.admin import UnregisterBrokerRequest, UnregisterBrokerResponse


def handle(call: Call[UnregisterBrokerResponse], request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    """Forget it."""
    if not call.allows(Operation.ALTER, Resource.CLUSTER, CLUSTER_NAME):
        return call.response(error_code=Code.CLUSTER_AUTHORIZATION_FAILED, error_message=None)
    node = call.cluster.nodes.get(request.broker_id)
    if node is None or not node.is_registered:
        message = f"Broker ID {request.broker_id} is not currently registered"
        return call.response(error_code=Code.BROKER_ID_NOT_REGISTERED, error_message=message)
    node.is_registered = False
    call.cluster.nodes_changed()
    return call.response(error_message="")
