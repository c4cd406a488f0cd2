"""The values that the asyncio clients take and return, at the place where programs for aiokafka import them from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from kafka.record.consumer_record import ConsumerRecord as _PlainRecord
from kafka.record.consumer_record import K, V
from kafka.structs import BrokerMetadata, OffsetAndMetadata, OffsetAndTimestamp, PartitionMetadata, TopicPartition

__all__ = [
    "BrokerMetadata",
    "ConsumerRecord",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "PartitionMetadata",
    "RecordMetadata",
    "TopicPartition",
]


class RecordMetadata(NamedTuple):
    """Where a record is, now that it is written."""

    topic: str
    partition: int
    topic_partition: TopicPartition
    offset: int
    """-1 where the broker does not say it, as for a batch that it had written before."""
    timestamp: int
    """Milliseconds: the record's own, or the broker's where the topic keeps that."""
    timestamp_type: int
    """0: set by the producer. 1: by the broker on append."""
    log_start_offset: int | None = None
    """The first offset of the partition; None where the broker does not say it."""


class ConsumerRecord(_PlainRecord[K, V]):
    """One record of a partition, to which an application may add attributes. Its headers are a tuple of pairs.

    >>> record = ConsumerRecord("events", 0, 17, 1700000000000, 0, None, b"hello")
    >>> record.consumer = "mine"
    >>> record.offset, record.value, record.headers, record.consumer
    (17, b'hello', (), 'mine')
    """

    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]:
        """Pairs of a key and a value, in the order in which they were sent; empty without headers."""
        pairs: Sequence[tuple[str, bytes | None]] = self[_HEADERS]  # type: ignore[assignment]  # by its index
        return tuple(pairs)


_HEADERS: Final = _PlainRecord._fields.index("headers")
