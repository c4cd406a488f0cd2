"""What can be kept of a stream of values."""

from kafka.metrics.sensor import Sensor
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
