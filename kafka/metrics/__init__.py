"""Metrics: the measurements of a client, for applications and for reporters.

Values are recorded per batch or per request, never per record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka._lazy import lazy_names

if TYPE_CHECKING:
    from kafka.metrics import stats
    from kafka.metrics.metric import (
        AbstractCompoundStat,
        AbstractMeasurable,
        AbstractMeasurableStat,
        AbstractStat,
        AnonMeasurable,
        KafkaMetric,
        MetricConfig,
        MetricName,
        NamedMeasurable,
        Quota,
    )
    from kafka.metrics.metrics import Metrics
    from kafka.metrics.reporters import AbstractMetricsReporter, DictReporter
    from kafka.metrics.sensor import Sensor

__all__ = [
    "AbstractCompoundStat",
    "AbstractMeasurable",
    "AbstractMeasurableStat",
    "AbstractMetricsReporter",
    "AbstractStat",
    "AnonMeasurable",
    "DictReporter",
    "KafkaMetric",
    "MetricConfig",
    "MetricName",
    "Metrics",
    "NamedMeasurable",
    "Quota",
    "Sensor",
    "stats",
]

_MODULES = {
    "metric": "AbstractCompoundStat AbstractMeasurable AbstractMeasurableStat AbstractStat AnonMeasurable "
    "KafkaMetric MetricConfig MetricName NamedMeasurable Quota",
    "metrics": "Metrics",
    "reporters": "AbstractMetricsReporter DictReporter",
    "sensor": "Sensor",
}

if not TYPE_CHECKING:  # checkers report a name that is not here
    __getattr__, __dir__ = lazy_names(__name__, _MODULES)
