"""Replicas: their directories and nodes, and the election of leaders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kafka.broker.cluster.creation import check_assignment
from kafka.broker.cluster.topics import NO_LEADER, Partition, move_leader, replace_replicas
from kafka.broker.server.api import CLUSTER_NAME, BrokerResponseError, Call, Code, Operation, Resource
from kafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

_ERROR_FROM: Final = 3
_PREFERRED, _UNCLEAN = 0, 1


def alter_replica_log_dirs(
    call: Call[AlterReplicaLogDirsResponse], request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    """AlterReplicaLogDirs (34), versions 0-2: move replicas to another directory of their node (KIP-113).

    * v1: clients expect throttling after the reply. v2: flexible.

    Each node has one directory, so a replica can be moved only to where it is.
    """
    return _reply(call, request, lambda name, index, path: _outcome(call, name, index, path))


def refuse_alter_replica_log_dirs(
    call: Call[AlterReplicaLogDirsResponse], request: AlterReplicaLogDirsRequest, code: int
) -> AlterReplicaLogDirsResponse | None:
    """Give each partition the error: the reply has no directories, as the request does."""
    reply = _reply(call, request, lambda *_: code)
    return reply if reply.results else None


def _reply(
    call: Call[AlterReplicaLogDirsResponse],
    request: AlterReplicaLogDirsRequest,
    outcome: Callable[[str, int, str], int],
) -> AlterReplicaLogDirsResponse:
    # Of a partition that is named for two directories the last one counts, as in Kafka.
    asked = {
        (topic.name, index): one.path for one in request.dirs for topic in one.topics for index in topic.partitions
    }
    topics: dict[str, list[tuple[int, int]]] = {}
    for (name, index), path in asked.items():
        topics.setdefault(name, []).append((index, outcome(name, index, path)))
    return call.response(results=list(topics.items()))


def _outcome(call: Call[AlterReplicaLogDirsResponse], name: str, index: int, path: str) -> int:
    if not call.allows(Operation.ALTER, Resource.CLUSTER, CLUSTER_NAME):
        return Code.CLUSTER_AUTHORIZATION_FAILED
    if path != call.cluster.storage.directory_name:
        return Code.LOG_DIR_NOT_FOUND
    partition = call.cluster.partition(name, index)
    if partition is None or call.node.node_id not in partition.replicas:
        return Code.UNKNOWN_TOPIC_OR_PARTITION
    return Code.NONE


def describe_log_dirs(call: Call[DescribeLogDirsResponse], request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """DescribeLogDirs (35), versions 0-5: the directories of a node and what they hold.

    * v0: sizes of partitions. v1: clients expect throttling after the reply. v2: flexible. v3: an error for all of it.
    * v4: the directory's total and free bytes (KIP-827). v5: whether it is cordoned (never).

    Each node has one directory: the broker's, or ``/memory``.
    """
    call.require(Operation.DESCRIBE, Resource.CLUSTER)
    wanted: dict[str, set[int]] | None = None
    if request.topics is not None:
        wanted = {topic.topic: set(topic.partitions) for topic in request.topics}
    total, usable = call.cluster.storage.space()
    result = call.response.DescribeLogDirsResult(
        log_dir=call.cluster.storage.directory_name, total_bytes=total, usable_bytes=usable
    )
    for topic in call.cluster.topics.values():
        shown = [
            (partition.index, partition.log.size, 0, False)
            for partition in topic.partitions
            if call.node.node_id in partition.replicas
            and (wanted is None or partition.index in wanted.get(topic.name, ()))
        ]
        if shown:
            result.topics.append(call.response.DescribeLogDirsTopic(name=topic.name, partitions=shown))
    return call.response(results=[result])


def refuse_describe_log_dirs(
    call: Call[DescribeLogDirsResponse], _: DescribeLogDirsRequest, code: int
) -> DescribeLogDirsResponse:
    """Give the directory a storage's error, and the whole reply any other; before v3 that is a reply without any."""
    if code == Code.KAFKA_STORAGE_ERROR:
        result = call.response.DescribeLogDirsResult(error_code=code, log_dir=call.cluster.storage.directory_name)
        return call.response(results=[result])
    return call.response(error_code=code) if call.version >= _ERROR_FROM else call.response()


