"""The calls of a producer, written once for both faces: application-side coroutines.

`KafkaProducer` runs them in the calling thread (`kafka._runtime.network_thread.complete`), a producer of asyncio awaits
them in the calling task. Each waits with `ProducerCalls.application`, and none of them runs on the network thread. A
record that needs no wait is added by plain code: `send` returns the record's future, or the coroutine that waits for
metadata or for memory and returns that future.
"""

from __future__ import annotations

import logging
import math
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from kafka import _hooks
from kafka._core.client import Facts
from kafka.config import Config
from kafka.errors import (
    BrokerResponseError,
    BufferExhaustedError,
    ClientClosedError,
    IllegalArgumentError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    RecordTooLargeError,
    UnsupportedVersionError,
)
from kafka.producer.arguments import (
    Headers,
    as_bytes,
    checked_headers,
    checked_records,
    checked_timestamp,
    header_size,
)
from kafka.producer.buffer_pool import Reservation
from kafka.producer.common_calls import FOREVER, CommonCalls
from kafka.producer.core import ProducerCore
from kafka.producer.future import RecordFuture, RecordFutures
from kafka.producer.partition import Partition, Topic
from kafka.producer.plugins import Interception, Plugins
from kafka.producer.producer_batch import ProducerBatch
from kafka.producer.record_accumulator import Record
from kafka.record.batch_builder import BatchBuilder
from kafka.structs import check_topic

if TYPE_CHECKING:
    import asyncio

    from kafka._runtime.application import Application
    from kafka._runtime.tasks import Coro
    from kafka.net.environment import Environment
    from kafka.producer.tracing import TracedSends

__all__ = ["ProducerCalls"]

log = logging.getLogger(__name__)

T = TypeVar("T")
FutureT = TypeVar("FutureT", bound=RecordFuture)

# How long close() waits for the next acknowledgement unless the caller gives a time, in seconds.
_CLOSE_PATIENCE: Final = 30.0
_BYTES: Final = frozenset({bytes, type(None)})
_SHORTEST: Final = 2
_LONGEST: Final = 5
_TOO_FAST: Final = "records are added faster than brokers accept them"


