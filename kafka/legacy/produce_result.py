"""The outcome of a batch, as ``kafka.producer.future`` of kafka-python had it beside the outcome of a record."""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING, Any

from kafka.future import Future

if TYPE_CHECKING:
    from typing_extensions import Self

    from kafka.structs import TopicPartition

__all__ = ["BatchOfResult", "FutureProduceResult"]


class FutureProduceResult(Future[Any]):
    """The outcome of a batch: its base offset and the broker's timestamp.

    >>> from kafka.structs import TopicPartition
    >>> result = FutureProduceResult(TopicPartition("events", 0))
    >>> _ = result.success((7, None))
    >>> result.wait(0), result.topic_partition.topic
    (True, 'events')
    """

    __slots__ = ("_latch", "batch", "topic_partition")

    def __init__(self, topic_partition: TopicPartition) -> None:
        super().__init__()
        self.topic_partition = topic_partition
        self.batch: BatchOfResult | None = None
        """The batch of the records whose futures a program makes with this outcome."""
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


class BatchOfResult:
    """The batch of records whose futures a program makes, with the outcome that the program gives.

    >>> from kafka.producer.future import FutureRecordMetadata
    >>> from kafka.structs import TopicPartition
    >>> result = FutureProduceResult(TopicPartition("events", 0))
    >>> future = FutureRecordMetadata(result, 2, 1700000000000, None, -1, 5, -1)
    >>> _ = result.success((7, None))
    >>> future.get().offset
    9
    """

    @classmethod
    def of(cls, result: Any) -> BatchOfResult:
        """Return the batch of a `FutureProduceResult`: one for all of its records."""
        if result.batch is None:
            result.batch = cls(result)
        made: BatchOfResult = result.batch
        return made

    def __init__(self, result: FutureProduceResult) -> None:
        self._result = result
        self.tp = result.topic_partition
        self.partition = self.sender = self.diagnostics = self
        self.looked_at: set[int] = set()

    @property
    def is_done(self) -> bool:
        """Whether there is an outcome."""
        return self._result.is_done

    def locate(self, index: int) -> tuple[BatchOfResult, int, tuple[int, int, int] | BaseException | None]:
        """Return this batch, the index, and the outcome: base offset, timestamp, no start of the log, or the error."""
        result = self._result
        if result.exception is not None:
            return self, index, result.exception
        if not result.is_done:
            return self, index, None
        assert result.value is not None
        base_offset, timestamp = result.value[:2]
        return self, index, (base_offset, -1 if timestamp is None else timestamp, -1)

    async def wait_for(self, _batch: object, timeout: float | None) -> None:
        """Wait for the outcome in this thread."""
        self._result.wait(timeout)

    async def wait_for_async(self, _batch: object) -> None:
        """Wait for the outcome in a task."""
        await self._result

    def why_unacknowledged(self, _batch: object) -> str:
        """Return why there is no outcome."""
        return "its FutureProduceResult is not completed"

    def follow(self, future: Any, on_success: Any, on_failure: Any) -> None:
        """Call one of the two when there is an outcome."""
        if on_success is not None:
            self._result.add_callback(lambda _: on_success(future.value))
        if on_failure is not None:
            self._result.add_errback(on_failure)
