"""`SimpleProducer` and `KeyedProducer`, the producers of the releases up to 1.4.

In the synchronous mode a call sends its messages and returns the responses. In the asynchronous mode a thread with its
own client sends batches by count and time, and sends again what failed with an error that may pass.
"""

from __future__ import annotations

import logging
import random
import time
import weakref
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from itertools import cycle, groupby
from queue import Empty, Full, Queue
from threading import Thread
from typing import Any, Final, NamedTuple

from kafka.codec import CODEC_NONE
from kafka.errors import (
    AsyncProducerQueueFull,
    FailedPayloadsError,
    KafkaError,
    KafkaTimeoutError,
    KafkaUnavailableError,
    RequestTimedOutError,
    UnsupportedCodecError,
    for_code,
)
from kafka.legacy import warn_deprecated
from kafka.legacy.payloads import Message, ProduceRequestPayload, ProduceResponsePayload, RetryOptions
from kafka.legacy.protocol_payloads import ALL_CODECS, create_message_set
from kafka.legacy.simple_client import SimpleClient
from kafka.partitioner import HashedPartitioner

__all__ = [
    "ASYNC_LOG_MESSAGES_ON_ERROR",
    "ASYNC_QUEUE_MAXSIZE",
    "ASYNC_QUEUE_PUT_TIMEOUT",
    "ASYNC_RETRY_BACKOFF_MS",
    "ASYNC_RETRY_LIMIT",
    "ASYNC_RETRY_ON_TIMEOUTS",
    "ASYNC_STOP_TIMEOUT_SECS",
    "BATCH_SEND_DEFAULT_INTERVAL",
    "BATCH_SEND_MSG_COUNT",
    "STOP_ASYNC_PRODUCER",
    "SYNC_FAIL_ON_ERROR_DEFAULT",
    "KeyedProducer",
    "Producer",
    "SimpleProducer",
]

log = logging.getLogger("kafka.producer")

BATCH_SEND_DEFAULT_INTERVAL = 20
BATCH_SEND_MSG_COUNT = 20
ASYNC_QUEUE_MAXSIZE = 0
ASYNC_QUEUE_PUT_TIMEOUT = 0
ASYNC_RETRY_LIMIT = None
ASYNC_RETRY_BACKOFF_MS = 100
ASYNC_RETRY_ON_TIMEOUTS = True
ASYNC_LOG_MESSAGES_ON_ERROR = True
STOP_ASYNC_PRODUCER = -1
ASYNC_STOP_TIMEOUT_SECS = 30
SYNC_FAIL_ON_ERROR_DEFAULT = True

_ASYNC_NAMES: Final = ("async", "async_")  # `async` became a keyword of the language


class _Queued(NamedTuple):
    """A message that waits for the thread; ``attempts`` counts how often it was sent."""

    topic: str
    partition: int
    value: bytes | None
    key: bytes | None
    attempts: int = 0


