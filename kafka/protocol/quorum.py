"""The Raft quorum of the controllers.

Written by tools/generate_protocol.py from Kafka's message specs; do not edit.
"""

from __future__ import annotations

from uuid import UUID

from kafka.protocol.api import Request, Response
from kafka.protocol.fields import Array, Buffer, field
from kafka.protocol.struct import Struct
from kafka.protocol.types import Boolean, Int16, Int32, Int64, Records, String, UInt16, Uuid


class VoteRequest(Request["VoteResponse"], api_key=52, versions="0-2", flexible="0+"):
    """Asks for a vote in the controller quorum."""

    class PartitionData(Struct):
        partition_index: int = field(Int32, "0+")
        replica_epoch: int = field(Int32, "0+")
        replica_id: int = field(Int32, "0+")
        replica_directory_id: UUID = field(Uuid, "1+", ignorable=True)
        voter_directory_id: UUID = field(Uuid, "1+", ignorable=True)
        last_offset_epoch: int = field(Int32, "0+")
        last_offset: int = field(Int64, "0+")
        pre_vote: bool = field(Boolean, "2+")

    class TopicData(Struct):
        topic_name: str = field(String, "0+")
        partitions: list[VoteRequest.PartitionData] = field(Array("PartitionData"), "0+")

    cluster_id: str | None = field(String, "0+", nullable="0+", default=None)
    voter_id: int = field(Int32, "1+", default=-1, ignorable=True)
    topics: list[TopicData] = field(Array(TopicData), "0+")


class VoteResponse(Response, api_key=52, versions="0-2", flexible="0+"):
    class PartitionData(Struct):
        partition_index: int = field(Int32, "0+")
        error_code: int = field(Int16, "0+")
        leader_id: int = field(Int32, "0+")
        leader_epoch: int = field(Int32, "0+")
        vote_granted: bool = field(Boolean, "0+")

    class TopicData(Struct):
        topic_name: str = field(String, "0+")
        partitions: list[VoteResponse.PartitionData] = field(Array("PartitionData"), "0+")

    class NodeEndpoint(Struct):
        node_id: int = field(Int32, "1+")
        host: str = field(String, "1+")
        port: int = field(UInt16, "1+")

    error_code: int = field(Int16, "0+")
    topics: list[TopicData] = field(Array(TopicData), "0+")
    node_endpoints: list[NodeEndpoint] = field(Array(NodeEndpoint), "1+", tag=0)


class BeginQuorumEpochRequest(Request["BeginQuorumEpochResponse"], api_key=53, versions="0-1", flexible="1+"):
    """Announces a new leader to the voters of the controller quorum."""

    class PartitionData(Struct):
        partition_index: int = field(Int32, "0+")
        voter_directory_id: UUID = field(Uuid, "1+", ignorable=True)
        leader_id: int = field(Int32, "0+")
        leader_epoch: int = field(Int32, "0+")

    class TopicData(Struct):
        topic_name: str = field(String, "0+")
        partitions: list[BeginQuorumEpochRequest.PartitionData] = field(Array("PartitionData"), "0+")

    class LeaderEndpoint(Struct):
        name: str = field(String, "1+")
        host: str = field(String, "1+")
        port: int = field(UInt16, "1+")

    cluster_id: str | None = field(String, "0+", nullable="0+", default=None)
    voter_id: int = field(Int32, "1+", default=-1, ignorable=True)
    topics: list[TopicData] = field(Array(TopicData), "0+")
    leader_endpoints: list[LeaderEndpoint] = field(Array(LeaderEndpoint), "1+", ignorable=True)


class BeginQuorumEpochResponse(Response, api_key=53, versions="0-1", flexible="1+"):
    class PartitionData(Struct):
        partition_index: int = field(Int32, "0+")
        error_code: int = field(Int16, "0+")
        leader_id: int = field(Int32, "0+")
        leader_epoch: int = field(Int32, "0+")

    class TopicData(Struct):
        topic_name: str = field(String, "0+")
        partitions: list[BeginQuorumEpochResponse.PartitionData] = field(Array("PartitionData"), "0+")

    class NodeEndpoint(Struct):
        node_id: int = field(Int32, "1+")
        host: str = field(String, "1+")
        port: int = field(UInt16, "1+")

    error_code: int = field(Int16, "0+")
    topics: list[TopicData] = field(Array(TopicData), "0+")
    node_endpoints: list[NodeEndpoint] = field(Array(NodeEndpoint), "1+", tag=0)


