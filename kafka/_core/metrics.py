"""Metrics of a client: bytes, requests and latencies of its connections, in total and per broker.

The names are historic. Connections count per system call and per response (`kafka.net.pipeline.Traffic`); sensors get
the requests only if the client has a registry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol

from kafka import _hooks
from kafka._core.telemetry import PushingClient, Telemetry
from kafka.metrics import AnonMeasurable, MetricConfig, Metrics
from kafka.metrics.sensor import Journal
from kafka.metrics.series import Series
from kafka.metrics.stats import Avg, Count, Max, Rate, SampledTotal, Total
from kafka.net.states import ConnectionStates

if TYPE_CHECKING:
    from kafka.config import Config
    from kafka.metrics import Metrics, Sensor
    from kafka.metrics.metric import AbstractMeasurableStat
    from kafka.net.pipeline import Traffic
    from kafka.net.settings import ConnectionContext

__all__ = ["ConnectionMetrics", "SensorGroup", "make_metrics", "measure"]


class MeasuredClient(PushingClient, Protocol):
    """The client core, which imports this module."""

    context: ConnectionContext
    series: Series | None
    telemetry: Telemetry | None

    def health(self) -> dict[str, Any]:
        """Return the state of the connections, of metadata and of topics."""


class ConnectionMetrics:
    """The sensors of a client's connections."""

    def __init__(self, metrics: Metrics, prefix: str) -> None:
        self._metrics = metrics
        self._prefix = prefix
        group = f"{prefix}-metrics"
        self._sent = self._sensor("bytes-sent", group)
        self._received = self._sensor("bytes-received", group)
        self._latency = self._sensor("request-latency", group)
        self._created = self._sensor("connections-created", group)
        self._closed = self._sensor("connections-closed", group)
        self._opened = 0
        self._add(self._created, group, "connection-creation-rate", Rate())
        self._add(self._created, group, "connection-creation-total", Total())
        self._add(self._closed, group, "connection-close-rate", Rate())
        self._add_bytes(self._sent, self._received, self._latency, group)

    def measures_of(self, node_id: int | str) -> tuple[Journal, Sensor]:
        """Return the journal of a broker's requests and responses, and the sensor of requests without a response."""
        group = f"{self._prefix}-node-metrics.node-{node_id}"
        sent = self._sensor("bytes-sent", group, self._sent)
        received = self._sensor("bytes-received", group, self._received)
        latency = self._sensor("latency", group, self._latency)
        self._add_bytes(sent, received, latency, group)
        return Journal(sent, latency, received), sent

    def on_state(self, _node_id: int | str, before: ConnectionStates, state: ConnectionStates) -> None:
        """Record a new connection, which one that has renewed its session is not, or the end of one."""
        if state is ConnectionStates.CONNECTED and before is not ConnectionStates.REAUTHENTICATING:
            self._created.record()
            self._opened += 1
        elif state is ConnectionStates.DISCONNECTED:
            self._closed.record()

    def show(self, series: Series, traffic: Mapping[int | str, Traffic]) -> None:
        """Show the numbers of the connections by the labels of `kafka.metrics.catalog`."""
        for name, attribute in (
            ("sent_bytes_total", "sent"),
            ("received_bytes_total", "received"),
            ("request_seconds_count", "responses"),
            ("request_seconds_sum", "seconds"),
            ("throttled_seconds_total", "throttled"),
        ):
            series.gauge(f"kafka_client_{name}", partial(_by_node, traffic, attrgetter(attribute)))
        series.gauges(kafka_client_connections_created_total=lambda: self._opened)

    def _sensor(self, name: str, group: str, *parents: Sensor) -> Sensor:
        return self._metrics.sensor(f"{group}.{name}", parents=parents)

    def _add_bytes(self, sent: Sensor, received: Sensor, latency: Sensor, group: str) -> None:
        self._add(sent, group, "outgoing-byte-rate", Rate())
        self._add(sent, group, "request-rate", Rate(sampled_stat=Count()))
        self._add(sent, group, "request-size-avg", Avg())
        self._add(sent, group, "request-size-max", Max(empty=0.0))
        self._add(received, group, "incoming-byte-rate", Rate())
        self._add(received, group, "incoming-byte-total", SampledTotal())
        self._add(latency, group, "response-rate", Rate(sampled_stat=Count()))
        self._add(latency, group, "request-latency-avg", Avg())
        self._add(latency, group, "request-latency-max", Max(empty=0.0))

    def _add(self, sensor: Sensor, group: str, name: str, stat: AbstractMeasurableStat) -> None:
        metric_name = self._metrics.metric_name(name, group)
        if metric_name not in self._metrics.metrics:  # two clients may share a registry
            sensor.add(metric_name, stat)


def measure(context: ConnectionContext, metrics: Metrics, prefix: str) -> ConnectionMetrics:
    """Let the connections of `context` record into `metrics`."""
    made = ConnectionMetrics(metrics, prefix)
    context.measures_of = made.measures_of
    context.on_state = made.on_state
    return made


def _by_node(traffic: Mapping[int | str, Traffic], number: Callable[[Traffic], float]) -> dict[tuple[str, ...], float]:
    return {(str(node_id),): number(each) for node_id, each in tuple(traffic.items())}


def make_metrics(config: Config, client: MeasuredClient) -> Metrics:
    """Return a registry with the options of `config`, into which the connections of `client` record.

    The client gets its series, which Prometheus and OpenTelemetry show until its loop is closed.
    """
    metrics = Metrics(
        MetricConfig(
            samples=config["metrics_num_samples"],
            time_window_ms=config["metrics_sample_window_ms"],
            tags={"client-id": config["client_id"]},
        ),
        [reporter() if isinstance(reporter, type) else reporter for reporter in config["metric_reporters"]],
        clock=client.loop.clock,
    )
    series = Series(config.kind, config["client_id"] or config.kind, config.get("group_id") or "")
    measure(client.context, metrics, config["metric_group_prefix"]).show(series, client.context.traffic)
    series.gauges(
        kafka_client_connections=lambda: sum(link.ready for link in client.links()),
        kafka_client_healthy=lambda: client.health()["ok"],
    )
    client.series = series
    _hooks.add(series)
    client.loop.on_close(lambda: _hooks.discard(series))
    if config["enable_metrics_push"]:
        client.telemetry = Telemetry(client, metrics, config)
    return metrics


class SensorGroup:
    """Sensors and gauges whose metrics are in one group."""

    def __init__(self, metrics: Metrics, group: str) -> None:
        self._metrics = metrics
        self._group = group

    def _sensor(self, name: str, *stats: tuple[str, AbstractMeasurableStat]) -> Sensor:
        sensor = self._metrics.sensor(f"{self._group}.{name}")
        for metric, stat in stats:
            sensor.add(self._metrics.metric_name(metric, self._group), stat)
        return sensor

    def _gauge(self, name: str, read: Callable[[], float]) -> None:
        self._metrics.add_metric(
            self._metrics.metric_name(name, self._group), AnonMeasurable(lambda _config, _now: float(read()))
        )
