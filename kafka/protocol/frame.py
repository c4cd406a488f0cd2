"""A historic module path; see `kafka.legacy.protocol_frame`."""

from __future__ import annotations

from kafka.legacy.protocol_frame import KafkaBytes

__all__ = ["KafkaBytes"]
