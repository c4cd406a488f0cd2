"""Which broker a request is for: a rule per API, and what of the request the rule looks at. Sans-IO."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from kafka.errors import IllegalArgumentError
from kafka.protocol.registry import ApiKey
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.cluster import ClusterMetadata
    from kafka.protocol.api import Request, Response

__all__ = ["Route", "Target", "route"]


class Target(Enum):
    """The broker that serves a request."""

    ANY = "any broker"
    CONTROLLER = "the controller"
    GROUP = "the group's coordinator"
    TRANSACTION = "the transaction's coordinator"
    LEADER = "the partition's leader"


class Route(NamedTuple):
    """The broker that serves a request, and the key: a group, a transactional id, or a partition."""

    target: Target
    key: str | TopicPartition | None = None


_CONTROLLER: Final = frozenset(
    {
        ApiKey.ControlledShutdown,
        ApiKey.CreateTopics,
        ApiKey.DeleteTopics,
        ApiKey.CreatePartitions,
        ApiKey.ElectLeaders,
        ApiKey.AlterPartitionReassignments,
        ApiKey.ListPartitionReassignments,
        ApiKey.AlterUserScramCredentials,
        ApiKey.UpdateFeatures,
        ApiKey.AddRaftVoter,
        ApiKey.RemoveRaftVoter,
    }
)
#: API key -> reads the name of a group in the request.
_GROUP: Final[dict[int, Callable[[Any], str | None]]] = {
    **{
        key: lambda request: str(request.group_id)
        for key in (
            ApiKey.OffsetCommit,
            ApiKey.JoinGroup,
            ApiKey.Heartbeat,
            ApiKey.LeaveGroup,
            ApiKey.SyncGroup,
            ApiKey.TxnOffsetCommit,
            ApiKey.OffsetDelete,
            ApiKey.ConsumerGroupHeartbeat,
            ApiKey.ShareGroupHeartbeat,
            ApiKey.StreamsGroupHeartbeat,
            ApiKey.AlterShareGroupOffsets,
            ApiKey.DeleteShareGroupOffsets,
        )
    },
    ApiKey.OffsetFetch: lambda request: request.groups[0].group_id if request.groups else str(request.group_id),
    ApiKey.DescribeGroups: lambda request: _first(request.groups),
    ApiKey.DeleteGroups: lambda request: _first(request.groups_names),
    ApiKey.ConsumerGroupDescribe: lambda request: _first(request.group_ids),
    ApiKey.ShareGroupDescribe: lambda request: _first(request.group_ids),
    ApiKey.StreamsGroupDescribe: lambda request: _first(request.group_ids),
    ApiKey.DescribeShareGroupOffsets: lambda request: request.groups[0].group_id if request.groups else None,
}
_TRANSACTION: Final[dict[int, Callable[[Any], str | None]]] = {
    ApiKey.InitProducerId: lambda request: request.transactional_id,
    ApiKey.AddPartitionsToTxn: lambda request: (
        request.transactions[0].transactional_id if request.transactions else request.v3_and_below_transactional_id
    ),
    ApiKey.AddOffsetsToTxn: lambda request: str(request.transactional_id),
    ApiKey.EndTxn: lambda request: str(request.transactional_id),
    ApiKey.DescribeTransactions: lambda request: _first(request.transactional_ids),
}
_LEADER: Final = frozenset(
    {
        ApiKey.Produce,
        ApiKey.Fetch,
        ApiKey.ListOffsets,
        ApiKey.DeleteRecords,
        ApiKey.OffsetForLeaderEpoch,
        ApiKey.DescribeProducers,
        ApiKey.ShareFetch,
        ApiKey.ShareAcknowledge,
    }
)


def route(request: Request[Response], cluster: ClusterMetadata) -> Route:
    """Return whom a request is for.

    >>> from kafka.cluster import ClusterMetadata
    >>> from kafka.protocol.group import HeartbeatRequest
    >>> route(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), ClusterMetadata())
    Route(target=<Target.GROUP: "the group's coordinator">, key='g')
    """
    key = request.API_KEY
    if key in _CONTROLLER:
        return Route(Target.CONTROLLER)
    if key in _GROUP:
        group = _GROUP[key](request)
        return Route(Target.ANY) if group is None else Route(Target.GROUP, group)
    if key in _TRANSACTION:
        name = _TRANSACTION[key](request)
        return Route(Target.ANY) if name is None else Route(Target.TRANSACTION, name)
    if key in _LEADER:
        return _leader(request, cluster)
    return Route(Target.ANY)


def _first(names: Iterable[str] | None) -> str | None:
    return next(iter(names or ()), None)


def _leader(request: object, cluster: ClusterMetadata) -> Route:
    """Return the leader that all partitions of a request have in common."""
    partitions = list(_partitions(request, cluster))
    leaders = {cluster.leader_for_partition(partition) for partition in partitions}
    if len(leaders) > 1:
        raise IllegalArgumentError(
            f"{type(request).__name__} names partitions of several leaders ({leaders}): send one request to each"
        )
    return Route(Target.LEADER, partitions[0]) if partitions else Route(Target.ANY)


def _partitions(request: object, cluster: ClusterMetadata) -> Iterable[TopicPartition]:
    topics: Iterable[object] = getattr(request, "topic_data", None) or getattr(request, "topics", None) or ()
    for topic in topics:
        name = getattr(topic, "name", None) or getattr(topic, "topic", None)
        topic_id = getattr(topic, "topic_id", None)
        if not name and isinstance(topic_id, UUID):
            name = cluster.topic_name_for_id(topic_id)
        if not name:
            raise IllegalArgumentError(f"{type(request).__name__} names a topic that is not known: {topic_id}")
        entries: Iterable[object] = (
            getattr(topic, "partition_data", None)
            or getattr(topic, "partitions", None)
            or getattr(topic, "partition_indexes", None)
            or ()
        )
        for entry in entries:
            number = entry if isinstance(entry, int) else None
            for attribute in ("partition_index", "partition", "index"):
                number = getattr(entry, attribute, number) if number is None else number
            assert number is not None, f"no partition number in {entry!r}"
            yield TopicPartition(name, number)
