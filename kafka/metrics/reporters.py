"""Metric reporters, which are notified when a metric is added or removed."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from kafka.metrics.metric import KafkaMetric

__all__ = ["AbstractMetricsReporter", "DictReporter"]


class AbstractMetricsReporter(ABC):
    """Base of reporters; the option ``metric_reporters`` takes classes and instances of it.

    The methods are called under the registry's lock and must not block. An error is logged and ends nothing, but one of
    `init()` does: then the client is not made.
    """

    @abstractmethod
    def init(self, metrics: Sequence[KafkaMetric]) -> None:
        """Called first, with the metrics that there are."""

    @abstractmethod
    def metric_change(self, metric: KafkaMetric) -> None:
        """Called when a metric appears or is changed."""

    @abstractmethod
    def metric_removal(self, metric: KafkaMetric) -> object:
        """Called when a metric goes."""

    @abstractmethod
    def configure(self, configs: Mapping[str, Any]) -> None:
        """Called with the client's configuration."""

    @abstractmethod
    def close(self) -> None:
        """Called when the client is closed."""


class DictReporter(AbstractMetricsReporter):
    """Keeps the metrics by category: prefix, group and tags.

    >>> from kafka.metrics import Metrics
    >>> from kafka.metrics.stats import Total
    >>> reporter = DictReporter("app")
    >>> metrics = Metrics(reporters=[reporter])
    >>> metrics.sensor("s").add(metrics.metric_name("total", "group", tags={"b": 2, "a": 1}), Total())
    >>> reporter.snapshot()
    {'app.kafka-metrics-count': {'count': 2.0}, 'app.group.a=1,b=2': {'total': 0.0}}
    """

    def __init__(self, prefix: str | None = "") -> None:
        self._lock = threading.RLock()
        self._prefix = prefix or ""
        self._store: dict[str, dict[str, KafkaMetric]] = {}

    def snapshot(self) -> dict[str, dict[str, float]]:
        """All values now, by category and name."""
        with self._lock:
            store = {category: dict(metrics) for category, metrics in self._store.items()}
        # Measured outside: a measurable is foreign code.
        return {
            category: {name: metric.value() for name, metric in metrics.items()} for category, metrics in store.items()
        }

    def init(self, metrics: Sequence[KafkaMetric]) -> None:
        """Take the metrics that there are."""
        for metric in metrics:
            self.metric_change(metric)

    def metric_change(self, metric: KafkaMetric) -> None:
        """Keep a metric."""
        with self._lock:
            self._store.setdefault(self.get_category(metric), {})[metric.metric_name.name] = metric

    def metric_removal(self, metric: KafkaMetric) -> KafkaMetric | None:
        """Forget a metric."""
        category = self.get_category(metric)
        with self._lock:
            metrics = self._store.get(category, {})
            removed = metrics.pop(metric.metric_name.name, None)
            if not metrics:
                self._store.pop(category, None)
            return removed

    def get_category(self, metric: KafkaMetric) -> str:
        """Prefix, group and tags with dots between."""
        name = metric.metric_name
        tags = ",".join(f"{key}={value}" for key, value in sorted(name.tags.items()))
        return ".".join(part for part in (self._prefix, name.group, tags) if part)

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Nothing to configure."""

    def close(self) -> None:
        """Nothing to close."""
