"""Leadership and replicas, between brokers and controllers.

Written by tools/generate_protocol.py from Kafka's message specs; do not edit.
"""

from __future__ import annotations

from uuid import UUID

from kafka.protocol.api import Request, Response
from kafka.protocol.fields import Array, field
from kafka.protocol.struct import Struct
from kafka.protocol.types import Boolean, Int8, Int16, Int32, Int64, String, Uuid


class LeaderAndIsrRequest(Request["LeaderAndIsrResponse"], api_key=4, versions="0-7", flexible="4+"):
    """Tells brokers which partitions they lead and follow."""

    class LeaderAndIsrPartitionState(Struct):
        topic_name: str = field(String, "0-1", ignorable=True)
        partition_index: int = field(Int32, "0+")
        controller_epoch: int = field(Int32, "0+")
        leader: int = field(Int32, "0+")
        leader_epoch: int = field(Int32, "0+")
        isr: list[int] = field(Array(Int32), "0+")
        partition_epoch: int = field(Int32, "0+")
        replicas: list[int] = field(Array(Int32), "0+")
        adding_replicas: list[int] = field(Array(Int32), "3+", ignorable=True)
        removing_replicas: list[int] = field(Array(Int32), "3+", ignorable=True)
        is_new: bool = field(Boolean, "1+", ignorable=True)
        leader_recovery_state: int = field(Int8, "6+")

    class LeaderAndIsrTopicState(Struct):
        topic_name: str = field(String, "2+")
        topic_id: UUID = field(Uuid, "5+", ignorable=True)
        partition_states: list[LeaderAndIsrRequest.LeaderAndIsrPartitionState] = field(
            Array("LeaderAndIsrPartitionState"), "2+"
        )

    class LeaderAndIsrLiveLeader(Struct):
        broker_id: int = field(Int32, "0+")
        host_name: str = field(String, "0+")
        port: int = field(Int32, "0+")

    controller_id: int = field(Int32, "0+")
    is_k_raft_controller: bool = field(Boolean, "7+")
    controller_epoch: int = field(Int32, "0+")
    broker_epoch: int = field(Int64, "2+", default=-1, ignorable=True)
    type: int = field(Int8, "5+")
    ungrouped_partition_states: list[LeaderAndIsrPartitionState] = field(Array(LeaderAndIsrPartitionState), "0-1")
    topic_states: list[LeaderAndIsrTopicState] = field(Array(LeaderAndIsrTopicState), "2+")
    live_leaders: list[LeaderAndIsrLiveLeader] = field(Array(LeaderAndIsrLiveLeader), "0+")


class LeaderAndIsrResponse(Response, api_key=4, versions="0-7", flexible="4+"):
    class LeaderAndIsrPartitionError(Struct):
        topic_name: str = field(String, "0-4", ignorable=True)
        partition_index: int = field(Int32, "0+")
        error_code: int = field(Int16, "0+")

    class LeaderAndIsrTopicError(Struct):
        topic_id: UUID = field(Uuid, "5+")
        partition_errors: list[LeaderAndIsrResponse.LeaderAndIsrPartitionError] = field(
            Array("LeaderAndIsrPartitionError"), "5+"
        )

    error_code: int = field(Int16, "0+")
    partition_errors: list[LeaderAndIsrPartitionError] = field(Array(LeaderAndIsrPartitionError), "0-4")
    topics: list[LeaderAndIsrTopicError] = field(Array(LeaderAndIsrTopicError), "5+")


