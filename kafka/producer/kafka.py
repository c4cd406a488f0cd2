"""`KafkaProducer`: what a program calls. Checks arguments, serializes, chooses partitions, adds records.

Runs on the threads of the application, any number of them. The path of one record is `send()`: with bytes, no key and
nothing else it is one lock and one append (0.6 µs); everything that is not so plain goes through `_send_any`.
"""

# ruff: noqa: SLF001 - a producer and its futures are one thing in two modules

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NoReturn

from kafka._text import counted
from kafka.errors import (
    BrokerResponseError,
    BufferExhaustedError,
    IllegalArgumentError,
    IllegalStateError,
    InvalidTopicError,
    KafkaTimeoutError,
    RecordTooLargeError,
    UnsupportedVersionError,
)
from kafka.partitioner import murmur2
from kafka.producer.arguments import (
    Headers,
    as_bytes,
    checked_headers,
    checked_partition,
    checked_records,
    checked_timeout,
    checked_timestamp,
)
from kafka.producer.batch import ProducerBatch, taken_up
from kafka.producer.future import FutureRecordMetadata, SentRecords
from kafka.producer.intercepting import intercepted
from kafka.producer.memory import Ticket
from kafka.producer.partitions import Partition, Topic
from kafka.producer.transactional import TransactionalFace
from kafka.record.batch_builder import BatchBuilder
from kafka.structs import check_topic

__all__ = ["KafkaProducer"]

# Methods that other clients have, and what to use here.
_ELSEWHERE: Final = {
    "abort": "purge(in_flight=True), or close(timeout=0)",
    "create_batch": "send_many()",
    "list_topics": "partitions_for(topic) for one topic, KafkaConsumer.topics() for all",
    "poll": "flush() to wait for records; callbacks run on the producer's own thread, which needs no poll()",
    "produce": "send(topic, value, key)",
    "send_and_wait": "send(...).get(), or await send(...)",
    "send_batch": "send_many()",
    "start": "nothing: the constructor has connected",
    "stop": "close()",
}
_new: Final = object.__new__
_BYTES: Final = frozenset({bytes, type(None)})
_SHORTEST: Final = 2
_LONGEST: Final = 5
_TOO_FAST: Final = "records are added faster than brokers take them"


