"""The cluster: its brokers and its controller."""

from __future__ import annotations

from typing import ClassVar, Final

from kafka.admin.calls import Calls, call
from kafka.admin.resources import operations
from kafka.admin.results import Result
from kafka.protocol.metadata import DescribeClusterRequest, DescribeClusterResponse, MetadataRequest, MetadataResponse
from kafka.protocol.registry import ApiKey

_FENCED_SINCE: Final = 2
_BROKERS: Final = 1
_CONTROLLERS: Final = 2
_OPERATIONS: Final = range(8, 11)


class BrokerDescription(Result):
    """A broker."""

    __slots__ = ()
    _aliases: ClassVar = {"node_id": "broker_id"}
    broker_id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool


class ClusterDescription(Result):
    """A cluster: its id, its controller and its brokers."""

    __slots__ = ("throttle_time_ms",)
    _aliases: ClassVar = {"throttle_time_ms": "throttle_time_ms"}
    cluster_id: str | None
    controller_id: int
    brokers: list[BrokerDescription]
    authorized_operations: list[str] | None
    throttle_time_ms: int


class Cluster(Calls):
    """The calls about the cluster."""

    @call
    async def describe_cluster(
        self,
        timeout_ms: float | None = None,
        *,
        include_authorized_operations: bool = False,
        include_fenced_brokers: bool = False,
    ) -> ClusterDescription:
        """Describe the cluster: its id, its controller and its brokers.

        A client with ``bootstrap_controllers`` gets the active controller, and all controllers instead of the brokers.
        Brokers of a cluster without ZooKeeper name any broker as the controller: ``describe_metadata_quorum()`` has it.

        >>> from kafka import KafkaAdminClient
        >>> from kafka.broker import Broker
        >>> with Broker(nodes=3) as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...     cluster = admin.describe_cluster()
        >>> [node.broker_id for node in cluster.brokers]
        [1, 2, 3]
        """
        deadline = self._core.deadline(timeout_ms)
        versions = await self._core.versions(deadline)
        if not versions.reaches(ApiKey.DescribeCluster, _FENCED_SINCE) and include_fenced_brokers:
            raise self._core.unsupported("include_fenced_brokers", "4.0")
        if not versions.reaches(ApiKey.DescribeCluster):
            return await self._describe_by_metadata(deadline, include_operations=include_authorized_operations)
        request = DescribeClusterRequest(
            include_cluster_authorized_operations=include_authorized_operations,
            include_fenced_brokers=include_fenced_brokers,
            endpoint_type=_CONTROLLERS if self._core.client.of_controllers else _BROKERS,
        )
        response = await self._core.ask(request, deadline, "describe_cluster()", checked=True)
        return _described(
            response,
            [
                (broker.broker_id, broker.host, broker.port, broker.rack, broker.is_fenced)
                for broker in response.brokers
            ],
        )

    async def _describe_by_metadata(self, deadline: float, *, include_operations: bool) -> ClusterDescription:
        version = await self._core.version_of(MetadataRequest(), deadline)
        if include_operations and version not in _OPERATIONS:
            raise self._core.unsupported("include_authorized_operations", "2.3")
        # An empty list means all topics in version 0.
        request = MetadataRequest(topics=[], include_cluster_authorized_operations=include_operations)
        response = await self._core.ask(request, deadline, "describe_cluster()")
        return _described(
            response, [(broker.node_id, broker.host, broker.port, broker.rack, False) for broker in response.brokers]
        )


def _described(
    response: DescribeClusterResponse | MetadataResponse, brokers: list[tuple[int, str, int, str | None, bool]]
) -> ClusterDescription:
    found = ClusterDescription(
        cluster_id=response.cluster_id,
        controller_id=response.controller_id,
        brokers=[
            BrokerDescription(broker_id=node_id, host=host, port=port, rack=rack, is_fenced=fenced)
            for node_id, host, port, rack, fenced in sorted(brokers)
        ],
        authorized_operations=operations(response.cluster_authorized_operations),
    )
    found.throttle_time_ms = response.throttle_time_ms
    return found
