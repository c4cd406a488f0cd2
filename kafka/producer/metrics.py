"""What the producer measures: per request and per batch, never per record. The names are Kafka's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kafka.metrics import AnonMeasurable, MetricConfig, Metrics
from kafka.metrics.stats import Avg, Max, Rate, Total

if TYPE_CHECKING:
    from kafka._client import Client
    from kafka.config import Config
    from kafka.producer.accumulator import Accumulator
    from kafka.producer.batch import ProducerBatch

__all__ = ["ProducerMetrics", "make_metrics"]


def make_metrics(config: Config, client: Client) -> Metrics:
    """Return the registry of a producer, into which its connections record too."""
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


class ProducerMetrics:
    """The sensors of a producer."""

    def __init__(self, metrics: Metrics, prefix: str, accumulator: Accumulator) -> None:
        self._metrics = metrics
        self._group = f"{prefix}-metrics"
        self._sizes = self._sensor("batch-size", ("batch-size-avg", Avg()), ("batch-size-max", Max()))
        self._records = self._sensor(
            "records", ("record-send-rate", Rate()), ("record-send-total", Total()), ("records-per-request-avg", Avg())
        )
        self._compression = self._sensor("compression", ("compression-rate-avg", Avg()))
        self._queued = self._sensor("queue", ("record-queue-time-avg", Avg()), ("record-queue-time-max", Max()))
        self._retries = self._sensor("retries", ("record-retry-rate", Rate()), ("record-retry-total", Total()))
        self._errors = self._sensor("errors", ("record-error-rate", Rate()), ("record-error-total", Total()))
        memory = accumulator.memory
        self._gauge("buffer-total-bytes", lambda: memory.total)
        self._gauge("buffer-available-bytes", lambda: memory.free)

    def _sensor(self, name: str, *stats: tuple[str, Any]) -> Any:
        sensor = self._metrics.sensor(f"{self._group}.{name}")
        for metric, stat in stats:
            sensor.add(self._metrics.metric_name(metric, self._group), stat)
        return sensor

    def _gauge(self, name: str, read: Any) -> None:
        self._metrics.add_metric(
            self._metrics.metric_name(name, self._group), AnonMeasurable(lambda _config, _now: float(read()))
        )

    def sent(self, batches: Iterable[ProducerBatch], now: float) -> None:
        """Take note of a request."""
        records = 0
        for batch in batches:
            sealed = batch.sealed
            assert sealed is not None
            records += sealed.count
            if batch.attempts == 1:
                self._sizes.record(sealed.size)
                self._queued.record((now - batch.created) * 1000)
                self._compression.record(sealed.size / max(1, sealed.uncompressed_size))
        self._records.record(records)

    def retried(self, batch: ProducerBatch) -> None:
        """Take note of a batch that has to be sent again."""
        self._retries.record(batch.count)

    def settled(self, batch: ProducerBatch, outcome: object) -> None:
        """Take note of a batch's end."""
        if isinstance(outcome, BaseException):
            self._errors.record(batch.count)
