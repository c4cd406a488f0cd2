"""The registry of metrics and sensors.

A sensor without a recorded value for its expiration time is removed, without a thread for that: each call that creates
a sensor or lists the metrics first checks whether the earliest expiry is due.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from kafka._runtime.clock import SYSTEM_CLOCK, Clock
from kafka.metrics.metric import AbstractMeasurable, AnonMeasurable, KafkaMetric, MetricConfig, MetricName
from kafka.metrics.reporters import AbstractMetricsReporter
from kafka.metrics.sensor import Sensor

log = logging.getLogger(__name__)

__all__ = ["Metrics"]


class Metrics:
    """All metrics of a client.

    >>> from kafka.metrics.stats import Avg, Max
    >>> metrics = Metrics()
    >>> sizes = metrics.sensor("message-sizes")
    >>> sizes.add(metrics.metric_name("message-size-avg", "producer-metrics"), Avg())
    >>> sizes.add(metrics.metric_name("message-size-max", "producer-metrics"), Max())
    >>> for size in (10, 20, 60):
    ...     sizes.record(size)
    >>> metrics.snapshot()["producer-metrics"], metrics.snapshot()["kafka-metrics-count"]
    ({'message-size-avg': 30.0, 'message-size-max': 60.0}, {'count': 3.0})
    """

    def __init__(
        self,
        default_config: MetricConfig | None = None,
        reporters: Sequence[AbstractMetricsReporter] | None = None,
        enable_expiration: bool = False,
        *,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.config = default_config or MetricConfig()
        self.clock = clock
        self._lock = threading.RLock()
        self._metrics: dict[MetricName, KafkaMetric] = {}
        self._sensors: dict[str, Sensor] = {}
        self._children: dict[Sensor, list[Sensor]] = {}
        self._tags: dict[str, Any] = {}
        self._reporters = list(reporters or ())
        self._expires = enable_expiration
        # Never later than the true earliest expiry: recording only moves expiries on.
        self._next_expiry_ms = float("inf")
        for reporter in self._reporters:
            reporter.init([])
        self.add_metric(
            self.metric_name("count", "kafka-metrics-count", "total number of registered metrics"),
            AnonMeasurable(lambda _config, _now: len(self._metrics)),
        )

    def now_ms(self) -> float:
        """The time, in milliseconds since the epoch."""
        return self.clock.time() * 1000

    # Looking…

    @property
    def metrics(self) -> dict[MetricName, KafkaMetric]:
        """All metrics by name; a copy."""
        with self._lock:
            self._remove_expired()
            return dict(self._metrics)

    def snapshot(self) -> dict[str, dict[str, float]]:
        """All values now, by group and name."""
        found: dict[str, dict[str, float]] = {}
        for name, metric in self.metrics.items():
            found.setdefault(name.group, {})[name.name] = metric.value()
        return found

    def metric_name(
        self, name: str, group: str, description: str = "", tags: Mapping[str, Any] | None = None
    ) -> MetricName:
        """A name with the tags of the registry's configuration and those given."""
        made = MetricName(name, group, description, {**self.config.tags, **(tags or {})})
        if made.tags == self._tags:  # of a client's sixty names all have the same, which take 10 KiB
            made.tags = self._tags
        self._tags = made.tags
        return made

    def get_sensor(self, name: str) -> Sensor | None:
        """A sensor, if there is one of this name."""
        if not name:
            raise ValueError("A sensor has a name")
        return self._sensors.get(name)

    # Changing…

    def sensor(
        self,
        name: str,
        config: MetricConfig | None = None,
        inactive_sensor_expiration_time_seconds: float = sys.maxsize,
        parents: Sequence[Sensor] | None = None,
    ) -> Sensor:
        """The sensor of this name, made if there is none."""
        with self._lock:
            self._remove_expired()
            sensor = self._sensors.get(name)
            if sensor is not None:
                return sensor
            sensor = Sensor(
                self.clock,
                self.register_metric,
                name,
                parents,
                config or self.config,
                inactive_sensor_expiration_time_seconds,
            )
            self._sensors[name] = sensor
            for parent in parents or ():
                self._children.setdefault(parent, []).append(sensor)
            self._next_expiry_ms = min(self._next_expiry_ms, sensor.expires_at_ms())
            return sensor

    def remove_sensor(self, name: str) -> None:
        """Remove a sensor, its metrics and its children."""
        with self._lock:
            sensor = self._sensors.pop(name, None)
            if sensor is None:
                return
            for metric in sensor.metrics:
                self.remove_metric(metric.metric_name)
            for child in self._children.pop(sensor, ()):
                self.remove_sensor(child.name)
            for children in self._children.values():
                if sensor in children:
                    children.remove(sensor)

    def add_metric(
        self, metric_name: MetricName, measurable: AbstractMeasurable, config: MetricConfig | None = None
    ) -> None:
        """Register something that is measured when it is asked for, without a sensor."""
        self.register_metric(KafkaMetric(metric_name, measurable, config or self.config, clock=self.clock))

    def remove_metric(self, metric_name: MetricName) -> KafkaMetric | None:
        """Remove a metric; its sensor, if any, continues to record."""
        with self._lock:
            metric = self._metrics.pop(metric_name, None)
            if metric is not None:
                self._tell("metric_removal", metric)
            return metric

    def register_metric(self, metric: KafkaMetric) -> None:
        """Add a metric and tell the reporters."""
        with self._lock:
            if metric.metric_name in self._metrics:
                raise ValueError(f"There is a metric {metric.metric_name} already")
            self._metrics[metric.metric_name] = metric
            self._tell("metric_change", metric)

    def add_reporter(self, reporter: AbstractMetricsReporter) -> None:
        """Tell one more reporter, of the metrics there are too."""
        with self._lock:
            reporter.init(list(self._metrics.values()))
            self._reporters.append(reporter)

    def remove_expired(self) -> None:
        """Remove the sensors that have expired, if expiration is enabled."""
        with self._lock:
            self._remove_expired()

    def _remove_expired(self) -> None:
        if not self._expires or self.now_ms() <= self._next_expiry_ms:
            return
        for sensor in [sensor for sensor in self._sensors.values() if sensor.has_expired()]:
            self.remove_sensor(sensor.name)
        self._next_expiry_ms = min((s.expires_at_ms() for s in self._sensors.values()), default=float("inf"))

    class ExpireSensorTask:
        """The removal of expired sensors, as a task of older releases."""

        @staticmethod
        def run(metrics: Metrics) -> None:
            """Run it once."""
            metrics.remove_expired()

    def close(self) -> None:
        """Close the reporters."""
        self._tell("close")

    def _tell(self, what: str, *args: object) -> None:
        """Call a method of each reporter; an error of one is logged, as the client works without it."""
        for reporter in self._reporters:
            try:
                getattr(reporter, what)(*args)
            except Exception:  # noqa: PERF203 - a handful
                log.exception("The metrics reporter %r failed in %s()", reporter, what)
