"""What `send()` returns: the place of a record in its batch, and from it everything else when it is asked for.

A record's future is a tuple of its batch, its index there, and the few numbers that cannot be found out later. It has
no lock, no list and no callback of its own: the outcome is the batch's. Making one costs about 0.15 µs, and a program
that ignores it pays nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from kafka.errors import KafkaTimeoutError
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from typing_extensions import Self

    from kafka.producer.batch import ProducerBatch

__all__ = ["FutureRecordMetadata", "RecordMetadata", "SentRecords"]

_new = tuple.__new__


class RecordMetadata(NamedTuple):
    """Where a record is, now that it is written."""

    topic: str
    partition: int
    topic_partition: TopicPartition
    offset: int
    """-1 where the broker does not say: with ``acks=0``, or for a batch that it had taken long before."""
    timestamp: int
    """Milliseconds: the record's own, or the broker's where the topic keeps that."""
    checksum: int | None
    """Always None: records have no checksum of their own since Kafka 0.11."""
    serialized_key_size: int
    """-1 where there is no key."""
    serialized_value_size: int
    """-1 where there is no value."""
    serialized_header_size: int
    """-1 where there are no headers."""


class FutureRecordMetadata(tuple[Any, ...]):
    """The outcome of a `send()`, now or later.

    ::

        metadata = producer.send("events", b"hello").get(timeout=10)
        print(metadata.partition, metadata.offset)

    It can be awaited too, in a task of asyncio. Two futures are equal if they are of the same record.
    """

    # (batch, index, timestamp, size of the key, size of the value[, size of the headers])
    __slots__ = ()

    # Looking…

    def _look(self) -> tuple[ProducerBatch, int, Any]:
        """Return the batch that the record is in now, its index there, and the outcome or None."""
        batch, index = self[0], self[1]
        return batch.locate(index)  # type: ignore[no-any-return]

    @property
    def is_done(self) -> bool:
        """Whether there is an outcome."""
        return self._look()[2] is not None

    def done(self) -> bool:
        """Whether there is an outcome, as futures of asyncio and of threads spell it."""
        return self._look()[2] is not None

    def succeeded(self) -> bool:
        """Whether the record is written."""
        outcome = self._look()[2]
        return outcome is not None and not isinstance(outcome, BaseException)

    def failed(self) -> bool:
        """Whether the record was given up; the exception says whether it may be written all the same."""
        return isinstance(self._look()[2], BaseException)

    @property
    def exception(self) -> BaseException | None:
        """Why the record was given up; None if it was not."""
        outcome = self._look()[2]
        return outcome if isinstance(outcome, BaseException) else None

    @property
    def value(self) -> RecordMetadata | None:
        """The metadata; None while the record is not written."""
        batch, index, outcome = self._look()
        if outcome is None or isinstance(outcome, BaseException):
            return None
        return self._metadata(batch, index, outcome)

    def retriable(self) -> bool:
        """Whether it failed with an error after which trying again may help."""
        return bool(getattr(self.exception, "retriable", False))

    def _metadata(self, batch: ProducerBatch, index: int, outcome: Any) -> RecordMetadata:
        # Hot, if there are callbacks: a named tuple's own constructor takes twice as long.
        tp = batch.partition.tp
        base_offset, append_time = outcome
        _, _, timestamp, key_size, value_size, *header_size = self
        return _new(
            RecordMetadata,
            (
                tp.topic,
                tp.partition,
                tp,
                -1 if base_offset < 0 else base_offset + index,
                timestamp if append_time < 0 else append_time,
                None,
                key_size,
                value_size,
                header_size[0] if header_size else -1,
            ),
        )

    # Waiting…

    def get(self, timeout: float | None = None) -> RecordMetadata:
        """Wait for the outcome, `timeout` seconds at most; the metadata, or the error raised.

        Sends the record's batch at once, without waiting for linger_ms.
        """
        batch, index, outcome = self._look()
        if outcome is None:
            self[0].wait(timeout)
            batch, index, outcome = self._look()
            if outcome is None:
                raise self._not_yet(batch, timeout)
        if isinstance(outcome, BaseException):
            try:
                raise outcome
            finally:
                # The error's traceback holds this frame, which must not hold the error in turn.
                del self, batch, outcome
        return self._metadata(batch, index, outcome)

    @staticmethod
    def _not_yet(batch: ProducerBatch, timeout: float | None) -> KafkaTimeoutError:
        from kafka.producer.hindrance import hindrance

        tp = batch.partition.tp
        return KafkaTimeoutError(
            f"The record to {tp.topic}-{tp.partition} was not acknowledged within {timeout} seconds; it is still being "
            f"sent: {hindrance(batch.partition.core, batch)}",
            topic_partition=tp,
        )

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        if not self.is_done:
            yield from self[0].wait_async().__await__()
        return self.get(0)

    # Following…

    def add_callback(self, f: Callable[..., object], *args: Any, **kwargs: Any) -> Self:
        """Call ``f(*args, metadata, **kwargs)`` when the record is written: on the network thread, so be brief."""
        self[0].follow(self, _bound(f, args, kwargs), None)
        return self

    def add_errback(self, f: Callable[..., object], *args: Any, **kwargs: Any) -> Self:
        """Call ``f(*args, exception, **kwargs)`` when the record is given up."""
        self[0].follow(self, None, _bound(f, args, kwargs))
        return self

    def add_both(self, f: Callable[..., object], *args: Any, **kwargs: Any) -> Self:
        """Call ``f(*args, metadata or exception, **kwargs)`` when there is an outcome."""
        back = _bound(f, args, kwargs)
        self[0].follow(self, back, back)
        return self

    def __repr__(self) -> str:
        batch, index, outcome = self._look()
        state = "pending" if outcome is None else repr(outcome)
        return f"<FutureRecordMetadata {batch.partition.tp.topic}-{batch.partition.tp.partition} #{index} {state}>"


def _bound(f: Callable[..., object], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., object]:
    """Return what to call with the outcome alone; TypeError for what cannot be called."""
    if args or kwargs:
        return partial(f, *args, **kwargs)
    if not callable(f):
        raise TypeError(f"a callback must be callable, not {f!r}")
    return f


class SentRecords(Sequence[FutureRecordMetadata]):
    """What `send_many()` returns: the futures of the records, made when they are asked for."""

    __slots__ = ("_sizes", "_spans", "_timestamp")

    def __init__(self, timestamp: int, sizes: Callable[[int], tuple[int, int]]) -> None:
        self._timestamp = timestamp
        self._sizes = sizes
        self._spans: list[tuple[int, int, ProducerBatch, int]] = []  # first record, end, batch, index of the first

    def _add(self, batch: ProducerBatch, index: int, count: int) -> None:
        first = self._spans[-1][1] if self._spans else 0
        self._spans.append((first, first + count, batch, index))

    def __len__(self) -> int:
        return self._spans[-1][1] if self._spans else 0

    @overload
    def __getitem__(self, position: int) -> FutureRecordMetadata: ...
    @overload
    def __getitem__(self, position: slice) -> list[FutureRecordMetadata]: ...
    def __getitem__(self, position: int | slice) -> FutureRecordMetadata | list[FutureRecordMetadata]:
        if isinstance(position, slice):
            return [self[at] for at in range(*position.indices(len(self)))]
        if position < 0:
            position += len(self)
        for first, end, batch, index in self._spans:
            if first <= position < end:
                return FutureRecordMetadata((batch, index + position - first, self._timestamp, *self._sizes(position)))
        raise IndexError(position)

    def get(self, timeout: float | None = None) -> list[RecordMetadata]:
        """Wait for all of them, `timeout` seconds at most; the first error is raised."""
        if self._spans:
            core = self._spans[0][2].partition.core
            deadline = None if timeout is None else core.now() + timeout
            for _, _, batch, _ in self._spans:
                batch.wait(None if deadline is None else max(0.0, deadline - core.now()))
        return [future.get(0) for future in self]

    def __repr__(self) -> str:
        done = sum(future.is_done for future in self)
        return f"<SentRecords {done} of {len(self)} done>"
