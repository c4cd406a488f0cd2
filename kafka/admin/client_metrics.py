"""Client metrics (KIP-714): the subscriptions of a cluster, and what a client pushes to it."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from kafka._core.telemetry import unsupported
from kafka.admin.calls import Calls, call
from kafka.admin.results import Result
from kafka.protocol.configs import ListConfigResourcesRequest
from kafka.protocol.telemetry import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
)

_NO_ID: Final = UUID(int=0)
_CLIENT_METRICS: Final = 16


class TelemetrySubscription(Result):
    """The metrics that a broker wants from a client, and how often; an empty list asks for no metrics."""

    __slots__ = ()
    client_instance_id: UUID
    subscription_id: int
    accepted_compression_types: list[int]
    push_interval_ms: int
    telemetry_max_bytes: int
    delta_temporality: bool
    requested_metrics: list[str]


class ClientMetrics(Calls):
    """The calls about client metrics."""

    @call
    async def list_client_metrics_resources(self, timeout_ms: float | None = None) -> list[str]:
        """Return the names of the client metrics subscriptions (Kafka 3.7); their settings are a configuration.

        >>> from kafka import KafkaAdminClient
        >>> from kafka.broker import Broker
        >>> with Broker() as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...     admin.list_client_metrics_resources()
        []
        """
        deadline = self._core.deadline(timeout_ms)
        kind = ListConfigResourcesRequest
        what = "list_client_metrics_resources()"
        await self._core.require(deadline, kind.API_KEY, 0, what, "3.7")
        more = {"resource_types": [_CLIENT_METRICS]} if await self._core.version_of(kind(), deadline) else {}
        response = await self._core.ask(kind(**more), deadline, what, checked=True)
        return [resource.resource_name for resource in response.config_resources]

    @call
    async def client_instance_id(self, timeout_ms: float | None = None) -> UUID:
        """Return the id that brokers give this client, the same for its life (Kafka 3.7)."""
        return (await self._subscribe(self._core.deadline(timeout_ms))).client_instance_id

    @call
    async def telemetry_subscription(self, timeout_ms: float | None = None) -> TelemetrySubscription:
        """Return the metrics that brokers want from this client (Kafka 3.7)."""
        return await self._subscribe(self._core.deadline(timeout_ms))

    @call
    async def push_telemetry(
        self,
        subscription: TelemetrySubscription,
        metrics: bytes,
        compression_type: int = 0,
        terminating: bool = False,
        timeout_ms: float | None = None,
    ) -> None:
        """Send metrics (an OTLP ``MetricsData`` message) to the brokers for a subscription (Kafka 3.7)."""
        deadline = self._core.deadline(timeout_ms)
        request = PushTelemetryRequest(
            client_instance_id=subscription.client_instance_id,
            subscription_id=subscription.subscription_id,
            terminating=terminating,
            compression_type=compression_type,
            metrics=bytes(metrics),
        )
        if not (await self._core.versions(deadline)).reaches(request.API_KEY):
            raise unsupported("push_telemetry()")
        await self._core.ask(request, deadline, "push_telemetry()", checked=True)

    async def _subscribe(self, deadline: float) -> TelemetrySubscription:
        response = await self._response(deadline)
        self._core.client_instance_id = response.client_instance_id
        return TelemetrySubscription.of_entry(response)

    async def _response(self, deadline: float) -> GetTelemetrySubscriptionsResponse:
        """Return what the broker wants; if this client pushes metrics, its last response."""
        kind, telemetry = GetTelemetrySubscriptionsRequest, self._core.client.telemetry
        if not (await self._core.versions(deadline)).reaches(kind.API_KEY):
            raise unsupported("telemetry_subscription()")
        if telemetry is not None:
            await telemetry.instance_id(deadline)
            assert telemetry.response is not None
            return telemetry.response
        request = kind(client_instance_id=self._core.client_instance_id or _NO_ID)
        return await self._core.ask(request, deadline, "telemetry_subscription()", checked=True)
