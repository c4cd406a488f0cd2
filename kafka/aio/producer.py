"""`AIOKafkaProducer`: publishes records, from tasks of asyncio.

The work is that of `kafka.producer.calls`; `kafka.producer.common_calls` has the calls of the same form on both faces.
"""

# ruff: noqa: SLF001 - a producer, its calls and its futures are one thing in three modules

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import update_wrapper
from threading import get_ident
from typing import TYPE_CHECKING, Any, Concatenate, Final, NoReturn, ParamSpec, TypeVar, cast

# Loaded here, as in kafka.aio.lifecycle.
import kafka.producer.metrics
import kafka.protocol.transaction  # noqa: F401
from kafka._runtime.asyncio_driver import call_on
from kafka.aio.arguments import SHARED_DEFAULTS, checked_config
from kafka.aio.batch import BatchBuilder
from kafka.aio.lifecycle import Lifecycle, Phase
from kafka.aio.record_future import AIORecordFuture, AIOSentRecords, record_metadata
from kafka.config import Config, defaults, given_options, refuse_arguments
from kafka.errors import (
    AbortableTransactionError,
    ClientClosedError,
    IllegalArgumentError,
    IllegalOperation,
    IllegalStateError,
    MessageSizeTooLargeError,
    ProducerClosed,
    RecordTooLargeError,
)
from kafka.producer.arguments import Headers, checked_partition, checked_timeout, point_elsewhere
from kafka.producer.arguments import checked_config as checked_producer_config
from kafka.producer.calls import ProducerCalls
from kafka.producer.common_calls import CommonCalls, ImmediateCalls
from kafka.producer.producer_batch import Delivered
from kafka.record.batch_builder import BatchBuilder as RecordBatchBuilder

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from kafka._core.client import Client
    from kafka._runtime.loop import Loop
    from kafka._runtime.tasks import Coro
    from kafka.aio.client import AIOKafkaClient
    from kafka.aio.structs import RecordMetadata
    from kafka.metrics import Metrics
    from kafka.options import AIOProducerOptions
    from kafka.producer.asyncio_future import AsyncRecordFuture
    from kafka.producer.producer_batch import ProducerBatch

__all__ = ["AIOKafkaProducer", "MessageTooLargeError"]

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
_new: Final = object.__new__

#: Defaults that aiokafka documents. acks="all" and idempotence stay as they are everywhere in this library.
DEFAULTS: Final[dict[str, Any]] = {**SHARED_DEFAULTS, "linger_ms": 0}
_RENAMED: Final = {"max_batch_size": "batch_size"}
# For how long send() may keep the event loop from its other tasks, in milliseconds.
_SLICE_MS: Final = 1


class MessageTooLargeError(RecordTooLargeError, MessageSizeTooLargeError):
    """A record is larger than max_request_size or buffer_memory allows."""


def _awaited(
    call: Callable[Concatenate[Any, P], Coro[T]], *, transactional: bool = False
) -> Callable[Concatenate[Any, P], Coro[T]]:
    """Return the method of the producer that awaits a call, with its parameters and types, and this client's errors."""

    async def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        self._check_transactional() if transactional else self._check_usable()
        try:
            return await call(self._calls, *args, **kwargs)
        except IllegalStateError as error:
            self._explain(error, None, None)
            raise

    update_wrapper(method, call)
    return method


