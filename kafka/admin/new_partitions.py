"""The historic home of `NewPartitions`."""

from kafka.admin.resources import NewPartitions

__all__ = ["NewPartitions"]
