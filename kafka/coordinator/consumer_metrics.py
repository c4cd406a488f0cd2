"""What is measured of a consumer in a group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.metrics import AnonMeasurable, Metrics
from kafka.metrics.stats import Avg, Count, Max, Rate

if TYPE_CHECKING:
    from kafka.coordinator.subscription import Subscription

__all__ = ["ConsumerCoordinatorMetrics"]


class ConsumerCoordinatorMetrics:
    """Commits, and how many partitions this consumer has."""

    def __init__(self, metrics: Metrics | None, metric_group_prefix: str, subscription: Subscription) -> None:
        self.metrics = metrics if metrics is not None else Metrics()
        self.metric_group_name = f"{metric_group_prefix}-coordinator-metrics"
        self.commit_latency = self.metrics.sensor(f"{self.metric_group_name}.commit-latency")
        self._add("commit-latency-avg", "How long a commit takes, ms", Avg())
        self._add("commit-latency-max", "How long a commit took at most, ms", Max())
        self._add("commit-rate", "Commits per second", Rate(sampled_stat=Count()))
        name = self._name("assigned-partitions", "How many partitions this consumer has")
        if name not in self.metrics.metrics:
            self.metrics.add_metric(name, AnonMeasurable(lambda _config, _now: float(len(subscription.assigned()))))

    def committed(self, seconds: float) -> None:
        """Take note of a commit that was answered."""
        self.commit_latency.record(seconds * 1000)

    def _name(self, name: str, description: str) -> Any:
        return self.metrics.metric_name(name, self.metric_group_name, description)

    def _add(self, name: str, description: str, stat: Any) -> None:
        metric_name = self._name(name, description)
        if metric_name not in self.metrics.metrics:
            self.commit_latency.add(metric_name, stat)