class EndQuorumEpochRequest(Request["EndQuorumEpochResponse"], api_key=54, versions="0-1", flexible="1+"):
    """Steps down as leader of the controller quorum."""

    class ReplicaInfo(Struct):
        candidate_id: int = field(Int32, "1+")
        candidate_directory_id: UUID = field(Uuid, "1+")

    class PartitionData(Struct):
        partition_index: int = field(Int32, "0+")
        leader_id: int = field(Int32, "0+")
        leader_epoch: int = field(Int32, "0+")
        preferred_successors: list[int] = field(Array(Int32), "0", ignorable=True)
        preferred_candidates: list[EndQuorumEpochRequest.ReplicaInfo] = field(
            Array("ReplicaInfo"), "1+", ignorable=True
        )

    class TopicData(Struct):
        topic_name: str = field(String, "0+")
        partitions: list[EndQuorumEpochRequest.PartitionData] = field(Array("PartitionData"), "0+")

    class LeaderEndpoint(Struct):
        name: str = field(String, "1+")
        host: str = field(String, "1+")
        port: int = field(UInt16, "1+")

    cluster_id: str | None = field(String, "0+", nullable="0+", default=None)
    topics: list[TopicData] = field(Array(TopicData), "0+")
    leader_endpoints: list[LeaderEndpoint] = field(Array(LeaderEndpoint), "1+", ignorable=True)


class EndQuorumEpochResponse(Response, api_key=54, versions="0-1", flexible="1+"):
    class PartitionData(Struct):
        partition_index: int = field(Int32, "0+")
        error_code: int = field(Int16, "0+")
        leader_id: int = field(Int32, "0+")
        leader_epoch: int = field(Int32, "0+")

    class TopicData(Struct):
        topic_name: str = field(String, "0+")
        partitions: list[EndQuorumEpochResponse.PartitionData] = field(Array("PartitionData"), "0+")

    class NodeEndpoint(Struct):
        node_id: int = field(Int32, "1+")
        host: str = field(String, "1+")
        port: int = field(UInt16, "1+")

    error_code: int = field(Int16, "0+")
    topics: list[TopicData] = field(Array(TopicData), "0+")
    node_endpoints: list[NodeEndpoint] = field(Array(NodeEndpoint), "1+", tag=0)


class DescribeQuorumRequest(Request["DescribeQuorumResponse"], api_key=55, versions="0-2", flexible="0+"):
    """Describes the controller quorum."""

    class PartitionData(Struct):
        partition_index: int = field(Int32, "0+")

    class TopicData(Struct):
        topic_name: str = field(String, "0+")
        partitions: list[DescribeQuorumRequest.PartitionData] = field(Array("PartitionData"), "0+")

    topics: list[TopicData] = field(Array(TopicData), "0+")


class DescribeQuorumResponse(Response, api_key=55, versions="0-2", flexible="0+"):
    class ReplicaState(Struct):
        replica_id: int = field(Int32, "0+")
        replica_directory_id: UUID = field(Uuid, "2+")
        log_end_offset: int = field(Int64, "0+")
        last_fetch_timestamp: int = field(Int64, "1+", default=-1, ignorable=True)
        last_caught_up_timestamp: int = field(Int64, "1+", default=-1, ignorable=True)

    class PartitionData(Struct):
        partition_index: int = field(Int32, "0+")
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "2+", nullable="2+", ignorable=True)
        leader_id: int = field(Int32, "0+")
        leader_epoch: int = field(Int32, "0+")
        high_watermark: int = field(Int64, "0+")
        current_voters: list[DescribeQuorumResponse.ReplicaState] = field(Array("ReplicaState"), "0+")
        observers: list[DescribeQuorumResponse.ReplicaState] = field(Array("ReplicaState"), "0+")

    class TopicData(Struct):
        topic_name: str = field(String, "0+")
        partitions: list[DescribeQuorumResponse.PartitionData] = field(Array("PartitionData"), "0+")

    class Listener(Struct):
        name: str = field(String, "2+")
        host: str = field(String, "2+")
        port: int = field(UInt16, "2+")

    class Node(Struct):
        node_id: int = field(Int32, "2+")
        listeners: list[DescribeQuorumResponse.Listener] = field(Array("Listener"), "2+")

    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "2+", nullable="2+", ignorable=True)
    topics: list[TopicData] = field(Array(TopicData), "0+")
    nodes: list[Node] = field(Array(Node), "2+")


