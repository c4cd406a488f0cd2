"""The nodes, the controllers' quorum and the features of the cluster."""

from __future__ import annotations

from typing import Final

from kafka.broker.cluster.features import UPGRADE
from kafka.broker.cluster.quorum import CONTROLLER_LISTENER, METADATA_TOPIC, Quorum, Voter
from kafka.broker.server.api import CLUSTER_NAME, Call, Code, Operation, Resource
from kafka.broker.server.call import cluster_operations
from kafka.errors import BrokerIdNotRegisteredError, ClusterAuthorizationFailedError, InvalidUpdateVersionError
from kafka.protocol.admin import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from kafka.protocol.metadata import DescribeClusterRequest, DescribeClusterResponse
from kafka.protocol.quorum import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)

_UNKNOWN = "This server does not host this topic-partition."
_FAILED: Final = "The update failed for all features since the following feature had an error: "
_BROKERS, _CONTROLLERS = 1, 2
_MISMATCH = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"


def describe_quorum(call: Call[DescribeQuorumResponse], request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """DescribeQuorum (55), versions 0-2: the voters of the metadata's log and how far each of them is (KIP-595).

    * v0: the ends of their logs. v1: when they fetched last (KIP-836).
    * v2: messages, directory ids, and the controllers' listeners (KIP-853). No node here has a controller listener; the
      reply has the address of its broker listener.

    Describe it; other topics than the metadata's have no quorum.
    """
    if not call.allows(Operation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailedError("")
    reply = call.response(error_message="")
    for topic in request.topics:
        known = [topic.topic_name == METADATA_TOPIC and part.partition_index == 0 for part in topic.partitions]
        partitions = [
            _describe(call) if is_known else _refuse(call, part.partition_index)
            for part, is_known in zip(topic.partitions, known, strict=True)
        ]
        reply.topics.append(call.response.TopicData(topic_name=topic.topic_name, partitions=partitions))
        if any(known) and call.version >= 2:
            reply.nodes = [
                call.response.Node(voter.node.node_id, [(CONTROLLER_LISTENER, voter.node.host, voter.node.port)])
                for voter in call.cluster.service(Quorum).voters()
            ]
    return reply


def _refuse(call: Call[DescribeQuorumResponse], index: int) -> DescribeQuorumResponse.PartitionData:
    return call.response.PartitionData(
        partition_index=index, error_code=Code.UNKNOWN_TOPIC_OR_PARTITION, error_message=_UNKNOWN
    )


def _describe(call: Call[DescribeQuorumResponse]) -> DescribeQuorumResponse.PartitionData:
    quorum = call.cluster.service(Quorum)
    end = quorum.log_end_offset
    return call.response.PartitionData(
        error_message="",
        leader_id=call.cluster.controller_id,
        leader_epoch=call.cluster.controller_epoch,
        high_watermark=end,
        current_voters=[_replica(call, voter, end) for voter in quorum.voters()],
        observers=[_replica(call, voter, end) for voter in quorum.observers()],
    )


def _replica(call: Call[DescribeQuorumResponse], voter: Voter, end: int) -> DescribeQuorumResponse.ReplicaState:
    found = call.response.ReplicaState(
        replica_id=voter.node.node_id,
        log_end_offset=end,
        last_fetch_timestamp=voter.fetched_ms,
        last_caught_up_timestamp=voter.fetched_ms,
    )
    if call.version >= 2:
        found.replica_directory_id = voter.directory_id
    return found


def update_features(call: Call[UpdateFeaturesResponse], request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    """UpdateFeatures (57), versions 0-2: raise or lower the levels of features (KIP-584).

    * v0: upgrades and downgrades. v1: safe and unsafe downgrades; validate only. v2: one result for all of them.

    Change the levels, all of them or none.
    """
    call.require(Operation.ALTER, Resource.CLUSTER)
    # Kafka reads every update of v0 as an upgrade, whatever its allow_downgrade says.
    updates = [
        (one.feature, one.max_version_level, one.upgrade_type if call.version else UPGRADE)
        for one in request.feature_updates
    ]
    try:
        call.cluster.features.update(
            updates, controller=call.cluster.controller_id, validate_only=bool(call.version) and request.validate_only
        )
    except InvalidUpdateVersionError as error:
        raise InvalidUpdateVersionError(f"{_FAILED}{error.args[0]}") from None
    reply = call.response(error_message=None)
    if call.version <= 1:
        reply.results = [
            call.response.UpdatableFeatureResult(name, 0, "NONE")
            for name in dict.fromkeys(name for name, _, _ in updates)
        ]
    return reply


def describe_cluster(call: Call[DescribeClusterResponse], request: DescribeClusterRequest) -> DescribeClusterResponse:
    """DescribeCluster (60), versions 0-2: id, nodes, controller (KIP-700).

    * v0: all of that, with what the client may do. v1: brokers or controllers (KIP-919); controllers are not served.
    * v2: fenced brokers too, marked; the stopped nodes of this broker.
    """
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


def unregister_broker(
    call: Call[UnregisterBrokerResponse], request: UnregisterBrokerRequest
) -> UnregisterBrokerResponse:
    """UnregisterBroker (64), version 0: forget a broker (KIP-500).

    A node that runs stays reachable, but the cluster no longer lists it; a restart registers it again.
    """
    call.require(Operation.ALTER, Resource.CLUSTER)
    node = call.cluster.nodes.get(request.broker_id)
    if node is None or not node.is_registered:
        raise BrokerIdNotRegisteredError(f"Broker ID {request.broker_id} is not currently registered")
    node.is_registered = False
    call.cluster.nodes_changed()
    return call.response(error_message="")


def add_raft_voter(call: Call[AddRaftVoterResponse], request: AddRaftVoterRequest) -> AddRaftVoterResponse:
    """AddRaftVoter (80), versions 0-1: let a node vote in the controller quorum (KIP-853).

    * v1: whether the reply waits until the change is committed; changes here are committed at once.
    """
    call.require(Operation.ALTER, Resource.CLUSTER)
    call.cluster.service(Quorum).add(
        request.cluster_id, request.voter_id, request.voter_directory_id, [one.name for one in request.listeners]
    )
    return call.response(error_message=None)


def remove_raft_voter(call: Call[RemoveRaftVoterResponse], request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
    """RemoveRaftVoter (81), version 0: let a node vote no longer in the controller quorum (KIP-853)."""
    call.require(Operation.ALTER, Resource.CLUSTER)
    call.cluster.service(Quorum).remove(request.cluster_id, request.voter_id, request.voter_directory_id)
    return call.response(error_message=None)
