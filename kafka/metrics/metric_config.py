"""A historic module path; see `kafka.metrics.metric`."""

from __future__ import annotations

from kafka.metrics.metric import MetricConfig

__all__ = ["MetricConfig"]
