"""A historic module path; see `kafka.metrics.stats.total`."""

from __future__ import annotations

from kafka.metrics.stats.sampled import SampledTotal
from kafka.metrics.stats.total import Rate, TimeUnit

__all__ = ["Rate", "SampledTotal", "TimeUnit"]