class FetchSnapshotRequest(Request["FetchSnapshotResponse"], api_key=59, versions="0-1", flexible="0+"):
    """Reads a snapshot of the controllers' log."""

    class SnapshotId(Struct):
        end_offset: int = field(Int64, "0+")
        epoch: int = field(Int32, "0+")

    class PartitionSnapshot(Struct):
        partition: int = field(Int32, "0+")
        current_leader_epoch: int = field(Int32, "0+")
        snapshot_id: FetchSnapshotRequest.SnapshotId = field("SnapshotId", "0+")
        position: int = field(Int64, "0+")
        replica_directory_id: UUID = field(Uuid, "1+", tag=0, ignorable=True)

    class TopicSnapshot(Struct):
        name: str = field(String, "0+")
        partitions: list[FetchSnapshotRequest.PartitionSnapshot] = field(Array("PartitionSnapshot"), "0+")

    cluster_id: str | None = field(String, "0+", nullable="0+", default=None, tag=0)
    replica_id: int = field(Int32, "0+", default=-1)
    max_bytes: int = field(Int32, "0+", default=2147483647)
    topics: list[TopicSnapshot] = field(Array(TopicSnapshot), "0+")


class FetchSnapshotResponse(Response, api_key=59, versions="0-1", flexible="0+"):
    class SnapshotId(Struct):
        end_offset: int = field(Int64, "0+")
        epoch: int = field(Int32, "0+")

    class LeaderIdAndEpoch(Struct):
        leader_id: int = field(Int32, "0+")
        leader_epoch: int = field(Int32, "0+")

    class PartitionSnapshot(Struct):
        index: int = field(Int32, "0+")
        error_code: int = field(Int16, "0+")
        snapshot_id: FetchSnapshotResponse.SnapshotId = field("SnapshotId", "0+")
        current_leader: FetchSnapshotResponse.LeaderIdAndEpoch = field("LeaderIdAndEpoch", "0+", tag=0)
        size: int = field(Int64, "0+")
        position: int = field(Int64, "0+")
        unaligned_records: Buffer = field(Records, "0+")

    class TopicSnapshot(Struct):
        name: str = field(String, "0+")
        partitions: list[FetchSnapshotResponse.PartitionSnapshot] = field(Array("PartitionSnapshot"), "0+")

    class NodeEndpoint(Struct):
        node_id: int = field(Int32, "1+")
        host: str = field(String, "1+")
        port: int = field(UInt16, "1+")

    throttle_time_ms: int = field(Int32, "0+", ignorable=True)
    error_code: int = field(Int16, "0+")
    topics: list[TopicSnapshot] = field(Array(TopicSnapshot), "0+")
    node_endpoints: list[NodeEndpoint] = field(Array(NodeEndpoint), "1+", tag=0)


class AddRaftVoterRequest(Request["AddRaftVoterResponse"], api_key=80, versions="0-1", flexible="0+"):
    """Adds a voter to the controller quorum."""

    class Listener(Struct):
        name: str = field(String, "0+")
        host: str = field(String, "0+")
        port: int = field(UInt16, "0+")

    cluster_id: str | None = field(String, "0+", nullable="0+")
    timeout_ms: int = field(Int32, "0+")
    voter_id: int = field(Int32, "0+")
    voter_directory_id: UUID = field(Uuid, "0+")
    listeners: list[Listener] = field(Array(Listener), "0+")
    ack_when_committed: bool = field(Boolean, "1+", default=True)


