"""The historic place of the partitioners' base class, `kafka.legacy.partitioner.Partitioner`."""

from __future__ import annotations

from kafka.legacy.partitioner import Partitioner

__all__ = ["Partitioner"]
