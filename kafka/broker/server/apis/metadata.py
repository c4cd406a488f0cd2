"""Metadata (3), versions 0-13: nodes, topics, partitions and who leads them.

* v0: no topics asked for means all of them.
* v1: null means all, none means none; controller, racks, internal topics.
* v2: cluster id. v3: throttle time. v4: the client says whether topics may be created.
* v5: offline replicas. v6: clients expect throttling after the reply. v7: leader epochs.
* v8: authorized operations, of the cluster too up to v10.
* v9: flexible. v10: topic ids, unknown ids get UNKNOWN_TOPIC_ID. v12: ids without names.
* v13: an error for the whole reply (REBOOTSTRAP_REQUIRED, which this broker never sends).

Asking for a topic that does not exist creates it if client and broker (auto.create.topics.enable) allow it; its leader
is there at once, where Kafka first answers LEADER_NOT_AVAILABLE.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kafka.broker.cluster.creation import create_on_demand
from kafka.broker.cluster.topics import NO_LEADER, Partition, Topic, is_valid_topic_name
from kafka.broker.server.api import CLUSTER_NAME, Call, Code, Operation, Resource
from kafka.broker.server.call import cluster_operations, topic_operations
from kafka.protocol.fields import ZERO_UUID
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

if TYPE_CHECKING:
    from uuid import UUID

_NULL_MEANS_ALL_FROM: Final = 1
_CLIENT_DECIDES_FROM: Final = 4
_OPERATIONS: Final = range(8, 11)
_IDS_FROM: Final = 12
_REFUSED_IDS: Final = frozenset({10, 11})
#: Kafka's value for operations that were not asked for.
_NO_OPERATIONS: Final = -(2**31)
_REBOOTSTRAPS_FROM: Final = 13
_PARTITION_CODES: Final = frozenset({Code.REPLICA_NOT_AVAILABLE, Code.LISTENER_NOT_FOUND})


def metadata(call: Call[MetadataResponse], request: MetadataRequest) -> MetadataResponse:
    """Describe the cluster."""
    cluster = call.cluster
    asked = request.topics
    if call.version in _REFUSED_IDS and any(one.topic_id != ZERO_UUID or one.name is None for one in asked or ()):
        # There are fields for ids in these versions, but Kafka refuses them; and tells nothing else.
        refused = [_error(call, Code.INVALID_REQUEST, one.name, one.topic_id) for one in asked or ()]
        return call.response(brokers=[], cluster_id=None, controller_id=-1, topics=refused)
    if asked is None or (not asked and call.version < _NULL_MEANS_ALL_FROM):
        found = [
            _describe(call, request, topic)
            for topic in cluster.topics.values()
            if call.allows(Operation.DESCRIBE, Resource.TOPIC, topic.name)
        ]
    else:
        found = [_find(call, request, name, topic_id) for name, topic_id in _wanted(call, asked)]
    return _reply(call, request, found)


def refuse_metadata(call: Call[MetadataResponse], request: MetadataRequest, code: int) -> MetadataResponse | None:
    """Give each topic the error, or each partition one that is a partition's; the nodes are listed as ever."""
    if code == Code.REBOOTSTRAP_REQUIRED and call.version >= _REBOOTSTRAPS_FROM:
        return call.response(error_code=code)
    asked = request.topics
    if asked is None or (not asked and call.version < _NULL_MEANS_ALL_FROM):
        wanted: Iterable[tuple[str | None, UUID]] = [(topic.name, topic.id) for topic in call.cluster.topics.values()]
    else:
        wanted = _wanted(call, asked)
    refused = [_refused(call, request, name, topic_id, code) for name, topic_id in wanted]
    return _reply(call, request, refused) if refused else None


def _refused(
    call: Call[MetadataResponse], request: MetadataRequest, name: str | None, topic_id: UUID, code: int
) -> MetadataResponse.MetadataResponseTopic:
    topic = call.cluster.topic(name, topic_id)
    if topic is None or code not in _PARTITION_CODES:
        return _error(call, code, name, topic_id)
    found = _describe(call, request, topic)
    for partition in found.partitions:
        partition.error_code, partition.leader_id = code, NO_LEADER
    return found


