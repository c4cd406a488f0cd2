"""`KafkaConsumer`: reads records from a cluster, in the thread that calls it."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from threading import get_ident
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, overload

from kafka._runtime.application import ApplicationThread, complete
from kafka.consumer.face import ConsumerFace
from kafka.consumer.subscription_state import Mode
from kafka.errors import IllegalStateError
from kafka.legacy.private_names import ConsumerNames
from kafka.record.consumer_record import ConsumerRecord, K, V
from kafka.structs import OffsetAndMetadata, OffsetAndTimestamp, TopicPartition

if TYPE_CHECKING:
    from typing_extensions import Self

    from kafka._runtime.tasks import Coro
    from kafka.consumer.engine import Engine
    from kafka.record.columns import Columns
    from kafka.serializer.abstract import Deserializes

__all__ = ["KafkaConsumer"]

T = TypeVar("T")
U = TypeVar("U")

_LONGEST_POLL_MS: Final = 24 * 3600 * 1000.0


class KafkaConsumer(ConsumerNames, ConsumerFace, Generic[K, V]):
    """Reads records from a Kafka cluster.

    It reads the topics that it is made with; `subscribe` and `assign` change them. Iterate it for one record at a time,
    `poll` for a few hundred, `poll_batches` for columns. It fetches ahead in the background. One thread at a time may
    use it: a second one gets IllegalStateError, which names the first. Any thread may call `wakeup`, `health` and
    `metrics`.

    >>> from kafka.broker import Broker
    >>> with Broker(topics=["events"]) as broker:
    ...     _ = broker.append("events", value=b"hello")
    ...     with KafkaConsumer(
    ...         "events", bootstrap_servers=broker.bootstrap_servers,
    ...         auto_offset_reset="earliest", consumer_timeout_ms=5000,
    ...     ) as consumer:
    ...         print(next(consumer).value)
    b'hello'

    Keyword arguments are the options in ``KafkaConsumer.DEFAULT_CONFIG``. The constructor connects,
    for bootstrap_timeout_ms at most, and raises NoBrokersAvailable if no broker answers.
    """

    #: What session_timeout_ms is by default with brokers before 0.10.1, which allow no more; as 3.x and 2.x name it.
    DEFAULT_SESSION_TIMEOUT_MS_PRE_KIP_735: Final[int] = 30_000
    DEFAULT_SESSION_TIMEOUT_MS_0_9: Final[int] = DEFAULT_SESSION_TIMEOUT_MS_PRE_KIP_735

    @overload
    def __init__(
        self: KafkaConsumer[bytes | None, bytes | None],
        *topics: str,
        key_deserializer: None = None,
        value_deserializer: None = None,
        **configs: Any,
    ) -> None: ...
    @overload
    def __init__(
        self: KafkaConsumer[bytes | None, T],
        *topics: str,
        key_deserializer: None = None,
        value_deserializer: Callable[[bytes], T] | Deserializes[T],
        **configs: Any,
    ) -> None: ...
    @overload
    def __init__(
        self: KafkaConsumer[T, bytes | None],
        *topics: str,
        key_deserializer: Callable[[bytes], T] | Deserializes[T],
        value_deserializer: None = None,
        **configs: Any,
    ) -> None: ...
    @overload
    def __init__(
        self: KafkaConsumer[T, U],
        *topics: str,
        key_deserializer: Callable[[bytes], T] | Deserializes[T],
        value_deserializer: Callable[[bytes], U] | Deserializes[U],
        **configs: Any,
    ) -> None: ...
    @overload
    def __init__(self, *topics: str, **configs: Any) -> None: ...
    def __init__(self, *topics: str, **configs: Any) -> None:
        self._busy_thread = 0  # inside a call, 0 for none; a listener calls again from it
        self._iteration: Iterator[ConsumerRecord[K, V]] | None = None
        super().__init__(topics, configs)
        engine = self._engine = self._make_engine()
        try:
            if topics:
                self.subscribe(topics)
                engine.client.cluster.set_topics(topics)
        except BaseException:
            complete(engine.close(0.0))
            raise
        complete(engine.start())

    def _make_engine(self) -> Engine:
        # Imported with the first consumer: it is most of what importing KafkaConsumer would take.
        from kafka._core.client import make_client
        from kafka._runtime.network_thread import ThreadDriver
        from kafka.consumer.engine import Engine

        client = make_client(self.config)
        driver = ThreadDriver(client.loop, name=f"kafka-consumer-{self.config['client_id']}")
        return Engine(self.config, client, ApplicationThread(driver), self._subscription)

    # Subscription and assignment…

    def unsubscribe(self) -> None:
        """Read nothing, neither topics nor partitions that were assigned by hand."""
        self._complete(self._unsubscribe())

    # Reading…

    def poll(
        self, timeout_ms: float = 0, max_records: int | None = None, update_offsets: bool = True
    ) -> dict[TopicPartition, list[ConsumerRecord[K, V]]]:
        """Return records by partition, `max_records` (max_poll_records) in all at most.

        Waits for `timeout_ms` if there are none. With ``update_offsets=False`` the positions stay, and the same
        records come again.
        """
        return self._poll_once(timeout_ms, max_records, update_offsets=update_offsets)

    def _poll_once(
        self, timeout_ms: float, max_records: int | None, update_offsets: bool = True
    ) -> dict[TopicPartition, list[ConsumerRecord[K, V]]]:
        """Do what `poll` does; the method that some tracers replace."""
        engine = self._open()
        limit = self._limit(max_records)
        deadline = self._poll_deadline(engine, timeout_ms, stacklevel=4)  # below poll()
        return self._complete(engine.poll(limit, deadline, move_on=update_offsets))

    def poll_batches(self, timeout_ms: float = 0, max_records: int | None = None) -> dict[TopicPartition, Columns]:
        """Return records as columns, for programs that take them by the thousand and need no object for each.

        Batches are returned whole, so there may be more records than `max_records` (65,536) by one batch.
        Keys and values are bytes; deserializers are not applied. ``columns.to_arrow()`` gives a
        ``pyarrow.RecordBatch``. An interceptor cannot see columns: IllegalStateError with one that has on_consume().
        """
        engine = self._open()
        at_least = self._column_limit(engine, max_records)
        deadline = self._poll_deadline(engine, timeout_ms)
        return self._complete(engine.poll_columns(at_least, deadline))

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        # A subclass or a tracer that replaced __next__ sees each record.
        return self._iterator() if type(self).__next__ is _OWN_NEXT else self

    def __next__(self) -> ConsumerRecord[K, V]:
        return next(self._iterator())

    def _iterator(self) -> Iterator[ConsumerRecord[K, V]]:
        if self._busy_thread:
            self._check_thread()
        if self._iteration is None:
            self._iteration = self._polled_records() if self._has_other_poll() else self._records()
        return self._iteration

    def _has_other_poll(self) -> bool:
        """Whether a subclass or a tracer replaced `poll`, and sees records there alone."""
        kind = type(self)
        polls = (kind.poll, kind._poll_once)  # noqa: SLF001 - of this class or a subclass
        replaced = polls != (_OWN_POLL, _OWN_POLL_ONCE) or "poll" in vars(self)
        return replaced and kind.__next__ is _OWN_NEXT

    def _polled_records(self) -> Iterator[ConsumerRecord[K, V]]:
        """Yield the records of `poll`, one by one: positions follow the yielded records."""
        timeout_ms = min(self._iteration_timeout * 1000, _LONGEST_POLL_MS)
        try:
            while True:
                found = self.poll(timeout_ms, max_records=1)
                if not found and timeout_ms < _LONGEST_POLL_MS:
                    return
                for records in found.values():
                    yield from records
        finally:
            self._iteration = None

    def _records(self) -> Iterator[ConsumerRecord[K, V]]:
        subscription, timeout = self._subscription, self._iteration_timeout
        limit = self.config["max_poll_records"]
        try:
            while True:
                engine = self._open()
                if subscription.mode is Mode.NONE:
                    raise IllegalStateError("There is nothing to read: call subscribe() or assign() first")
                chunk = self._complete(engine.poll_chunk(limit, engine.deadline(timeout)))
                if chunk is None:
                    return
                cursor = chunk.cursor
                for record in chunk.records:  # hot, and no call between the last two lines: see Chunk
                    if chunk.interrupted:
                        break
                    cursor.returned = record
                    yield record
                if subscription.chunk is chunk:
                    subscription.end_iteration()
                del chunk  # its records may be large, and the next ones are decoded now
        finally:
            self._iteration = None

    # Positions…

    def position(self, partition: TopicPartition, timeout_ms: float | None = None) -> int:
        """The offset of the next record of a partition."""
        return self._complete(self._position(partition, timeout_ms))

    # The group…

    def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Commit offsets, by default behind all returned records, and wait until the broker has stored them.

        CommitFailedError, once, if a rebalance took partitions away before their offsets were stored: their records
        come again, here or to another member. The error names the partitions and the cause.
        """
        self._complete(self._commit(offsets, timeout_ms))

    @overload
    def committed(
        self, partition: TopicPartition, metadata: Literal[False] = False, timeout_ms: float | None = None
    ) -> int | None: ...

    @overload
    def committed(
        self, partition: TopicPartition, metadata: Literal[True], timeout_ms: float | None = None
    ) -> OffsetAndMetadata | None: ...

    @overload
    def committed(
        self, partition: Collection[TopicPartition], metadata: bool = False, timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]: ...

    def committed(
        self,
        partition: TopicPartition | Collection[TopicPartition],
        metadata: bool = False,
        timeout_ms: float | None = None,
    ) -> Any:
        """The committed offset of a partition, or None; with ``metadata=True`` as OffsetAndMetadata.

        For a collection of partitions a dictionary of OffsetAndMetadata or None.
        """
        return self._complete(self._committed(partition, metadata, timeout_ms))

    # Looking offsets up…

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first offsets of partitions, assigned or not."""
        return self._complete(self._beginning_offsets(partitions, timeout_ms))

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offsets that the next records of partitions get; with read_committed the last stable offsets."""
        return self._complete(self._end_offsets(partitions, timeout_ms))

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after a time (in ms) in each partition; None where all are earlier."""
        return self._complete(self._offsets_for_times(timestamps, timeout_ms))

    # Topics…

    def topics(self, timeout_ms: float | None = None) -> set[str]:
        """All topics of the cluster that this client may see."""
        return self._complete(self._topics(timeout_ms))

    def partitions_for_topic(self, topic: str, timeout_ms: float | None = None) -> set[int] | None:
        """The partitions of a topic; None if the topic does not exist, and it is not created then."""
        return self._complete(self._partitions_for_topic(topic, timeout_ms))

    # Health and metrics…

    def bootstrap(self, timeout_ms: float | None = None, refresh: bool = False) -> None:
        """Know the cluster, as the consumer does once it is made; with `refresh` ask for its metadata again, and wait.

        >>> from kafka.broker import Broker
        >>> with Broker() as broker, KafkaConsumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
        ...     consumer.bootstrap(timeout_ms=5000, refresh=True)
        """
        self._complete(self._bootstrap(timeout_ms, refresh))

    # Closing…

    def close(self, autocommit: bool = True, timeout_ms: float | None = None) -> None:
        """Commit if that is automatic, leave the group, free everything. Idempotent.

        It takes `timeout_ms` at most, also when brokers do not answer. By default that is 30 seconds (or
        default_api_timeout_ms, if that is less), and 5 while no broker can be reached.
        """
        self._complete(self._close(autocommit, timeout_ms))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        engine = getattr(self, "_engine", None)
        if engine is not None and not engine.closed:
            try:
                warnings.warn(f"{self!r} was not closed: use `with` or call close()", ResourceWarning, 2, self)
            finally:  # warnings may be errors
                self._complete(engine.close(0.0, commit=False))

    # One thread at a time…

    def _complete(self, coro: Coro[T]) -> T:
        """Run an application-side coroutine in this thread, which is inside a call meanwhile."""
        before = self._busy_thread
        if before != (me := get_ident()):
            if before:
                coro.close()
                self._check_thread()
            self._busy_thread = me
        try:
            return complete(coro)
        finally:
            self._busy_thread = before

    def _check_thread(self) -> None:
        """Raise IllegalStateError if another thread is inside a call."""
        busy = self._busy_thread
        if busy and busy != get_ident():
            names = (f"thread {thread.name!r}" for thread in threading.enumerate() if thread.ident == busy)
            raise IllegalStateError(
                f"This consumer is in use by {next(names, 'another thread')}, and one thread at a time may use it. To "
                "end the other's poll() call wakeup(); to read in several threads make a consumer for each"
            )

    def _open(self) -> Engine:
        """Return the engine for a call that one thread at a time may make."""
        engine = self._engine
        if engine is None or engine.closed or engine.loop.forked:
            return self._open_for_any_thread()  # which raises
        if self._busy_thread:
            self._check_thread()
        return engine


# The methods of this class: a subclass or a tracer that replaced one of them has another.
_OWN_NEXT: Final = KafkaConsumer.__next__
_OWN_POLL: Final = KafkaConsumer.poll
_OWN_POLL_ONCE: Final = KafkaConsumer._poll_once  # noqa: SLF001
