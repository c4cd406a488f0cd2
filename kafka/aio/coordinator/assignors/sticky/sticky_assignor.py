"""Where programs for aiokafka import this assignor from."""

from __future__ import annotations

from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

__all__ = ["StickyPartitionAssignor"]
