"""`KafkaProducer`, the synchronous face: its calls that wait run the coroutines of `kafka.producer.calls`.

Runs on the threads of the application, any number of them. `send()` of bytes takes one lock and one append; every other
record takes the way of `ProducerCalls.send`.
"""

# ruff: noqa: SLF001 - a producer and its futures are one thing in two modules

from __future__ import annotations

import atexit
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from kafka._historic import historic_names
from kafka._runtime.network_thread import ThreadDriver, blocking, complete
from kafka.config import Config, defaults, given_options, refuse_arguments
from kafka.errors import AbortableTransactionError
from kafka.producer.arguments import (
    Headers,
    checked_config,
    checked_records,
    checked_release,
    checked_timeout,
    point_elsewhere,
)
from kafka.producer.common_calls import CommonCalls, ImmediateCalls
from kafka.producer.future import FutureRecordMetadata, SentRecords
from kafka.structs import check_topic

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from kafka.net.environment import Environment
    from kafka.options import ProducerOptions
    from kafka.producer.arrow import SentColumns
    from kafka.producer.calls import ProducerCalls

__all__ = ["KafkaProducer"]

# Methods that other clients have, and what to use here.
_ELSEWHERE: Final = {
    "abort": "purge(in_flight=True), or close(timeout=0)",
    "begin": "begin_transaction(), or producer.transaction() in a with statement",
    "commit": "commit_transaction(), or producer.transaction() in a with statement",
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
# How long sending the remaining records may take when the program ends without closing its producer, in seconds.
_EXIT_GRACE: Final = 5.0
_DAY: Final = 86_400.0


@historic_names("kafka.legacy.private_names:ProducerNames")
class KafkaProducer(ImmediateCalls):
    """Publishes records.

    ::

        producer = KafkaProducer(bootstrap_servers="localhost:9092")
        producer.send("events", b"hello", key=b"greeting")
        producer.flush()
        producer.close()

    `send()` adds a record to a batch and returns at once; a network thread sends the batches. Any number of threads may
    use a producer; one producer for all is faster than several. As a context manager it is closed at the end of the
    block, after all records are sent.

    Keyword arguments are the options in ``KafkaProducer.DEFAULT_CONFIG``. They may come in a dict instead, with names
    as there or with dots as in Java's configuration.
    """

    DEFAULT_CONFIG: ClassVar[dict[str, Any]] = defaults("producer")

    _calls: ProducerCalls[FutureRecordMetadata]
    _complete = staticmethod(complete)

    _is_made = False
    """Whether the constructor has made what `close` closes."""

    def __init__(
        self,
        options: Mapping[str, object] | None = None,
        /,
        *,
        environment: Environment | None = None,
        **configs: Unpack[ProducerOptions],
    ) -> None:
        # Imported with the first producer: it is most of what importing KafkaProducer would take.
        from kafka.producer import calls

        self.config: Config = checked_config(given_options("KafkaProducer", options, configs), self.DEFAULT_CONFIG)
        self._calls = calls.ProducerCalls(self.config, environment, sent_records=SentRecords)
        self._core = core = self._calls.core
        self._driver = ThreadDriver(core.loop, f"kafka-producer-{self.config['client_id']}")
        self._calls.attach(self, self._driver)
        if self._calls.sends_at_once:
            self._calls.run_now = self._driver.run_now
        # What send() reads.
        self._plain = self._calls.direct
        self._hashes = self._calls.hashes
        self._accumulator = core.accumulator
        self._inside = core.accumulator.inside
        self._lock = core.accumulator.lock
        self._sticky = core.accumulator.sticky
        self._topics = core.accumulator.topics
        self._time = core.client.environment.clock.time
        self._closing = threading.RLock()
        """Of the thread that closes; a signal's handler there, and an interceptor, may call `close` once more."""
        self._is_made = True
        # Registered after the driver's own clean-up, so it runs before it: while the network thread still does.
        self._unregister_at_exit = _close_at_exit(weakref.ref(self))
        try:
            self._driver.start()
            complete(self._calls.connect())
        except BaseException:
            self.close(timeout=0)
            raise

    # Sending…

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        on_delivery: None = None,
        callback: None = None,
        timestamp: None = None,
    ) -> FutureRecordMetadata:
        """Add a record to a batch that will be sent; return the future of its metadata.

        Blocks for `max_block_ms` at most (a minute by default), while metadata of a new topic is on its way or the
        buffer is full, and raises `KafkaTimeoutError` (the buffer: `BufferExhaustedError`) after that. An error that
        the cluster answers about the topic, and a record that is too large, come out of the future. `on_delivery`,
        `callback` and `timestamp` are arguments of confluent-kafka: a TypeError says what to use here.

        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker, KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as p:
        ...     p.send("events", b"hello", key=b"greeting").get(timeout=10).offset
        0
        """
        # Hot. Only for a record that fits into an open batch; one that opens a batch takes the other way. It is
        # `RecordAccumulator.try_append` spelled out: the call would cost 4 % of what a record costs in all.
        try:
            if (
                type(value) is bytes
                and self._plain
                and headers is None
                and partition is None
                and timestamp_ms is None
                and on_delivery is None
                and callback is None
                and timestamp is None
                and not self._inside()
            ):
                now = int(self._time() * 1000)
                if key is None:
                    with self._lock:
                        batch = self._sticky.get(topic)
                        if batch is not None:
                            index = batch.append(now, None, value)
                            if index >= 0:
                                future = _new(FutureRecordMetadata)
                                future._batch = batch
                                future._index = index
                                future._timestamp = now
                                future._key_size = -1
                                future._value_size = len(value)
                                future._header_size = -1
                                return future
                elif type(key) is bytes and self._hashes and (state := self._topics.get(topic)) is not None:
                    where = state.by_key[key]
                    with self._lock:
                        batch = where.open
                        if batch is not None:
                            index = batch.append(now, key, value)
                            if index >= 0:
                                future = _new(FutureRecordMetadata)
                                future._batch = batch
                                future._index = index
                                future._timestamp = now
                                future._key_size = len(key)
                                future._value_size = len(value)
                                future._header_size = -1
                                return future
            if on_delivery is not None or callback is not None or timestamp is not None:
                refuse_arguments("send", {"on_delivery": on_delivery, "callback": callback, "timestamp": timestamp})
            sent = self._calls.send(topic, value, key, headers, partition, timestamp_ms)
            return sent if isinstance(sent, FutureRecordMetadata) else complete(sent)
        except TypeError:
            check_topic(topic)  # such as a list, which has no hash; a check before each record would slow all of them
            raise

    def send_many(self, topic: str, records: Iterable[object]) -> SentRecords:
        """Send many records: values, or tuples ``(key, value[, headers[, partition[, timestamp_ms]]])``.

        Bytes that need no serializer cost a fraction of as many calls of `send()`, as values or as pairs of key and
        value. What `send()` raises this raises too, and for such values without keys also what the cluster answers
        about the topic, and `RecordTooLargeError`; records before the one at fault are on their way then.

        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker, KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as p:
        ...     sent = p.send_many("events", [b"a", b"b", b"c"])
        ...     [metadata.offset for metadata in sent.get(timeout=10)]
        [0, 1, 2]
        """
        send = None
        if type(self).send is not _OWN_SEND or "send" in vars(self):  # a subclass or a tracer sees each record
            records = [each if isinstance(each, tuple) else (None, each) for each in checked_records(records)]
            send = self.send
        sent = complete(self._calls.send_many(topic, records, send))
        assert isinstance(sent, SentRecords)
        return sent

    def send_columns(
        self, topic: str, values: Any, keys: Any = None, headers: Any = None, partitions: Any = None
    ) -> SentColumns:
        """Send the records of some Arrow arrays: many times faster than a call for each. Needs numpy and pyarrow.

        `values` and `keys` are arrays, plain or chunked, of binary or string; `headers` has lists of structs of key and
        value, `partitions` int32. None stands for a column of nulls, and a null in `partitions` for the producer's
        choice, which is that of `send()`. Blocks and raises as `send_many()` does. Serializers, interceptors and a
        partitioner of the application are applied, at the cost of `send_many()`.

        >>> import pyarrow as pa
        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker, KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as p:
        ...     p.send_columns("events", pa.array([b"a", b"b"]), keys=pa.array([b"k", None])).get(timeout=10)
        {TopicPartition(topic='events', partition=0): 2}
        """
        from kafka.producer.arrow import send_columns  # which imports numpy and pyarrow

        return complete(send_columns(self._calls, topic, values, keys, headers, partitions))

    # Waiting…

    flush = blocking(CommonCalls.flush)
    partitions_for = blocking(CommonCalls.partitions_for)
    client_instance_id = blocking(CommonCalls.client_instance_id)

    # Transactions…

    init_transactions = blocking(CommonCalls.init_transactions)
    begin_transaction = blocking(CommonCalls.begin_transaction)
    send_offsets_to_transaction = blocking(CommonCalls.send_offsets_to_transaction)
    commit_transaction = blocking(CommonCalls.commit_transaction)
    abort_transaction = blocking(CommonCalls.abort_transaction)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Begin a transaction; commit it at the end of the block, or abort it if the block raises.

        If it cannot be committed it is aborted, and `AbortableTransactionError` is raised: the block can be run again.
        Ctrl-C waits for the abort for half a second only; `abort_transaction()` waits for the rest.

        >>> from kafka import KafkaProducer
        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="mover") as producer:
        ...         producer.init_transactions()
        ...         with producer.transaction():
        ...             _ = producer.send("events", b"all or nothing")
        ...     [record.value for record in broker.records("events", committed=True)]
        [b'all or nothing']
        """
        self.begin_transaction()
        try:
            yield
        except BaseException as error:
            complete(self._calls.abort_because_of(error))
            raise
        try:
            self.commit_transaction()
        except AbortableTransactionError:
            # An error of the abort is raised instead: a fence, or a timeout after which it must be called again.
            self.abort_transaction()
            raise

    # Looking…

    @classmethod
    def max_usable_produce_magic(cls, api_version: tuple[int, ...]) -> int:
        """Return the newest format of records that brokers of a release accept.

        >>> from kafka import KafkaProducer
        >>> [KafkaProducer.max_usable_produce_magic(release) for release in ((0, 9), (0, 10, 2), (4, 1))]
        [0, 1, 2]
        """
        api_version = checked_release(api_version)
        return 2 if api_version >= (0, 11) else 1 if api_version >= (0, 10) else 0

    _health = blocking(CommonCalls.current_health)

    # Closing…

    purge = blocking(CommonCalls.purge)

    def close(self, timeout: float | None = None, null_logger: bool = False) -> None:  # noqa: ARG002 - a name of 3.x
        """Send the remaining records, for `timeout` seconds at most, fail the others, and free everything. Idempotent.

        By default it waits until 30 seconds have passed without an acknowledgement. An open transaction is aborted;
        this waits for one that is being committed, `max_block_ms` at most. Errors of records are raised by their
        futures only. Called from a callback it does not wait. While another thread closes the producer it waits for
        that, for `timeout` seconds if they are given; then the other gives up, too.
        """
        timeout = checked_timeout(timeout, "close()")
        calls, core, closing = self._calls, self._core, self._closing
        if not core.on_loop and not calls.closed:
            self._accumulator.check_outside("close()")
        may_wait = not core.on_loop and not core.loop.forked  # in a child the thread that closes may be the parent's
        if not closing.acquire(timeout=0 if not may_wait else -1 if timeout is None else min(timeout, _DAY)):
            if not may_wait:
                return
            core.call_soon(core.shut_down)
            closing.acquire()
        try:
            if calls.closed:
                return
            self._unregister_at_exit()
            try:
                complete(calls.close(timeout))
            finally:
                if not core.loop.forked:
                    complete(self._driver.close())
                    calls.release()
        finally:
            closing.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if self._is_made and not self._calls.closed:  # at the interpreter's end close() may have lost what it calls
            self.close(timeout=0)


def _close_at_exit(find: Callable[[], KafkaProducer | None]) -> Callable[[], object]:
    """Close a producer when its process ends; return what takes that back."""

    def close() -> None:
        producer = find()
        if producer is not None:
            producer.close(timeout=_EXIT_GRACE)

    def close_unless_used() -> None:
        producer = find()
        if producer is not None:
            others = (thread for thread in threading.enumerate() if thread is not threading.current_thread())
            end = producer.close if all(thread.daemon for thread in others) else producer.flush
            end(timeout=_EXIT_GRACE)

    atexit.register(close)
    processes = sys.modules.get("multiprocessing.process")
    if processes is None or processes.parent_process() is None:
        return partial(atexit.unregister, close)
    # A child of multiprocessing ends by os._exit(), without what is registered in atexit, if it was forked. Its own
    # hooks run before it waits for the threads of the application, which may still send.
    from multiprocessing.util import Finalize

    finalizer = Finalize(None, close_unless_used, exitpriority=0)

    def unregister() -> None:
        atexit.unregister(close)
        finalizer.cancel()

    return unregister


# To find out whether a subclass or a tracer has replaced the method.
_OWN_SEND: Final = KafkaProducer.send

point_elsewhere(KafkaProducer, _ELSEWHERE)
