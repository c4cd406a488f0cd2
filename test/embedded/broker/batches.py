"""Batches and produce requests for the tests."""

from __future__ import annotations

from typing import Any

from kafka.protocol.produce import ProduceRequest
from kafka.record.batch_builder import BatchBuilder

NOW = 1_700_000_000_000


def batch(
    *values: bytes | None, codec: str | None = None, key: bytes | None = None, timestamp: int = NOW, **seal: Any
) -> bytes:
    builder = BatchBuilder(2**30, codec)
    for value in values:
        builder.append(timestamp, key, value)
    return builder.seal(**seal).data


def produce(
    data: bytes | None, topic: str = "events", partition: int = 0, version: int = 9, acks: int = -1, **fields: Any
) -> ProduceRequest:
    return ProduceRequest[version](
        acks=acks,
        timeout_ms=1000,
        topic_data=[ProduceRequest[version].TopicProduceData(name=topic, partition_data=[(partition, data)])],
        **fields,
    )
