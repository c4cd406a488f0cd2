"""Client metrics pushed to the broker (KIP-714).

Written by tools/generate_protocol.py from Kafka's message specs; do not edit.
"""

from __future__ import annotations

from uuid import UUID

from kafka.protocol.api import Request, Response
from kafka.protocol.fields import Array, field
from kafka.protocol.types import Boolean, Bytes, Int8, Int16, Int32, String, Uuid


class GetTelemetrySubscriptionsRequest(
    Request["GetTelemetrySubscriptionsResponse"], api_key=71, versions="0", flexible="0+"
):
    """Asks which client metrics the broker wants."""

    client_instance_id: UUID = field(Uuid, "0+")


class GetTelemetrySubscriptionsResponse(Response, api_key=71, versions="0", flexible="0+"):
    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    client_instance_id: UUID = field(Uuid, "0+")
    subscription_id: int = field(Int32, "0+")
    accepted_compression_types: list[int] = field(Array(Int8), "0+")
    push_interval_ms: int = field(Int32, "0+")
    telemetry_max_bytes: int = field(Int32, "0+")
    delta_temporality: bool = field(Boolean, "0+")
    requested_metrics: list[str] = field(Array(String), "0+")


class PushTelemetryRequest(Request["PushTelemetryResponse"], api_key=72, versions="0", flexible="0+"):
    """Pushes client metrics to the broker."""

    client_instance_id: UUID = field(Uuid, "0+")
    subscription_id: int = field(Int32, "0+")
    terminating: bool = field(Boolean, "0+")
    compression_type: int = field(Int8, "0+")
    metrics: bytes = field(Bytes, "0+")


class PushTelemetryResponse(Response, api_key=72, versions="0", flexible="0+"):
    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
