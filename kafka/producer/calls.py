"""What the calls of a producer do, written once for both faces: application-side coroutines.

`KafkaProducer` runs them in the calling thread (`kafka._runtime.application.complete`), a producer of asyncio awaits
them in the calling task. Each waits with `ProducerCalls.application`, and none of them runs on the network thread. The
exception is the way of a record that needs no wait, which is plain code: `send` returns the record's future, or the
coroutine that waits for metadata or for memory and returns that future.
"""

from __future__ import annotations

import logging
import weakref
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from kafka._text import counted
from kafka.config import Config
from kafka.errors import (
    BrokerResponseError,
    BufferExhaustedError,
    ClientClosedError,
    IllegalArgumentError,
    IllegalStateError,
    InvalidTopicError,
    KafkaError,
    KafkaTimeoutError,
    OutcomeUnknownTimeoutError,
    RecordTooLargeError,
    UnsupportedVersionError,
)
from kafka.partitioner import DefaultPartitioner, bind_partitioner
from kafka.producer.arguments import (
    Headers,
    as_bytes,
    checked_group,
    checked_headers,
    checked_offsets,
    checked_partition,
    checked_records,
    checked_timeout,
    checked_timestamp,
)
from kafka.producer.buffer_pool import Reservation
from kafka.producer.core import ProducerCore
from kafka.producer.diagnostics import no_answers
from kafka.producer.future import RecordFuture, RecordFutures, RecordMetadata
from kafka.producer.producer_batch import Partition, ProducerBatch, Topic
from kafka.record.batch_builder import BatchBuilder
from kafka.serializer import bind_serializer
from kafka.structs import TopicPartition, check_topic

if TYPE_CHECKING:
    import asyncio

    from kafka._runtime.application import Application
    from kafka.net.environment import Environment
    from kafka.producer.transaction_manager import TransactionManager
    from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata

__all__ = ["ProducerCalls", "make_calls"]

log = logging.getLogger(__name__)

T = TypeVar("T")
FutureT = TypeVar("FutureT", bound=RecordFuture)

_FOREVER: Final = 10.0**9
_BYTES: Final = frozenset({bytes, type(None)})
_SHORTEST: Final = 2
_LONGEST: Final = 5
_TOO_FAST: Final = "records are added faster than brokers take them"


