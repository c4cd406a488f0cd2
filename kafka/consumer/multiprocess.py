"""The historic place of `kafka.legacy.multiprocess_consumer.MultiProcessConsumer`."""

from __future__ import annotations

from kafka.legacy.multiprocess_consumer import Events, MultiProcessConsumer

__all__ = ["Events", "MultiProcessConsumer"]
