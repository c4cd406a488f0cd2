"""The historic home of `NewTopic`."""

from kafka.admin.resources import NewTopic

__all__ = ["NewTopic"]
