"""What can be kept of a stream of values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka._lazy import lazy_names
from kafka.metrics.sensor import Sensor

if TYPE_CHECKING:
    from kafka.metrics.stats.histogram import BucketSizing, Histogram, Percentile, Percentiles
    from kafka.metrics.stats.sampled import AbstractSampledStat, Avg, Count, Max, Min, SampledStat, SampledTotal
    from kafka.metrics.stats.total import Rate, TimeUnit, Total

__all__ = [
    "AbstractSampledStat",
    "Avg",
    "BucketSizing",
    "Count",
    "Histogram",
    "Max",
    "Min",
    "Percentile",
    "Percentiles",
    "Rate",
    "SampledStat",
    "SampledTotal",
    "Sensor",
    "TimeUnit",
    "Total",
]

_MODULES = {
    "histogram": "BucketSizing Histogram Percentile Percentiles",
    "sampled": "AbstractSampledStat Avg Count Max Min SampledStat SampledTotal",
    "total": "Rate TimeUnit Total",
}

if not TYPE_CHECKING:  # checkers report a name that is not here
    __getattr__, __dir__ = lazy_names(__name__, _MODULES)
