"""The producer: `KafkaProducer`, and what its `send()` returns.

>>> from kafka.producer import KafkaProducer
>>> KafkaProducer.DEFAULT_CONFIG["acks"]
-1
"""

from __future__ import annotations

from kafka.producer.future import FutureRecordMetadata, RecordMetadata, SentRecords
from kafka.producer.kafka import KafkaProducer

__all__ = ["FutureRecordMetadata", "KafkaProducer", "RecordMetadata", "SentRecords"]
