"""Record batches in all formats of Kafka: reading, building, checking, converting. No I/O, no clock, no thread.

A producer uses `BatchBuilder`, a consumer `RecordReader`; `scan` walks over the headers of batches without decoding
them. A broker uses ``kafka.record.log_append`` and ``kafka.record.control``, a tool ``kafka.record.batch``.
``MemoryRecords``, ``MemoryRecordsBuilder`` and the modules ``default_records``, ``legacy_records`` and ``util`` keep
the names that programs have imported from kafka-python; they are faces of the same code.

>>> from kafka.record import MemoryRecords
>>> MemoryRecords(b"").has_next()
False
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka._lazy import lazy_names

if TYPE_CHECKING:
    from kafka.legacy.memory_records import MemoryRecords as MemoryRecords
    from kafka.legacy.memory_records import MemoryRecordsBuilder as MemoryRecordsBuilder
    from kafka.record.batch_builder import BatchBuilder as BatchBuilder
    from kafka.record.batch_reader import RecordReader as RecordReader
    from kafka.record.consumer_record import ConsumerRecord as ConsumerRecord
    from kafka.record.header import BatchHeader as BatchHeader
    from kafka.record.header import scan as scan

_MODULES = {
    "batch_builder": "BatchBuilder",
    "batch_reader": "RecordReader",
    "consumer_record": "ConsumerRecord",
    "header": "BatchHeader scan",
    "memory_records": "MemoryRecords MemoryRecordsBuilder",
}

__all__ = [
    "BatchBuilder",
    "BatchHeader",
    "ConsumerRecord",
    "MemoryRecords",
    "MemoryRecordsBuilder",
    "RecordReader",
    "scan",
]

if not TYPE_CHECKING:  # checkers report a name that is not here
    __getattr__, __dir__ = lazy_names(__name__, _MODULES)
