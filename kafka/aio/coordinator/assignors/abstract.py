"""Where programs for aiokafka import this assignor from."""

from __future__ import annotations

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor

__all__ = ["AbstractPartitionAssignor"]
