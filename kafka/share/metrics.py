"""The metrics of a share consumer, per response and never per record. The names are Kafka's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka._core.metrics import SensorGroup
from kafka.consumer.metrics import FetchSensors
from kafka.metrics.stats import Count, Max, Rate, Total

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka.metrics import Metrics
    from kafka.metrics.series import Series


class ShareFetchMetrics(FetchSensors):
    """The sensors of fetching and acknowledging."""

    def __init__(self, metrics: Metrics, series: Series, prefix: str) -> None:
        super().__init__(metrics, series, prefix)
        self._sensor("records", ("records-per-request-max", Max(empty=0.0)))
        self._acknowledgements = self._sensor(
            "acknowledgements", ("acknowledgements-send-rate", Rate()), ("acknowledgements-send-total", Total())
        )
        self._refusals = self._sensor(
            "acknowledgement-errors", ("acknowledgements-error-rate", Rate()), ("acknowledgements-error-total", Total())
        )

    def acknowledged(self, topic: str, records: int, error: BaseException | None) -> None:
        """Record the answer to acknowledgements."""
        self._count(
            "kafka_share_acknowledgements_total", (topic, "ok" if error is None else type(error).__name__), records
        )
        self._acknowledgements.record(records)
        if error is not None:
            self._refusals.record(records)


class ShareHeartbeatMetrics(SensorGroup):
    """The sensors of the membership."""

    def __init__(self, metrics: Metrics, prefix: str, partitions: Callable[[], int]) -> None:
        super().__init__(metrics, f"{prefix}-coordinator-metrics")
        self._heartbeats = self._sensor(
            "heartbeat-latency",
            ("heartbeat-response-time-max", Max(empty=0.0)),
            ("heartbeat-rate", Rate(sampled_stat=Count())),
        )
        self._gauge("assigned-partitions", partitions)

    def heartbeat(self, seconds: float) -> None:
        """Record a heartbeat's response."""
        self._heartbeats.record(seconds * 1000)
