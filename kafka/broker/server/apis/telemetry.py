"""Metrics that clients push (KIP-714)."""

from __future__ import annotations

from kafka.broker.cluster.telemetry import COMPRESSION_TYPES, Telemetry
from kafka.broker.server.api import Call
from kafka.protocol.telemetry import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)


def get_telemetry_subscriptions(
    call: Call[GetTelemetrySubscriptionsResponse], request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    """GetTelemetrySubscriptions (71), version 0: which metrics a client is asked to push, and how often (KIP-714).

    Return the subscription of a client, with an id for it if it has none.
    """
    client = call.cluster.service(Telemetry).ask(call, request.client_instance_id)
    return call.response(
        client_instance_id=client.instance_id,
        subscription_id=client.subscription_id,
        accepted_compression_types=list(COMPRESSION_TYPES),
        push_interval_ms=client.interval_ms,
        telemetry_max_bytes=call.cluster.configs.broker_int("telemetry.max.bytes"),
        delta_temporality=True,
        requested_metrics=client.metrics,
    )


def push_telemetry(call: Call[PushTelemetryResponse], request: PushTelemetryRequest) -> PushTelemetryResponse:
    """PushTelemetry (72), version 0: metrics of a client (KIP-714). `Broker.client_metrics` shows them."""
    call.cluster.service(Telemetry).push(
        call,
        request.client_instance_id,
        request.subscription_id,
        request.compression_type,
        bytes(request.metrics),
        terminating=request.terminating,
    )
    return call.response()
