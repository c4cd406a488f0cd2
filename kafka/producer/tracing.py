"""The spans of a producer's records, where a program has set a tracer (`kafka._hooks`).

A record's span begins in `send()` and ends when the record is settled; its context goes with the record in headers. A
call that sends many records has one span for all of them. What fails here costs no record.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from kafka.producer.future import RecordFuture
from kafka.producer.producer_batch import UNSEEN, ProducerBatch

if TYPE_CHECKING:
    from kafka._hooks import HeaderPairs, ProducerTracer, SendSpan
    from kafka._runtime.tasks import Coro

__all__ = ["TracedSends"]

T = TypeVar("T")
FutureT = TypeVar("FutureT", bound=RecordFuture)


class TracedSends(Generic[FutureT]):
    """Passes the records of one producer through its tracer. See the head of this module."""

    def __init__(self, tracer: ProducerTracer, takes_headers: Callable[[], bool]) -> None:
        self._tracer = tracer
        self._takes_headers = takes_headers
        """Returns whether the brokers are known to support headers (Kafka 0.11)."""

    def send(
        self,
        send: Callable[..., FutureT | Coro[FutureT]],
        topic: str,
        value: Any,
        key: Any,
        headers: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> FutureT | Coro[FutureT]:
        """Begin the span of a record, pass the record to `send`, and end the span with the record."""
        span, headers = self._tracer.send(topic, key, value, headers, partition, self._takes_headers())
        if span is None:
            return send(topic, value, key, headers, partition, timestamp_ms)
        try:
            sent = send(topic, value, key, headers, partition, timestamp_ms)
        except BaseException as error:
            span.failed(error)
            raise
        return _follow(span, sent) if isinstance(sent, RecordFuture) else self._send_later(span, sent)

    async def _send_later(self, span: SendSpan, sent: Coro[FutureT]) -> FutureT:
        try:
            future = await sent
        except BaseException as error:
            span.failed(error)
            raise
        return _follow(span, future)

    def begin_many(self, topic: str, count: int, *, with_headers: bool = True) -> tuple[SendSpan | None, HeaderPairs]:
        """Begin the span of a call that sends many records; return it, and the headers that each of them gets."""
        return self._tracer.send_many(topic, count, with_headers and self._takes_headers())

    async def end_many(self, span: SendSpan | None, call: Coro[T], batches_of: Callable[[T], list[ProducerBatch]]) -> T:
        """Await the call, and end the span with the last of its batches."""
        if span is None:
            return await call
        try:
            sent = await call
        except BaseException as error:
            span.failed(error)
            raise
        _follow_batches(span, batches_of(sent))
        return sent


def _follow(span: SendSpan, future: FutureT) -> FutureT:
    future._batch.follow(future, span.succeeded, partial(_given_up, span))  # noqa: SLF001 - a call for each record
    return future


def _given_up(span: SendSpan, error: BaseException) -> object:
    span.failed(error)
    return UNSEEN  # by the program


def _follow_batches(span: SendSpan, batches: list[ProducerBatch]) -> None:
    """End the span when all batches are settled, with the first error of one."""
    left = len(batches)
    if not left:
        span.succeeded()

    def settled(_: object) -> None:
        nonlocal left
        left -= 1
        if not left:
            error = next(filter(None, map(error_of, batches)), None)
            span.succeeded() if error is None else span.failed(error)

    for batch in batches:
        batch.add_both(settled)


def error_of(batch: ProducerBatch) -> BaseException | None:
    """Return why a settled batch, or a part of it, was given up; None if it was not."""
    outcome = batch.outcome
    if isinstance(outcome, BaseException):
        return outcome
    parts = getattr(outcome, "parts", ())  # of a batch that was divided
    return next(filter(None, map(error_of, parts)), None)
