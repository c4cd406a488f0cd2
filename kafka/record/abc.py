"""A historic module path; see `kafka.legacy.record_abc`."""

from __future__ import annotations

from kafka.legacy.record_abc import (
    ABCRecord,
    ABCRecordBatch,
    ABCRecordBatchBuilder,
    ABCRecords,
)

__all__ = ["ABCRecord", "ABCRecordBatch", "ABCRecordBatchBuilder", "ABCRecords"]
