"""A historic module path; see `kafka.legacy.protocol_parser`."""

from __future__ import annotations

from kafka.legacy.protocol_parser import KafkaProtocol

__all__ = ["KafkaProtocol"]
