"""The partitioner of asyncio producers, at the place where programs for aiokafka import it from."""

from __future__ import annotations

from kafka.partitioner.default import DefaultPartitioner
from kafka.partitioner.murmur2_hash import murmur2

__all__ = ["DefaultPartitioner", "murmur2"]
