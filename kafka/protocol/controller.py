"""Brokers and controllers among themselves.

Written by tools/generate_protocol.py from Kafka's message specs; do not edit.
"""

from __future__ import annotations

from uuid import UUID

from kafka.protocol.api import Request, Response
from kafka.protocol.fields import Array, field
from kafka.protocol.struct import Struct
from kafka.protocol.types import Boolean, Bytes, Int16, Int32, Int64, String, UInt16, Uuid


class BrokerRegistrationRequest(Request["BrokerRegistrationResponse"], api_key=62, versions="0-4", flexible="0+"):
    """Registers a broker with the controller."""

    class Listener(Struct):
        name: str = field(String, "0+")
        host: str = field(String, "0+")
        port: int = field(UInt16, "0+")
        security_protocol: int = field(Int16, "0+")

    class Feature(Struct):
        name: str = field(String, "0+")
        min_supported_version: int = field(Int16, "0+")
        max_supported_version: int = field(Int16, "0+")

    broker_id: int = field(Int32, "0+")
    cluster_id: str = field(String, "0+")
    incarnation_id: UUID = field(Uuid, "0+")
    listeners: list[Listener] = field(Array(Listener), "0+")
    features: list[Feature] = field(Array(Feature), "0+")
    rack: str | None = field(String, "0+", nullable="0+")
    is_migrating_zk_broker: bool = field(Boolean, "1+")
    log_dirs: list[UUID] = field(Array(Uuid), "2+", ignorable=True)
    previous_broker_epoch: int = field(Int64, "3+", default=-1, ignorable=True)


class BrokerRegistrationResponse(Response, api_key=62, versions="0-4", flexible="0+"):
    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    broker_epoch: int = field(Int64, "0+", default=-1)


class BrokerHeartbeatRequest(Request["BrokerHeartbeatResponse"], api_key=63, versions="0-2", flexible="0+"):
    """Keeps a broker registered with the controller."""

    broker_id: int = field(Int32, "0+")
    broker_epoch: int = field(Int64, "0+", default=-1)
    current_metadata_offset: int = field(Int64, "0+")
    want_fence: bool = field(Boolean, "0+")
    want_shut_down: bool = field(Boolean, "0+")
    offline_log_dirs: list[UUID] = field(Array(Uuid), "1+", tag=0)
    cordoned_log_dirs: list[UUID] | None = field(Array(Uuid), "2+", nullable="2+", default=None, tag=1)


class BrokerHeartbeatResponse(Response, api_key=63, versions="0-2", flexible="0+"):
    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    is_caught_up: bool = field(Boolean, "0+")
    is_fenced: bool = field(Boolean, "0+", default=True)
    should_shut_down: bool = field(Boolean, "0+")


class ControllerRegistrationRequest(Request["ControllerRegistrationResponse"], api_key=70, versions="0", flexible="0+"):
    """Registers a controller with the active one."""

    class Listener(Struct):
        name: str = field(String, "0+")
        host: str = field(String, "0+")
        port: int = field(UInt16, "0+")
        security_protocol: int = field(Int16, "0+")

    class Feature(Struct):
        name: str = field(String, "0+")
        min_supported_version: int = field(Int16, "0+")
        max_supported_version: int = field(Int16, "0+")

    controller_id: int = field(Int32, "0+")
    incarnation_id: UUID = field(Uuid, "0+")
    zk_migration_ready: bool = field(Boolean, "0+")
    listeners: list[Listener] = field(Array(Listener), "0+")
    features: list[Feature] = field(Array(Feature), "0+")


class ControllerRegistrationResponse(Response, api_key=70, versions="0", flexible="0+"):
    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", nullable="0+")


class AllocateProducerIdsRequest(Request["AllocateProducerIdsResponse"], api_key=67, versions="0", flexible="0+"):
    """Takes a block of producer ids from the controller."""

    broker_id: int = field(Int32, "0+")
    broker_epoch: int = field(Int64, "0+", default=-1)


class AllocateProducerIdsResponse(Response, api_key=67, versions="0", flexible="0+"):
    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    producer_id_start: int = field(Int64, "0+")
    producer_id_len: int = field(Int32, "0+")


class EnvelopeRequest(Request["EnvelopeResponse"], api_key=58, versions="0", flexible="0+"):
    """Carries a client's request from a broker to the controller."""

    request_data: bytes = field(Bytes, "0+")
    request_principal: bytes | None = field(Bytes, "0+", nullable="0+")
    client_host_address: bytes = field(Bytes, "0+")


class EnvelopeResponse(Response, api_key=58, versions="0", flexible="0+"):
    response_data: bytes | None = field(Bytes, "0+", nullable="0+", default=None)
    error_code: int = field(Int16, "0+")


class DefaultPrincipalData(Struct, versions="0", flexible="0+"):
    """A principal as it travels in an envelope."""

    type: str = field(String, "0+")
    name: str = field(String, "0+")
    token_authenticated: bool = field(Boolean, "0+")
