"""PushTelemetry (72), version 0: metrics of a client (KIP-714). They are checked like Kafka's, and dropped."""

from __future__ import annotations

from kafka.broker.cluster.telemetry import Telemetry
from kafka.broker.server.api import BrokerResponseError, Call
from kafka.protocol.telemetry import PushTelemetryRequest, PushTelemetryResponse


def handle(call: Call[PushTelemetryResponse], request: PushTelemetryRequest) -> PushTelemetryResponse:
    """Take the metrics."""
    try:
        call.cluster.service(Telemetry).push(
            call,
            request.client_instance_id,
            request.subscription_id,
            request.compression_type,
            len(request.metrics),
            terminating=request.terminating,
        )
    except BrokerResponseError as error:
        return call.response(error_code=error.code)
    return call.response()