def _reply(
    call: Call[MetadataResponse], request: MetadataRequest, found: list[MetadataResponse.MetadataResponseTopic]
) -> MetadataResponse:
    cluster = call.cluster
    reply = call.response(
        brokers=[(node.node_id, node.host, node.port, *rack_if(call, node.rack)) for node in cluster.live_nodes()],
        cluster_id=cluster.cluster_id,
        controller_id=cluster.controller_id,
        topics=found,
    )
    if request.include_cluster_authorized_operations and call.version in _OPERATIONS:
        reply.cluster_authorized_operations = cluster_operations(call)
    return reply


def _wanted(
    call: Call[MetadataResponse], asked: list[MetadataRequest.MetadataRequestTopic]
) -> Iterable[tuple[str | None, UUID]]:
    """Return name or id of each topic once; where there are ids Kafka goes by them alone."""
    ids = {one.topic_id: None for one in asked if one.topic_id != ZERO_UUID} if call.version >= _IDS_FROM else {}
    if ids:
        return [(None, topic_id) for topic_id in ids]
    return dict.fromkeys((one.name, one.topic_id) for one in asked)


def rack_if(call: Call[MetadataResponse], rack: str | None) -> tuple[str | None, ...]:
    """Return the rack as the fields of a version have it."""
    return (rack,) if call.version >= 1 else ()


def _find(
    call: Call[MetadataResponse], request: MetadataRequest, name: str | None, topic_id: UUID
) -> MetadataResponse.MetadataResponseTopic:
    cluster = call.cluster
    if name is None:
        topic = cluster.topic(topic_id=topic_id) if topic_id != ZERO_UUID else None
        if topic is None:
            return _error(call, Code.UNKNOWN_TOPIC_ID, None, topic_id)
        if not call.allows(Operation.DESCRIBE, Resource.TOPIC, topic.name):
            return _error(call, Code.TOPIC_AUTHORIZATION_FAILED, None, topic_id)
        return _describe(call, request, topic)
    topic = cluster.topic(name)
    if not call.allows(Operation.DESCRIBE, Resource.TOPIC, name):
        return _error(call, Code.TOPIC_AUTHORIZATION_FAILED, name)
    if topic is not None:
        return _describe(call, request, topic)
    may_create = request.allow_auto_topic_creation or call.version < _CLIENT_DECIDES_FROM
    if not may_create or not cluster.configs.broker_bool("auto.create.topics.enable"):
        known = Code.UNKNOWN_TOPIC_OR_PARTITION if is_valid_topic_name(name) else Code.INVALID_TOPIC_EXCEPTION
        return _error(call, known, name, operations=_operations(call, request, name))
    if not is_valid_topic_name(name):
        return _error(call, Code.INVALID_TOPIC_EXCEPTION, name, operations=_operations(call, request, name))
    if not (
        call.allows(Operation.CREATE, Resource.CLUSTER, CLUSTER_NAME)
        or call.allows(Operation.CREATE, Resource.TOPIC, name)
    ):
        return _error(call, Code.TOPIC_AUTHORIZATION_FAILED, name)
    created = create_on_demand(cluster, name)
    if created is None:
        return _error(call, Code.UNKNOWN_TOPIC_OR_PARTITION, name, operations=_operations(call, request, name))
    return _describe(call, request, created)


def _error(
    call: Call[MetadataResponse],
    code: int,
    name: str | None,
    topic_id: UUID = ZERO_UUID,
    operations: int = _NO_OPERATIONS,
) -> MetadataResponse.MetadataResponseTopic:
    if name is None and call.version < 12:
        name = ""
    return call.response.MetadataResponseTopic(
        error_code=code, name=name, topic_id=topic_id, topic_authorized_operations=operations
    )


def _operations(call: Call[MetadataResponse], request: MetadataRequest, name: str) -> int:
    """Return what the client may do with a topic, if it asks; Kafka says that of topics that do not exist, too."""
    return topic_operations(call, name) if request.include_topic_authorized_operations else _NO_OPERATIONS


def _describe(
    call: Call[MetadataResponse], request: MetadataRequest, topic: Topic
) -> MetadataResponse.MetadataResponseTopic:
    return call.response.MetadataResponseTopic(
        error_code=0,
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=[_partition(call, partition) for partition in topic.partitions],
        topic_authorized_operations=_operations(call, request, topic.name),
    )


def _partition(call: Call[MetadataResponse], partition: Partition) -> MetadataResponse.MetadataResponsePartition:
    return call.response.MetadataResponsePartition(
        error_code=Code.LEADER_NOT_AVAILABLE if partition.leader == NO_LEADER else 0,
        partition_index=partition.index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        offline_replicas=call.cluster.offline(partition),
    )
