"""`KafkaShareConsumer`: a member of a share group, in the thread that calls it."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from threading import get_ident
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, TypeVar, cast, overload

from kafka._runtime.network_thread import blocking, complete
from kafka.config import defaults, given_options, name_client, resolve
from kafka.consumer.arguments import checked_timeout, checked_topics, hint_for_attribute, options_before_topics
from kafka.consumer.tracing import processed_records
from kafka.errors import ClientClosedError, IllegalStateError
from kafka.record.consumer_record import K, V
from kafka.share.acknowledgements import AcknowledgeType
from kafka.share.calls import ImmediateShareCalls, ShareConsumerCalls, check_group_id
from kafka.share.record import ShareRecord

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from kafka._runtime.tasks import Coro
    from kafka.options import BytesShareConsumerOptions, ShareConsumerOptions
    from kafka.serializer.abstract import Deserializes
    from kafka.share.core import ShareConsumerCore

T = TypeVar("T")
U = TypeVar("U")


class KafkaShareConsumer(ImmediateShareCalls[ShareRecord[K, V]], Generic[K, V]):
    """A member of a share group (KIP-932): a queue on Kafka's topics. Needs brokers of Kafka 4.2.

    The members of a group share the records of each partition, and acknowledge them one by one. A record that is not
    acknowledged within the group's share.record.lock.duration.ms, or is released, goes to another member.

    >>> from kafka import KafkaAdminClient
    >>> from kafka.admin import ConfigResource
    >>> from kafka.broker import Broker
    >>> with Broker(topics=["jobs"]) as broker:
    ...     _ = broker.append("jobs", value=b"resize")
    ...     with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
    ...         _ = admin.alter_configs(
    ...             [ConfigResource("GROUP", "workers", {"share.auto.offset.reset": "earliest"})]
    ...         )
    ...     with KafkaShareConsumer(
    ...         "jobs", bootstrap_servers=broker.bootstrap_servers, group_id="workers",
    ...         share_acknowledgement_mode="explicit", consumer_timeout_ms=5000,
    ...     ) as consumer:
    ...         record = next(consumer)
    ...         with consumer.processing(record, max_deliveries=3):
    ...             print(record.value, record.delivery_count)
    b'resize' 1

    One thread at a time may use it: a second one gets IllegalStateError. Any thread may call `acknowledge`,
    `acknowledge_offset`, `wakeup`, `health` and `metrics`. Keyword arguments are the options in
    ``KafkaShareConsumer.DEFAULT_CONFIG``; the group_id must be given. The constructor connects, for
    bootstrap_timeout_ms at most.
    """

    DEFAULT_CONFIG: ClassVar[dict[str, Any]] = defaults("share")

    @overload
    def __init__(
        self: KafkaShareConsumer[bytes | None, bytes | None],
        *topics: str,
        key_deserializer: None = None,
        value_deserializer: None = None,
        **configs: Unpack[BytesShareConsumerOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: KafkaShareConsumer[bytes | None, T],
        *topics: str,
        key_deserializer: None = None,
        value_deserializer: Callable[[bytes], T] | Deserializes[T],
        **configs: Unpack[BytesShareConsumerOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: KafkaShareConsumer[T, bytes | None],
        *topics: str,
        key_deserializer: Callable[[bytes], T] | Deserializes[T],
        value_deserializer: None = None,
        **configs: Unpack[BytesShareConsumerOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: KafkaShareConsumer[T, U],
        *topics: str,
        key_deserializer: Callable[[bytes], T] | Deserializes[T],
        value_deserializer: Callable[[bytes], U] | Deserializes[U],
        **configs: Unpack[BytesShareConsumerOptions],
    ) -> None: ...
    @overload
    def __init__(self, *topics: str, **configs: Unpack[ShareConsumerOptions]) -> None: ...
    @overload
    def __init__(
        self, options: Mapping[str, object], /, *topics: str, **configs: Unpack[ShareConsumerOptions]
    ) -> None: ...
    def __init__(self, *topics: Any, **configs: Any) -> None:
        self._busy_thread = 0
        options, topics = options_before_topics("KafkaShareConsumer", topics)
        self.config = resolve("share", given_options("KafkaShareConsumer", options, configs), self.DEFAULT_CONFIG)
        check_group_id("KafkaShareConsumer", self.config)
        name_client(self.config, "share")
        timeout = self.config["consumer_timeout_ms"]
        self._iteration_timeout = math.inf if timeout < 0 or timeout == math.inf else timeout / 1000
        self._chosen = frozenset(checked_topics(topics))
        core = self._core = self._make_core()
        complete(core.start())
        if self._chosen:
            core.subscribe(self._chosen)

    def _make_core(self) -> ShareConsumerCore:
        # Imported with the first consumer: it is most of what importing KafkaShareConsumer would take.
        from kafka._core.client import make_client
        from kafka._runtime.network_thread import ThreadDriver
        from kafka.share.core import ShareConsumerCore

        client = make_client(self.config)
        driver = ThreadDriver(client.loop, name=f"kafka-share-{self.config['client_id']}")
        return ShareConsumerCore(self.config, client, driver)

    # Reading and acknowledging…

    poll = blocking(ShareConsumerCalls.poll)
    commit = blocking(ShareConsumerCalls.commit)
    client_instance_id = blocking(ShareConsumerCalls.client_instance_id)

    def __iter__(self) -> Iterator[ShareRecord[K, V]]:
        """Return the consumer. In the implicit mode the record that a loop before was left with is released."""
        core = self._usable()
        core.end_current(AcknowledgeType.RELEASE)
        # In the explicit mode `processing` is the block in which a record is processed.
        return self if core.tracer is None or core.is_explicit else processed_records(self.__next__, core.tracer)

    def __next__(self) -> ShareRecord[K, V]:
        core = self._usable()
        record = self._complete(core.next(core.deadline(self._iteration_timeout)))
        if record is None:
            raise StopIteration
        return cast("ShareRecord[K, V]", record)

    # Closing…

    def close(self, timeout_ms: float | None = None) -> None:
        """Send the acknowledgements, release all other records, leave the group, free everything. Idempotent.

        In the implicit mode the records of the last poll are released, too: only the next poll, or `commit`, accepts
        them. It takes `timeout_ms` at most, by default 30 seconds, and 5 while no broker can be reached.
        """
        core = self._core
        if core is not None:
            core.check_not_in_callback()
            self._complete(core.close(None if timeout_ms is None else checked_timeout(timeout_ms)))

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
                self._complete(core.close(0.0))

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
                f"This consumer is in use by {next(names, 'another thread')}, and one thread at a time may use it, "
                "except to acknowledge records. To end the other's poll() call wakeup()"
            )

    def _usable(self, *, any_thread: bool = False) -> ShareConsumerCore:
        core = self._core
        if core is None or core.closed:
            raise ClientClosedError("This consumer is closed.")
        if core.loop.forked:  # the records that were acquired before belong to the parent
            core.loop.check_usable()
        if self._busy_thread and not any_thread:
            self._check_thread()
        return core

    def _health_without_core(self) -> NoReturn:
        raise ClientClosedError("KafkaShareConsumer() raised an error, so this consumer cannot be used.")

    @property
    def _calls(self) -> Any:
        return self

    # How it looks…

    if not TYPE_CHECKING:  # type checkers would accept every name

        def __getattr__(self, name: str) -> NoReturn:
            hint = "" if name.startswith("_") else hint_for_attribute(name, dir(type(self)))
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}", name=name, obj=self)
