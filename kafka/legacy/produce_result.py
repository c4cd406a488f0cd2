"""The outcome of a batch, as ``kafka.producer.future`` of kafka-python had it beside the outcome of a record."""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING, Any

from kafka.future import Future

if TYPE_CHECKING:
    from typing_extensions import Self

    from kafka.structs import TopicPartition

__all__ = ["FutureProduceResult"]


class FutureProduceResult(Future[Any]):
    """The outcome of a batch: its base offset and the broker's timestamp.

    >>> from kafka.structs import TopicPartition
    >>> result = FutureProduceResult(TopicPartition("events", 0))
    >>> _ = result.success((7, None))
    >>> result.wait(0), result.topic_partition.topic
    (True, 'events')
    """

    __slots__ = ("_latch", "topic_partition")

    def __init__(self, topic_partition: TopicPartition) -> None:
        super().__init__()
        self.topic_partition = topic_partition
        self._latch = Event()

    def success(self, value: object) -> Self:
        """Complete with ``(base_offset, timestamp_ms)``."""
        super().success(value)
        self._latch.set()
        return self

    def failure(self, e: BaseException | type[BaseException]) -> Self:
        """Complete with an exception."""
        super().failure(e)
        self._latch.set()
        return self

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the outcome, ``timeout`` seconds at most; whether there is one."""
        return self._latch.wait(timeout)

    def settle(self, index: int, outcome: Any) -> None:
        """Take the outcome of the record at an index of the batch: its metadata, or the error."""
        if isinstance(outcome, BaseException):
            self.failure(outcome)
        else:
            self.success((outcome.offset - index if outcome.offset >= 0 else -1, outcome.timestamp))
