"""Client metrics (KIP-714): which metrics a client is asked for, and when it may push them.

The subscriptions are the config resources CLIENT_METRICS. What each client has pushed last is kept for
``broker.client_metrics()``. As in Kafka, clients see these APIs only if a plugin takes the metrics: if
``metric.reporters`` names another class than the default.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka.broker.configs.definitions import CLIENT_METRICS_OPTIONS
from kafka.broker.configs.option import parse_list
from kafka.broker.configs.resource_kinds import METRICS_TABLE
from kafka.codec import decompressor
from kafka.errors import (
    CorruptRecordError,
    InvalidRecordError,
    InvalidRequestError,
    KafkaProtocolError,
    TelemetryTooLargeError,
    ThrottlingQuotaExceededError,
    UnknownSubscriptionIdError,
    UnsupportedCompressionTypeError,
)
from kafka.protocol.fields import ZERO_UUID
from kafka.protocol.otlp import Point, decode_metrics

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from kafka.broker.cluster.cluster import Cluster
    from kafka.broker.server.call import Call

#: What clients may compress with, in the order of preference: zstd, lz4, gzip, snappy.
COMPRESSION_TYPES: Final = (4, 3, 1, 2)
_UNCOMPRESSED: Final = 0
_ALL: Final = "*"
#: As in Kafka, the least recently used clients beyond these are forgotten.
_MOST_CLIENTS: Final = 16_384


class PushedMetrics(NamedTuple):
    """One push of a client: its id, gauges and sums by name and labels, and the attributes of the client."""

    client_id: str
    points: list[Point]
    resource: dict[str, str]
    is_delta: bool
    terminating: bool
    """Whether it is the last push."""


@dataclass(eq=False)
class ClientInstance:
    """A client that pushes: what it is asked for, and when it was here."""

    instance_id: UUID
    metrics: list[str]
    interval_ms: int
    subscription_id: int
    version: int
    asked_ms: int | None = None
    pushed_ms: int | None = None
    is_terminating: bool = False
    #: Whether it has asked since its last push, and so may push at once.
    has_asked: bool = False
    #: What it has pushed last.
    pushed: PushedMetrics | None = None
    #: Whether the last push failed because the client knows old subscriptions: it may ask at once.
    may_ask: bool = False


class Telemetry:
    """``cluster.service(Telemetry)``: the clients that push metrics."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._subscriptions = cluster.store.table(METRICS_TABLE)
        self._known: dict[str, Mapping[str, str]] = {}
        self._version = 0
        #: The least recently used comes first.
        self._clients: dict[UUID, ClientInstance] = {}

    def ask(self, call: Call, instance_id: UUID) -> ClientInstance:
        """Serve GetTelemetrySubscriptions; raises if the client asks again too soon."""
        if instance_id == ZERO_UUID:
            instance_id = self._cluster.new_uuid()
        client = self._client(call, instance_id)
        now = self._cluster.clock.now_ms()
        last = max((ms for ms in (client.asked_ms, client.pushed_ms) if ms is not None), default=None)
        if last is not None and now - last < client.interval_ms and not client.may_ask:
            raise ThrottlingQuotaExceededError
        client.asked_ms = now
        client.has_asked = True
        client.may_ask = False
        return client

    def push(
        self, call: Call, instance_id: UUID, subscription_id: int, compression: int, data: bytes, *, terminating: bool
    ) -> None:
        """Serve PushTelemetry; raises if these metrics cannot be taken."""
        if instance_id.int <= 1:  # Kafka's reserved ids
            raise InvalidRequestError(f"Invalid request from the client [{instance_id}], invalid client instance id")
        client = self._client(call, instance_id)
        try:
            self._check(client, subscription_id, compression, len(data), terminating=terminating)
            client.may_ask = False
            client.pushed = self._read(call, compression, data, terminating=terminating)
        except (UnknownSubscriptionIdError, UnsupportedCompressionTypeError):
            client.may_ask = True
            raise
        finally:
            client.is_terminating = terminating

    def _check(
        self, client: ClientInstance, subscription_id: int, compression: int, size: int, *, terminating: bool
    ) -> None:
        if client.is_terminating:
            raise InvalidRequestError("the client has pushed its last metrics already")
        now = self._cluster.clock.now_ms()
        if client.pushed_ms is None or client.has_asked or now - client.pushed_ms >= client.interval_ms:
            client.pushed_ms = now
            client.has_asked = False
        elif not terminating:
            raise ThrottlingQuotaExceededError
        if subscription_id != client.subscription_id:
            raise UnknownSubscriptionIdError
        if compression != _UNCOMPRESSED and compression not in COMPRESSION_TYPES:
            raise UnsupportedCompressionTypeError
        if size > self._cluster.configs.broker_int("telemetry.max.bytes"):
            raise TelemetryTooLargeError

    def pushed(self) -> dict[UUID, PushedMetrics]:
        """Return what each client has pushed last."""
        return {one.instance_id: one.pushed for one in self._clients.values() if one.pushed is not None}

    def _read(self, call: Call, compression: int, data: bytes, *, terminating: bool) -> PushedMetrics:
        limit = self._cluster.configs.broker_int("telemetry.max.bytes") * 100
        try:
            raw = data if compression == _UNCOMPRESSED else bytes(decompressor(compression)(data, limit))
        except CorruptRecordError as error:
            raise InvalidRecordError(str(error)) from error
        try:
            points, resource, is_delta = decode_metrics(raw)
        except KafkaProtocolError:  # Kafka hands the bytes to its plugin as they are
            points, resource, is_delta = [], {}, False
        return PushedMetrics(call.client_id, points, resource, is_delta, terminating)

    def _client(self, call: Call, instance_id: UUID) -> ClientInstance:
        """Return what is known of a client; a change of any subscription lets all clients ask and push at once."""
        now = dict(self._subscriptions)
        if now != self._known:
            self._known = now
            self._version += 1
        client = self._clients.pop(instance_id, None)
        if client is None or client.version != self._version:
            client = self._make(call, instance_id)
        self._clients[instance_id] = client
        if len(self._clients) > _MOST_CLIENTS:
            del self._clients[next(iter(self._clients))]
        return client

    def _make(self, call: Call, instance_id: UUID) -> ClientInstance:
        interval = int(CLIENT_METRICS_OPTIONS["interval.ms"].default or 0)
        metrics: set[str] = set()
        facts = _facts(call, instance_id)
        for subscription in self._known.values():
            if _matches(subscription.get("match", ""), facts):
                metrics.update(parse_list(subscription.get("metrics", "")))
                interval = min(interval, int(subscription.get("interval.ms", interval)))
        wanted = [_ALL] if _ALL in metrics else sorted(metrics)
        number = zlib.crc32(f"{wanted}{interval}".encode()) ^ (instance_id.int & 0xFFFFFFFF)
        subscription_id = number - (1 << 32) if number >> 31 else number
        return ClientInstance(instance_id, wanted, interval, subscription_id, self._version)


def _facts(call: Call, instance_id: UUID) -> dict[str, str]:
    connection = call.connection
    return {
        "client_id": call.client_id,
        "client_instance_id": str(instance_id),
        "client_software_name": connection.software_name,
        "client_software_version": connection.software_version,
        "client_source_address": connection.host,
        "client_source_port": str(connection.port),
    }


def _matches(words: str, facts: Mapping[str, str]) -> bool:
    pairs = [word.partition("=") for word in parse_list(words)]
    return all(re.fullmatch(pattern.strip(), facts[name.strip()]) for name, _, pattern in pairs)
