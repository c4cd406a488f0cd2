"""A historic module path; see `kafka.legacy.legacy_records`."""

from __future__ import annotations

from kafka.legacy.legacy_records import (
    LegacyRecord,
    LegacyRecordBase,
    LegacyRecordBatch,
    LegacyRecordBatchBuilder,
    LegacyRecordMetadata,
)
from kafka.record.batch_builder import FULL
from kafka.record.message_v0_v1 import OVERHEADS

__all__ = [
    "FULL",
    "OVERHEADS",
    "LegacyRecord",
    "LegacyRecordBase",
    "LegacyRecordBatch",
    "LegacyRecordBatchBuilder",
    "LegacyRecordMetadata",
]
