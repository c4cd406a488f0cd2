"""AddRaftVoter (80), versions 0-1: let a node vote in the controller quorum (KIP-853).

* v1: whether the reply waits until the change is committed; changes here are committed at once.
"""

from __future__ import annotations

from kafka.broker.cluster.quorum import Quorum
from kafka.broker.server.api import CLUSTER_NAME, BrokerResponseError, Call, Code, Operation, Resource
from kafka.protocol.quorum import AddRaftVoterRequest, AddRaftVoterResponse


def handle(call: Call[AddRaftVoterResponse], request: AddRaftVoterRequest) -> AddRaftVoterResponse:
    """Add it."""
    if not call.allows(Operation.ALTER, Resource.CLUSTER, CLUSTER_NAME):
        return call.response(error_code=Code.CLUSTER_AUTHORIZATION_FAILED, error_message=None)
    try:
        call.cluster.service(Quorum).add(
            request.cluster_id, request.voter_id, request.voter_directory_id, [one.name for one in request.listeners]
        )
    except BrokerResponseError as error:
        return call.response(error_code=error.code, error_message=str(error.args[0]))
    return call.response(error_message=None)