class AIOKafkaProducer(ImmediateCalls, Lifecycle):
    """Publishes records.

    ::

        async with AIOKafkaProducer(bootstrap_servers="localhost:9092") as producer:
            metadata = await producer.send_and_wait("events", b"hello", key=b"greeting")
            future = await producer.send("events", b"another")
            print(await future)

    `send()` puts a record into a batch and returns its future; it waits only for the metadata of a topic and for room
    in the buffer. Any number of tasks may use one producer. Keyword arguments are the options in ``DEFAULT_CONFIG``,
    and ``max_batch_size`` for ``batch_size``.
    """

    DEFAULT_CONFIG: Final[dict[str, Any]] = {**defaults("producer"), **DEFAULTS}

    _kind = "producer"
    _stopped_error = ProducerClosed
    _stop_timeout = math.inf  # `finish` then has the limit of KafkaProducer.close(): a broker's failover takes its time

    def __init__(
        self,
        options: Mapping[str, object] | None = None,
        /,
        *,
        loop: asyncio.AbstractEventLoop | None = None,
        **configs: Unpack[AIOProducerOptions],
    ) -> None:
        super().__init__(loop)
        given = given_options("AIOKafkaProducer", options, configs)
        for other, name in _RENAMED.items():
            if other in given:
                if name in given:
                    raise TypeError(f"AIOKafkaProducer() got both {other} and {name}, which are one option")
                given[name] = given.pop(other)
        self.config: Config = checked_config(
            "producer",
            "AIOKafkaProducer",
            given,
            DEFAULTS,
            lambda _kind, options: checked_producer_config(dict(options)),
        )
        self._transactional = self.config["transactional_id"] is not None
        self._calls: ProducerCalls[AsyncRecordFuture]
        self._client_view: AIOKafkaClient | None = None
        self._waiters: dict[ProducerBatch, list[asyncio.Future[None]]] = {}  # of send_and_wait(), by batch
        self._slice_began = self._turns_seen = self._slices = 0
        self._late: set[int] = set()  # tasks that have sent since the slice ended

    # Its life…

    def _open(self) -> Loop:
        self._calls = calls = ProducerCalls(
            self.config, self._world(self.config), sent_records=AIOSentRecords, face="AIOKafkaProducer"
        )
        calls._failed = _refuse_record  # type: ignore[method-assign,assignment]  # out of send(), not out of the future
        self._waiters = {}
        # What send() reads.
        accumulator = calls.accumulator
        self._plain, self._hashes = calls.direct, calls.hashes
        self._try_append = accumulator.try_append
        self._time = calls.core.client.environment.clock.time
        self._turned = calls.core.loop
        return calls.core.loop

    async def _begin(self) -> None:
        self._calls.attach(self, self._application, self._aio)
        await self._calls.connect()
        if self._transactional:
            await self._calls.init_transactions()

    async def _finish(self, deadline: float) -> None:
        await self._calls.finish(None if deadline == math.inf else deadline - self._calls.core.now())

    def _release(self) -> None:
        if hasattr(self, "_calls"):
            self._calls.closed = True
            self._calls.core.shut_down()

    def _released(self) -> None:
        if hasattr(self, "_calls"):
            self._calls.release()

    async def close(self, timeout: float | None = None, null_logger: bool = False) -> None:  # noqa: ARG002 - a name of 3.x
        """End the producer: another name of `stop`."""
        await self.stop(timeout)

    @property
    def client(self) -> AIOKafkaClient:
        """The client for raw requests over this producer's connections."""
        from kafka.aio.client import AIOKafkaClient

        if self._phase is not Phase.STARTED:
            self._refuse()
        if self._client_view is None:
            self._client_view = AIOKafkaClient.of(self, self._calls.core.client)
        return self._client_view

    # Sending…

    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
        on_delivery: None = None,
        callback: None = None,
        timestamp: None = None,
    ) -> AIORecordFuture:
        """Put a record into a batch, and return the future of its place in the log.

        Waits for `max_block_ms` at most (a minute by default), while metadata of a new topic is on its way or the
        buffer is full, and raises `KafkaTimeoutError` after that. When it raises, CancelledError too, the record is not
        accepted and will not be written. Once it has returned, cancelling the future withdraws nothing. `on_delivery`,
        `callback` and `timestamp` are arguments of confluent-kafka: a TypeError says what to use here.
        """
        if self._phase is not Phase.STARTED or get_ident() != self._thread or not self._aio_runs():
            self._refuse()
        now = int(self._time() * 1000)
        if not 0 <= now - self._slice_began < _SLICE_MS and not self._may_continue(now):
            now = await self._yield()
        try:
            if (
                type(value) is bytes
                and self._plain
                and (key is None or (type(key) is bytes and self._hashes))
                and headers is None
                and partition is None
                and timestamp_ms is None
                and on_delivery is None
                and callback is None
                and timestamp is None
            ):
                place = self._try_append(topic, key, value, now)
                if place is not None:
                    future = _new(AIORecordFuture)
                    future._batch, future._index = place
                    future._timestamp = now
                    future._key_size = -1 if key is None else len(key)
                    future._value_size = len(value)
                    future._header_size = -1
                    return future
            if on_delivery is not None or callback is not None or timestamp is not None:
                refuse_arguments("send", {"on_delivery": on_delivery, "callback": callback, "timestamp": timestamp})
            sent = self._calls.send(topic, value, key, headers, partition, timestamp_ms)
            return cast("AIORecordFuture", sent if isinstance(sent, AIORecordFuture) else await sent)
        except (IllegalStateError, TypeError) as error:
            self._explain(error, headers, partition)
            raise

    def _may_continue(self, now: int) -> bool:
        """Whether a call need not let the other tasks of the event loop run, now that the slice is over."""
        turns = self._turned.turns
        if turns != self._turns_seen:  # they had a turn
            self._begin_slice(now, turns)
            return True
        # A task that sends for the first time since then delays the others by one record only.
        task = id(asyncio.current_task())
        if task in self._late:
            return False
        self._late.add(task)
        return True

    async def _yield(self) -> int:
        """Let the other tasks of the event loop run; return the time."""
        slices = self._slices
        await asyncio.sleep(0)
        if self._phase is not Phase.STARTED:
            self._refuse()
        now = int(self._time() * 1000)
        if slices == self._slices:  # the first of the tasks that waited: the slice is for all of them
            self._begin_slice(now, self._turned.turns)
        return now

    def _begin_slice(self, now: int, turns: int) -> None:
        self._slices += 1
        self._slice_began, self._turns_seen = now, turns
        self._late.clear()

    def _explain(self, error: Exception, headers: object, partition: object) -> None:
        """Raise what says it better: in the words of asyncio's clients, or with a hint."""
        if isinstance(error, ClientClosedError):
            raise ProducerClosed(*error.args) from error
        if isinstance(error, IllegalStateError) and self._transactional:
            raise IllegalOperation(str(error)) from error
        if isinstance(partition, (list, tuple, dict)) and headers is None:
            raise TypeError(
                f"partition must be a number, not {type(partition).__name__}: pass headers by name, headers=[...]"
            ) from error

    async def send_and_wait(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> RecordMetadata:
        """Send a record, and wait until it is written; returns its metadata or raises its error.

        Cancelled before the record is accepted, it is not written; after that it is written all the same.
        """
        # Hot: one future of asyncio per call, which is cheaper to await than the record's own. Each call waits, so it
        # need not look at the slice: other tasks run before the next record of this one.
        if self._phase is not Phase.STARTED or get_ident() != self._thread or not self._aio_runs():
            self._refuse()
        now = int(self._time() * 1000)
        place = None
        try:
            if (
                type(value) is bytes
                and self._plain
                and (key is None or (type(key) is bytes and self._hashes))
                and headers is None
                and partition is None
                and timestamp_ms is None
            ):
                place = self._try_append(topic, key, value, now)
            if place is not None:
                batch, index = place
            else:
                sent: Any = self._calls.send(topic, value, key, headers, partition, timestamp_ms)
                if not isinstance(sent, AIORecordFuture):
                    sent = await sent
                batch, index, now = sent._batch, sent._index, sent._timestamp
        except (IllegalStateError, TypeError) as error:
            self._explain(error, headers, partition)
            raise
        waiters = self._waiters.get(batch)
        if waiters is not None or not batch.is_done:
            aio = self._aio
            assert aio is not None
            waiter = aio.create_future()
            if waiters is None:
                self._waiters[batch] = [waiter]
                self._calls.core.sender.hurry_soon(batch)
                batch.add_both(_Waking(self._waiters, batch, aio))
            else:
                waiters.append(waiter)
            await waiter
        outcome = batch.outcome
        if type(outcome) is Delivered:
            return record_metadata(batch, index, outcome, now)
        batch, index, outcome = batch.locate(index)
        if isinstance(outcome, BaseException):
            batch.looked_at.add(index)
            sent = place = None
            try:
                raise outcome.with_traceback(None)  # all records of a batch have the same error
            finally:
                # The error's traceback holds this frame, which must not hold the error in turn.
                del self, batch, outcome
        return record_metadata(batch, index, outcome, now)

    async def send_many(self, topic: str, records: Iterable[object]) -> AIOSentRecords:
        """Send values, or tuples ``(key, value[, headers[, partition[, timestamp_ms]]])``; return their futures.

        Values that are bytes and need no serializer cost a fraction of as many calls of `send()`. Awaiting the result
        returns the metadata of all records.
        """
        self._check_usable()
        try:
            return cast("AIOSentRecords", await self._calls.send_many(topic, records))
        except IllegalStateError as error:
            self._explain(error, None, None)
            raise

    # Batches that the application fills…

    def create_batch(self) -> BatchBuilder:
        """Return an empty batch, to be filled by the application and sent with `send_batch()`."""
        self._check_usable()
        config, calls = self.config, self._calls
        builder = RecordBatchBuilder(
            calls.accumulator.batch_size, config["compression_type"], config["compression_level"]
        )
        if not calls.plugins.has_serializers:
            return BatchBuilder(builder, lambda key, value: (key, value))
        return BatchBuilder(builder, lambda key, value: calls.plugins.serialize("", key, value, None))

    async def send_batch(self, batch: BatchBuilder, topic: str, *, partition: int | None) -> AIORecordFuture:
        """Send a batch to a partition, behind the records that were sent to it before; with None to one of its choice.

        Returns the future of its first record. Waits for room in the buffer, for `max_block_ms` at most.
        """
        self._check_usable()
        calls = self._calls
        try:
            state = await calls.find_topic(topic, calls.core.now() + calls.max_block, partition=partition)
            where = None if partition is None else state.partitions.get(checked_partition(partition))
            if where is None and partition is not None:
                raise IllegalArgumentError(
                    f"there is no partition {partition} of topic {topic!r}; it has {len(state.indexes)} partitions"
                )
            builder, facts = batch._hand_over()
            try:
                (added,) = await calls.add_built(state, deque([(where, builder)]), "send_batch()")
            except BaseException:
                batch._facts = facts  # it was not accepted, and may be sent again
                raise
        except IllegalStateError as error:
            self._explain(error, None, None)
            raise
        calls.core.call_soon(calls.core.sender.hurry, added)  # it is complete: nothing to linger for
        return AIORecordFuture(added, 0, *facts)

    # Waiting…

    flush = _awaited(CommonCalls.flush)
    partitions_for = _awaited(CommonCalls.partitions_for)
    client_instance_id = _awaited(CommonCalls.client_instance_id)
    purge = _awaited(CommonCalls.purge)

    # Transactions…

    async def init_transactions(self, timeout: float | None = None) -> None:
        """Take over the `transactional_id`. `start()` has done it; calling it again does nothing."""
        checked_timeout(timeout, "init_transactions()")
        self._check_transactional()

    begin_transaction = _awaited(CommonCalls.begin_transaction, transactional=True)
    commit_transaction = _awaited(CommonCalls.commit_transaction, transactional=True)
    abort_transaction = _awaited(CommonCalls.abort_transaction, transactional=True)
    send_offsets_to_transaction = _awaited(CommonCalls.send_offsets_to_transaction, transactional=True)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Begin a transaction; commit it at the end of the block, or abort it if the block raises.

        If it cannot be committed it is aborted, and `AbortableTransactionError` is raised: the block can be run again.
        A task that is cancelled waits for the abort for half a second only; `abort_transaction()` waits for the rest.
        """
        await self.begin_transaction()
        try:
            yield
        except BaseException as error:
            await self._calls.abort_because_of(error)
            raise
        try:
            await self.commit_transaction()
        except AbortableTransactionError:
            await self.abort_transaction()
            raise

    def _check_transactional(self) -> None:
        self._check_usable()
        if not self._transactional:
            raise IllegalOperation(
                "this producer has no transactional_id; transactions need one: AIOKafkaProducer(transactional_id=...)"
            )

    # Looking…

    def _connections(self) -> Client | None:
        return self._calls.core.client if self._phase is Phase.STARTED else None

    def _measured(self) -> Metrics | None:
        return self._calls.metrics if hasattr(self, "_calls") else None

    def _health(self) -> dict[str, Any]:
        if not hasattr(self, "_calls"):
            return {"ok": False, "closed": False, "problems": [f"the producer is {self._phase.value}"]}
        return self._calls.core.health_now()


point_elsewhere(
    AIOKafkaProducer,
    {
        "list_topics": "partitions_for(topic) for one topic, AIOKafkaConsumer.topics() for all",
        "poll": "nothing: the event loop sends and settles futures",
        "produce": "await send(topic, value, key), and await the future that it returns",
    },
)


def _refuse_record(_topic: str, error: BaseException) -> NoReturn:
    """Raise what the synchronous producer puts into the future of a record that it does not accept."""
    if isinstance(error, RecordTooLargeError):
        raise MessageTooLargeError(*error.args, **error.facts) from None
    raise error


class _Waking:
    """Wakes the calls of send_and_wait() whose records are in a batch. Holds no producer."""

    __slots__ = ("_aio", "_batch", "_thread", "_waiters")

    def __init__(
        self,
        waiters: dict[ProducerBatch, list[asyncio.Future[None]]],
        batch: ProducerBatch,
        aio: asyncio.AbstractEventLoop,
    ) -> None:
        self._waiters = waiters
        self._batch = batch
        self._aio = aio
        self._thread = get_ident()

    def __call__(self, _outcome: object) -> None:
        call_on(self._thread, self._aio, self._wake)

    def _wake(self) -> None:
        if self._aio.is_closed():
            return
        for waiter in self._waiters.pop(self._batch, ()):
            if not waiter.done():
                waiter.set_result(None)
