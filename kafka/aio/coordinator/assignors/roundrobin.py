"""Where programs for aiokafka import this assignor from."""

from __future__ import annotations

from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

__all__ = ["RoundRobinPartitionAssignor"]
