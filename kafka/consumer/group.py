"""`KafkaConsumer`: reads records from a cluster, in the thread that calls it."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from threading import get_ident
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NoReturn, TypeVar, overload

from kafka._historic import historic_names
from kafka._runtime.network_thread import blocking, complete
from kafka.config import defaults, given_options, name_client, resolve
from kafka.consumer.arguments import (
    checked_partitions,
    checked_timeout,
    hint_for_attribute,
    options_before_topics,
)
from kafka.consumer.calls import ConsumerCalls, ImmediateCalls
from kafka.consumer.partition_state import EARLIEST, LATEST
from kafka.consumer.subscription_state import Mode, SubscriptionState
from kafka.consumer.tracing import processed_records
from kafka.errors import ClientClosedError, IllegalStateError
from kafka.record.consumer_record import ConsumerRecord, K, V
from kafka.structs import OffsetAndMetadata, OnCommit, TopicPartition, check_topic

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from kafka._runtime.tasks import Coro
    from kafka.consumer.core import ConsumerCore
    from kafka.future import Future
    from kafka.options import BytesConsumerOptions, ConsumerOptions
    from kafka.protocol.commit import OffsetCommitResponse
    from kafka.serializer.abstract import Deserializes

__all__ = ["KafkaConsumer"]

T = TypeVar("T")
U = TypeVar("U")

_LONGEST_POLL_MS: Final = 24 * 3600 * 1000.0


@historic_names("kafka.legacy.private_names:ConsumerNames")
class KafkaConsumer(ImmediateCalls, Generic[K, V]):
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
    for bootstrap_timeout_ms at most, and raises NoBrokersAvailable if no broker answers; with 0 it needs no broker.
    """

    DEFAULT_CONFIG: ClassVar[dict[str, Any]] = defaults("consumer")

    #: What session_timeout_ms is by default with brokers before 0.10.1, which allow no more; as 3.x and 2.x name it.
    DEFAULT_SESSION_TIMEOUT_MS_PRE_KIP_735: Final[int] = 30_000
    DEFAULT_SESSION_TIMEOUT_MS_0_9: Final[int] = DEFAULT_SESSION_TIMEOUT_MS_PRE_KIP_735

    _frames: ClassVar[Mapping[str, int]] = {"poll": 7, "poll_batches": 6}

    @overload
    def __init__(
        self: KafkaConsumer[bytes | None, bytes | None],
        *topics: str,
        key_deserializer: None = None,
        value_deserializer: None = None,
        **configs: Unpack[BytesConsumerOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: KafkaConsumer[bytes | None, T],
        *topics: str,
        key_deserializer: None = None,
        value_deserializer: Callable[[bytes], T] | Deserializes[T],
        **configs: Unpack[BytesConsumerOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: KafkaConsumer[T, bytes | None],
        *topics: str,
        key_deserializer: Callable[[bytes], T] | Deserializes[T],
        value_deserializer: None = None,
        **configs: Unpack[BytesConsumerOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: KafkaConsumer[T, U],
        *topics: str,
        key_deserializer: Callable[[bytes], T] | Deserializes[T],
        value_deserializer: Callable[[bytes], U] | Deserializes[U],
        **configs: Unpack[BytesConsumerOptions],
    ) -> None: ...
    @overload
    def __init__(self, *topics: str, **configs: Unpack[ConsumerOptions]) -> None: ...
    @overload
    def __init__(self, options: Mapping[str, object], /, *topics: str, **configs: Unpack[ConsumerOptions]) -> None: ...
    def __init__(self, *topics: Any, **configs: Any) -> None:
        self._busy_thread = 0  # inside a call, 0 for none; a listener calls again from it
        self._iteration: Iterator[ConsumerRecord[K, V]] | None = None
        options, topics = options_before_topics("KafkaConsumer", topics)
        self.config = resolve("consumer", given_options("KafkaConsumer", options, configs), self.DEFAULT_CONFIG)
        name_client(self.config, "consumer")
        self._subscription = SubscriptionState()
        timeout = self.config["consumer_timeout_ms"]
        self._iteration_timeout = math.inf if timeout < 0 or timeout == math.inf else timeout / 1000
        core = self._core = self._make_core()
        try:
            if topics:
                self.subscribe(topics)
                core.client.cluster.set_topics(topics)
        except BaseException:
            complete(core.close(0.0))
            raise
        complete(core.start())

    def _make_core(self) -> ConsumerCore:
        # Imported with the first consumer: it is most of what importing KafkaConsumer would take.
        from kafka._core.client import make_client
        from kafka._runtime.network_thread import ThreadDriver
        from kafka.consumer.core import ConsumerCore

        client = make_client(self.config)
        driver = ThreadDriver(client.loop, name=f"kafka-consumer-{self.config['client_id']}")
        return ConsumerCore(self.config, client, driver, self._subscription)

    # Subscription and assignment…

    def _depart(self) -> None:
        self._complete(self._usable().unsubscribe())

    def subscription(self) -> set[str] | None:
        """The topics subscribed to; with a pattern the topics that it matches now. None if there are none.

        Only the brokers know the topics that a SubscriptionPattern matches: then the topics of `assignment`.
        """
        return self._subscribed() or None

    # Reading…

    def poll(
        self,
        /,
        timeout_ms: float = 0,
        max_records: int | None = None,
        update_offsets: bool = True,
        **unknown: NoReturn,
    ) -> dict[TopicPartition, list[ConsumerRecord[K, V]]]:
        """Return records by partition, `max_records` (max_poll_records) in all at most.

        Waits for `timeout_ms` if there are none. With ``update_offsets=False`` the positions stay, and the same
        records come again.
        """
        return self._poll_once(timeout_ms, max_records, update_offsets=update_offsets, **unknown)

    _poll_once = blocking(ConsumerCalls.poll)
    """What `poll` does; the method that some tracers replace."""

    poll_batches = blocking(ConsumerCalls.poll_batches)

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        # A subclass or a tracer that replaced __next__ sees each record.
        records = self._iterator() if type(self).__next__ is _OWN_NEXT else self
        core = self._core
        return records if core is None or core.tracer is None else processed_records(records.__next__, core.tracer)

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
                core = self._usable()
                if subscription.mode is Mode.NONE:
                    raise IllegalStateError("There is nothing to read: call subscribe() or assign() first")
                chunk = self._complete(core.poll(core.take_chunk, limit, core.deadline(timeout), None))
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

    position = blocking(ConsumerCalls.position)
    beginning_offsets = blocking(ConsumerCalls.beginning_offsets)
    end_offsets = blocking(ConsumerCalls.end_offsets)
    offsets_for_times = blocking(ConsumerCalls.offsets_for_times)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Go to the first record of these partitions, or of all; looked up when it is needed.

        IllegalStateError if none are named and none were assigned yet: poll() assigns a subscription's partitions.
        """
        self._seek_all("seek_to_beginning()", partitions, EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Go to the end, behind the last record of these partitions, or of all; looked up when it is needed.

        IllegalStateError if none are named and none were assigned yet: poll() assigns a subscription's partitions.
        """
        self._seek_all("seek_to_end()", partitions, LATEST)

    # The group…

    commit = blocking(ConsumerCalls.commit)
    committed = blocking(ConsumerCalls.committed)

    def commit_async(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None, callback: OnCommit | None = None
    ) -> Future[OffsetCommitResponse | None]:
        """Commit without waiting. `callback(offsets, response or error)` is called from a later poll or close."""
        return self._commit_async(offsets, callback)

    def seek_to_committed(self, *partitions: TopicPartition) -> None:
        """Go to the committed offsets of these partitions, or of all; without one auto_offset_reset decides.

        Partitions that are not assigned yet start there anyway.
        """
        self._group()
        checked_partitions(partitions)
        self._for_all(partitions, self._subscription.seek_to_committed)

    # Topics, health and metrics…

    client_instance_id = blocking(ConsumerCalls.client_instance_id)
    topics = blocking(ConsumerCalls.topics)
    bootstrap = blocking(ConsumerCalls.bootstrap)

    def partitions_for_topic(self, topic: str, timeout_ms: float | None = None) -> set[int] | None:
        """The partitions of a topic; None if the topic does not exist, and it is not created then."""
        check_topic(topic)
        core = self._usable()
        return self._complete(core.partitions_for_topic(topic, self._until(timeout_ms)))

    def _health_without_core(self) -> NoReturn:
        raise ClientClosedError("KafkaConsumer() raised an error, so this consumer cannot be used.")

    # Closing…

    def close(self, autocommit: bool = True, timeout_ms: float | None = None) -> None:
        """Commit if that is automatic, leave the group, free everything. Idempotent.

        It takes `timeout_ms` at most, also when brokers do not answer. By default that is 30 seconds (or
        default_api_timeout_ms, if that is less), and 5 while no broker can be reached.
        """
        core = self._core
        if core is not None:
            seconds = None if timeout_ms is None else checked_timeout(timeout_ms)
            self._complete(core.close(seconds, commit=autocommit))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        core = getattr(self, "_core", None)
        if core is not None and not core.closed:
            try:
                warnings.warn(f"{self!r} was not closed: use `with` or call close()", ResourceWarning, 2, self)
            finally:  # warnings may be errors
                self._complete(core.close(0.0, commit=False))

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

    def _usable(self, taking: str = "") -> ConsumerCore:  # noqa: ARG002
        """Return the core for a call, which one thread at a time may make; ClientClosedError without one."""
        core = self._core
        if core is None or core.closed:
            raise ClientClosedError("This consumer is closed.")
        if core.loop.forked:  # the records that were fetched before belong to the parent
            core.loop.check_usable()
        if self._busy_thread and self._busy_thread != get_ident():
            self._check_thread()
        return core

    @property
    def _calls(self) -> Any:
        return self

    # How it looks…

    if not TYPE_CHECKING:  # type checkers would accept every name

        def __getattr__(self, name: str) -> NoReturn:
            hint = "" if name.startswith("_") else hint_for_attribute(name, dir(type(self)))
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}", name=name, obj=self)


# The methods of this class: a subclass or a tracer that replaced one of them has another.
_OWN_NEXT: Final = KafkaConsumer.__next__
_OWN_POLL: Final = KafkaConsumer.poll
_OWN_POLL_ONCE: Final = KafkaConsumer._poll_once  # noqa: SLF001