class KafkaProducer(TransactionalFace):
    """Publishes records.

    ::

        producer = KafkaProducer(bootstrap_servers="localhost:9092")
        producer.send("events", b"hello", key=b"greeting")
        producer.flush()
        producer.close()

    `send()` hands a record over and returns at once; a network thread sends batches of them. Safe for use from any
    number of threads; one producer for all is faster than several. As a context manager it is closed at the end of the
    block, which waits for what was sent.

    Keyword arguments are the options in ``KafkaProducer.DEFAULT_CONFIG``. They may come in a dict instead, with names
    as there or with dots as in Java's configuration.
    """

    # Sending…

    def send(  # noqa: C901 - hot: every step stands here
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> FutureRecordMetadata:
        """Hand a record over to be sent; return the future of its place in the log.

        Blocks for `max_block_ms` at most (a minute by default), while metadata of a new topic is on its way or the
        buffer is full, and raises `KafkaTimeoutError` (the buffer: `BufferExhaustedError`) after that. An error that
        the cluster answers about the topic, and a record that is too large, come out of the future.

        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker, KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as p:
        ...     p.send("events", b"hello", key=b"greeting").get(timeout=10).offset
        0
        """
        # Hot. Only where a batch for such records is open already; what opens one takes the other way. With a key it is
        # the default partitioner's rule, spelled out. A signal handler or a finalizer may send in the midst of it:
        # for that the batch is `taken_up`.
        try:
            if self._plain and type(value) is bytes and headers is None and partition is None and timestamp_ms is None:
                if key is None:
                    now = int(self._time() * 1000)
                    with self._lock:
                        batch = self._sticky.get(topic)
                        if batch is not None:
                            append = batch.append
                            batch.append = taken_up
                            index = append(now, None, value)
                            batch.append = append
                            if index >= 0:
                                future = _new(FutureRecordMetadata)
                                future._batch = batch
                                future._index = index
                                future._timestamp = now
                                future._key_size = -1
                                future._value_size = len(value)
                                future._header_size = -1
                                return future
                elif type(key) is bytes and self._hashes:
                    state = self._topics.get(topic)
                    if state is not None:
                        line = state.line
                        where = line[(murmur2(key) & 0x7FFFFFFF) % len(line)]
                        now = int(self._time() * 1000)
                        with self._lock:
                            batch = where.open
                            if batch is not None:
                                append = batch.append
                                batch.append = taken_up
                                index = append(now, key, value)
                                batch.append = append
                                if index >= 0:
                                    future = _new(FutureRecordMetadata)
                                    future._batch = batch
                                    future._index = index
                                    future._timestamp = now
                                    future._key_size = len(key)
                                    future._value_size = len(value)
                                    future._header_size = -1
                                    return future
            if self._interceptors is not None:
                return intercepted(
                    self._interceptors, self._send_any, (topic, value, key, headers, partition, timestamp_ms)
                )
            return self._send_any(topic, value, key, headers, partition, timestamp_ms)
        except TypeError:
            check_topic(topic)  # a list has no hash, say; looking before each record would cost all of them
            raise

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
        pairs = checked_headers(headers) if headers else None
        if pairs and self._accumulator.magic < 2:
            raise UnsupportedVersionError("headers need brokers of Kafka 0.11 or newer")
        timestamp = int(self._time() * 1000) if timestamp_ms is None else checked_timestamp(timestamp_ms)
        where = self._place(state, key, key_bytes, value, value_bytes, partition)
        place: tuple[ProducerBatch, int] | Ticket | None = None
        try:
            place = self._accumulator.add(state, where, timestamp, key_bytes, value_bytes, pairs)
            if isinstance(place, Ticket):
                deadline = deadline or self._core.now() + self._max_block
                place = self._wait_for_memory(place, deadline, state, where, timestamp, key_bytes, value_bytes, pairs)
        except IllegalArgumentError:
            raise
        except RecordTooLargeError as error:
            return self._failed(topic, error)
        except BaseException:
            self._give_up(place)
            raise
        return FutureRecordMetadata(
            *place,
            timestamp,
            -1 if key_bytes is None else len(key_bytes),
            -1 if value_bytes is None else len(value_bytes),
            sum(len(name.encode()) + len(data or b"") for name, data in pairs) if pairs else -1,
        )

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
        if type(topic) is not str:
            check_topic(topic)
        values = checked_records(records)
        timestamp = int(self._time() * 1000)
        if self._plain and not set(map(type, values)) - _BYTES:
            return self._send_values(topic, values, timestamp)
        futures = []
        for record in values:
            if isinstance(record, tuple):
                if not _SHORTEST <= len(record) <= _LONGEST:
                    raise TypeError(
                        "a record of send_many() is a value or a tuple (key, value[, headers[, partition[, "
                        f"timestamp_ms]]]), not a tuple of {len(record)}"
                    )
                key, value, *rest = record
                futures.append(self.send(topic, value, key, *rest))
            else:
                futures.append(self.send(topic, record))
        facts = [(future._timestamp, future._key_size, future._value_size, future._header_size) for future in futures]
        sent = SentRecords(facts.__getitem__)
        for future in futures:
            sent._add(future._batch, future._index, 1)
        return sent

    def _send_values(self, topic: str, values: list[bytes | None], timestamp: int) -> SentRecords:
        sizes = [-1 if value is None else len(value) for value in values]
        sent = SentRecords(lambda at: (timestamp, -1, sizes[at]))
        state = self._topics.get(topic)
        deadline = None
        if state is None:
            deadline = self._core.now() + self._max_block
            state = self._find(topic, deadline)
        start = 0
        while start < len(values):
            place: tuple[ProducerBatch, int, int] | Ticket | None = None
            try:
                place = self._accumulator.extend(state, values, start, timestamp)
                if isinstance(place, Ticket):
                    deadline = deadline or self._core.now() + self._max_block
                    value = values[start]
                    batch, index = self._wait_for_memory(place, deadline, state, None, timestamp, None, value, None)
                    deadline = None
                    place = (batch, index, 1)
            except BaseException:
                self._give_up(place)
                raise
            sent._add(*place)
            start += place[2]
        return sent

    def _find(self, topic: str, deadline: float, limit: str | None = None) -> Topic:
        self._check_open()
        self._accumulator.check_admits()
        try:
            check_topic(topic)
        except IllegalArgumentError as error:
            # As the cluster would answer: out of the future, beside other topics' errors.
            raise InvalidTopicError(str(error)) from None
        if self._on_loop():
            if (known := self._core.known_topic(topic)) is not None:
                return known
            raise IllegalStateError(
                f"send() to topic {topic!r} would wait for its metadata, so it cannot be called from a callback: call "
                f"partitions_for({topic!r}) once before"
            )
        with self._measured("metadata-wait"):
            search = self._core.find_topic(topic, deadline, limit)
            return self._driver.run(search, deadline + 1, f"finding topic {topic!r}")

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
                cluster = self._core.cluster
                index = self._choose(state.name, key, key_bytes, value, value_bytes, cluster)
                if self._on_new_batch is not None and self._opens_batch(state, index):
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
        """The buffer is full: wait for room, in the order of arrival, and add the record."""
        self._wait_for_room(ticket, deadline, "send()")
        return self._accumulator.add_granted(ticket, state, where, timestamp, key, value, headers)

    def _give_up(self, place: object) -> None:
        """Nothing comes of a record: it waits for memory no more, if it did."""
        if isinstance(place, Ticket):
            self._accumulator.give_up(place)

    def _wait_for_room(self, ticket: Ticket, deadline: float, what: str) -> None:
        """Wait until memory is granted; where it is not, the caller gives the ticket back."""
        self._refuse_on_loop(what)
        with self._measured("bufferpool-wait"):
            self._driver.wait(ticket, deadline)
        if not ticket.is_done:
            if self._core.metrics is not None:
                self._core.metrics.exhausted()
            raise BufferExhaustedError(
                f"buffer_memory ({self.config['buffer_memory']} bytes) stayed full for max_block_ms "
                f"({self.config['max_block_ms']} ms): {self._core.hindrances() or _TOO_FAST}"
            )
        ticket.result()

    def _failed(self, topic: str, error: BaseException) -> FutureRecordMetadata:
        """Return a future that has failed already."""
        if self._core.transactions is not None:
            self._core.call_soon(self._core.transactions.trouble, error)
        batch = ProducerBatch(Partition(Topic(topic), -1, self._core), BatchBuilder(1), 0.0, 0)
        batch.settle(error)
        return FutureRecordMetadata(batch, 0, -1, -1, -1)

    # Waiting…

    def flush(self, timeout: float | None = None) -> None:
        """Send what has been handed over so far, and wait until each record is written or given up.

        `timeout` is in seconds; `KafkaTimeoutError` if it was not enough. Errors of records come out of their futures.
        """
        timeout = checked_timeout(timeout, "flush()")
        self._check_open()
        core = self._core
        deadline = self._deadline(timeout)
        try:
            with self._measured("flush"):
                self._driver.run(core.flush(), deadline, "flush()")
        except KafkaTimeoutError as error:
            left = sum(batch.count for batch in core.accumulator.unsettled())
            why = core.hindrances()
            raise KafkaTimeoutError(
                f"flush() took longer than {timeout:g} seconds; {counted(left)} left{f': {why}' if why else ''}"
            ) from error

    def partitions_for(self, topic: str, timeout: float | None = None) -> set[int]:
        """Return the numbers of a topic's partitions, asking the cluster for at most `timeout` seconds.

        That is `max_block_ms` by default. `send()` to the topic does not wait for metadata afterwards.

        >>> from kafka.broker import Broker
        >>> with Broker(topics={"events": 3}) as broker:
        ...     with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        ...         producer.partitions_for("events")
        {0, 1, 2}
        """
        if type(topic) is not str:
            check_topic(topic)
        timeout = checked_timeout(timeout, "partitions_for()")
        state = self._topics.get(topic)
        if state is None:
            seconds = self._max_block if timeout is None else timeout
            limit = None if timeout is None else f"{timeout:g} seconds"
            state = self._find(topic, self._core.now() + seconds, limit)
        return set(state.indexes)


class _Elsewhere:
    """A method that another client has. (`__getattr__` would slow each look at an attribute in `send()` down.)"""

    def __init__(self, name: str, use: str) -> None:
        self._name = name
        self._use = use

    def __get__(self, producer: object, kind: type) -> NoReturn:
        raise AttributeError(
            f"{kind.__name__!r} object has no attribute {self._name!r}: use {self._use}", name=self._name, obj=producer
        )


for _name, _use in _ELSEWHERE.items():
    setattr(KafkaProducer, _name, _Elsewhere(_name, _use))
