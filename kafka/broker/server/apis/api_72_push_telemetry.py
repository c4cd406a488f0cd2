"""PushTelemetry (72), version 0: metrics of a client (KIP-714). They are checked like Kafka's, and dropped."""

from __future__ import annotations

from typing import Any

from kafka.broker.cluster.telemetry import Telemetry
from kafka.broker.server.api import BrokerResponseError, Call
from kafka.protocol.telemetry import PushTelemetryRequest


def handle(call: Call, request: PushTelemetryRequest) -> Any:
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
