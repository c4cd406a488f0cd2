"""The future of a record that an asyncio producer has taken, with the metadata that aiokafka documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.aio.structs import RecordMetadata
from kafka.producer.asyncio_future import AsyncRecordFuture, AsyncSentRecords
from kafka.producer.producer_batch import NOT_ACKNOWLEDGED

if TYPE_CHECKING:
    from collections.abc import Generator

    from typing_extensions import Self

    from kafka.producer.producer_batch import Delivered, ProducerBatch

__all__ = ["AIORecordFuture", "AIOSentRecords", "record_metadata"]

_new = tuple.__new__


def record_metadata(batch: ProducerBatch, index: int, outcome: Any, timestamp: int) -> RecordMetadata:
    """Return the metadata of a record of a batch that is written, whose own timestamp this is; None with acks=0."""
    tp = batch.partition.tp
    base_offset, append_time, log_start = outcome
    if append_time >= 0:
        timestamp = append_time
    if base_offset >= 0:
        offset = base_offset + index
    elif outcome is NOT_ACKNOWLEDGED:
        return None  # type: ignore[return-value]  # as in aiokafka, whose programs ask for None with acks=0 alone
    else:
        offset = -1
    log_start_offset = log_start if log_start >= 0 else None
    return _new(
        RecordMetadata, (tp.topic, tp.partition, tp, offset, timestamp, int(append_time >= 0), log_start_offset)
    )


class AIORecordFuture(AsyncRecordFuture):
    """The outcome of a `send()`, now or later: a future of asyncio. The result is a `RecordMetadata`, None with acks=0.

    Cancelling it, or a task that awaits it, withdraws nothing: the record is written or given up all the same. To await
    it sends the record's batch at once, without waiting for linger_ms.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        def result(self) -> RecordMetadata:  # type: ignore[override]  # as aiokafka's, it has the same fields and more
            """See `asyncio.Future.result`."""

        def __await__(self) -> Generator[Self, None, RecordMetadata]:  # type: ignore[override]
            """Wait until the record is written or given up."""

    def _metadata(self, batch: ProducerBatch, index: int, outcome: Delivered) -> Any:
        return record_metadata(batch, index, outcome, self._timestamp)


class AIOSentRecords(AsyncSentRecords):
    """The futures of the records that `send_many()` has taken. Awaiting it returns the metadata of all records."""

    __slots__ = ()
    record_future = AIORecordFuture

    if TYPE_CHECKING:

        def __await__(self) -> Generator[object, None, list[RecordMetadata]]:  # type: ignore[override]
            """Wait until each record is written or given up."""
