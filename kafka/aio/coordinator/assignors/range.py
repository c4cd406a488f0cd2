"""Where programs for aiokafka import this assignor from."""

from __future__ import annotations

from kafka.coordinator.assignors.range import RangePartitionAssignor

__all__ = ["RangePartitionAssignor"]
