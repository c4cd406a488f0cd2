"""A historic module path; see `kafka.legacy.coordinators`."""

from __future__ import annotations

from kafka.coordinator.metrics import ConsumerCoordinatorMetrics
from kafka.coordinator.offset_commits import AutoCommitTask
from kafka.legacy.coordinators import ConsumerCoordinator

__all__ = ["AutoCommitTask", "ConsumerCoordinator", "ConsumerCoordinatorMetrics"]
