"""A historic module path; see `kafka.metrics.reporters`."""

from __future__ import annotations

from kafka.metrics.reporters import DictReporter

__all__ = ["DictReporter"]
