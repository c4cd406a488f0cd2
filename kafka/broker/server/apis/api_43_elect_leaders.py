"""ElectLeaders (43), versions 0-2: put preferred leaders, or any, in charge (KIP-183, KIP-460).

* v0: preferred leaders only. v1: preferred (0) or unclean (1); an error for all of it. v2: flexible.

No replica here is ever out of sync, so an unclean election finds a leader only where a clean one does too.
"""

from __future__ import annotations

from kafka.broker.cluster.topics import NO_LEADER, Partition, move_leader
from kafka.broker.server.api import CLUSTER_NAME, Call, Code, Operation, Resource
from kafka.broker.server.error_replies import error_reply
from kafka.protocol.admin import ElectLeadersRequest, ElectLeadersResponse

_PREFERRED, _UNCLEAN = 0, 1


def handle(call: Call[ElectLeadersResponse], request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Elect."""
    cluster = call.cluster
    if not call.allows(Operation.ALTER, Resource.CLUSTER, CLUSTER_NAME):
        return error_reply(request, Code.CLUSTER_AUTHORIZATION_FAILED) or call.response()
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
