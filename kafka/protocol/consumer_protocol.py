"""What members of a classic consumer group tell each other.

Written by tools/generate_protocol.py from Kafka's message specs; do not edit.
"""

from __future__ import annotations

from kafka.protocol.fields import Array, field
from kafka.protocol.struct import Struct
from kafka.protocol.types import Bytes, Int32, String


class ConsumerProtocolSubscription(Struct, versions="0-3", flexible="none"):
    """The subscription of a member of a classic group."""

    class TopicPartition(Struct):
        topic: str = field(String, "1+")
        partitions: list[int] = field(Array(Int32), "1+")

    topics: list[str] = field(Array(String), "0+")
    user_data: bytes | None = field(Bytes, "0+", nullable="0+", default=None)
    owned_partitions: list[TopicPartition] = field(Array(TopicPartition), "1+", ignorable=True)
    generation_id: int = field(Int32, "2+", default=-1, ignorable=True)
    rack_id: str | None = field(String, "3+", nullable="3+", default=None, ignorable=True)


class ConsumerProtocolAssignment(Struct, versions="0-3", flexible="none"):
    """The assignment of a member of a classic group."""

    class TopicPartition(Struct):
        topic: str = field(String, "0+")
        partitions: list[int] = field(Array(Int32), "0+")

    assigned_partitions: list[TopicPartition] = field(Array(TopicPartition), "0+")
    user_data: bytes | None = field(Bytes, "0+", nullable="0+", default=None)
