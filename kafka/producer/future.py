"""The futures of records, and the reports on batches.

A record's future stores its batch, its index there, and the few numbers that cannot be found out later. It has no lock,
no list and no callback: the outcome and the callbacks are the batch's. Making one costs about 0.1 µs, and a program
that ignores it pays nothing more.
"""

# ruff: noqa: SLF001 - futures, and what makes some

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar, overload

from kafka._runtime.callback_errors import raise_after_pass
from kafka._runtime.network_thread import complete
from kafka.errors import KafkaTimeoutError
from kafka.producer.arguments import checked_timeout, point_elsewhere
from kafka.producer.producer_batch import ProducerBatch
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from typing_extensions import Self

    from kafka.legacy.produce_result import FutureProduceResult
    from kafka.producer.producer_batch import Delivered

__all__ = [
    "DeliveryReport",
    "FutureRecordMetadata",
    "RecordFuture",
    "RecordFutures",
    "RecordMetadata",
    "SentRecords",
    "reporter",
]

_new = tuple.__new__

T = TypeVar("T")
FutureT = TypeVar("FutureT", bound="RecordFuture")


class RecordMetadata(NamedTuple):
    """The place of a record that is written."""

    topic: str
    partition: int
    topic_partition: TopicPartition
    offset: int
    """-1 if the broker does not return it: with ``acks=0``, or for a batch that it has written long before."""
    timestamp: int
    """Milliseconds: the record's own, or the broker's where the topic keeps that."""
    checksum: int | None
    """Always None: since Kafka 0.11 batches have a checksum, and records have none."""
    serialized_key_size: int
    """-1 where there is no key."""
    serialized_value_size: int
    """-1 where there is no value."""
    serialized_header_size: int
    """-1 where there are no headers."""


class RecordFuture:
    """The place of a record in its batch, from which the outcome is found: the base of the futures of both faces."""

    __slots__ = ("_batch", "_header_size", "_index", "_key_size", "_timestamp", "_value_size")

    # `KafkaProducer.send` stores these without calling this, which would take twice as long.
    def __init__(
        self,
        batch: ProducerBatch,
        index: int,
        timestamp: int,
        key_size: int,
        value_size: int,
        header_size: int = -1,
    ) -> None:
        self._batch = batch
        self._index = index
        self._timestamp = timestamp
        self._key_size = key_size
        self._value_size = value_size
        self._header_size = header_size

    # Looking…

    @property
    def place(self) -> tuple[ProducerBatch, int]:
        """The batch that the record was added to, and its index there."""
        return self._batch, self._index

    def _look(self) -> tuple[ProducerBatch, int, Delivered | BaseException | None]:
        """Return the batch that the record is in now, its index there, and the outcome or None."""
        return self._batch.locate(self._index)

    def _error(self) -> BaseException | None:
        """Return why the record failed, for the program, which has seen it then; None if it did not fail."""
        batch, index, outcome = self._look()
        if isinstance(outcome, BaseException):
            batch.looked_at.add(index)
            return outcome
        return None

    @property
    def is_done(self) -> bool:
        """Whether there is an outcome."""
        return self._look()[2] is not None

    def done(self) -> bool:
        """Whether there is an outcome, as futures of asyncio and of threads spell it."""
        return self._look()[2] is not None

    def _metadata(self, batch: ProducerBatch, index: int, outcome: Delivered) -> RecordMetadata:
        # Hot, if there are callbacks: a named tuple's own constructor takes twice as long.
        tp = batch.partition.tp
        base_offset, append_time, _ = outcome
        return _new(
            RecordMetadata,
            (
                tp.topic,
                tp.partition,
                tp,
                -1 if base_offset < 0 else base_offset + index,
                self._timestamp if append_time < 0 else append_time,
                None,
                self._key_size,
                self._value_size,
                self._header_size,
            ),
        )

    def _moved(self, batch: ProducerBatch, index: int) -> Self:
        """Return the future of the same record in the batch that it was moved to."""
        return type(self)(batch, index, self._timestamp, self._key_size, self._value_size, self._header_size)

    # As a value…

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self  # all copies are of the same record

    def __reduce__(self) -> NoReturn:
        raise TypeError("the future of a record cannot be pickled; the metadata that its get() returns can")

    def __repr__(self) -> str:
        batch, index, outcome = self._look()
        state = "pending" if outcome is None else repr(outcome)
        return f"<{type(self).__name__} {batch.partition.tp.topic}-{batch.partition.tp.partition} #{index} {state}>"