class ProducerCalls(CommonCalls, Generic[FutureT]):
    """The calls of one producer. See the head of this module.

    The face makes a driver for ``core.loop``, then calls `attach`, then awaits `connect`.
    """

    run_now: Callable[..., tuple[ProducerBatch, int] | None] | None = None
    """Sends a record that nothing else is under way with, in the caller's thread: see `sends_at_once`."""
    tracing: TracedSends[FutureT] | None = None
    """The spans of the records; None without a tracer."""
    _interception: Interception | None = None

    def __init__(
        self,
        config: Config,
        environment: Environment | None = None,
        *,
        sent_records: type[RecordFutures[FutureT]],
        face: str = "KafkaProducer",
    ) -> None:
        self.config = config
        self.sent_records = sent_records
        """The type that `send_many` returns: a sequence of what `send` returns."""
        self.record_future: type[FutureT] = sent_records.record_future
        # Steps that may refuse the configuration come before the core, which must be closed.
        self.plugins = plugins = Plugins(config)
        self.plain = plugins.plain and not config["interceptors"]
        """Whether bytes are added as they are, and the accumulator places records without a key."""
        self.hashes = plugins.hashes
        """Whether a key's hash alone chooses the partition."""
        self._serializes = plugins.has_serializers
        self._serialize = plugins.serialize
        self._places_keyless = plugins.is_default
        self._place = plugins.place
        if config["interceptors"]:
            self._interception = Interception(config)
        self.core = core = ProducerCore(config, environment)
        plugins.cluster = core.cluster
        self.accumulator = core.accumulator
        self._topics = core.accumulator.topics
        self._time = core.client.environment.clock.time
        self.max_block = config.seconds("max_block_ms")
        if config["metrics_enabled"]:
            from kafka._core.metrics import make_metrics
            from kafka.producer.metrics import ProducerMetrics

            self.metrics = make_metrics(config, core.client)
            assert core.client.series is not None
            prefix = config["metric_group_prefix"]
            core.measure(ProducerMetrics(self.metrics, core.client.series, prefix, core.accumulator))
        if _hooks.tracer is not None:
            self.tracing = self._traced(face)
        self.direct = self.plain and self.tracing is None
        """Whether the face itself adds bytes to an open batch."""
        # In place of the method, so that a record without them takes no call more. Interceptors come first.
        if self.tracing is not None:
            self.send = partial(self.tracing.send, self.send)  # type: ignore[method-assign]
        if self._interception is not None:
            self.send = partial(self._interception.send, self.send)  # type: ignore[method-assign]
        if config["on_delivery"] is not None:
            from kafka.producer.future import reporter

            core.sender.on_settled = reporter(config["on_delivery"])

    @property
    def sends_at_once(self) -> bool:
        """Whether a record may be sent within `send()` while nothing else is under way: that wakes no thread.

        No user code runs then: the record has no callbacks yet, and there must be none for all records.
        """
        sender = self.core.sender
        return not sender.linger and self._interception is None and sender.on_settled is None and sender.tracer is None

    def _traced(self, face: str) -> TracedSends[FutureT] | None:
        from kafka.producer.tracing import TracedSends

        core = self.core
        assert _hooks.tracer is not None
        core.sender.tracer = self.tracer = _hooks.tracer.producer(Facts(core.client, face))
        if self.tracer is None:
            return None
        return TracedSends(self.tracer, lambda: core.accumulator.magic > 1 and core.client.versions is not None)

    def attach(
        self, face: object, application: Application, event_loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        """Wait with `application` from now on; records under way keep `face` alive.

        In a face of asyncio, `event_loop` is the loop of the caller, which calls the callbacks of records' futures.
        """
        self.application = application
        sender = self.core.sender
        sender.event_loop = event_loop
        sender.application = weakref.ref(application)
        sender.keeper = weakref.ref(face)

    async def connect(self) -> None:
        """Connect to the cluster; with api_version set, connect later, when there is something to send."""
        core = self.core
        if self.config["api_version"] is None:
            await self.application.run(core.bootstrap(), what="connecting to the cluster")
            return
        from kafka.protocol.negotiation import ApiVersions

        core.client.versions = ApiVersions.of_release(self.config["api_version"])
        core.check_features()
        core.client.versions = None
        core.call_soon(core.client.metadata.start)

    # Sending…

    def send(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        deadline: float | None = None,
    ) -> FutureT | Coro[FutureT]:
        """Add a record to a batch and return its future, or the coroutine that does so after a wait.

        A coroutine that raises, CancelledError too, has not added the record.
        """
        state = self._topics.get(topic)
        if state is None:
            return self._find_and_send(topic, value, key, headers, partition, timestamp_ms)
        if self._serializes:
            key_bytes, value_bytes = self._serialize(topic, key, value, headers)
        else:
            key_bytes = key if key is None or type(key) is bytes else as_bytes(key, "key")
            value_bytes = value if type(value) is bytes else as_bytes(value, "value")
        pairs = checked_headers(headers) if headers else None
        if pairs and self.accumulator.magic < 2:
            raise UnsupportedVersionError("headers need brokers of Kafka 0.11 or newer")
        timestamp = int(self._time() * 1000) if timestamp_ms is None else checked_timestamp(timestamp_ms)
        record = timestamp, key_bytes, value_bytes, pairs
        if partition is None and key_bytes is None and self._places_keyless:
            where = None
        else:
            try:
                where = self._place(state, key, key_bytes, value, value_bytes, partition)
            except IllegalArgumentError:
                if type(partition) is not int or partition < 0 or deadline is not None or self.core.on_loop:
                    raise
                # It may have been added to the topic since the last metadata.
                return self._find_and_send(topic, value, key, headers, partition, timestamp_ms)
        try:
            if self.run_now is None or self.accumulator.incomplete:
                place = self.accumulator.add(state, where, record)
            else:
                place = self.run_now(self.accumulator.add, state, where, record)
        except RecordTooLargeError as error:
            return self._failed(topic, error)
        key_size = -1 if key_bytes is None else len(key_bytes)
        value_size = -1 if value_bytes is None else len(value_bytes)
        size = header_size(pairs) if pairs else -1
        if place is None:
            return self._send_later(state, where, record, (key_size, value_size, size), deadline)
        return self.record_future(*place, timestamp, key_size, value_size, size)

    async def _find_and_send(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: Headers | None,
        partition: int | None,
        timestamp_ms: int | None,
    ) -> FutureT:
        deadline = self.core.now() + self.max_block
        try:
            await self.find_topic(topic, deadline, partition=partition)
        except BrokerResponseError as error:
            return self._failed(topic, error)
        sent = ProducerCalls.send(self, topic, value, key, headers, partition, timestamp_ms, deadline)
        return sent if isinstance(sent, RecordFuture) else await sent

    async def _send_later(
        self,
        state: Topic,
        where: Partition | None,
        record: Record,
        sizes: tuple[int, int, int],
        deadline: float | None,
    ) -> FutureT:
        place = await self._add_later(state, where, record, deadline, "send()")
        return self.record_future(*place, record[0], *sizes)

    async def _add_later(
        self, state: Topic, where: Partition | None, record: Record, deadline: float | None, what: str
    ) -> tuple[ProducerBatch, int]:
        """Wait until there is memory for a record, and add it."""
        reservation = self.accumulator.reserve(state, where, record, self.application.pending())
        add = partial(self.accumulator.add, state, where, record, reservation)
        place = await self._with_memory(reservation, deadline, what, add)
        assert place is not None, "its memory is reserved"
        return place

    def _failed(self, topic: str, error: BaseException) -> FutureT:
        """Return a future that has failed already."""
        if self.core.transactions is not None:
            self.core.call_soon(self.core.transactions.must_abort, error)
        batch = ProducerBatch(Partition(Topic(topic), -1, self.core.sender), BatchBuilder(1), 0.0, 0)
        batch.settle(error)
        if self.core.metrics is not None:
            self.core.metrics.refused(topic, error)
        if self.core.transactions is None:
            self.core.sender.lost.add(batch)
        return self.record_future(batch, 0, -1, -1, -1, -1)

    async def send_many(
        self, topic: str, records: Iterable[object], send: Callable[..., FutureT] | None = None
    ) -> RecordFutures[FutureT]:
        """Add values, or tuples ``(key, value[, headers[, partition[, timestamp_ms]]])``.

        `send` is called for each record, where a subclass or a tracer has replaced the face's own.
        """
        if type(topic) is not str:
            check_topic(topic)
        values = checked_records(records)
        tracing = self.tracing
        if tracing is None or send is not None or self._interception is not None:  # else each record has its own span
            return await self._send_all(topic, values, send)
        span, headers = tracing.begin_many(topic, len(values))
        return await tracing.end_many(span, self._send_all(topic, values, None, headers), RecordFutures.batches)

    async def _send_all(
        self,
        topic: str,
        values: list[Any],
        send: Callable[..., FutureT] | None,
        more: Sequence[tuple[str, bytes]] = (),
    ) -> RecordFutures[FutureT]:
        """Send records; all of them get `more` headers."""
        timestamp = int(self._time() * 1000)
        if self.plain and not set(map(type, values)) - _BYTES:
            return await self._send_values(topic, values, timestamp, more)
        if send is None and self.plain and self.hashes and _are_pairs(values):
            return await self._send_pairs(topic, values, timestamp, more)
        # Past the tracer, if there are no interceptors: one span is for all.
        add = send or (self.send if self._interception is not None else partial(ProducerCalls.send, self))
        futures = []
        for record in values:
            if isinstance(record, tuple):
                if not _SHORTEST <= len(record) <= _LONGEST:
                    raise TypeError(
                        "a record of send_many() is a value or a tuple (key, value[, headers[, partition[, "
                        f"timestamp_ms]]]), not a tuple of {len(record)}"
                    )
                key, value, *rest = record
                if more:
                    rest[:1] = [with_headers(rest[0] if rest else None, more)]
                sent = add(topic, value, key, *rest)
            else:
                sent = add(topic, record, None, more or None)
            futures.append(sent if isinstance(sent, RecordFuture) else await sent)
        return self.sent_records.of(futures)

    async def _send_pairs(
        self,
        topic: str,
        pairs: list[tuple[bytes | None, bytes | None]],
        timestamp: int,
        more: Sequence[tuple[str, bytes]],
    ) -> RecordFutures[FutureT]:
        places: list[tuple[ProducerBatch, int]] = []
        while len(places) < len(pairs):
            state = self._topics.get(topic)
            if state is not None:
                self.accumulator.extend_pairs(state, pairs, timestamp, places, more)
            if len(places) < len(pairs):  # one that needs a new batch, or whose topic is not known yet
                key, value = pairs[len(places)]
                sent = ProducerCalls.send(self, topic, value, key, more, None, timestamp)
                places.append((sent if isinstance(sent, RecordFuture) else await sent).place)
        sizes = [(-1 if key is None else len(key), -1 if value is None else len(value)) for key, value in pairs]
        size = header_size(more)
        return self.sent_records.at(places, lambda at: (timestamp, *sizes[at], size))

    async def _send_values(
        self, topic: str, values: list[bytes | None], timestamp: int, more: Sequence[tuple[str, bytes]]
    ) -> RecordFutures[FutureT]:
        sizes = [-1 if value is None else len(value) for value in values]
        size = header_size(more)
        sent = self.sent_records(lambda at: (timestamp, -1, sizes[at], size))
        state = self._topics.get(topic)
        deadline = None
        if state is None:
            deadline = self.core.now() + self.max_block
            state = await self.find_topic(topic, deadline)
        start = 0
        while start < len(values):
            place = self.accumulator.extend(state, values, start, timestamp, more)
            if place is None:
                record = timestamp, None, values[start], more or None
                place = (*await self._add_later(state, None, record, deadline, "send_many()"), 1)
                deadline = None
            sent.add(*place)
            start += place[2]
        return sent

    async def add_built(
        self, topic: Topic, built: deque[tuple[Partition | None, BatchBuilder]], what: str
    ) -> list[ProducerBatch]:
        """Queue batches that have their records already; waits for memory."""
        added = self.accumulator.add_built(topic, built)
        while built:
            reservation = Reservation(built[0][1].size, ready=self.application.pending())
            add = partial(self.accumulator.add_built, topic, built, reservation)
            added += await self._with_memory(reservation, None, what, add)
        return added

    # Waiting for memory…

    async def _with_memory(
        self, reservation: Reservation, deadline: float | None, what: str, add: Callable[[], T]
    ) -> T:
        """Wait for memory, in the order of arrival, then call `add`.

        Cancelling the wait frees its place.
        """
        core, accumulator, application = self.core, self.accumulator, self.application
        self._check_may_wait(what)
        began = core.now()
        if deadline is None:
            deadline = began + self.max_block
        try:
            accumulator.wait(reservation)
            if await application.wait(reservation.ready, deadline):
                reservation.ready.result()
                return add()
        except BaseException:
            accumulator.cancel(reservation)
            raise
        finally:
            if core.metrics is not None:
                core.metrics.waited("bufferpool-wait", core.now() - began)
        accumulator.cancel(reservation)
        if core.metrics is not None:
            core.metrics.exhausted()
        raise BufferExhaustedError(
            f"buffer_memory ({self.config['buffer_memory']} bytes) stayed full for max_block_ms "
            f"({self.config['max_block_ms']} ms): {core.reasons() or _TOO_FAST}"
        )

    def _check_may_wait(self, what: str) -> None:
        self.accumulator.check_outside(what)
        if self.core.on_loop:
            raise IllegalStateError(f"{what} would block, so a callback cannot call it")

    # Closing…

    async def close(self, timeout: float | None = None) -> None:
        """Send the remaining records, for `timeout` seconds at most, then give up the others and close the connections.

        By default that ends when 30 seconds have passed without an acknowledgement.
        The core is shut down even if this raises. The face closes its driver after this, then calls `release`.
        """
        self.closed = True
        try:
            await self.finish(timeout)
        finally:
            await self._shut_down()

    async def finish(self, timeout: float | None = None) -> None:
        """Do what takes time at the end: `drain`, and the last push of metrics; raises no error."""
        core, telemetry = self.core, self.core.client.telemetry
        begun = core.now()
        await self.drain(timeout)
        if telemetry is None or telemetry.subscription is None or core.loop.closed or core.on_loop:
            return
        deadline = min(core.now() + 1.0, math.inf if timeout is None else begun + timeout)
        if deadline > core.now():
            try:
                await self.application.run(telemetry.finish(deadline), deadline, "close()")
            except KafkaError as error:
                log.debug("The last metrics were not pushed: %s", error)

    async def drain(self, timeout: float | None = None) -> None:
        """Abort the open transaction and send the remaining records, for as long as `close` says; raises no error."""
        core = self.core
        if core.loop.closed or core.on_loop or (timeout is not None and timeout <= 0):
            return
        seconds = _CLOSE_PATIENCE if timeout is None else timeout
        if core.transactions is not None:
            # Without its coordinator a transaction does not end; batches do, by delivery_timeout_ms.
            seconds = min(seconds, self.max_block)
        deadline = core.now() + min(seconds, FOREVER)
        while True:
            try:
                await self.application.run(core.finish(), deadline, "close()")
                return
            except ClientClosedError:  # noqa: PERF203 - each wait may end early
                return
            except KafkaError as error:
                if timeout is None and core.sender.acknowledged_at + seconds > deadline:
                    deadline = core.sender.acknowledged_at + seconds
                    continue
                if core.transactions is not None:
                    log.warning("The producer is closed without having ended its transaction: %s", error)
                return

    async def _shut_down(self) -> None:
        core = self.core

        async def end() -> None:
            core.shut_down()

        if not (core.loop.forked or core.loop.closed or core.on_loop):
            try:
                await self.application.run(end(), core.now() + 1.0, "close()")
                return
            except (ClientClosedError, KafkaTimeoutError):
                pass
        if not core.loop.forked:
            core.shut_down()

    def release(self) -> None:
        """Close the interceptors, serializers and partitioner of the application; called after the driver is closed."""
        if self.core.loop.forked:
            return
        lost = self.core.sender.lost.report()
        if lost and not _logging_is_configured():
            print(*lost, sep="\n", file=sys.stderr)  # noqa: T201 - not lost silently
        if self._interception is not None:
            self._interception.close()
        if self.metrics is not None:
            self.metrics.close()
        self.plugins.close()


def _logging_is_configured() -> bool:
    """Whether a program shows what the library logs; the library's own NullHandler does not count."""
    logger: logging.Logger | None = log
    while logger is not None:
        if any(not isinstance(handler, logging.NullHandler) for handler in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False


def with_headers(headers: Any, more: Sequence[tuple[str, bytes]]) -> Any:
    """Return the headers of one record with more, unless it has one of these names: the context of its producer."""
    if not headers:
        return more
    pairs = list(headers.items() if isinstance(headers, Mapping) else headers)
    names = {name for name, _ in more}
    return pairs if any(pair[0] in names for pair in pairs) else [*pairs, *more]


def _are_pairs(records: list[Any]) -> bool:
    """Whether all are tuples of key and value, which are bytes or None."""
    if set(map(type, records)) != {tuple} or set(map(len, records)) != {2}:
        return False
    return not set(map(type, chain.from_iterable(records))) - _BYTES
