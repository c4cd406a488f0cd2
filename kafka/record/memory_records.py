"""A historic module path; see `kafka.legacy.memory_records`."""

from __future__ import annotations

from kafka.legacy.memory_records import (
    MemoryRecords,
    MemoryRecordsBuilder,
)

__all__ = ["MemoryRecords", "MemoryRecordsBuilder"]