class Producer:
    """Sends messages to partitions that the caller names; base of `SimpleProducer` and `KeyedProducer`.

    ``async_send=True`` (also ``async_=True`` and ``**{"async": True}``) sends in a thread: after ``batch_send_every_n``
    messages or ``batch_send_every_t`` seconds, with ``async_retry_limit`` further attempts (None: without a limit).
    ``ack_timeout`` is in ms, ``async_stop_timeout`` in seconds. Call `stop` at the end.
    """

    ACK_NOT_REQUIRED = 0  #: The brokers send no response.
    ACK_AFTER_LOCAL_WRITE = 1  #: The leader responds when it has written the messages.
    ACK_AFTER_CLUSTER_COMMIT = -1  #: The leader responds when all in-sync replicas have them.
    DEFAULT_ACK_TIMEOUT = 1000

    def __init__(
        self,
        client: SimpleClient,
        req_acks: int = ACK_AFTER_LOCAL_WRITE,
        ack_timeout: int = DEFAULT_ACK_TIMEOUT,
        codec: int | None = None,
        codec_compresslevel: int | None = None,
        sync_fail_on_error: bool = SYNC_FAIL_ON_ERROR_DEFAULT,
        async_send: bool = False,
        batch_send: bool = False,
        batch_send_every_n: int = BATCH_SEND_MSG_COUNT,
        batch_send_every_t: float = BATCH_SEND_DEFAULT_INTERVAL,
        async_retry_limit: int | None = ASYNC_RETRY_LIMIT,
        async_retry_backoff_ms: int = ASYNC_RETRY_BACKOFF_MS,
        async_retry_on_timeouts: bool = ASYNC_RETRY_ON_TIMEOUTS,
        async_queue_maxsize: int = ASYNC_QUEUE_MAXSIZE,
        async_queue_put_timeout: float | None = ASYNC_QUEUE_PUT_TIMEOUT,
        async_log_messages_on_error: bool = ASYNC_LOG_MESSAGES_ON_ERROR,
        async_stop_timeout: float | None = ASYNC_STOP_TIMEOUT_SECS,
        **kwargs: Any,
    ) -> None:
        warn_deprecated(type(self).__name__, "KafkaProducer", stacklevel=4)
        for name in _ASYNC_NAMES:
            async_send = kwargs.pop(name, async_send)
        if kwargs:
            raise TypeError(f"{type(self).__name__} has no argument {next(iter(kwargs))}")
        if codec is not None and codec not in ALL_CODECS:
            raise UnsupportedCodecError(f"codec must be one of {ALL_CODECS} (none, gzip, Snappy), not {codec!r}")
        self.client = client
        self.req_acks = req_acks
        self.ack_timeout = ack_timeout
        self.codec = CODEC_NONE if codec is None else codec
        self.codec_compresslevel = codec_compresslevel
        self.sync_fail_on_error = sync_fail_on_error
        self.async_send = async_send or batch_send
        self.stopped = False
        self._put_timeout = async_queue_put_timeout
        self._stop_timeout = async_stop_timeout
        if not self.async_send:
            return
        if batch_send_every_n < 1:
            raise ValueError(f"batch_send_every_n must be at least 1, not {batch_send_every_n!r}")
        self.queue: Queue[Any] = Queue(async_queue_maxsize)
        self._sender = _Sender(
            client.copy(),
            self.queue,
            (self.codec, codec_compresslevel, req_acks, ack_timeout),
            (batch_send_every_n, batch_send_every_t),
            RetryOptions(async_retry_limit, async_retry_backoff_ms, async_retry_on_timeouts),
            async_log_messages_on_error,
        )
        self.thread = Thread(target=self._sender.run, name="kafka-simple-producer", daemon=True)
        self.thread.start()
        # At exit too, and when the last reference to the producer goes.
        self._finalizer = weakref.finalize(
            self, _stop, self._sender, self.queue, self.thread, _seconds(None, async_stop_timeout)
        )

    def send_messages(self, topic: str | bytes, partition: int, *msg: bytes | None) -> list[Any]:
        """Send messages, which are bytes or None, and return the responses; none in the asynchronous mode."""
        return self._send_messages(topic, partition, *msg)

    def _send_messages(
        self, topic: str | bytes, partition: int, *msg: bytes | None, key: bytes | None = None
    ) -> list[Any]:
        name = _topic_name(topic)
        if not msg:
            raise TypeError("give at least one message")
        for each in msg:
            if each is not None and not isinstance(each, bytes):
                raise TypeError(f"a message is bytes or None, not {type(each).__name__}: encode it first")
        if key is not None and not isinstance(key, bytes):
            raise TypeError(f"a key is bytes or None, not {type(key).__name__}: encode it first")
        if self.async_send:
            self._enqueue([_Queued(name, partition, each, key) for each in msg])
            return []
        messages = create_message_set([(each, key) for each in msg], self.codec, key, self.codec_compresslevel)
        payload = ProduceRequestPayload(name, partition, messages)
        return self.client.send_produce_request(
            [payload], acks=self.req_acks, timeout=self.ack_timeout, fail_on_error=self.sync_fail_on_error
        )

    def _enqueue(self, messages: list[_Queued]) -> None:
        if self.stopped:
            raise KafkaError(f"{type(self).__name__} is stopped: make another one")
        for index, message in enumerate(messages):
            try:
                self.queue.put(message, block=self._put_timeout != 0, timeout=self._put_timeout or None)
            except Full:  # noqa: PERF203 - the error names the messages that are left
                raise AsyncProducerQueueFull(
                    messages[index:],
                    f"the queue holds {self.queue.maxsize} messages; the broker takes fewer than are sent: "
                    "raise async_queue_maxsize or async_queue_put_timeout",
                ) from None

    def _partition_ids(self, topic: str) -> list[int]:
        """Return the partitions of a topic, which is created if the brokers do that."""
        if not self.client.has_metadata_for_topic(topic):
            self.client.ensure_topic_exists(topic)
        return self.client.get_partition_ids_for_topic(topic)

    def stop(self, timeout: float | None = None) -> None:
        """End the asynchronous mode: send what is queued, for ``timeout`` seconds at most, and end the thread."""
        if self.async_send and not self.stopped:
            self._finalizer.detach()
            _stop(self._sender, self.queue, self.thread, _seconds(timeout, self._stop_timeout))
        self.stopped = True


