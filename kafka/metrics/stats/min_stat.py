"""A historic module path; see `kafka.metrics.stats.sampled`."""

from __future__ import annotations

from kafka.metrics.stats.sampled import Min

__all__ = ["Min"]
