"""The metrics of a consumer, per response and never per record. The names are Kafka's."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kafka._core.metrics import SensorGroup
from kafka.metrics.sensor import Journal
from kafka.metrics.stats import Avg, Max, Rate, Total

if TYPE_CHECKING:
    from kafka.consumer.subscription_state import SubscriptionState
    from kafka.metrics import Metrics
    from kafka.metrics.series import Series

__all__ = ["FetchMetrics", "FetchSensors"]


class FetchSensors(SensorGroup):
    """The sensors of responses to fetches, of consumers and share consumers."""

    def __init__(self, metrics: Metrics, series: Series, prefix: str) -> None:
        super().__init__(metrics, f"{prefix}-fetch-manager-metrics")
        self._count = series.count
        latency = self._sensor(
            "fetch-latency",
            ("fetch-latency-avg", Avg()),
            ("fetch-latency-max", Max(empty=0.0)),
            ("fetch-rate", Rate()),
        )
        throttle = self._sensor(
            "throttle", ("fetch-throttle-time-avg", Avg()), ("fetch-throttle-time-max", Max(empty=0.0))
        )
        sizes = self._sensor(
            "bytes",
            ("fetch-size-avg", Avg()),
            ("fetch-size-max", Max(empty=0.0)),
            ("bytes-consumed-rate", Rate()),
            ("bytes-consumed-total", Total()),
        )
        records = self._sensor(
            "records",
            ("records-per-request-avg", Avg()),
            ("records-consumed-rate", Rate()),
            ("records-consumed-total", Total()),
        )
        self._responses, self._consumed = Journal(latency, throttle), Journal(sizes, records)
        self._topics: dict[str, list[int]] = {}
        """Records and bytes by topic, which the thread that takes the records counts up."""
        series.gauge("kafka_consumer_records_total", lambda: self._of_topics(0))
        series.gauge("kafka_consumer_bytes_total", lambda: self._of_topics(1))

    def answered(self, seconds: float, throttle_ms: int) -> None:
        """Record a response."""
        self._responses.add(seconds * 1000, throttle_ms)

    def taken(self, topic: str, records: int, size: int = 0, count: int = 0) -> None:
        """Count what the application takes: records one call at a time, as a response may last an application long.

        With the last records of a partition in a response come its bytes and how many records it had.
        """
        numbers = self._topics.get(topic)
        if numbers is None:
            numbers = self._topics[topic] = [0, 0]
        numbers[0] += records
        if size:
            numbers[1] += size
            self._consumed.add(size, count)

    def _of_topics(self, at: int) -> dict[tuple[str, ...], float]:
        return {(topic,): numbers[at] for topic, numbers in tuple(self._topics.items())}


class FetchMetrics(FetchSensors):
    """The sensors of a consumer's fetches, its lag and its waiting."""

    def __init__(
        self, metrics: Metrics, series: Series, prefix: str, subscription: SubscriptionState, *, committed_only: bool
    ) -> None:
        super().__init__(metrics, series, prefix)
        # Seconds in a second: the share of the time that the application waited for records (KIP-517).
        idle = metrics.sensor(f"{prefix}-metrics.poll-idle")
        idle.add(metrics.metric_name("poll-idle-ratio-avg", f"{prefix}-metrics"), Rate())
        self._idle = Journal(idle)
        self._waited = 0.0
        series.gauge("kafka_consumer_wait_seconds_total", lambda: {(): self._waited} if self._waited else {})
        self._gauge("assigned-partitions", lambda: len(subscription.partitions))
        self._gauge("records-lag-max", lambda: _greatest_lag(subscription))
        series.gauge("kafka_consumer_assigned_partitions", lambda: _assigned(subscription))
        series.gauge("kafka_consumer_lag_records", lambda: _lags(subscription, committed_only=committed_only))

    def waited(self, seconds: float) -> None:
        """Record how long a call has waited for records."""
        self._waited += seconds
        self._idle.add(seconds)


def _greatest_lag(subscription: SubscriptionState) -> int:
    lags = [
        state.high_watermark - state.cursor.position
        for state in subscription.partitions.values()
        if state.high_watermark is not None and state.cursor.position is not None
    ]
    return max(lags, default=0)


def _assigned(subscription: SubscriptionState) -> dict[tuple[str, ...], float]:
    counts = Counter(partition.topic for partition in subscription.partitions)
    return {(topic,): count for topic, count in counts.items()}


def _lags(subscription: SubscriptionState, *, committed_only: bool) -> dict[tuple[str, ...], float]:
    """Return the lag of each assigned partition whose position and end are known."""
    found: dict[tuple[str, ...], float] = {}
    for (topic, number), state in subscription.partitions.items():
        lag = state.lag(committed_only=committed_only)
        if lag is not None:
            found[topic, str(number)] = lag
    return found