_GRACE: Final = 1.0  # seconds that the thread may take to see that its time is up


def _topic_name(topic: str | bytes) -> str:
    name = topic.decode() if isinstance(topic, bytes) else topic
    if not isinstance(name, str):
        raise TypeError(f"a topic is str or bytes, not {type(topic).__name__}")
    return name


def _seconds(timeout: float | None, default: float | None) -> float:
    if timeout is not None:
        return timeout
    return ASYNC_STOP_TIMEOUT_SECS if default is None else default


def _stop(sender: _Sender, queue: Queue[Any], thread: Thread, timeout: float) -> None:
    """End the thread of a producer, which sends what is queued first."""
    sender.deadline = time.monotonic() + timeout
    with suppress(Full):  # then the thread does not wait for a message, and sees that the time is up
        queue.put(STOP_ASYNC_PRODUCER, timeout=max(0.0, timeout))
    thread.join(max(0.0, sender.deadline - time.monotonic()) + _GRACE)


class _Sender:
    """Runs in the thread of an asynchronous producer. Does not refer to the producer, which can thus be collected."""

    def __init__(
        self,
        client: SimpleClient,
        queue: Queue[Any],
        how: tuple[int, int | None, int, int],
        batch: tuple[int, float],
        retry: RetryOptions,
        log_messages: bool,
    ) -> None:
        self.deadline: float | None = None  # when what is left is given up; set by stop()
        self._client = client
        self._queue = queue
        self._codec, self._compresslevel, self._acks, self._ack_timeout = how
        self._count, self._interval = batch
        self._retry = retry
        self._log_messages = log_messages

    def run(self) -> None:
        stopping = False
        pending: list[_Queued] = []
        try:
            while not stopping or pending:
                if not pending:
                    stopping, pending = self._next_batch()
                pending = self._send(pending)
                if pending and self._is_over():
                    while not self._queue.empty():
                        if (left := self._queue.get()) != STOP_ASYNC_PRODUCER:
                            pending.append(left)
                    self._give_up(pending, "the producer was stopped")
                    return
                if pending:
                    time.sleep(self._retry.backoff_ms / 1000)
        finally:
            self._client.close()

    def _next_batch(self) -> tuple[bool, list[_Queued]]:
        """Wait for a message, then for as many as a batch has or until the interval is over."""
        batch: list[_Queued] = []
        until: float | None = None
        while len(batch) < self._count:
            ends = [moment for moment in (until, self.deadline) if moment is not None]
            try:
                found = self._queue.get(timeout=max(0.0, min(ends) - time.monotonic()) if ends else None)
            except Empty:
                return self._is_over(), batch
            if found == STOP_ASYNC_PRODUCER:
                return True, batch
            batch.append(found)
            if until is None:
                until = time.monotonic() + self._interval
        return False, batch

    def _is_over(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def _send(self, batch: list[_Queued]) -> list[_Queued]:
        """Send a batch and return the messages to be sent again."""
        groups: dict[tuple[str, int], list[_Queued]] = defaultdict(list)
        for queued in batch:
            groups[queued.topic, queued.partition].append(queued)
        if not groups:
            return []
        try:
            payloads = [ProduceRequestPayload(*place, list(self._messages(group))) for place, group in groups.items()]
            responses = self._client.send_produce_request(
                payloads, acks=self._acks, timeout=self._ack_timeout, fail_on_error=False
            )
        except Exception as error:  # the thread must not end while there is a producer
            responses = [FailedPayloadsError(ProduceRequestPayload(*place, ())) for place in groups]
            for response in responses:
                response.__cause__ = error
        again: list[_Queued] = []
        for response in responses:
            again += self._again(response, groups)
        return again

    def _messages(self, group: list[_Queued]) -> Iterator[Message]:
        """Make messages; with a codec, one for each run of messages with the same key."""
        for key, run in groupby(group, lambda queued: queued.key):
            yield from create_message_set([(q.value, q.key) for q in run], self._codec, key, self._compresslevel)

    def _again(
        self, response: ProduceResponsePayload | FailedPayloadsError, groups: dict[tuple[str, int], list[_Queued]]
    ) -> list[_Queued]:
        """Return the messages of a failed response that are to be sent again; give up the others."""
        if isinstance(response, FailedPayloadsError):
            error = response.__cause__ or response
            group = groups[response.payload.topic, response.payload.partition]
        elif response.error:
            error = for_code(response.error)()
            group = groups[response.topic, response.partition]
        else:
            return []
        limit = self._retry.limit
        retriable = bool(getattr(error, "retriable", False)) or isinstance(error, KafkaUnavailableError)
        if isinstance(error, (RequestTimedOutError, KafkaTimeoutError)):
            retriable = self._retry.retry_on_timeouts
        if not retriable or (limit is not None and group[0].attempts >= limit):
            self._give_up(group, error)
            return []
        log.warning("%d messages for %s-%d are sent again: %r", len(group), group[0].topic, group[0].partition, error)
        return [queued._replace(attempts=queued.attempts + 1) for queued in group]

    def _give_up(self, group: list[_Queued], reason: object) -> None:
        shown = [queued.value for queued in group] if self._log_messages else ""
        log.error("%d messages are lost: %s %s", len(group), reason, shown)


class SimpleProducer(Producer):
    """Sends messages to the partitions of a topic in turn.

    >>> from kafka.broker import Broker
    >>> with Broker(topics={"events": 2}) as broker, SimpleClient(broker.bootstrap_servers) as client:
    ...     producer = SimpleProducer(client, random_start=False)
    ...     [producer.send_messages("events", b"some message")[0].partition for _ in range(3)]
    [0, 1, 0]
    """

    def __init__(self, *args: Any, random_start: bool = True, **kwargs: Any) -> None:
        self.partition_cycles: dict[str, Iterator[int]] = {}
        self.random_start = random_start
        super().__init__(*args, **kwargs)

    def send_messages(self, topic: str | bytes, *msg: bytes | None) -> list[Any]:  # type: ignore[override] # as it was
        """Send messages, which are bytes or None, to the next partition."""
        name = _topic_name(topic)
        return self._send_messages(name, self._next_partition(name), *msg)

    def _next_partition(self, topic: str) -> int:
        if topic not in self.partition_cycles:
            partitions = self._partition_ids(topic)
            turns = self.partition_cycles[topic] = cycle(partitions)
            if self.random_start:
                for _ in range(random.randrange(len(partitions))):  # noqa: S311 - spreads load, hides nothing
                    next(turns)
        return next(self.partition_cycles[topic])

    def __repr__(self) -> str:
        return f"<SimpleProducer batch={self.async_send}>"


class KeyedProducer(Producer):
    """Sends each message to the partition that a partitioner chooses by its key.

    >>> from kafka.broker import Broker
    >>> from kafka.partitioner import Murmur2Partitioner
    >>> with Broker(topics={"events": 2}) as broker, SimpleClient(broker.bootstrap_servers) as client:
    ...     producer = KeyedProducer(client, partitioner=Murmur2Partitioner)
    ...     {producer.send_messages("events", b"key1", b"some message")[0].partition for _ in range(3)}
    {0}
    """

    def __init__(self, *args: Any, partitioner: Any = None, **kwargs: Any) -> None:
        self.partitioner_class = partitioner or HashedPartitioner
        self.partitioners: dict[str, Any] = {}
        super().__init__(*args, **kwargs)

    def send_messages(self, topic: str | bytes, key: bytes | None, *msg: bytes | None) -> list[Any]:  # type: ignore[override] # as it was
        """Send messages with a key to the key's partition."""
        name = _topic_name(topic)
        return self._send_messages(name, self._next_partition(name, key), *msg, key=key)

    def send(self, topic: str | bytes, key: bytes | None, msg: bytes | None) -> list[Any]:
        """Send one message; the older name of `send_messages`."""
        return self.send_messages(topic, key, msg)

    def _next_partition(self, topic: str, key: bytes | None) -> int:
        if topic not in self.partitioners:
            self.partitioners[topic] = self.partitioner_class(self._partition_ids(topic))
        return int(self.partitioners[topic].partition(key))

    def __repr__(self) -> str:
        return f"<KeyedProducer batch={self.async_send}>"
