"""AlterReplicaLogDirs (34), versions 0-2: move replicas to another directory of their node (KIP-113).

* v1: clients expect throttling after the reply. v2: flexible.

Each node has one directory, so a replica can be moved only to where it is.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka.broker.server.api import CLUSTER_NAME, Call, Code, Operation, Resource
from kafka.protocol.admin import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse


def handle(call: Call[AlterReplicaLogDirsResponse], request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    """Check each move."""
    return _reply(call, request, lambda name, index, path: _outcome(call, name, index, path))


def refuse(
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