class FutureRecordMetadata(RecordFuture):
    """The outcome of a `send()`, now or later.

    ::

        metadata = producer.send("events", b"hello").get(timeout=10)
        print(metadata.partition, metadata.offset)

    It can be awaited too, in a task of asyncio; there ``asyncio.wrap_future()`` is not needed. Two futures are equal if
    they are of the same record.
    """

    __slots__ = ()

    def __init__(
        self, batch: Any, index: int, timestamp: int, key_size: Any, value_size: int, header_size: int = -1, *more: int
    ) -> None:
        if type(batch) is not ProducerBatch and hasattr(batch, "topic_partition"):
            # As programs for older releases make one, mostly in tests: with a checksum before the sizes.
            from kafka.legacy.produce_result import BatchOfResult

            batch = BatchOfResult.of(batch)
            key_size, value_size, header_size = value_size, header_size, more[0] if more else -1
        # Not by a call of the base: send_many() makes these.
        self._batch = batch
        self._index = index
        self._timestamp = timestamp
        self._key_size = key_size
        self._value_size = value_size
        self._header_size = header_size

    # Looking…

    def succeeded(self) -> bool:
        """Whether the record is written."""
        return self.is_done and self._error() is None

    def failed(self) -> bool:
        """Whether the record was given up; ``exception.outcome_unknown`` is true if it may be written nevertheless."""
        return self._error() is not None

    @property
    def exception(self) -> BaseException | None:
        """Why the record was given up; None if it was not."""
        return self._error()

    @property
    def value(self) -> RecordMetadata | None:
        """The metadata; None while the record is not written."""
        batch, index, outcome = self._look()
        if outcome is None or isinstance(outcome, BaseException):
            return None
        return self._metadata(batch, index, outcome)

    def retriable(self) -> bool:
        """Whether it failed with an error after which sending it again may succeed."""
        return bool(getattr(self.exception, "retriable", False))

    # Waiting…

    def get(self, timeout: float | None = None) -> RecordMetadata:
        """Wait for the outcome, `timeout` seconds at most; return the metadata, or raise the error.

        Sends the record's batch at once, without waiting for linger_ms.
        """
        batch, index, outcome = self._batch.locate(self._index)
        if outcome is None:
            seconds = None if timeout is None else checked_timeout(timeout, "get()")
            complete(self._batch.partition.sender.wait_for(self._batch, seconds))
            batch, index, outcome = self._batch.locate(self._index)
            if outcome is None:
                raise self._not_yet(batch, timeout)
        if isinstance(outcome, BaseException):
            batch.looked_at.add(index)
            try:
                raise outcome.with_traceback(None)  # all records of a batch have the same error
            finally:
                # The error's traceback holds this frame, which must not hold the error in turn.
                del self, batch, outcome
        return self._metadata(batch, index, outcome)

    @staticmethod
    def _not_yet(batch: ProducerBatch, timeout: float | None) -> KafkaTimeoutError:
        tp = batch.partition.tp
        within = "" if timeout is None else f" within {timeout:g} seconds"
        return KafkaTimeoutError(
            f"The record to {tp.topic}-{tp.partition} was not acknowledged{within}; it is still being sent: "
            f"{batch.partition.sender.diagnostics.why_unacknowledged(batch)}",
            topic_partition=tp,
        )

    def __await__(self) -> Generator[object, None, RecordMetadata]:
        if not self.is_done:
            yield from self._batch.partition.sender.wait_for_async(self._batch).__await__()
        return self.get(0)

    @property
    def _produce_future(self) -> FutureProduceResult:
        """The outcome of the record's batch, under the name that instrumentation of older releases reads."""
        from kafka.legacy.produce_result import FutureProduceResult

        result = FutureProduceResult(self._batch.partition.tp)
        self.add_both(result.settle, self._index)
        return result

    # Callbacks…

    def add_callback(self, f: Callable[..., object], *args: object, **kwargs: object) -> Self:
        """Call ``f(*args, metadata, **kwargs)`` when the record is written.

        Callbacks run on the network thread, or in a thread that waits: they must not block.
        """
        self._batch.follow(self, _bound(f, args, kwargs), None)
        return self

    def add_errback(self, f: Callable[..., object], *args: object, **kwargs: object) -> Self:
        """Call ``f(*args, exception, **kwargs)`` when the record is given up."""
        self._batch.follow(self, None, _bound(f, args, kwargs))
        return self

    def add_both(self, f: Callable[..., object], *args: object, **kwargs: object) -> Self:
        """Call ``f(*args, metadata or exception, **kwargs)`` when there is an outcome."""
        back = _bound(f, args, kwargs)
        self._batch.follow(self, back, back)
        return self

    # As a value…

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FutureRecordMetadata):
            return NotImplemented
        return self._batch is other._batch and self._index == other._index

    def __hash__(self) -> int:
        return hash((id(self._batch), self._index))


