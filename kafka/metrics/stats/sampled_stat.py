"""A historic module path; see `kafka.metrics.stats.sampled`."""

from __future__ import annotations

from kafka.metrics.stats.sampled import AbstractSampledStat

__all__ = ["AbstractSampledStat"]
