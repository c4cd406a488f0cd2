"""The future that `send()` of an asyncio producer returns, which asyncio accepts as its future.

`asyncio.isfuture` is true for it: it can be awaited any number of times, by any task, and passed to `gather`, `wait`,
`wait_for`, `shield` and `as_completed`. Like the synchronous future it is the record's place in a batch. Callbacks, and
whether it is cancelled, are in another object, which is made when the future is first awaited, followed or cancelled.
"""

from __future__ import annotations

import asyncio
from asyncio import CancelledError, InvalidStateError
from collections.abc import Callable, Generator
from contextvars import Context, copy_context
from threading import get_ident
from typing import TYPE_CHECKING, Any

from kafka._runtime.asyncio_driver import as_asyncio, call_on
from kafka.producer.future import RecordFuture, RecordFutures, RecordMetadata
from kafka.producer.producer_batch import UNSEEN

if TYPE_CHECKING:
    from typing_extensions import Self

    from kafka.producer.producer_batch import Delivered, ProducerBatch

__all__ = ["AsyncRecordFuture", "AsyncSentRecords"]

Callback = Callable[[Any], object]


class _Following:
    """The callbacks of a future, and whether it is cancelled. Used on the thread of the event loop only."""

    __slots__ = ("blocking", "callbacks", "cancel_message", "is_cancelled", "is_settled")

    def __init__(self) -> None:
        self.blocking = False
        self.callbacks: list[tuple[Callback, Context]] = []
        self.is_settled = False
        """The callbacks have been called."""
        self.is_cancelled = False
        self.cancel_message: object = None


class AsyncRecordFuture(RecordFuture):
    """The outcome of a `send()`, now or later: a future of asyncio whose result is a `RecordMetadata`.

    Cancelling it, or a task that awaits it, does not withdraw the record, which is written or given up regardless.
    Awaiting it sends the record's batch at once, without waiting for linger_ms.
    """

    __slots__ = ("_following",)  # not assigned until it is needed

    @property
    def _state(self) -> _Following:
        try:
            return self._following
        except AttributeError:
            self._following: _Following = _Following()
            return self._following

    @property
    def _is_cancelled(self) -> bool:
        return getattr(self, "_following", None) is not None and self._following.is_cancelled

    # The interface of asyncio's futures…

    @property
    def _asyncio_future_blocking(self) -> bool:
        return getattr(self, "_following", None) is not None and self._following.blocking

    @_asyncio_future_blocking.setter
    def _asyncio_future_blocking(self, blocking: bool) -> None:
        self._state.blocking = blocking

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop of the producer."""
        loop = self._batch.partition.sender.event_loop
        assert loop is not None, "the producer is one of asyncio"
        return loop

    def done(self) -> bool:
        """Whether there is an outcome, or the future was cancelled."""
        return self._is_cancelled or self._look()[2] is not None

    def cancelled(self) -> bool:
        """Whether the future was cancelled. The record may be written nevertheless."""
        return self._is_cancelled

    def cancel(self, msg: object = None) -> bool:
        """Cancel the future, but not the record; False if there is an outcome already."""
        if self.done():
            return False
        state = self._state
        state.is_cancelled, state.cancel_message = True, msg
        self._call_back()
        return True

    def result(self) -> RecordMetadata:
        """Return the metadata, or raise the error; InvalidStateError while there is no outcome."""
        batch, index, outcome = self._outcome()
        if isinstance(outcome, BaseException):
            batch.looked_at.add(index)
            try:
                raise outcome.with_traceback(None)  # all records of a batch have the same error
            finally:
                # The error's traceback holds this frame, which must not hold the error in turn.
                del self, batch, outcome
        return self._metadata(batch, index, outcome)

    def exception(self) -> BaseException | None:
        """Return the error of a record that was given up, None if it is written; InvalidStateError before that."""
        self._outcome()
        return self._error()

    # asyncio's gather() uses these two: without them it never ends when it, or one of these futures, is cancelled.

    @property
    def _cancel_message(self) -> object:
        return self._state.cancel_message

    def _make_cancelled_error(self) -> CancelledError:
        message = self._cancel_message
        return CancelledError() if message is None else CancelledError(message)

    def _outcome(self) -> tuple[ProducerBatch, int, Delivered | BaseException]:
        if self._is_cancelled:
            raise self._make_cancelled_error()
        batch, index, outcome = self._look()
        if outcome is None:
            raise InvalidStateError("the record is not written yet: await its future")
        return batch, index, outcome

    def add_done_callback(self, fn: Callback, /, *, context: Context | None = None) -> None:
        """Call ``fn(future)`` in `context`, by the event loop, when there is an outcome."""
        state = self._state
        context = copy_context() if context is None else context
        if state.is_settled or self._is_cancelled:
            self.get_loop().call_soon(fn, self, context=context)
            return
        state.callbacks.append((fn, context))
        if len(state.callbacks) == 1:
            self._batch.follow(self, self._settled, self._failed)

    def remove_done_callback(self, fn: Callback, /) -> int:
        """Remove all instances of a callback; return how many there were."""
        callbacks = self._state.callbacks
        kept = [(other, context) for other, context in callbacks if other != fn]
        removed, callbacks[:] = len(callbacks) - len(kept), kept
        return removed

    def _settled(self, _outcome: object) -> None:
        # Hot: each record that is awaited.
        sender = self._batch.partition.sender
        if sender.event_thread == get_ident():
            self._call_back()
        else:
            call_on(sender.event_thread, self.get_loop(), self._call_back)

    def _failed(self, outcome: object) -> object:
        self._settled(outcome)
        return UNSEEN if self._is_cancelled else None

    def _call_back(self) -> None:
        state, loop = self._state, self.get_loop()
        state.is_settled = True
        callbacks, state.callbacks = state.callbacks, []
        for fn, context in callbacks:
            loop.call_soon(fn, self, context=context)

    def __await__(self) -> Generator[Self, None, RecordMetadata]:
        if not self.done():
            self._batch.partition.sender.hurry_soon(self._batch)
            self._asyncio_future_blocking = True
            yield self
        return self.result()

    __iter__ = __await__  # for coroutines that `yield from` it, as asyncio's have


class AsyncSentRecords(RecordFutures[AsyncRecordFuture]):
    """The futures of many records, which `send_many()` of an asyncio producer returns; made on demand.

    Awaiting it returns the metadata of all records; the first error is raised.
    """

    __slots__ = ()
    record_future = AsyncRecordFuture

    def __await__(self) -> Generator[object, None, list[RecordMetadata]]:
        for batch in self.batches():
            if not batch.is_done:  # a batch is done when the smaller ones are that it was divided into
                batch.partition.sender.hurry_soon(batch)
                yield from as_asyncio(batch).__await__()
        return self.results(AsyncRecordFuture.result)
