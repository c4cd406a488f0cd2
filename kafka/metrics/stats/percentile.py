"""A historic module path; see `kafka.metrics.stats.histogram`."""

from __future__ import annotations

from kafka.metrics.stats.histogram import Percentile

__all__ = ["Percentile"]
