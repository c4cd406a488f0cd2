"""What the consumer measures: per reply, never per record. The names are Kafka's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.metrics import AnonMeasurable, MetricConfig, Metrics
from kafka.metrics.stats import Avg, Max, Rate, Total

if TYPE_CHECKING:
    from kafka._client import Client
    from kafka.config import Config
    from kafka.consumer.subscription import SubscriptionState

__all__ = ["FetchMetrics", "make_metrics"]


def make_metrics(config: Config, client: Client) -> Metrics:
    """Return the registry of a consumer, into which its connections record too."""
    from kafka.net.metrics import measure

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


class FetchMetrics:
    """The sensors of fetching."""

    def __init__(self, metrics: Metrics, prefix: str, subscription: SubscriptionState) -> None:
        self._metrics = metrics
        self._group = f"{prefix}-fetch-manager-metrics"
        self._latency = self._sensor(
            "fetch-latency",
            ("fetch-latency-avg", Avg()),
            ("fetch-latency-max", Max()),
            ("fetch-rate", Rate()),
        )
        self._throttle = self._sensor(
            "throttle", ("fetch-throttle-time-avg", Avg()), ("fetch-throttle-time-max", Max())
        )
        self._sizes = self._sensor(
            "bytes",
            ("fetch-size-avg", Avg()),
            ("fetch-size-max", Max()),
            ("bytes-consumed-rate", Rate()),
            ("bytes-consumed-total", Total()),
        )
        self._records = self._sensor(
            "records",
            ("records-per-request-avg", Avg()),
            ("records-consumed-rate", Rate()),
            ("records-consumed-total", Total()),
        )
        self._gauge("assigned-partitions", lambda: len(subscription.partitions))
        self._gauge("records-lag-max", lambda: _greatest_lag(subscription))

    def _sensor(self, name: str, *stats: tuple[str, Any]) -> Any:
        sensor = self._metrics.sensor(f"{self._group}.{name}")
        for metric, stat in stats:
            sensor.add(self._metrics.metric_name(metric, self._group), stat)
        return sensor

    def _gauge(self, name: str, read: Any) -> None:
        self._metrics.add_metric(
            self._metrics.metric_name(name, self._group), AnonMeasurable(lambda _config, _now: float(read()))
        )

    def answered(self, seconds: float, throttle_ms: int) -> None:
        """Take note of a reply."""
        self._latency.record(seconds * 1000)
        self._throttle.record(throttle_ms)

    def consumed(self, records: int, size: int) -> None:
        """Take note that the application has taken all that a reply brought for a partition."""
        self._sizes.record(size)
        self._records.record(records)


def _greatest_lag(subscription: SubscriptionState) -> int:
    lags = [
        state.high_watermark - state.cursor.position
        for state in subscription.partitions.values()
        if state.high_watermark is not None and state.cursor.position is not None
    ]
    return max(lags, default=0)
