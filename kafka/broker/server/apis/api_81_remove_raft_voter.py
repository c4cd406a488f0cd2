"""RemoveRaftVoter (81), version 0: let a node vote no longer in the controller quorum (KIP-853)."""

from __future__ import annotations

from kafka.broker.cluster.quorum import Quorum
from kafka.broker.server.api import CLUSTER_NAME, BrokerResponseError, Call, Code, Operation, Resource
from kafka.protocol.quorum import RemoveRaftVoterRequest, RemoveRaftVoterResponse


def handle(call: Call[RemoveRaftVoterResponse], request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
    """Remove it."""
    if not call.allows(Operation.ALTER, Resource.CLUSTER, CLUSTER_NAME):
        return call.response(error_code=Code.CLUSTER_AUTHORIZATION_FAILED, error_message=None)
    try:
        call.cluster.service(Quorum).remove(request.cluster_id, request.voter_id, request.voter_directory_id)
    except BrokerResponseError as error:
        return call.response(error_code=error.code, error_message=str(error.args[0]))
    return call.response(error_message=None)
