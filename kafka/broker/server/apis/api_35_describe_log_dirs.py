"""DescribeLogDirs (35), versions 0-5: the directories of a node and what they hold.

* v0, v1: sizes of partitions; v1: clients expect throttling after the reply. v2: flexible. v3: an error for all of it.
* v4: the directory's total and free bytes (KIP-827). v5: whether it is cordoned (never).

Each node has one directory: the broker's, or ``/memory``.
"""

from __future__ import annotations

from kafka.broker.server.api import CLUSTER_NAME, Call, Code, Operation, Resource
from kafka.protocol.admin import DescribeLogDirsRequest, DescribeLogDirsResponse


def handle(call: Call[DescribeLogDirsResponse], request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """Describe the directory."""
    if not call.allows(Operation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME):
        reply = call.response()
        if call.version >= 3:
            reply.error_code = Code.CLUSTER_AUTHORIZATION_FAILED
        return reply
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
