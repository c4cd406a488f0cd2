"""A historic module path; see `kafka.metrics.sensor`."""

from __future__ import annotations

from kafka.metrics.sensor import Sensor

__all__ = ["Sensor"]
