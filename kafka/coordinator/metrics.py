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

    def _sensor(self, name: str) -> Sensor:
        return self.metrics.sensor(f"{self.metric_group_name}.{name}")

    def _name(self, name: str, description: str) -> MetricName:
        return self.metrics.metric_name(name, self.metric_group_name, description, self._tags)

    def _add(self, sensor: Sensor, name: str, description: str, stat: AbstractMeasurableStat) -> None:
        metric_name = self._name(name, description)
        if metric_name not in self.metrics.metrics:  # two consumers may share a registry
            sensor.add(metric_name, stat)

    def _add_gauge(self, name: str, description: str, value: Callable[[], float]) -> None:
        metric_name = self._name(name, description)
        if metric_name not in self.metrics.metrics:
            self.metrics.add_metric(metric_name, AnonMeasurable(lambda _config, _now_ms: value()))


class GroupCoordinatorMetrics(_CoordinatorMetrics):
    """Heartbeats, joins and syncs: their numbers and durations."""

    def __init__(
        self, heartbeat: Heartbeat, metrics: Metrics | None, prefix: str, tags: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(metrics, prefix, tags or {})
        self.heartbeat_state = heartbeat
        self.heartbeat_latency = self._sensor("heartbeat-latency")
        self._add(
            self.heartbeat_latency,
            "heartbeat-response-time-max",
            "The longest that a heartbeat took, ms",
            Max(empty=0.0),
        )
        self._add(self.heartbeat_latency, "heartbeat-rate", "Heartbeats per second", Rate(sampled_stat=Count()))
        self.join_latency = self._latency("join", "a join of the group")
        self.sync_latency = self._latency("sync", "a sync of the group")
        self.rebalance_latency = self._sensor("rebalance-latency")
        self._add(self.rebalance_latency, "rebalance-latency-avg", "How long a rebalance takes, ms", Avg())
        self._add(self.rebalance_latency, "rebalance-latency-max", "The longest rebalance, ms", Max(empty=0.0))
        self._add(self.rebalance_latency, "rebalance-latency-total", "All rebalances together, ms", Total())
        self._add_gauge(
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
        sensor = self._sensor(f"{name}-latency")
        self._add(sensor, f"{name}-time-avg", f"How long {words} takes, ms", Avg())
        self._add(sensor, f"{name}-time-max", f"How long {words} took at most, ms", Max(empty=0.0))
        self._add(sensor, f"{name}-rate", f"How often per second there is {words}", Rate(sampled_stat=Count()))
        return sensor


class ConsumerCoordinatorMetrics(_CoordinatorMetrics):
    """Commits, and the number of assigned partitions."""

    def __init__(self, metrics: Metrics | None, metric_group_prefix: str, subscription: SubscriptionState) -> None:
        super().__init__(metrics, metric_group_prefix, {})
        self.commit_latency = commits = self._sensor("commit-latency")
        self._add(commits, "commit-latency-avg", "How long a commit takes, ms", Avg())
        self._add(commits, "commit-latency-max", "How long a commit took at most, ms", Max(empty=0.0))
        self._add(commits, "commit-rate", "Commits per second", Rate(sampled_stat=Count()))
        self._add_gauge(
            "assigned-partitions", "How many partitions this consumer has", lambda: float(len(subscription.assigned()))
        )

    def committed(self, seconds: float) -> None:
        """Record a commit's response."""
        self.commit_latency.record(seconds * 1000)
