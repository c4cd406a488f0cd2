"""DescribeLogDirs (35), versions 0-5: the directories of a node and what they hold.

* v0, v1: sizes of partitions; v1: clients expect throttling after the reply. v2: flexible. v3: an error for all of it.
* v4: the directory's total and free bytes (KIP-827). v5: whether it is cordoned (never).

Each node has one directory: the broker's, or ``/memory``.
"""

from __future__ import annotations

from typing import Final

from kafka.broker.server.api import CLUSTER_NAME, Call, Code, Operation, Resource
from kafka.protocol.admin import DescribeLogDirsRequest, DescribeLogDirsResponse

_ERROR_FROM: Final = 3


def handle(call: Call[DescribeLogDirsResponse], request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """Describe the directory."""
    if not call.allows(Operation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME):
        return refuse(call, request, Code.CLUSTER_AUTHORIZATION_FAILED)
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


def refuse(call: Call[DescribeLogDirsResponse], _: DescribeLogDirsRequest, code: int) -> DescribeLogDirsResponse:
    """Give the directory a storage's error, and the whole reply any other; before v3 that is a reply without any."""
    if code == Code.KAFKA_STORAGE_ERROR:
        result = call.response.DescribeLogDirsResult(error_code=code, log_dir=call.cluster.storage.directory_name)
        return call.response(results=[result])
    return call.response(error_code=code) if call.version >= _ERROR_FROM else call.response()