class AddRaftVoterResponse(Response, api_key=80, versions="0-1", flexible="0+"):
    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", nullable="0+", ignorable=True)


class RemoveRaftVoterRequest(Request["RemoveRaftVoterResponse"], api_key=81, versions="0", flexible="0+"):
    """Removes a voter from the controller quorum."""

    cluster_id: str | None = field(String, "0+", nullable="0+")
    voter_id: int = field(Int32, "0+")
    voter_directory_id: UUID = field(Uuid, "0+")


class RemoveRaftVoterResponse(Response, api_key=81, versions="0", flexible="0+"):
    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", nullable="0+", ignorable=True)


class UpdateRaftVoterRequest(Request["UpdateRaftVoterResponse"], api_key=82, versions="0", flexible="0+"):
    """Updates the endpoints of a voter of the controller quorum."""

    class Listener(Struct):
        name: str = field(String, "0+")
        host: str = field(String, "0+")
        port: int = field(UInt16, "0+")

    class KRaftVersionFeature(Struct):
        min_supported_version: int = field(Int16, "0+")
        max_supported_version: int = field(Int16, "0+")

    cluster_id: str | None = field(String, "0+", nullable="0+")
    current_leader_epoch: int = field(Int32, "0+")
    voter_id: int = field(Int32, "0+")
    voter_directory_id: UUID = field(Uuid, "0+")
    listeners: list[Listener] = field(Array(Listener), "0+")
    k_raft_version_feature: KRaftVersionFeature = field(KRaftVersionFeature, "0+")


class UpdateRaftVoterResponse(Response, api_key=82, versions="0", flexible="0+"):
    class CurrentLeader(Struct):
        leader_id: int = field(Int32, "0+", default=-1)
        leader_epoch: int = field(Int32, "0+", default=-1)
        host: str = field(String, "0+")
        port: int = field(Int32, "0+")

    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    current_leader: CurrentLeader = field(CurrentLeader, "0+", tag=0)


class LeaderChangeMessage(Struct, versions="0-1", flexible="0+"):
    """The control record with which a new leader of the controller quorum begins."""

    class Voter(Struct):
        voter_id: int = field(Int32, "0+")
        voter_directory_id: UUID = field(Uuid, "1+")

    version: int = field(Int16, "0+")
    leader_id: int = field(Int32, "0+")
    voters: list[Voter] = field(Array(Voter), "0+")
    granting_voters: list[Voter] = field(Array(Voter), "0+")


class SnapshotHeaderRecord(Struct, versions="0", flexible="0+"):
    """Begins a snapshot of the controllers' log."""

    version: int = field(Int16, "0+")
    last_contained_log_timestamp: int = field(Int64, "0+")


class SnapshotFooterRecord(Struct, versions="0", flexible="0+"):
    """Ends a snapshot of the controllers' log."""

    version: int = field(Int16, "0+")


class KRaftVersionRecord(Struct, versions="0", flexible="0+"):
    """The version of the Raft protocol in use."""

    version: int = field(Int16, "0+")
    k_raft_version: int = field(Int16, "0+")


class VotersRecord(Struct, versions="0", flexible="0+"):
    """The voters of the controller quorum."""

    class Endpoint(Struct):
        name: str = field(String, "0+")
        host: str = field(String, "0+")
        port: int = field(UInt16, "0+")

    class KRaftVersionFeature(Struct):
        min_supported_version: int = field(Int16, "0+")
        max_supported_version: int = field(Int16, "0+")

    class Voter(Struct):
        voter_id: int = field(Int32, "0+")
        voter_directory_id: UUID = field(Uuid, "0+")
        endpoints: list[VotersRecord.Endpoint] = field(Array("Endpoint"), "0+")
        k_raft_version_feature: VotersRecord.KRaftVersionFeature = field("KRaftVersionFeature", "0+")

    version: int = field(Int16, "0+")
    voters: list[Voter] = field(Array(Voter), "0+")
