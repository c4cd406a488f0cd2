"""The registry of a producer or consumer, and the short way to put sensors and gauges into a group of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kafka.metrics import AnonMeasurable, MetricConfig, Metrics
from kafka.net.metrics import measure

if TYPE_CHECKING:
    from kafka._core.client import Client
    from kafka.config import Config
    from kafka.metrics import Sensor

__all__ = ["SensorGroup", "make_metrics"]


def make_metrics(config: Config, client: Client) -> Metrics:
    """Return a registry as the options want it, into which the client's connections record too."""
    metrics = Metrics(
        MetricConfig(
            samples=config["metrics_num_samples"],
            time_window_ms=config["metrics_sample_window_ms"],
            tags={"client-id": config["client_id"]},
        ),
        [reporter() if isinstance(reporter, type) else reporter for reporter in config["metric_reporters"]],
        clock=client.environment.clock,
    )
    measure(client.context, metrics, config["metric_group_prefix"])
    return metrics


class SensorGroup:
    """Sensors and gauges whose metrics are in one group."""

    def __init__(self, metrics: Metrics, group: str) -> None:
        self._metrics = metrics
        self._group = group

    def _sensor(self, name: str, *stats: tuple[str, Any]) -> Sensor:
        sensor = self._metrics.sensor(f"{self._group}.{name}")
        for metric, stat in stats:
            sensor.add(self._metrics.metric_name(metric, self._group), stat)
        return sensor

    def _gauge(self, name: str, read: Callable[[], float]) -> None:
        self._metrics.add_metric(
            self._metrics.metric_name(name, self._group), AnonMeasurable(lambda _config, _now: float(read()))
        )
