"""The metrics of a group's member: joins, heartbeats, commits. The names are Kafka's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kafka.metrics import AnonMeasurable, Metrics
from kafka.metrics.stats import Avg, Count, Max, Rate, Total

if TYPE_CHECKING:
    from kafka.consumer.subscription_state import SubscriptionState
    from kafka.coordinator.heartbeat import Heartbeat
    from kafka.metrics.metric import AbstractMeasurableStat, MetricName
    from kafka.metrics.sensor import Sensor


class _CoordinatorMetrics:
    def __init__(self, metrics: Metrics | None, prefix: str, tags: Mapping[str, object]) -> None:
        self.metrics = metrics if metrics is not None else Metrics()
        self.metric_group_name = f"{prefix}-coordinator-metrics"
        self._tags = dict(tags)

    def _sensor(self, name: str, *stats: tuple[str, str, AbstractMeasurableStat]) -> Sensor:
        sensor = self.metrics.sensor(f"{self.metric_group_name}.{name}")
        for metric, description, stat in stats:
            if (metric_name := self._new_name(metric, description)) is not None:
                sensor.add(metric_name, stat)
        return sensor

    def _gauge(self, name: str, description: str, value: Callable[[], float]) -> None:
        if (metric_name := self._new_name(name, description)) is not None:
            self.metrics.add_metric(metric_name, AnonMeasurable(lambda _config, _now_ms: value()))

    def _new_name(self, name: str, description: str) -> MetricName | None:
        """Return a metric's name; None if it is there: two consumers may share a registry."""
        found = self.metrics.metric_name(name, self.metric_group_name, description, self._tags)
        return None if found in self.metrics.metrics else found


class GroupCoordinatorMetrics(_CoordinatorMetrics):
    """Heartbeats, joins and syncs: their numbers and durations."""

    def __init__(
        self, heartbeat: Heartbeat, metrics: Metrics | None, prefix: str, tags: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(metrics, prefix, tags or {})
        self.heartbeat_latency = self._sensor(
            "heartbeat-latency",
            ("heartbeat-response-time-max", "The longest that a heartbeat took, ms", Max(empty=0.0)),
            ("heartbeat-rate", "Heartbeats per second", Rate(sampled_stat=Count())),
        )
        self.join_latency = self._latency("join", "a join of the group")
        self.sync_latency = self._latency("sync", "a sync of the group")
        self.rebalance_latency = self._sensor(
            "rebalance-latency",
            ("rebalance-latency-avg", "How long a rebalance takes, ms", Avg()),
            ("rebalance-latency-max", "The longest rebalance, ms", Max(empty=0.0)),
            ("rebalance-latency-total", "All rebalances together, ms", Total()),
        )
        self._gauge(
            "last-heartbeat-seconds-ago",
            "Seconds since the coordinator last answered a heartbeat",
            lambda: max(0.0, heartbeat.seconds_since_answer()),
        )

    def heartbeat(self, seconds: float) -> None:
        """Record a heartbeat's response."""
        self.heartbeat_latency.record(seconds * 1000)

    def joined(self, seconds: float) -> None:
        """Record a join."""
        self.join_latency.record(seconds * 1000)

    def rebalanced(self, seconds: float) -> None:
        """Record a rebalance, from leaving to taking assignments."""
        self.rebalance_latency.record(seconds * 1000)

    def synced(self, seconds: float) -> None:
        """Record a sync."""
        self.sync_latency.record(seconds * 1000)

    def _latency(self, name: str, words: str) -> Sensor:
        return self._sensor(
            f"{name}-latency",
            (f"{name}-time-avg", f"How long {words} takes, ms", Avg()),
            (f"{name}-time-max", f"How long {words} took at most, ms", Max(empty=0.0)),
            (f"{name}-rate", f"How often per second there is {words}", Rate(sampled_stat=Count())),
        )


class ConsumerCoordinatorMetrics(_CoordinatorMetrics):
    """Commits, and the number of assigned partitions."""

    def __init__(self, metrics: Metrics | None, metric_group_prefix: str, subscription: SubscriptionState) -> None:
        super().__init__(metrics, metric_group_prefix, {})
        self.commit_latency = self._sensor(
            "commit-latency",
            ("commit-latency-avg", "How long a commit takes, ms", Avg()),
            ("commit-latency-max", "How long a commit took at most, ms", Max(empty=0.0)),
            ("commit-rate", "Commits per second", Rate(sampled_stat=Count())),
        )
        self._gauge(
            "assigned-partitions", "How many partitions this consumer has", lambda: float(len(subscription.assigned()))
        )

    def committed(self, seconds: float) -> None:
        """Record a commit's response."""
        self.commit_latency.record(seconds * 1000)