class StopReplicaRequest(Request["StopReplicaResponse"], api_key=5, versions="0-4", flexible="2+"):
    """Tells brokers to stop following partitions."""

    class StopReplicaPartitionV0(Struct):
        topic_name: str = field(String, "0")
        partition_index: int = field(Int32, "0")

    class StopReplicaTopicV1(Struct):
        name: str = field(String, "1-2")
        partition_indexes: list[int] = field(Array(Int32), "1-2")

    class StopReplicaPartitionState(Struct):
        partition_index: int = field(Int32, "3+")
        leader_epoch: int = field(Int32, "3+", default=-1)
        delete_partition: bool = field(Boolean, "3+")

    class StopReplicaTopicState(Struct):
        topic_name: str = field(String, "3+")
        partition_states: list[StopReplicaRequest.StopReplicaPartitionState] = field(
            Array("StopReplicaPartitionState"), "3+"
        )

    controller_id: int = field(Int32, "0+")
    is_k_raft_controller: bool = field(Boolean, "4+")
    controller_epoch: int = field(Int32, "0+")
    broker_epoch: int = field(Int64, "1+", default=-1, ignorable=True)
    delete_partitions: bool = field(Boolean, "0-2")
    ungrouped_partitions: list[StopReplicaPartitionV0] = field(Array(StopReplicaPartitionV0), "0")
    topics: list[StopReplicaTopicV1] = field(Array(StopReplicaTopicV1), "1-2")
    topic_states: list[StopReplicaTopicState] = field(Array(StopReplicaTopicState), "3+")


class StopReplicaResponse(Response, api_key=5, versions="0-4", flexible="2+"):
    class StopReplicaPartitionError(Struct):
        topic_name: str = field(String, "0+")
        partition_index: int = field(Int32, "0+")
        error_code: int = field(Int16, "0+")

    error_code: int = field(Int16, "0+")
    partition_errors: list[StopReplicaPartitionError] = field(Array(StopReplicaPartitionError), "0+")


class UpdateMetadataRequest(Request["UpdateMetadataResponse"], api_key=6, versions="0-8", flexible="6+"):
    """Tells brokers who leads what."""

    class UpdateMetadataPartitionState(Struct):
        topic_name: str = field(String, "0-4", ignorable=True)
        partition_index: int = field(Int32, "0+")
        controller_epoch: int = field(Int32, "0+")
        leader: int = field(Int32, "0+")
        leader_epoch: int = field(Int32, "0+")
        isr: list[int] = field(Array(Int32), "0+")
        zk_version: int = field(Int32, "0+")
        replicas: list[int] = field(Array(Int32), "0+")
        offline_replicas: list[int] = field(Array(Int32), "4+", ignorable=True)

    class UpdateMetadataTopicState(Struct):
        topic_name: str = field(String, "5+")
        topic_id: UUID = field(Uuid, "7+", ignorable=True)
        partition_states: list[UpdateMetadataRequest.UpdateMetadataPartitionState] = field(
            Array("UpdateMetadataPartitionState"), "5+"
        )

    class UpdateMetadataEndpoint(Struct):
        port: int = field(Int32, "1+")
        host: str = field(String, "1+")
        listener: str = field(String, "3+", ignorable=True)
        security_protocol: int = field(Int16, "1+")

    class UpdateMetadataBroker(Struct):
        id: int = field(Int32, "0+")
        v0_host: str = field(String, "0", ignorable=True)
        v0_port: int = field(Int32, "0", ignorable=True)
        endpoints: list[UpdateMetadataRequest.UpdateMetadataEndpoint] = field(
            Array("UpdateMetadataEndpoint"), "1+", ignorable=True
        )
        rack: str | None = field(String, "2+", nullable="2+", ignorable=True)

    controller_id: int = field(Int32, "0+")
    is_k_raft_controller: bool = field(Boolean, "8+")
    type: int = field(Int8, "8+", tag=0)
    controller_epoch: int = field(Int32, "0+")
    broker_epoch: int = field(Int64, "5+", default=-1, ignorable=True)
    ungrouped_partition_states: list[UpdateMetadataPartitionState] = field(Array(UpdateMetadataPartitionState), "0-4")
    topic_states: list[UpdateMetadataTopicState] = field(Array(UpdateMetadataTopicState), "5+")
    live_brokers: list[UpdateMetadataBroker] = field(Array(UpdateMetadataBroker), "0+")


class UpdateMetadataResponse(Response, api_key=6, versions="0-8", flexible="6+"):
    error_code: int = field(Int16, "0+")


class ControlledShutdownRequest(Request["ControlledShutdownResponse"], api_key=7, versions="0-3", flexible="3+"):
    """Asks the controller to move leaders away from a broker that stops."""

    broker_id: int = field(Int32, "0+")
    broker_epoch: int = field(Int64, "2+", default=-1, ignorable=True)


