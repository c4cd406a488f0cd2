"""Metrics: what a client measures about itself, for people and for reporters.

Values are recorded per batch or per request, never per record.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Final

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
]

# Older releases had a module per class, which programs import. The names stand for the modules above.
_OLD_MODULES: Final = {
    "compound_stat": "metric",
    "dict_reporter": "reporters",
    "kafka_metric": "metric",
    "measurable": "metric",
    "measurable_stat": "metric",
    "metric_config": "metric",
    "metric_name": "metric",
    "metrics_reporter": "reporters",
    "quota": "metric",
    "stat": "metric",
    "stats.avg": "stats.sampled",
    "stats.count": "stats.sampled",
    "stats.max_stat": "stats.sampled",
    "stats.min_stat": "stats.sampled",
    "stats.percentile": "stats.histogram",
    "stats.percentiles": "stats.histogram",
    "stats.rate": "stats.total",
    "stats.sampled_stat": "stats.sampled",
    "stats.sensor": "sensor",
}

for _old, _new in _OLD_MODULES.items():
    _module = import_module(f"{__name__}.{_new}")
    _parent, _, _leaf = f"{__name__}.{_old}".rpartition(".")
    sys.modules[f"{__name__}.{_old}"] = _module
    setattr(sys.modules[_parent], _leaf, _module)
