"""`KafkaProducer`: what a program calls. Checks arguments, serializes, chooses partitions, adds records.

Runs on the threads of the application, any number of them. The path of one record is `send()`: with bytes, no key and
nothing else it is one lock and one append (0.6 µs); everything that is not so plain goes through `_send_any`.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import logging
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from kafka._drivers import ThreadDriver
from kafka.config import Config, defaults, resolve
from kafka.errors import (
    BrokerResponseError,
    BufferExhaustedError,
    ClientClosedError,
    IllegalArgumentError,
    IllegalStateError,
    KafkaConfigurationError,
    KafkaTimeoutError,
    UnsupportedVersionError,
)
from kafka.net.environment import Environment
from kafka.partitioner import DefaultPartitioner, bind_partitioner, murmur2
from kafka.producer.accumulator import Partition, Topic
from kafka.producer.batch import ProducerBatch
from kafka.producer.core import ProducerCore
from kafka.producer.future import FutureRecordMetadata, SentRecords
from kafka.producer.memory import Ticket
from kafka.record.builder import BatchBuilder
from kafka.serializer import bind_serializer

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["KafkaProducer"]

log = logging.getLogger(__name__)

_NUMBERS: Final = itertools.count(1)
# How long the records that are left over may take when the program ends without closing its producer, in seconds.
_EXIT_GRACE: Final = 5.0
_FOREVER: Final = 10.0**9

Headers = Sequence[tuple[str, "bytes | None"]]


class KafkaProducer:
    """Publishes records.

    ::

        producer = KafkaProducer(bootstrap_servers="localhost:9092")
        producer.send("events", b"hello", key=b"greeting")
        producer.flush()
        producer.close()

    `send()` hands a record over and returns at once; a network thread sends batches of them. Safe for use from any
    number of threads; one producer for all is faster than several. As a context manager it is closed at the end of the
    block, which waits for what was sent.

    Keyword arguments are the options in ``KafkaProducer.DEFAULT_CONFIG``.
    """

    DEFAULT_CONFIG: Final[dict[str, Any]] = defaults("producer")

    def __init__(self, *, environment: Environment | None = None, **configs: Any) -> None:
        self._closed = True  # until there is something to close
        config = _checked(configs)
        self.config: Config = config
        # What may refuse the configuration comes before what has to be closed.
        self._serialize_key = bind_serializer(config["key_serializer"], "key_serializer")
        self._serialize_value = bind_serializer(config["value_serializer"], "value_serializer")
        self._bind_partitioner(config)
        # Bytes go straight in, unless something has to see or change them. Records without a key are the accumulator's
        # to place.
        self._hashes = self._default and not self._ignore_keys
        self._plain: bool = self._serialize_value is None and self._serialize_key is None and self._default
        self._core = core = ProducerCore(config, environment)
        self._driver = ThreadDriver(core.loop, f"kafka-producer-{config['client_id']}")
        core.driver = weakref.ref(self._driver)
        core.keeper = weakref.ref(self)
        self._accumulator = core.accumulator
        self._lock = core.accumulator.lock
        self._sticky = core.accumulator.sticky
        self._topics = core.accumulator.topics
        self._time = core.client.environment.clock.time
        self._max_block = config.seconds("max_block_ms")
        self._metrics: Any = None
        if config["metrics_enabled"]:
            from kafka.producer.metrics import ProducerMetrics, make_metrics

            self._metrics = make_metrics(config, core.client)
            core.metrics = ProducerMetrics(self._metrics, config["metric_group_prefix"], core.accumulator)
        if config["on_delivery"] is not None:
            core.on_settled = _delivery_reporter(config["on_delivery"])
        self._closed = False
        _OPEN.add(self)
        # Registered after the driver's own clean-up, so it runs before it: while the network thread still does.
        self._at_exit = partial(_close_at_exit, weakref.ref(self))
        atexit.register(self._at_exit)
        try:
            self._begin(config)
        except BaseException:
            self.close(timeout=0)
            raise

    def _bind_partitioner(self, config: Config) -> None:
        partitioner = config["partitioner"]
        self._default = type(partitioner) is DefaultPartitioner and partitioner.partitions is None
        self._ignore_keys = bool(config["partitioner_ignore_keys"] and self._default)
        self._choose = bind_partitioner(partitioner)
        self._partitioner = partitioner
        self._on_new_batch: Callable[..., object] | None = getattr(partitioner, "on_new_batch", None)

    def _begin(self, config: Config) -> None:
        core = self._core
        if config["api_version"] is None:
            timeout = config.seconds("bootstrap_timeout_ms")
            self._driver.run(core.bootstrap(), core.now() + timeout + 1, "connecting to the cluster")
            return
        from kafka.net.versions import BrokerVersions

        core.client.versions = BrokerVersions.of_release(config["api_version"])
        core.check_features()
        core.client.versions = None
        self._driver.start()
        core.call_soon(core.client.metadata.start)

    # Sending…

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> FutureRecordMetadata:
        """Hand a record over to be sent; return the future of its place in the log.

        Blocks for `max_block_ms` at most, while metadata of a new topic is on its way or the buffer is full, and raises
        `KafkaTimeoutError` (the buffer: `BufferExhaustedError`) after that. An error that the cluster answers about the
        topic, and a record that is too large, come out of the future.

        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker, KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as p:
        ...     p.send("events", b"hello", key=b"greeting").get(timeout=10).offset
        0
        """
        # Hot. Only where a batch for such records is open already; what opens one takes the other way. With a key it is
        # the default partitioner's rule, spelled out.
        if self._plain and type(value) is bytes and headers is None and partition is None and timestamp_ms is None:
            if key is None:
                now = int(self._time() * 1000)
                with self._lock:
                    batch = self._sticky.get(topic)
                    if batch is not None:
                        index = batch.append(now, None, value)
                        if index >= 0:
                            return FutureRecordMetadata((batch, index, now, -1, len(value)))
            elif type(key) is bytes and self._hashes:
                state = self._topics.get(topic)
                if state is not None:
                    line = state.line
                    where = line[(murmur2(key) & 0x7FFFFFFF) % len(line)]
                    now = int(self._time() * 1000)
                    with self._lock:
                        batch = where.open
                        if batch is not None:
                            index = batch.append(now, key, value)
                            if index >= 0:
                                return FutureRecordMetadata((batch, index, now, len(key), len(value)))
        return self._send_any(topic, value, key, headers, partition, timestamp_ms)

    def _send_any(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: Headers | None,
        partition: int | None,
        timestamp_ms: int | None,
    ) -> FutureRecordMetadata:
        """The whole way: serializers, metadata, partitioner, memory."""
        deadline: float | None = None
        state = self._topics.get(topic)
        if state is None:
            deadline = self._core.now() + self._max_block
            try:
                state = self._find(topic, deadline)
            except BrokerResponseError as error:
                return self._failed(topic, error)
        key_bytes, value_bytes = self._bytes(topic, key, value, headers)
        if headers:
            headers = self._checked_headers(headers)
        timestamp = int(self._time() * 1000) if timestamp_ms is None else _checked_timestamp(timestamp_ms)
        where = self._place(state, key, key_bytes, value, value_bytes, partition)
        try:
            place = self._accumulator.add(state, where, timestamp, key_bytes, value_bytes, headers)
            if isinstance(place, Ticket):
                deadline = deadline or self._core.now() + self._max_block
                place = self._wait_for_memory(place, deadline, state, where, timestamp, key_bytes, value_bytes, headers)
        except IllegalArgumentError:
            raise
        except _TOO_LARGE as error:
            return self._failed(topic, error)
        facts: tuple[Any, ...] = (
            *place,
            timestamp,
            -1 if key_bytes is None else len(key_bytes),
            -1 if value_bytes is None else len(value_bytes),
        )
        if headers:
            facts = (*facts, sum(len(name.encode()) + len(data or b"") for name, data in headers))
        return FutureRecordMetadata(facts)

    def send_many(self, topic: str, records: Iterable[Any]) -> SentRecords:
        """Hand many records over: values, or tuples ``(key, value[, headers[, partition[, timestamp_ms]]])``.

        Values that are bytes and need no serializer cost a fraction of as many calls of `send()`. What `send()` raises
        this raises too, and for such values also what the cluster answers about the topic, and `RecordTooLargeError`;
        records before the one at fault are on their way then.

        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker, KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as p:
        ...     sent = p.send_many("events", [b"a", b"b", b"c"])
        ...     [metadata.offset for metadata in sent.get(timeout=10)]
        [0, 1, 2]
        """
        values = records if type(records) is list else list(records)
        timestamp = int(self._time() * 1000)
        if self._plain and not set(map(type, values)) - _BYTES:
            return self._send_values(topic, values, timestamp)
        futures = []
        for record in values:
            if isinstance(record, tuple):
                key, value, *rest = record
                futures.append(self.send(topic, value, key, *rest))
            else:
                futures.append(self.send(topic, record))
        sizes = [future[3:5] for future in futures]
        sent = SentRecords(timestamp, sizes.__getitem__)
        for future in futures:
            sent._add(future[0], future[1], 1)  # noqa: SLF001 - one thing in two classes
        return sent

    def _send_values(self, topic: str, values: list[bytes | None], timestamp: int) -> SentRecords:
        sent = SentRecords(timestamp, lambda at: (-1, -1 if values[at] is None else len(values[at] or b"")))
        state = self._topics.get(topic)
        deadline = None
        if state is None:
            deadline = self._core.now() + self._max_block
            state = self._find(topic, deadline)
        start = 0
        while start < len(values):
            place = self._accumulator.extend(state, values, start, timestamp)
            if isinstance(place, Ticket):
                deadline = deadline or self._core.now() + self._max_block
                batch, index = self._wait_for_memory(place, deadline, state, None, timestamp, None, values[start], None)
                deadline = None
                place = (batch, index, 1)
            sent._add(*place)  # noqa: SLF001 - one thing in two classes
            start += place[2]
        return sent

    def _find(self, topic: str, deadline: float) -> Topic:
        self._check_open()
        if not isinstance(topic, str):
            raise TypeError(f"topic must be a str, not {type(topic).__name__}")
        if not topic:
            raise IllegalArgumentError("topic must not be empty")
        return self._driver.run(self._core.find_topic(topic, deadline), deadline + 1, f"finding topic {topic!r}")

    def _bytes(self, topic: str, key: Any, value: Any, headers: Any) -> tuple[bytes | None, bytes | None]:
        serialize = self._serialize_key
        if serialize is not None:
            key = serialize.call(key) if serialize.plain else serialize.call(topic, headers, key)
        serialize = self._serialize_value
        if serialize is not None:
            value = serialize.call(value) if serialize.plain else serialize.call(topic, headers, value)
        return _as_bytes(key, "key"), _as_bytes(value, "value")

    def _checked_headers(self, headers: Headers) -> Headers:
        if self._accumulator.magic < 2:
            raise UnsupportedVersionError("headers need brokers of Kafka 0.11 or newer")
        checked = []
        for header in headers:
            name, data = header
            if not isinstance(name, str):
                raise TypeError(f"a header's name must be a str, not {type(name).__name__}")
            checked.append((name, _as_bytes(data, f"header {name!r}")))
        return checked

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
                cluster = self._core.cluster
                index = self._choose(state.name, key, key_bytes, value, value_bytes, cluster)
                if self._on_new_batch is not None and self._opens_batch(state, index):
                    # A sticky partitioner may move on now (KIP-480).
                    self._on_new_batch(state.name, cluster, index)
                    index = self._choose(state.name, key, key_bytes, value, value_bytes, cluster)
        else:
            index = asked
        found = state.partitions.get(index)
        if found is None:
            source = "the partitioner chose" if asked is None else "there is no"
            raise IllegalArgumentError(
                f"{source} partition {index!r} of topic {state.name!r}; it has {len(state.indexes)} partitions"
            )
        return found

    @staticmethod
    def _opens_batch(state: Topic, index: int) -> bool:
        partition = state.partitions.get(index)
        return partition is not None and partition.open is None

    def _wait_for_memory(
        self,
        ticket: Ticket,
        deadline: float,
        state: Topic,
        where: Partition | None,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None,
    ) -> tuple[ProducerBatch, int]:
        """The buffer is full: wait for room, in the order of arrival."""
        self._refuse_on_loop("send()")
        try:
            self._driver.wait(ticket, deadline)
        except BaseException:
            self._accumulator.give_up(ticket)
            raise
        if not ticket.is_done:
            self._accumulator.give_up(ticket)
            raise BufferExhaustedError(
                f"buffer_memory ({self.config['buffer_memory']} bytes) stayed full for max_block_ms "
                f"({self.config['max_block_ms']} ms): records are added faster than brokers take them"
            )
        ticket.result()
        return self._accumulator.add_granted(ticket, state, where, timestamp, key, value, headers)

    def _failed(self, topic: str, error: BaseException) -> FutureRecordMetadata:
        """Return a future that has failed already."""
        batch = ProducerBatch(Partition(Topic(topic), -1, self._core), BatchBuilder(1), 0.0, 0)
        batch.settle(error)
        return FutureRecordMetadata((batch, 0, -1, -1, -1))

    # Waiting…

    def flush(self, timeout: float | None = None) -> None:
        """Send what has been handed over so far, and wait until each record is written or given up.

        `timeout` is in seconds; `KafkaTimeoutError` if it was not enough. Errors of records come out of their futures.
        """
        self._check_open()
        core = self._core
        deadline = None if timeout is None else core.now() + min(timeout, _FOREVER)
        try:
            self._driver.run(core.flush(), deadline, "flush()")
        except KafkaTimeoutError as error:
            left = sum(batch.count for batch in core.accumulator.unsettled())
            raise KafkaTimeoutError(f"flush() took longer than {timeout} seconds; {left} records are left") from error

    def partitions_for(self, topic: str) -> set[int]:
        """Return the numbers of a topic's partitions, asking the cluster for at most `max_block_ms`.

        >>> from kafka.broker import Broker
        >>> with Broker(topics={"events": 3}) as broker:
        ...     with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        ...         producer.partitions_for("events")
        {0, 1, 2}
        """
        state = self._topics.get(topic)
        if state is None:
            state = self._find(topic, self._core.now() + self._max_block)
        return set(state.indexes)

    # Looking…

    def bootstrap_connected(self) -> bool:
        """Whether there is a connection to any broker."""
        return any(link.ready for link in self._core.client.links())

    def metrics(self, raw: bool = False) -> Any:
        """Return the metrics: names and values by group, or with `raw` the metrics themselves; None if they are off."""
        if self._metrics is None:
            return None
        found: Mapping[Any, Any] = self._metrics.metrics if raw else self._metrics.snapshot()
        return dict(found)

    def health(self) -> dict[str, Any]:
        """Return what works and what does not, and why: for people, probes and dashboards.

        ``ok``, ``brokers`` and ``metadata_age`` are the client's; ``partitions`` has those with records under way, what
        waits there and the last error; ``buffer_available`` is in bytes.

        >>> from kafka.broker import Broker
        >>> with Broker() as broker, KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        ...     producer.health()["partitions"]
        {}
        """
        core, driver = self._core, self._driver
        if core.loop.closed or core.loop.in_pass or driver.on_network_thread:
            return core.health_now()
        return driver.run(core.health(), None, "health()")

    # Ending…

    def purge(self, *, in_flight: bool = False) -> int:
        """Give up what is not sent yet, and with `in_flight` what is not answered too; return how many records.

        Their futures fail with `Cancelled`, or with an error that says that the outcome is unknown.

        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, linger_ms=60_000) as producer:
        ...         _ = producer.send("events", b"not meant")
        ...         producer.purge()
        1
        """
        self._check_open()
        return self._driver.run(self._core.purge(in_flight), None, "purge()")

    def close(self, timeout: float | None = None, null_logger: bool = False) -> None:  # noqa: ARG002 - a name of 3.x
        """Send what is left, for `timeout` seconds at most, then fail what still is, and free everything. Idempotent.

        Never raises for records: their futures tell. Called from a callback it does not wait.
        """
        if self._closed:
            return
        self._closed = True
        _OPEN.discard(self)
        atexit.unregister(self._at_exit)
        core, driver = self._core, self._driver
        try:
            if not core.loop.closed and not driver.on_network_thread and not core.loop.in_pass:
                self._drain(_FOREVER if timeout is None else timeout)
        finally:
            self._stop()

    def _drain(self, timeout: float) -> None:
        core = self._core
        if timeout <= 0 or not core.accumulator.unsettled():
            return
        with contextlib.suppress(KafkaTimeoutError, ClientClosedError):
            self._driver.run(core.flush(), core.now() + min(timeout, _FOREVER), "close()")

    def _stop(self) -> None:
        core, driver = self._core, self._driver

        async def end() -> int:
            return core.shut_down()

        if core.loop.forked:
            return
        if core.loop.closed or driver.on_network_thread or core.loop.in_pass:
            given_up = core.shut_down()
        else:
            try:
                given_up = driver.run(end(), core.now() + 1.0, "close()")
            except (ClientClosedError, KafkaTimeoutError):
                given_up = core.shut_down()
        driver.close()
        if given_up:
            log.warning("The producer was closed with %d records not acknowledged", given_up)
        for bound in (self._serialize_key, self._serialize_value):
            if bound is not None and bound.close is not None:
                bound.close()
        closer = getattr(self._partitioner, "close", None)
        if callable(closer):
            closer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            self.close(timeout=0)

    def _check_open(self) -> None:
        self._core.loop.check_usable()
        if self._closed:
            raise ClientClosedError("This producer is closed.")

    def _refuse_on_loop(self, what: str) -> None:
        if self._driver.on_network_thread or self._core.loop.in_pass:
            raise IllegalStateError(f"{what} would block, so it cannot be called from a callback on the network thread")

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open"
        return f"<KafkaProducer client_id={self.config['client_id']!r} {state}>"


_BYTES: Final = frozenset({bytes, type(None)})
_OPEN: Final[weakref.WeakSet[KafkaProducer]] = weakref.WeakSet()


def _too_large() -> tuple[type[BaseException], ...]:
    from kafka.errors import RecordTooLargeError

    return (RecordTooLargeError,)


_TOO_LARGE: Final = _too_large()


def _checked(configs: dict[str, Any]) -> Config:
    """Return the configuration; refuse what this release does not have yet, which must not be ignored."""
    if configs.get("client_id") is None:
        configs = {**configs, "client_id": f"purekafka-producer-{next(_NUMBERS)}"}
    config = resolve("producer", configs)
    for option in ("transactional_id", "interceptors"):
        if config[option]:
            raise KafkaConfigurationError(f"{option} is not supported by this release", option=option)
    # A codec whose package is missing is said now, not with the first record.
    BatchBuilder(1, config["compression_type"], config["compression_level"])
    return config


def _as_bytes(data: Any, what: str) -> bytes | None:
    """Return bytes; other buffers are copied, as they could change before they are sent."""
    if data is None or type(data) is bytes:
        return data
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    hint = f"; set {what}_serializer, as in {what}_serializer=str.encode" if what in {"key", "value"} else ""
    raise TypeError(f"{what} must be bytes, not {type(data).__name__}{hint}")


def _checked_timestamp(timestamp: Any) -> int:
    if isinstance(timestamp, bool) or not isinstance(timestamp, (int, float)):
        raise TypeError(f"timestamp_ms must be a number of milliseconds, not {type(timestamp).__name__}")
    if timestamp < 0:
        raise IllegalArgumentError(f"timestamp_ms must not be negative, it is {timestamp}")
    return int(timestamp)


def _delivery_reporter(report: Callable[..., object]) -> Callable[[ProducerBatch, Any], None]:
    """Return what tells the user's on_delivery of each batch."""
    from kafka.producer.delivery import DeliveryReport

    def settled(batch: ProducerBatch, outcome: Any) -> None:
        try:
            report(DeliveryReport.of(batch, outcome))
        except Exception:
            log.exception("on_delivery failed")

    return settled


def _close_at_exit(find: Callable[[], KafkaProducer | None]) -> None:
    producer = find()
    if producer is not None:
        producer.close(timeout=_EXIT_GRACE)


def _after_fork_in_child() -> None:
    """The child gets a clear error from each call, also where another thread of the parent held the lock."""
    from threading import Lock

    for producer in tuple(_OPEN):
        accumulator = producer._accumulator  # noqa: SLF001 - the same module
        accumulator.lock = producer._lock = Lock()  # noqa: SLF001
        accumulator.sticky.clear()
        producer._topics.clear()  # noqa: SLF001
    _OPEN.clear()


def _register_fork() -> None:
    import os

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork_in_child)


_register_fork()