class ControlledShutdownResponse(Response, api_key=7, versions="0-3", flexible="3+"):
    class RemainingPartition(Struct):
        topic_name: str = field(String, "0+")
        partition_index: int = field(Int32, "0+")

    error_code: int = field(Int16, "0+")
    remaining_partitions: list[RemainingPartition] = field(Array(RemainingPartition), "0+")


class AlterPartitionRequest(Request["AlterPartitionResponse"], api_key=56, versions="0-3", flexible="0+"):
    """Tells the controller of a changed set of in-sync replicas."""

    class BrokerState(Struct):
        broker_id: int = field(Int32, "3+")
        broker_epoch: int = field(Int64, "3+", default=-1)

    class PartitionData(Struct):
        partition_index: int = field(Int32, "0+")
        leader_epoch: int = field(Int32, "0+")
        new_isr: list[int] = field(Array(Int32), "0-2")
        new_isr_with_epochs: list[AlterPartitionRequest.BrokerState] = field(Array("BrokerState"), "3+")
        leader_recovery_state: int = field(Int8, "1+")
        partition_epoch: int = field(Int32, "0+")

    class TopicData(Struct):
        topic_name: str = field(String, "0-1", ignorable=True)
        topic_id: UUID = field(Uuid, "2+", ignorable=True)
        partitions: list[AlterPartitionRequest.PartitionData] = field(Array("PartitionData"), "0+")

    broker_id: int = field(Int32, "0+")
    broker_epoch: int = field(Int64, "0+", default=-1)
    topics: list[TopicData] = field(Array(TopicData), "0+")


class AlterPartitionResponse(Response, api_key=56, versions="0-3", flexible="0+"):
    class PartitionData(Struct):
        partition_index: int = field(Int32, "0+")
        error_code: int = field(Int16, "0+")
        leader_id: int = field(Int32, "0+")
        leader_epoch: int = field(Int32, "0+")
        isr: list[int] = field(Array(Int32), "0+")
        leader_recovery_state: int = field(Int8, "1+", ignorable=True)
        partition_epoch: int = field(Int32, "0+")

    class TopicData(Struct):
        topic_name: str = field(String, "0-1", ignorable=True)
        topic_id: UUID = field(Uuid, "2+", ignorable=True)
        partitions: list[AlterPartitionResponse.PartitionData] = field(Array("PartitionData"), "0+")

    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    topics: list[TopicData] = field(Array(TopicData), "0+")


class AssignReplicasToDirsRequest(Request["AssignReplicasToDirsResponse"], api_key=73, versions="0", flexible="0+"):
    """Tells the controller in which log directories replicas live."""

    class PartitionData(Struct):
        partition_index: int = field(Int32, "0+")

    class TopicData(Struct):
        topic_id: UUID = field(Uuid, "0+")
        partitions: list[AssignReplicasToDirsRequest.PartitionData] = field(Array("PartitionData"), "0+")

    class DirectoryData(Struct):
        id: UUID = field(Uuid, "0+")
        topics: list[AssignReplicasToDirsRequest.TopicData] = field(Array("TopicData"), "0+")

    broker_id: int = field(Int32, "0+")
    broker_epoch: int = field(Int64, "0+", default=-1)
    directories: list[DirectoryData] = field(Array(DirectoryData), "0+")


class AssignReplicasToDirsResponse(Response, api_key=73, versions="0", flexible="0+"):
    class PartitionData(Struct):
        partition_index: int = field(Int32, "0+")
        error_code: int = field(Int16, "0+")

    class TopicData(Struct):
        topic_id: UUID = field(Uuid, "0+")
        partitions: list[AssignReplicasToDirsResponse.PartitionData] = field(Array("PartitionData"), "0+")

    class DirectoryData(Struct):
        id: UUID = field(Uuid, "0+")
        topics: list[AssignReplicasToDirsResponse.TopicData] = field(Array("TopicData"), "0+")

    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    directories: list[DirectoryData] = field(Array(DirectoryData), "0+")
