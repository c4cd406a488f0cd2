"""A historic module path; see `kafka.legacy.legacy_records`."""

from __future__ import annotations

from kafka.legacy.legacy_records import (
    FULL,
    OVERHEADS,
    LegacyRecord,
    LegacyRecordBase,
    LegacyRecordBatch,
    LegacyRecordBatchBuilder,
    LegacyRecordMetadata,
)

__all__ = [
    "FULL",
    "OVERHEADS",
    "LegacyRecord",
    "LegacyRecordBase",
    "LegacyRecordBatch",
    "LegacyRecordBatchBuilder",
    "LegacyRecordMetadata",
]
