"""The records of the topic __transaction_state.

Written by tools/generate_protocol.py from Kafka's message specs; do not edit.
"""

from __future__ import annotations

from kafka.protocol.fields import Array, field
from kafka.protocol.struct import Struct
from kafka.protocol.types import Int8, Int16, Int32, Int64, String


class TransactionLogKey(Struct, record_type=0, versions="0", flexible="none"):
    """The key of a transactional id."""

    transactional_id: str = field(String, "0+")


class TransactionLogValue(Struct, record_type=0, versions="0-1", flexible="1+"):
    """The state of a transactional id."""

    class PartitionsSchema(Struct):
        topic: str = field(String, "0+")
        partition_ids: list[int] = field(Array(Int32), "0+")

    producer_id: int = field(Int64, "0+")
    previous_producer_id: int = field(Int64, "1+", default=-1, tag=0)
    next_producer_id: int = field(Int64, "1+", default=-1, tag=1)
    producer_epoch: int = field(Int16, "0+")
    next_producer_epoch: int = field(Int16, "1+", default=-1, tag=3)
    transaction_timeout_ms: int = field(Int32, "0+")
    transaction_status: int = field(Int8, "0+")
    transaction_partitions: list[PartitionsSchema] | None = field(Array(PartitionsSchema), "0+", nullable="0+")
    transaction_last_update_timestamp_ms: int = field(Int64, "0+")
    transaction_start_timestamp_ms: int = field(Int64, "0+")
    client_transaction_version: int = field(Int16, "1+", tag=2)
