"""A historic module path; see `kafka.legacy.coordinators`."""

from __future__ import annotations

from kafka.coordinator.heartbeat import HeartbeatTask
from kafka.coordinator.metrics import GroupCoordinatorMetrics
from kafka.legacy.coordinators import BaseCoordinator

__all__ = ["BaseCoordinator", "GroupCoordinatorMetrics", "HeartbeatTask"]
