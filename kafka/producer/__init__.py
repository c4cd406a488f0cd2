"""The producer: `KafkaProducer`, and what its `send()` returns.

>>> from kafka.producer import KafkaProducer
>>> KafkaProducer.DEFAULT_CONFIG["acks"]
-1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka._lazy import lazy_names

if TYPE_CHECKING:
    from kafka.producer.future import FutureRecordMetadata, RecordMetadata, SentRecords
    from kafka.producer.kafka import KafkaProducer
    from kafka.producer.keyed import KeyedProducer
    from kafka.producer.simple import SimpleProducer

__all__ = ["FutureRecordMetadata", "KafkaProducer", "KeyedProducer", "RecordMetadata", "SentRecords", "SimpleProducer"]

_MODULES = {
    "future": "FutureRecordMetadata RecordMetadata SentRecords",
    "kafka": "KafkaProducer",
    "keyed": "KeyedProducer",
    "simple": "SimpleProducer",
}

if not TYPE_CHECKING:  # checkers report a name that is not here
    __getattr__, __dir__ = lazy_names(__name__, _MODULES)