def elect_leaders(call: Call[ElectLeadersResponse], request: ElectLeadersRequest) -> ElectLeadersResponse:
    """ElectLeaders (43), versions 0-2: put preferred leaders, or any, in charge (KIP-183, KIP-460).

    * v0: preferred leaders only. v1: preferred (0) or unclean (1); an error for all of it. v2: flexible.

    No replica here is ever out of sync, so an unclean election finds a leader only where a clean one does too.
    """
    cluster = call.cluster
    call.require(Operation.ALTER, Resource.CLUSTER)
    if request.election_type not in {_PREFERRED, _UNCLEAN}:
        return _refuse(call, request)
    everything = request.topic_partitions is None
    asked: list[tuple[str, list[int]]] = (
        [(topic.name, [p.index for p in topic.partitions]) for topic in cluster.topics.values()]
        if request.topic_partitions is None
        else [(one.topic, one.partitions) for one in request.topic_partitions]
    )
    results = []
    for name, indexes in asked:
        outcomes = [_elect(call, request.election_type, name, index) for index in indexes]
        if everything:  # the reply leaves out partitions that need no election
            outcomes = [one for one in outcomes if one[1] != Code.ELECTION_NOT_NEEDED]
        results.append((name, outcomes))
        topic = cluster.topic(name)
        if topic is not None:
            cluster.save_topic(topic)
    return call.response(replica_election_results=results)


def _refuse(call: Call[ElectLeadersResponse], request: ElectLeadersRequest) -> ElectLeadersResponse:
    message = f"Unknown election type {request.election_type}"
    results = [
        (one.topic, [(index, Code.INVALID_REQUEST, message) for index in one.partitions])
        for one in request.topic_partitions or ()
    ]
    return call.response(error_code=Code.INVALID_REQUEST, replica_election_results=results)


def _elect(call: Call[ElectLeadersResponse], kind: int, name: str, index: int) -> tuple[int, int, str | None]:
    partition = call.cluster.partition(name, index)
    if partition is None:
        return index, Code.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}"
    wanted = _candidate(call, partition, kind)
    if wanted == NO_LEADER:
        if kind == _PREFERRED:
            return index, Code.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."
        return index, Code.ELIGIBLE_LEADERS_NOT_AVAILABLE, "Eligible topic partition leaders are not available."
    if wanted == partition.leader:
        return index, Code.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
    move_leader(partition, wanted)
    return index, 0, None


def _candidate(call: Call[ElectLeadersResponse], partition: Partition, kind: int) -> int:
    """Return who should lead: the present leader if it may stay."""
    live = {node.node_id for node in call.cluster.live_nodes()}
    if kind == _PREFERRED:
        return partition.replicas[0] if partition.replicas[0] in live else NO_LEADER
    if partition.leader != NO_LEADER:
        return partition.leader
    return next((node for node in partition.replicas if node in live), NO_LEADER)


def alter_partition_reassignments(
    call: Call[AlterPartitionReassignmentsResponse], request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """AlterPartitionReassignments (45), versions 0-1: other replicas for partitions (KIP-455).

    * v0: replicas, or null to cancel. v1: whether the number of replicas may change.

    Replicas are notional, so a move is done when it is asked for; there is never one to cancel.
    """
    call.require(Operation.ALTER, Resource.CLUSTER)
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


def list_partition_reassignments(
    call: Call[ListPartitionReassignmentsResponse], _: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """ListPartitionReassignments (46), version 0: moves under way (KIP-455).

    * v0: none, ever: a move here is done when it is asked for.
    """
    call.require(Operation.DESCRIBE, Resource.CLUSTER)
    return call.response(error_code=0, error_message=None)


def refuse_list_partition_reassignments(
    call: Call[ListPartitionReassignmentsResponse], request: ListPartitionReassignmentsRequest, code: int
) -> ListPartitionReassignmentsResponse:
    """As Kafka does, name what was asked for beside the error."""
    topics: list[tuple[str, list[tuple[int, list[int], list[int], list[int]]]]] = [
        (topic.name, [(index, [], [], []) for index in topic.partition_indexes]) for topic in request.topics or ()
    ]
    return call.response(error_code=code, error_message=None, topics=topics)