def _bound(f: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]) -> Callable[..., object]:
    """Return a callable that takes the outcome alone; TypeError if `f` is not callable."""
    if args or kwargs:
        return partial(f, *args, **kwargs)
    if not callable(f):
        raise TypeError(f"a callback must be callable, not {f!r}")
    return f


point_elsewhere(
    FutureRecordMetadata,
    {"add_done_callback": "add_callback(f) and add_errback(g)", "result": "get(timeout)"},
)


class RecordFutures(Sequence[FutureT]):
    """The futures of many records, made on demand."""

    __slots__ = ("_count", "_facts", "_firsts", "_spans")

    record_future: type[FutureT]
    """The type of the futures."""

    def __init__(self, facts: Callable[[int], tuple[int, ...]]) -> None:
        self._facts = facts
        """Returns the timestamp and the sizes of a record."""
        self._firsts: list[int] = []
        """The first record of each span. A span has records that follow one another in one batch."""
        self._spans: list[tuple[ProducerBatch, int]] = []
        """The batch of each span, and the index there of its first record."""
        self._count = 0

    @classmethod
    def of(cls, futures: Sequence[FutureT]) -> Self:
        """Return the sequence of futures that exist already."""
        facts = [(future._timestamp, future._key_size, future._value_size, future._header_size) for future in futures]
        return cls.at([future.place for future in futures], facts.__getitem__)

    @classmethod
    def at(cls, places: list[tuple[ProducerBatch, int]], facts: Callable[[int], tuple[int, ...]]) -> Self:
        """Return the sequence of records that are at these places."""
        sent = cls(facts)
        sent._spans = places
        sent._count = len(places)
        sent._firsts = list(range(sent._count))
        return sent

    def add(self, batch: ProducerBatch, index: int, count: int) -> None:
        """Add the next `count` records, which are in a batch from `index` on."""
        at, self._count = self._count, self._count + count
        if self._spans:
            last, begin = self._spans[-1]
            if last is batch and index == begin + at - self._firsts[-1]:
                return  # the same span
        self._firsts.append(at)
        self._spans.append((batch, index))

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, position: int) -> FutureT: ...
    @overload
    def __getitem__(self, position: slice) -> list[FutureT]: ...
    def __getitem__(self, position: int | slice) -> FutureT | list[FutureT]:
        if isinstance(position, slice):
            return [self[at] for at in range(*position.indices(len(self)))]
        at = position + self._count if position < 0 else position
        if not 0 <= at < self._count:
            raise IndexError(f"there is no record {position} among {self._count}")
        span = bisect_right(self._firsts, at) - 1
        batch, begin = self._spans[span]
        future = object.__new__(self.record_future)
        RecordFuture.__init__(future, batch, begin + at - self._firsts[span], *self._facts(at))
        return future

    def __iter__(self) -> Iterator[FutureT]:
        # Past the constructor of FutureRecordMetadata, which also takes the arguments of older releases.
        facts, kind, new, fill = self._facts, self.record_future, object.__new__, RecordFuture.__init__
        ends = [*self._firsts, self._count][1:]
        for (batch, begin), first, end in zip(self._spans, self._firsts, ends, strict=True):
            for at in range(first, end):
                future = new(kind)
                fill(future, batch, begin + at - first, *facts(at))
                yield future

    def batches(self) -> list[ProducerBatch]:
        """Return the batches that the records are in, each once: to follow many records through a few objects."""
        return list(dict.fromkeys(batch for batch, _ in self._spans))

    def counts_by_batch(self) -> dict[ProducerBatch, int]:
        """Return how many of the records are in each batch."""
        counts: dict[ProducerBatch, int] = {}
        for (batch, _), first, end in zip(self._spans, self._firsts, [*self._firsts, self._count][1:], strict=True):
            counts[batch] = counts.get(batch, 0) + end - first
        return counts

    def results(self, result: Callable[[FutureT], T]) -> list[T]:
        """Return what `result` gets from each future; if one of them raises, the program has seen all failures."""
        try:
            return [result(future) for future in self]
        except Exception:
            for future in self:
                future._error()
            raise

    def __repr__(self) -> str:
        done = sum(future.is_done for future in self)
        return f"<{type(self).__name__} {done} of {len(self)} done>"


