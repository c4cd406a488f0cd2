"""Proofs for what is about metrics."""

from __future__ import annotations

import time
from typing import Any

from kafka.metrics import AbstractMetricsReporter, Metrics

from .proofs import proves
from .subjects import Subject


class Reporter(AbstractMetricsReporter):
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def init(self, metrics: Any) -> None:
        self.told += metrics

    def metric_change(self, metric: Any) -> None:
        self.told.append(metric)

    def metric_removal(self, metric: Any) -> None:
        """Not looked at."""

    def configure(self, configs: Any) -> None:
        """Nothing to configure."""

    def close(self) -> None:
        """Nothing to close."""


def _told(subject: Subject, **options: Any) -> list[Any]:
    reporter = Reporter()
    subject.use(subject.broker(), metric_reporters=[reporter], **options)
    return reporter.told


@proves("metrics")
def it_is_the_registry_to_record_into(subject: Subject) -> None:
    metrics = Metrics()
    options = {"group_id": "g"} if "coordinator" in subject.kind else {}
    subject.use(subject.broker(), metrics=metrics, **options)
    assert any(value for name, value in _flat(metrics.snapshot()).items() if name.endswith(("rate", "total")))


def _flat(snapshot: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {name: value for group in snapshot.values() for name, value in group.items()}


@proves("metric_group_prefix")
def groups_begin_with_it(subject: Subject) -> None:
    if subject.kind in {"producer", "consumer", "share", "admin"}:
        used = subject.use(subject.broker(), metric_group_prefix="mine")
        groups = set(used.thing.metrics())
    else:
        metrics = Metrics()
        options = {"group_id": "g"} if "coordinator" in subject.kind else {}
        subject.use(subject.broker(), metrics=metrics, metric_group_prefix="mine", **options)
        groups = set(metrics.snapshot())
    groups -= {"kafka-metrics-count"}
    assert groups
    assert all(group.startswith("mine") for group in groups), groups


@proves("metrics_enabled")
def there_are_metrics_or_there_are_none(subject: Subject) -> None:
    broker = subject.broker()
    assert subject.use(broker).thing.metrics()
    assert not subject.use(broker, metrics_enabled=False).thing.metrics()


@proves("metric_reporters")
def reporters_are_told_of_metrics(subject: Subject) -> None:
    assert _told(subject)


@proves("metrics_num_samples")
def a_window_is_made_of_so_many_samples(subject: Subject) -> None:
    assert {metric.config.samples for metric in _told(subject, metrics_num_samples=7)} == {7}


@proves("metrics_sample_window_ms")
def a_sample_takes_so_long(subject: Subject) -> None:
    assert {metric.config.time_window_ms for metric in _told(subject, metrics_sample_window_ms=1234)} == {1234}


@proves("enable_metrics_push")
def metrics_are_pushed_or_they_are_not(subject: Subject) -> None:
    broker = subject.broker(configs={"metric.reporters": "com.example.Reporter"})
    subject.use(broker, enable_metrics_push=False)
    assert not any(seen.name == "GetTelemetrySubscriptions" for seen in tuple(broker.requests))
    subject.use(broker)
    deadline = time.monotonic() + 30
    while not any(seen.name == "GetTelemetrySubscriptions" for seen in tuple(broker.requests)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