class ProducerCalls(Generic[FutureT]):
    """The calls of one producer. See the head of this file.

    The face makes a driver for ``core.loop``, then calls `attach`, then awaits `connect`.
    """

    def __init__(
        self, config: Config, environment: Environment | None = None, *, sent_records: type[RecordFutures[FutureT]]
    ) -> None:
        self.config = config
        self.sent_records = sent_records
        """What `send_many` returns; it consists of what `send` returns."""
        self.record_future: type[FutureT] = sent_records.record_future
        # What may refuse the configuration comes before the core, which must be closed.
        self._serialize_key = bind_serializer(config["key_serializer"], "key_serializer")
        self._serialize_value = bind_serializer(config["value_serializer"], "value_serializer")
        partitioner = config["partitioner"]
        self._default = type(partitioner) is DefaultPartitioner and partitioner.partitions is None
        self._ignore_keys = bool(config["partitioner_ignore_keys"] and self._default)
        self._choose = bind_partitioner(partitioner)
        self._partitioner = partitioner
        self._on_new_batch: Callable[..., object] | None = getattr(partitioner, "on_new_batch", None)
        self.hashes: bool = self._default and not self._ignore_keys
        """Whether a key's hash alone chooses the partition."""
        self.plain: bool = self._serialize_value is None and self._serialize_key is None and self._default
        """Whether bytes go into a batch as they are, and records without a key wherever the accumulator puts them."""
        self.core = core = ProducerCore(config, environment)
        self.accumulator = core.accumulator
        self.application: Application
        self.closed = False
        self._topics = core.accumulator.topics
        self._time = core.client.environment.clock.time
        self.max_block = config.seconds("max_block_ms")
        self.metrics: Any = None
        if config["metrics_enabled"]:
            from kafka._core.metrics import make_metrics
            from kafka.producer.metrics import ProducerMetrics

            self.metrics = make_metrics(config, core.client.context)
            core.measure(ProducerMetrics(self.metrics, config["metric_group_prefix"], core.accumulator))
        if config["on_delivery"] is not None:
            from kafka.producer.future import reporter

            core.sender.on_settled = reporter(config["on_delivery"])

    def attach(
        self, face: object, application: Application, event_loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        """Wait with `application` from now on; records under way keep `face` alive.

        In a face of asyncio, `event_loop` is the loop of the caller, which calls the callbacks of records' futures.
        """
        self.application = application
        self.core.event_loop = event_loop
        self.core.application = weakref.ref(application)
        self.core.keeper = weakref.ref(face)

    async def connect(self) -> None:
        """Find out what the cluster is; with api_version set, connect later, when there is something to send."""
        core = self.core
        if self.config["api_version"] is None:
            timeout = core.client.settings.discovery_timeout
            await self.application.run(core.bootstrap(), core.now() + timeout + 1, "connecting to the cluster")
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
    ) -> FutureT | Coroutine[Any, Any, FutureT]:
        """Add a record to a batch and return its future, or the coroutine that does so after a wait.

        A coroutine that raises, CancelledError too, has not added the record.
        """
        state = self._topics.get(topic)
        if state is None:
            return self._find_and_send(topic, value, key, headers, partition, timestamp_ms)
        key_bytes, value_bytes = self._bytes(topic, key, value, headers)
        pairs = checked_headers(headers) if headers else None
        if pairs and self.accumulator.magic < 2:
            raise UnsupportedVersionError("headers need brokers of Kafka 0.11 or newer")
        timestamp = int(self._time() * 1000) if timestamp_ms is None else checked_timestamp(timestamp_ms)
        where = self._place(state, key, key_bytes, value, value_bytes, partition)
        try:
            place = self.accumulator.add(state, where, timestamp, key_bytes, value_bytes, pairs)
        except RecordTooLargeError as error:
            return self._failed(topic, error)
        key_size = -1 if key_bytes is None else len(key_bytes)
        value_size = -1 if value_bytes is None else len(value_bytes)
        header_size = sum(len(name.encode()) + len(data or b"") for name, data in pairs) if pairs else -1
        if place is None:
            return self._add_later(
                state,
                where,
                (timestamp, key_bytes, value_bytes, pairs),
                (timestamp, key_size, value_size, header_size),
                deadline,
            )
        return self.record_future(*place, timestamp, key_size, value_size, header_size)

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
            await self.find_topic(topic, deadline)
        except BrokerResponseError as error:
            return self._failed(topic, error)
        sent = ProducerCalls.send(self, topic, value, key, headers, partition, timestamp_ms, deadline)
        return sent if isinstance(sent, RecordFuture) else await sent

    async def _add_later(
        self,
        state: Topic,
        where: Partition | None,
        record: tuple[int, bytes | None, bytes | None, Any],
        facts: tuple[int, int, int, int],
        deadline: float | None,
    ) -> FutureT:
        """Wait until there is memory for a record, and add it."""
        place = await self._add_reserved(state, where, record, deadline, "send()")
        return self.record_future(*place, *facts)

    def _failed(self, topic: str, error: BaseException) -> FutureT:
        """Return a future that has failed already."""
        if self.core.transactions is not None:
            self.core.call_soon(self.core.transactions.must_abort, error)
        batch = ProducerBatch(Partition(Topic(topic), -1, self.core), BatchBuilder(1), 0.0, 0)
        batch.settle(error)
        return self.record_future(batch, 0, -1, -1, -1, -1)

    async def send_many(
        self, topic: str, records: Iterable[Any], send: Callable[..., FutureT] | None = None
    ) -> RecordFutures[FutureT]:
        """Add values, or tuples ``(key, value[, headers[, partition[, timestamp_ms]]])``.

        `send` is a synchronous face's own way for single records.
        """
        if type(topic) is not str:
            check_topic(topic)
        values = checked_records(records)
        timestamp = int(self._time() * 1000)
        if self.plain and not set(map(type, values)) - _BYTES:
            return await self._send_values(topic, values, timestamp)
        futures = []
        add = send or self.send
        for record in values:
            if isinstance(record, tuple):
                if not _SHORTEST <= len(record) <= _LONGEST:
                    raise TypeError(
                        "a record of send_many() is a value or a tuple (key, value[, headers[, partition[, "
                        f"timestamp_ms]]]), not a tuple of {len(record)}"
                    )
                key, value, *rest = record
                sent = add(topic, value, key, *rest)
            else:
                sent = add(topic, record, None)
            futures.append(sent if isinstance(sent, RecordFuture) else await sent)
        return self.sent_records.of(futures)

    async def _send_values(self, topic: str, values: list[bytes | None], timestamp: int) -> RecordFutures[FutureT]:
        sizes = [-1 if value is None else len(value) for value in values]
        sent = self.sent_records(lambda at: (timestamp, -1, sizes[at]))
        state = self._topics.get(topic)
        deadline = None
        if state is None:
            deadline = self.core.now() + self.max_block
            state = await self.find_topic(topic, deadline)
        start = 0
        while start < len(values):
            place = self.accumulator.extend(state, values, start, timestamp)
            if place is None:
                record = (timestamp, None, values[start], None)
                place = (*await self._add_reserved(state, None, record, deadline, "send_many()"), 1)
                deadline = None
            sent.add(*place)
            start += place[2]
        return sent

    async def add_built(
        self, topic: Topic, built: deque[tuple[Partition | None, BatchBuilder]], what: str
    ) -> list[ProducerBatch]:
        """Queue batches that have their records already, waiting for memory where there is none."""
        added = self.accumulator.add_built(topic, built)
        while built:
            reservation = Reservation(built[0][1].size)
            deadline = self.core.now() + self.max_block
            added += await self._with_memory(
                reservation, lambda place: self.accumulator.add_built(topic, built, place), deadline, what
            )
        return added

    # Waiting for metadata, and for memory…

    async def find_topic(self, topic: str, deadline: float, limit: str | None = None) -> Topic:
        """Return a topic, asking the cluster for it if need be."""
        core = self.core
        self.check_open()
        self.accumulator.check_admits()
        try:
            check_topic(topic)
        except IllegalArgumentError as error:
            # As the cluster would answer: out of the future, beside other topics' errors.
            raise InvalidTopicError(str(error)) from None
        if core.on_loop:
            if (known := core.known_topic(topic)) is not None:
                return known
            raise IllegalStateError(
                f"send() to topic {topic!r} would wait for its metadata, so it cannot be called from a callback: call "
                f"partitions_for({topic!r}) once before"
            )
        what = f"finding topic {topic!r}"
        self.accumulator.check_outside(what)
        with self._measured("metadata-wait"):
            return await self.application.run(core.find_topic(topic, deadline, limit), deadline + 1, what)

    async def _add_reserved(
        self,
        state: Topic,
        where: Partition | None,
        record: tuple[int, bytes | None, bytes | None, Any],
        deadline: float | None,
        what: str,
    ) -> tuple[ProducerBatch, int]:
        accumulator = self.accumulator
        _, key, value, headers = record
        reservation = accumulator.reservation(state, where, key, value, headers)
        if deadline is None:
            deadline = self.core.now() + self.max_block
        return await self._with_memory(
            reservation, lambda place: accumulator.add_reserved(place, state, where, *record), deadline, what
        )

    async def _with_memory(
        self, reservation: Reservation, add: Callable[[Reservation], T | None], deadline: float, what: str
    ) -> T:
        """Wait for memory, in the order of arrival, until `add` succeeds; cancelling the wait frees its place."""
        core = self.core
        self._check_may_wait(what)
        try:
            self.accumulator.wait(reservation)
            while True:
                with self._measured("bufferpool-wait"):
                    await self.application.wait(reservation.ready, deadline)
                if not reservation.ready.is_done:
                    break
                reservation.ready.result()
                added = add(reservation)
                if added is not None:
                    return added
        except BaseException:
            self.accumulator.cancel(reservation)
            raise
        self.accumulator.cancel(reservation)
        if core.metrics is not None:
            core.metrics.exhausted()
        raise BufferExhaustedError(
            f"buffer_memory ({self.config['buffer_memory']} bytes) stayed full for max_block_ms "
            f"({self.config['max_block_ms']} ms): {core.reasons() or _TOO_FAST}"
        )

    def _check_may_wait(self, what: str) -> None:
        self.accumulator.check_outside(what)
        if self.core.on_loop:
            raise IllegalStateError(f"{what} would block, so it cannot be called from a callback on the network thread")

    async def flush(self, timeout: float | None = None) -> None:
        """Send what was added so far, and wait until each record is written or given up."""
        timeout = checked_timeout(timeout, "flush()")
        self.check_open()
        core = self.core
        try:
            with self._measured("flush"):
                await self._run(core.sender.flush(), self._deadline(timeout), "flush()")
        except KafkaTimeoutError as error:
            left = sum(batch.count for batch in core.accumulator.unsettled())
            why = core.reasons()
            raise KafkaTimeoutError(
                f"flush() took longer than {timeout:g} seconds; {counted(left)} left{f': {why}' if why else ''}"
            ) from error

    async def partitions_for(self, topic: str, timeout: float | None = None) -> set[int]:
        """Return the numbers of a topic's partitions."""
        if type(topic) is not str:
            check_topic(topic)
        timeout = checked_timeout(timeout, "partitions_for()")
        state = self._topics.get(topic)
        if state is None:
            seconds = self.max_block if timeout is None else timeout
            limit = None if timeout is None else f"{timeout:g} seconds"
            state = await self.find_topic(topic, self.core.now() + seconds, limit)
        return set(state.indexes)

    async def health(self) -> dict[str, Any]:
        """Return what works and what does not."""
        core = self.core
        if core.loop.closed or core.on_loop:
            return core.health_now()
        return await self._run(core.health(), None, "health()")

    async def purge(self, *, in_flight: bool = False) -> int:
        """Give up records; return how many."""
        self.check_open()
        return await self._run(self.core.purge(in_flight), None, "purge()")

    def _run(self, coro: Coroutine[Any, Any, T], deadline: float | None, what: str) -> Coroutine[Any, Any, T]:
        """Run a coroutine of the core; refuses in a thread that was interrupted within `send()`."""
        try:
            self.accumulator.check_outside(what)
        except IllegalStateError:
            coro.close()
            raise
        return self.application.run(coro, deadline, what)

    # TransactionManager…

    async def init_transactions(self, timeout: float | None = None) -> None:
        """Take over the transactional_id."""
        await self.transact(self.transactions.init(), "init_transactions()", "txn-init", timeout)

    async def begin_transaction(self) -> None:
        """Open a transaction."""
        await self.transact(self.transactions.begin(), "begin_transaction()", "txn-begin", None)

    async def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        group: ConsumerGroupMetadata | str | None,
        timeout: float | None = None,
    ) -> None:
        """Let offsets be committed with the transaction."""
        checked_in = checked_group(group)
        checked = checked_offsets(offsets)
        work = self.transactions.send_offsets(checked, checked_in)
        await self.transact(work, "send_offsets_to_transaction()", "txn-send-offsets", timeout)

    async def commit_transaction(self, timeout: float | None = None) -> None:
        """Commit the transaction."""
        try:
            await self.transact(self.transactions.commit(), "commit_transaction()", "txn-commit", timeout)
        except KafkaTimeoutError as error:
            raise OutcomeUnknownTimeoutError(*error.args) from error

    async def abort_transaction(self, timeout: float | None = None) -> None:
        """Abort the transaction."""
        await self.transact(self.transactions.abort(), "abort_transaction()", "txn-abort", timeout)

    @property
    def transactions(self) -> TransactionManager:
        """What is behind the transactional calls; IllegalStateError without a transactional_id."""
        found = self.core.transactions
        if found is None:
            raise IllegalStateError(
                "this producer has no transactional_id; transactions need one: KafkaProducer(transactional_id=...)"
            )
        return found

    async def transact(self, work: Coroutine[Any, Any, None], what: str, metric: str, timeout: float | None) -> None:
        """Do the work of a transactional call, for `timeout` seconds or max_block_ms.

        The work continues where this ends early, by a timeout or a cancellation: calling again waits for the rest.
        """
        try:
            timeout = checked_timeout(timeout, what)
            self.check_open()
            self.accumulator.check_outside(what)
        except BaseException:
            work.close()
            raise
        seconds = self.max_block if timeout is None else timeout
        try:
            with self._measured(metric):
                await self.application.run(work, self._deadline(seconds), what)
        except KafkaTimeoutError as error:
            raise KafkaTimeoutError(self._why_late(what, seconds)) from error

    def _why_late(self, what: str, seconds: float) -> str:
        core = self.core
        why = core.transaction_problem() or core.reasons() or no_answers(core.client)
        why = f" ({why})" if why else ""
        outcome = "its outcome is not known yet" if what.startswith("commit") else "it continues"
        return f"{what} took longer than {seconds:g} seconds{why}; {outcome}: call it again, which waits for the rest"

    # EndTransaction…

    async def close(self, timeout: float | None = None) -> None:
        """Send what is left, for `timeout` seconds at most, then give the rest up and close the connections.

        However it ends, the core is shut down then. The face closes its driver after this, then calls `release`.
        """
        self.closed = True
        try:
            await self.drain(timeout)
        finally:
            await self._shut_down()

    async def drain(self, timeout: float | None = None) -> None:
        """End the open transaction and send what is left, for `timeout` seconds at most. Does not raise for that."""
        core = self.core
        if core.loop.closed or core.on_loop or (timeout is not None and timeout <= 0):
            return
        if not (core.accumulator.unsettled() or core.transactions):
            return
        seconds = _FOREVER if timeout is None else timeout
        if core.transactions is not None:
            # Without its coordinator a transaction never ends; the batches do, by delivery_timeout_ms.
            seconds = min(seconds, self.max_block)
        try:
            await self.application.run(core.finish(), self._deadline(seconds), "close()")
        except ClientClosedError:
            pass
        except KafkaError as error:
            if core.transactions is not None:
                log.warning("The producer is closed without having ended its transaction: %s", error)

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
        """Close what the application has passed in (interceptors, serializers, the partitioner), after the driver."""
        if self.core.loop.forked:
            return
        if self.core.given_up:
            log.warning(
                "The producer was closed with %s not acknowledged: %s",
                counted(self.core.given_up),
                self.core.given_up_because,
            )
        for bound in (self._serialize_key, self._serialize_value):
            if bound is not None and bound.close is not None:
                bound.close()
        closer = getattr(self._partitioner, "close", None)
        if callable(closer):
            closer()

    def check_open(self) -> None:
        """Raise where the producer is closed, or was made in another process."""
        self.core.loop.check_usable()
        if self.closed:
            raise ClientClosedError("This producer is closed.")

    def _deadline(self, timeout: float | None) -> float | None:
        return None if timeout is None else self.core.now() + min(timeout, _FOREVER)

    @contextmanager
    def _measured(self, call: str) -> Iterator[None]:
        """Let the metrics know how long the block has held up the application."""
        core = self.core
        began = core.now()
        try:
            yield
        finally:
            if core.metrics is not None:
                core.metrics.waited(call, core.now() - began)

    # A record's bytes, and its partition…

    def _bytes(self, topic: str, key: Any, value: Any, headers: Any) -> tuple[bytes | None, bytes | None]:
        serialize = self._serialize_key
        if serialize is not None:
            key = serialize.call(key) if serialize.plain else serialize.call(topic, headers, key)
        serialize = self._serialize_value
        if serialize is not None:
            value = serialize.call(value) if serialize.plain else serialize.call(topic, headers, value)
        return (
            as_bytes(key, "key", self._serialize_key is not None),
            as_bytes(value, "value", self._serialize_value is not None),
        )

    def _place(
        self, state: Topic, key: Any, key_bytes: bytes | None, value: Any, value_bytes: bytes | None, asked: int | None
    ) -> Partition | None:
        """Return the partition of a record; None leaves it to the accumulator."""
        if asked is None:
            if self._default and (key_bytes is None or self._ignore_keys):
                return None
            if self._default:
                index = self._partitioner.choose(state.name, key_bytes, state.indexes, ())
            else:
                cluster = self.core.cluster
                index = self._choose(state.name, key, key_bytes, value, value_bytes, cluster)
                if self._on_new_batch is not None and _opens_batch(state, index):
                    # A sticky partitioner may move on now (KIP-480).
                    self._on_new_batch(state.name, cluster, index)
                    index = self._choose(state.name, key, key_bytes, value, value_bytes, cluster)
        else:
            index = asked if type(asked) is int else checked_partition(asked)
        found = state.partitions.get(index)
        if found is None:
            source = "the partitioner chose" if asked is None else "there is no"
            raise IllegalArgumentError(
                f"{source} partition {index!r} of topic {state.name!r}; it has {len(state.indexes)} partitions"
            )
        return found