def wait_for_batches(batches: list[ProducerBatch], timeout: float | None) -> None:
    """Wait in this thread until batches of one producer are settled, `timeout` seconds at most."""
    if batches:
        now = batches[0].partition.sender.now
        deadline = None if timeout is None else now() + timeout
        for batch in batches:
            left = None if deadline is None else max(0.0, deadline - now())
            complete(batch.partition.sender.wait_for(batch, left))


class SentRecords(RecordFutures[FutureRecordMetadata]):
    """The futures of many records, which `send_many()` returns; made on demand."""

    __slots__ = ()
    record_future = FutureRecordMetadata

    def get(self, timeout: float | None = None) -> list[RecordMetadata]:
        """Wait for all of them, `timeout` seconds at most; the first error is raised."""
        timeout = checked_timeout(timeout, "get()")
        batches = self.batches()
        wait_for_batches(batches, timeout)

        def result(future: FutureRecordMetadata) -> RecordMetadata:
            if not future.is_done:
                raise future._not_yet(future._batch, timeout)
            return future.get()

        return self.results(FutureRecordMetadata.get if all(batch.is_done for batch in batches) else result)


log = logging.getLogger(__name__)


class DeliveryReport:
    """The outcome of one batch: records of one partition that were sent one after another.

    >>> DeliveryReport(TopicPartition("events", 0), base_offset=10, count=3, error=None).offsets
    range(10, 13)
    """

    # No dataclass: to import dataclasses would take a tenth of the time that importing kafka takes.
    __slots__ = ("base_offset", "count", "error", "topic_partition")

    def __init__(
        self, topic_partition: TopicPartition, base_offset: int, count: int, error: BaseException | None
    ) -> None:
        self.topic_partition = topic_partition
        self.base_offset = base_offset
        """The offset of the first record; -1 if it is unknown."""
        self.count = count
        self.error = error
        """Why the records failed; None if they are written."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeliveryReport) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def _values(self) -> tuple[object, ...]:
        return self.topic_partition, self.base_offset, self.count, self.error

    def __repr__(self) -> str:
        return (
            f"DeliveryReport(topic_partition={self.topic_partition}, base_offset={self.base_offset}, "
            f"count={self.count}, error={self.error!r})"
        )

    @classmethod
    def of(cls, batch: ProducerBatch, outcome: Delivered | BaseException) -> DeliveryReport:
        """Return the report on a batch."""
        if isinstance(outcome, BaseException):
            return cls(batch.partition.tp, -1, batch.count, outcome)
        return cls(batch.partition.tp, outcome.base_offset, batch.count, None)

    @property
    def offsets(self) -> range:
        """The offsets of the records; empty if they are not known."""
        return range(self.base_offset, self.base_offset + self.count) if self.base_offset >= 0 else range(0)


def reporter(report: Callable[[DeliveryReport], object]) -> Callable[[ProducerBatch, Delivered | BaseException], None]:
    """Return a function that calls the application's on_delivery with each batch; its exceptions are logged."""

    def settled(batch: ProducerBatch, outcome: Delivered | BaseException) -> None:
        try:
            report(DeliveryReport.of(batch, outcome))
        except Exception:
            log.exception("on_delivery failed")
        except BaseException as error:  # sys.exit(): after the other batches
            raise_after_pass(error)

    return settled


if not TYPE_CHECKING:  # checkers report a name that is not here

    def __getattr__(name: str) -> Any:
        if name == "FutureProduceResult":  # a historic name
            from kafka.legacy.produce_result import FutureProduceResult

            return FutureProduceResult
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
