"""The cluster: its brokers and its controller."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from kafka.admin.core import AdminCore
from kafka.admin.resources import operations
from kafka.admin.results import Result
from kafka.errors import for_code
from kafka.protocol.metadata import DescribeClusterRequest, MetadataRequest

__all__ = ["BrokerDescription", "Cluster", "ClusterDescription"]

_DESCRIBE_CLUSTER: Final = 60
_FENCED_SINCE: Final = 2
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


class Cluster:
    """The calls about the cluster, as coroutines."""

    def __init__(self, core: AdminCore) -> None:
        self._core = core

    async def describe(self, deadline: float, *, include_operations: bool, include_fenced: bool) -> ClusterDescription:
        """Describe the cluster, by Metadata before Kafka 2.8."""
        versions = await self._core.versions(deadline)
        if not versions.supports(_DESCRIBE_CLUSTER, _FENCED_SINCE) and include_fenced:
            raise self._core.unsupported("include_fenced_brokers", "4.0")
        if not versions.supports(_DESCRIBE_CLUSTER):
            return await self._by_metadata(deadline, include_operations=include_operations)
        response: Any = None
        async for attempt in self._core.client.attempts(deadline, "describe_cluster()"):
            with attempt:
                request = DescribeClusterRequest(
                    include_cluster_authorized_operations=include_operations, include_fenced_brokers=include_fenced
                )
                response = await self._core.client.request(request, deadline=attempt.deadline)
                if response.error_code:
                    raise for_code(response.error_code)(response.error_message or "the cluster cannot be described")
        return _described(
            response,
            [
                (broker.broker_id, broker.host, broker.port, broker.rack, broker.is_fenced)
                for broker in response.brokers
            ],
        )

    async def _by_metadata(self, deadline: float, *, include_operations: bool) -> ClusterDescription:
        version = await self._core.version_of(MetadataRequest(), deadline)
        if include_operations and version not in _OPERATIONS:
            raise self._core.unsupported("include_authorized_operations", "2.3")
        # An empty list means all topics in version 0.
        request = MetadataRequest(
            topics=[],
            include_cluster_authorized_operations=include_operations,
        )
        response = await self._core.ask(request, deadline, "describe_cluster()")
        return _described(
            response, [(broker.node_id, broker.host, broker.port, broker.rack, False) for broker in response.brokers]
        )


def _described(response: Any, brokers: list[tuple[int, str, int, str | None, bool]]) -> ClusterDescription:
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