def _opens_batch(state: Topic, index: int) -> bool:
    partition = state.partitions.get(index)
    return partition is not None and partition.open is None


class InterceptedCalls(ProducerCalls[FutureT]):
    """The calls of a producer with interceptors, which see each record and its outcome before others do (KIP-42)."""

    def __init__(
        self, config: Config, environment: Environment | None = None, *, sent_records: type[RecordFutures[FutureT]]
    ) -> None:
        from kafka.interceptors import Interceptors

        self._interceptors = Interceptors(config["interceptors"], config)
        super().__init__(config, environment, sent_records=sent_records)
        self.plain = False

    def send(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        deadline: float | None = None,
    ) -> FutureT | Coroutine[Any, Any, FutureT]:
        """Do what `ProducerCalls.send` does with the record that the interceptors return."""
        from kafka.interceptors import ProducerRecord

        given: Any = (topic, value, key, headers, partition, timestamp_ms)
        record: Any = self._interceptors.through("on_send", ProducerRecord(*given))
        try:
            sent = super().send(
                record.topic,
                record.value,
                record.key,
                record.headers,
                record.partition,
                record.timestamp_ms,
                deadline,
            )
        except Exception as error:
            self._tell_refused(record, error)
            raise
        if isinstance(sent, RecordFuture):
            return self._follow(sent)
        return self._send_later(record, sent)

    async def _send_later(self, record: Any, sent: Coroutine[Any, Any, FutureT]) -> FutureT:
        try:
            return self._follow(await sent)
        except BaseException as error:
            self._tell_refused(record, error)
            raise

    def _follow(self, future: FutureT) -> FutureT:
        batch = future._batch  # noqa: SLF001 - of one package

        def written(metadata: RecordMetadata) -> None:
            self._interceptors.tell("on_acknowledgement", metadata, None)

        def given_up(error: BaseException) -> None:
            self._tell_failed(batch.partition.tp, error)

        batch.follow(future, written, given_up)
        return future

    def _tell_refused(self, record: Any, error: BaseException) -> None:
        partition = -1 if record.partition is None else record.partition
        self._tell_failed(TopicPartition(record.topic, partition), error)

    def _tell_failed(self, where: TopicPartition, error: BaseException) -> None:
        metadata = RecordMetadata(where.topic, where.partition, where, -1, -1, None, -1, -1, -1)
        self._interceptors.tell("on_acknowledgement", metadata, error)

    def release(self) -> None:
        """Close the interceptors, and what `ProducerCalls.release` closes."""
        if not self.core.loop.forked:
            self._interceptors.close()
        super().release()


def make_calls(
    config: Config, environment: Environment | None = None, *, sent_records: type[RecordFutures[FutureT]]
) -> ProducerCalls[FutureT]:
    """Return the calls of a producer with this configuration."""
    kind = InterceptedCalls if config["interceptors"] else ProducerCalls
    return kind(config, environment, sent_records=sent_records)
