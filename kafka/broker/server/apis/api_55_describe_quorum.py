"""DescribeQuorum (55), versions 0-2: the voters of the metadata's log and how far each of them is (KIP-595).

* v0: the ends of their logs. v1: when they fetched last (KIP-836).
* v2: messages, directory ids, and the controllers' listeners (KIP-853). No node here has a controller listener; the
  reply has the address of its broker listener.
"""

from __future__ import annotations

from kafka.broker.cluster.quorum import CONTROLLER_LISTENER, METADATA_TOPIC, Quorum, Voter
from kafka.broker.server.api import CLUSTER_NAME, Call, Code, Operation, Resource
from kafka.protocol.quorum import DescribeQuorumRequest, DescribeQuorumResponse

_UNKNOWN = "This server does not host this topic-partition."


def handle(call: Call[DescribeQuorumResponse], request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """Describe it; other topics than the metadata's have no quorum."""
    if not call.allows(Operation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME):
        return call.response(error_code=Code.CLUSTER_AUTHORIZATION_FAILED, error_message="")
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
