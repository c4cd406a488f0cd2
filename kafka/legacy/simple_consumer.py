"""`SimpleConsumer`, the consumer of the releases up to 1.4: it reads all or named partitions and knows no other member.

A position is the offset of the next message to read, here and in commits. Positions are
committed after ``auto_commit_every_n`` messages and, by a thread, every ``auto_commit_every_t`` ms if they changed.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from threading import RLock
from types import TracebackType
from typing import Any, Final
from weakref import WeakMethod

from kafka.errors import (
    ConsumerFetchSizeTooSmall,
    FailedPayloadsError,
    KafkaError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
    for_code,
)
from kafka.legacy import warn_deprecated
from kafka.legacy.message_set import PartialMessage
from kafka.legacy.payload_requests import check_error
from kafka.legacy.payloads import (
    FetchRequestPayload,
    OffsetAndMessage,
    OffsetCommitRequestPayload,
    OffsetFetchRequestPayload,
    OffsetRequestPayload,
)
from kafka.legacy.simple_client import SimpleClient
from kafka.legacy.util import ReentrantTimer, try_method_on_system_exit

__all__ = [
    "AUTO_COMMIT_INTERVAL",
    "AUTO_COMMIT_MSG_COUNT",
    "FETCH_BUFFER_SIZE_BYTES",
    "FETCH_DEFAULT_BLOCK_TIMEOUT",
    "FETCH_MAX_WAIT_TIME",
    "FETCH_MIN_BYTES",
    "FULL_QUEUE_WAIT_TIME_SECONDS",
    "ITER_TIMEOUT_SECONDS",
    "MAX_BACKOFF_SECONDS",
    "MAX_FETCH_BUFFER_SIZE_BYTES",
    "NO_MESSAGES_WAIT_TIME_SECONDS",
    "Consumer",
    "FetchContext",
    "SimpleConsumer",
]

log = logging.getLogger("kafka.consumer")

AUTO_COMMIT_MSG_COUNT = 100
AUTO_COMMIT_INTERVAL = 5000
FETCH_DEFAULT_BLOCK_TIMEOUT = 1
FETCH_MAX_WAIT_TIME = 100
FETCH_MIN_BYTES = 4096
FETCH_BUFFER_SIZE_BYTES = 4096
MAX_FETCH_BUFFER_SIZE_BYTES = FETCH_BUFFER_SIZE_BYTES * 8
ITER_TIMEOUT_SECONDS = 60
NO_MESSAGES_WAIT_TIME_SECONDS = 0.1
FULL_QUEUE_WAIT_TIME_SECONDS = 0.1
MAX_BACKOFF_SECONDS = 60

_LATEST: Final = -1
_EARLIEST: Final = -2
_RESETS: Final = {"largest": _LATEST, "latest": _LATEST, "smallest": _EARLIEST, "earliest": _EARLIEST}
_SOON: Final = 0.1  # seconds before the leaders are asked for again


class Consumer:
    """Positions of a topic's partitions, and their commits; base of `SimpleConsumer` and `MultiProcessConsumer`."""

    def __init__(
        self,
        client: SimpleClient,
        group: str | bytes | None,
        topic: str | bytes,
        partitions: Iterable[int] | None = None,
        auto_commit: bool = True,
        auto_commit_every_n: int | None = AUTO_COMMIT_MSG_COUNT,
        auto_commit_every_t: int | None = AUTO_COMMIT_INTERVAL,
    ) -> None:
        warn_deprecated(type(self).__name__, "KafkaConsumer", stacklevel=4)
        self.client = client
        self.topic = topic.decode() if isinstance(topic, bytes) else topic
        self.group = group.decode() if isinstance(group, bytes) else group
        self.offsets: dict[int, int] = {}
        self.auto_commit = auto_commit and group is not None
        self.auto_commit_every_n = auto_commit_every_n
        self.auto_commit_every_t = auto_commit_every_t
        self.count_since_commit = 0
        self.commit_timer: ReentrantTimer | None = None
        self.commit_lock = RLock()
        self.partition_info = False
        self._error: Exception | None = None  # raised behind the messages that the last call returned
        client.load_metadata_for_topics(self.topic, ignore_leadernotavailable=True)
        client.ensure_topic_exists(self.topic)
        wanted = client.get_partition_ids_for_topic(self.topic) if partitions is None else list(partitions)
        self.fetch_last_known_offsets(wanted)
        if self.auto_commit and auto_commit_every_t is not None:
            self.commit_timer = ReentrantTimer(auto_commit_every_t, _Weakly(self._commit_if_changed))
            self.commit_timer.start()
        try_method_on_system_exit(self, "stop")

    def provide_partition_info(self) -> None:
        """Yield ``(partition, message)`` instead of the message alone, from now on."""
        self.partition_info = True

    def fetch_last_known_offsets(self, partitions: Iterable[int] | None = None) -> None:
        """Take the group's committed positions; 0 where there is none, or without a group."""
        wanted = self.client.get_partition_ids_for_topic(self.topic) if partitions is None else list(partitions)
        if self.group is None:
            self.offsets.update(dict.fromkeys(wanted, 0))
            return
        payloads = [OffsetFetchRequestPayload(self.topic, partition) for partition in wanted]
        for response in self.client.send_offset_fetch_request(self.group, payloads, fail_on_error=False):
            if issubclass(for_code(response.error), UnknownTopicOrPartitionError):
                self.offsets[response.partition] = 0  # brokers of 0.8 answer so where nothing is committed
            else:
                check_error(response)
                self.offsets[response.partition] = max(response.offset, 0)

    def commit(self, partitions: Iterable[int] | None = None) -> bool:
        """Commit the positions of some or all partitions; False if that failed, which is logged."""
        if self.group is None:
            raise KafkaError("a consumer without a group cannot commit: give it a group")
        with self.commit_lock:
            payloads = [
                OffsetCommitRequestPayload(self.topic, partition, self.offsets[partition], None)
                for partition in (list(self.offsets) if partitions is None else partitions)
            ]
            log.debug("Committing %s", payloads)
            if not payloads:
                return True
            try:
                self.client.send_offset_commit_request(self.group, payloads)
            except KafkaError as error:
                log.error("The commit of group %s failed: %s", self.group, error)
                return False
            self.count_since_commit = 0
            return True

    def _next(self, block: bool, timeout: float | None) -> tuple[int, OffsetAndMessage] | None:
        """Return the next message with its partition, which is not passed before `_passed` is called."""
        raise NotImplementedError

    def _put_back(self, taken: list[tuple[int, OffsetAndMessage]]) -> None:
        """Have messages that `_next` has returned come again."""
        raise NotImplementedError

    def _raise_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _passed(self, partition: int, message: OffsetAndMessage, partition_info: bool) -> Any:
        """Move the position behind a message, and return it as the application gets it."""
        self.offsets[partition] = message.offset + 1
        self.count_since_commit += 1
        return (partition, message) if partition_info else message

    def _get_messages(self, count: int, block: bool | int, timeout: float | None) -> list[Any]:
        """Return up to `count` messages; an error behind the first of them is raised by the next call."""
        self._raise_error()
        taken: list[tuple[int, OffsetAndMessage]] = []
        deadline = None if timeout is None else time.monotonic() + timeout
        enough = count if block is True else int(block)
        try:
            while len(taken) < count:
                remaining = None if deadline is None else max(0.0, deadline - time.monotonic())
                found = self._next(len(taken) < enough, remaining)
                if found is not None:
                    taken.append(found)
                elif len(taken) >= enough or deadline is not None:
                    break
        except BaseException as error:
            if not taken or not isinstance(error, Exception):
                self._put_back(taken)
                raise
            self._error = error
        messages = [self._passed(partition, message, self.partition_info) for partition, message in taken]
        self._auto_commit()
        return messages

    def _commit_if_changed(self) -> None:
        if self.count_since_commit:
            self.commit()

    def _auto_commit(self) -> None:
        """Commit if enough messages were read since the last commit."""
        if (
            self.auto_commit
            and self.auto_commit_every_n is not None
            and self.count_since_commit >= self.auto_commit_every_n
        ):
            self.commit()

    def __del__(self) -> None:
        timer = getattr(self, "commit_timer", None)
        if timer is not None:
            timer.stop()

    def stop(self) -> None:
        """End the commits by time; commit a last time if positions are committed automatically."""
        if self.commit_timer is not None:
            self.commit_timer.stop()
            self.commit_timer = None
        if self.auto_commit:
            self._commit_if_changed()

    def pending(self, partitions: Iterable[int] | None = None) -> int:
        """Return how many messages of some or all partitions are still to be read."""
        wanted = list(self.offsets) if partitions is None else list(partitions)
        payloads = [OffsetRequestPayload(self.topic, partition, _LATEST, 1) for partition in wanted]
        responses = self.client.send_offset_request(payloads)
        return sum(max(r.offsets[0] - self.offsets[r.partition], 0) for r in responses if r.offsets)


class _Weakly:
    """Calls a method of an object as long as there is one, so that a timer does not keep it."""

    def __init__(self, method: Callable[[], object]) -> None:
        self._method = WeakMethod(method)

    def __call__(self) -> None:
        method = self._method()
        if method is not None:
            method()


class FetchContext:
    """Sets how long the fetches of a consumer wait, for the time of a ``with`` block.

    ``block`` and ``timeout`` (seconds) are as in `SimpleConsumer.get_message`.
    """

    def __init__(self, consumer: SimpleConsumer, block: bool | int, timeout: float | None) -> None:
        self.consumer = consumer
        self.block = block
        self.timeout = FETCH_DEFAULT_BLOCK_TIMEOUT if block and not timeout else timeout
        self._before = (consumer.fetch_max_wait_time, consumer.fetch_min_bytes)

    def __enter__(self) -> None:
        self._before = (self.consumer.fetch_max_wait_time, self.consumer.fetch_min_bytes)
        if self.block:
            self.consumer.fetch_max_wait_time = int((self.timeout or 0) * 1000)
            self.consumer.fetch_min_bytes = 1
        else:
            self.consumer.fetch_min_bytes = 0

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.consumer.fetch_max_wait_time, self.consumer.fetch_min_bytes = self._before


class SimpleConsumer(Consumer):
    """Reads the partitions of a topic, from the group's committed positions on.

    >>> from kafka.broker import Broker
    >>> with Broker(topics={"events": 1}) as broker, SimpleClient(broker.bootstrap_servers) as client:
    ...     _ = broker.append("events", value=b"some message")
    ...     consumer = SimpleConsumer(client, "my-group", "events")
    ...     consumer.get_message(timeout=5).message.value
    ...     consumer.stop()
    b'some message'

    An iteration waits for messages for ``iter_timeout`` seconds, None: for ever. ``auto_offset_reset`` says where to
    continue when a position is out of range: 'largest' (the end), 'smallest' (the start), else the error is raised.
    A message larger than ``buffer_size`` bytes is fetched with larger buffers up to ``max_buffer_size``, None: of any
    size; brokers since 0.10.1 return it in any case.
    """

    def __init__(
        self,
        client: SimpleClient,
        group: str | bytes | None,
        topic: str | bytes,
        auto_commit: bool = True,
        partitions: Iterable[int] | None = None,
        auto_commit_every_n: int | None = AUTO_COMMIT_MSG_COUNT,
        auto_commit_every_t: int | None = AUTO_COMMIT_INTERVAL,
        fetch_size_bytes: int = FETCH_MIN_BYTES,
        buffer_size: int = FETCH_BUFFER_SIZE_BYTES,
        max_buffer_size: int | None = MAX_FETCH_BUFFER_SIZE_BYTES,
        iter_timeout: float | None = None,
        auto_offset_reset: str = "largest",
    ) -> None:
        if max_buffer_size is not None and buffer_size > max_buffer_size:
            raise ValueError(f"buffer_size ({buffer_size}) is greater than max_buffer_size ({max_buffer_size})")
        super().__init__(client, group, topic, partitions, auto_commit, auto_commit_every_n, auto_commit_every_t)
        self.buffer_size = buffer_size
        self.max_buffer_size = max_buffer_size
        self.fetch_max_wait_time = FETCH_MAX_WAIT_TIME
        self.fetch_min_bytes = fetch_size_bytes
        self.fetch_offsets = dict(self.offsets)
        self.iter_timeout = iter_timeout
        self.auto_offset_reset = auto_offset_reset
        self.queue: deque[tuple[int, OffsetAndMessage]] = deque()

    # Positions

    def reset_partition_offset(self, partition: int) -> int | None:
        """Go to the end or the start of a partition, as ``auto_offset_reset`` says; return the position.

        None if the broker did not say where that is. With another ``auto_offset_reset`` the error that is being
        handled is raised again.
        """
        wanted = _RESETS.get(self.auto_offset_reset)
        if wanted is None:
            raise  # noqa: PLE0704 - the caller handles an error, as in the releases before
        log.info("Going to the %s offset of %s-%d", self.auto_offset_reset, self.topic, partition)
        try:
            (response,) = self.client.send_offset_request([OffsetRequestPayload(self.topic, partition, wanted, 1)])
        except KafkaError as error:
            log.error("The %s offset of %s-%d is not known: %s", self.auto_offset_reset, self.topic, partition, error)
            return None
        self.offsets[partition] = self.fetch_offsets[partition] = int(response.offsets[0])
        return self.offsets[partition]

    def seek(self, offset: int, whence: int | None = None, partition: int | None = None) -> None:
        """Go to an offset of a partition, or of each.

        ``whence`` None takes the offset as it is, 0 counts from the start, 1 from the position, 2 from the end. Without
        a partition 0 and 2 divide the offset among the partitions.
        """
        if whence is None:
            self.offsets.update(dict.fromkeys(self.offsets if partition is None else [partition], offset))
        elif whence == 1:
            for each in list(self.offsets) if partition is None else [partition]:
                self.offsets[each] += offset
        elif whence in {0, 2}:
            self._seek_from(_EARLIEST if whence == 0 else _LATEST, offset, partition)
        else:
            raise ValueError(f"whence must be None, 0, 1 or 2, not {whence!r}")
        self.fetch_offsets = dict(self.offsets)
        self.queue.clear()
        self._error = None
        self.count_since_commit += 1
        if self.auto_commit:
            self.commit()

    def _seek_from(self, end: int, offset: int, partition: int | None) -> None:
        if partition is None:
            share, rest = divmod(offset, len(self.offsets))
            deltas = {each: share + (index < rest) for index, each in enumerate(self.offsets)}
        else:
            deltas = {partition: offset}
        payloads = [OffsetRequestPayload(self.topic, each, end, 1) for each in deltas]
        for response in self.client.send_offset_request(payloads):
            self.offsets[response.partition] = response.offsets[0] + deltas[response.partition]

    # Messages

    def get_messages(self, count: int = 1, block: bool | int = True, timeout: float | None = 0.1) -> list[Any]:
        """Return up to ``count`` messages.

        ``block`` True waits for all of them, a number for that many, False for none. ``timeout`` is in seconds, None:
        without a limit.
        """
        return self._get_messages(count, block, timeout)

    def get_message(
        self, block: bool = True, timeout: float | None = 0.1, get_partition_info: bool | None = None
    ) -> Any:
        """Return the next message, or None after ``timeout`` seconds; with ``(partition, message)`` if asked for."""
        self._raise_error()
        found = self._next(block, timeout)
        if found is None:
            return None
        message = self._passed(*found, self.partition_info if get_partition_info is None else get_partition_info)
        self._auto_commit()
        return message

    def _next(self, block: bool, timeout: float | None) -> tuple[int, OffsetAndMessage] | None:
        """Take a message from the queue, which is filled first if need be."""
        deadline = None if timeout is None else time.monotonic() + timeout
        wait = 0.0  # at first: of two leaders, one may have messages and the other none to wait for
        while not self.queue:
            with FetchContext(self, block and wait > 0, wait):
                self._fetch()
            remaining = FETCH_DEFAULT_BLOCK_TIMEOUT if deadline is None else deadline - time.monotonic()
            if not self.queue and (not block or remaining <= 0):
                return None
            wait = min(remaining, FETCH_DEFAULT_BLOCK_TIMEOUT)
        return self.queue.popleft()

    def _put_back(self, taken: list[tuple[int, OffsetAndMessage]]) -> None:
        self.queue.extendleft(reversed(taken))

    def __iter__(self) -> Iterator[Any]:
        """Yield messages until none comes for ``iter_timeout`` seconds."""
        while True:
            message = self.get_message(block=True, timeout=self.iter_timeout)
            if message is None:
                return
            yield message

    # Fetching

    def _fetch(self) -> None:
        """Fetch from all partitions into the queue; a message that is cut off is fetched with a larger buffer."""
        partitions = dict.fromkeys(self.fetch_offsets, self.buffer_size)
        while partitions:
            payloads = [
                FetchRequestPayload(self.topic, partition, self.fetch_offsets[partition], size)
                for partition, size in partitions.items()
            ]
            responses = self.client.send_fetch_request(
                payloads,
                fail_on_error=False,
                max_wait_time=int(self.fetch_max_wait_time),
                min_bytes=self.fetch_min_bytes,
            )
            retry: dict[int, int] = {}
            for response in responses:
                if isinstance(response, FailedPayloadsError):
                    self._failed(response.payload.partition, response.__cause__ or response)
                elif response.error:
                    self._failed(response.partition, for_code(response.error)(repr(response)))
                elif self._queue_messages(response.partition, response.messages):
                    retry[response.partition] = self._larger(partitions[response.partition])
            partitions = retry

    def _failed(self, partition: int, error: BaseException) -> None:
        """Deal with the error of one partition."""
        if isinstance(error, OffsetOutOfRangeError):
            log.warning("Offset %d of %s-%d is out of range", self.fetch_offsets[partition], self.topic, partition)
            try:
                raise error
            except OffsetOutOfRangeError:
                self.reset_partition_offset(partition)
            return
        if not isinstance(error, KafkaError):
            raise error
        log.warning("The fetch of %s-%d failed: %s", self.topic, partition, error)
        self.client.reset_topic_metadata(self.topic)
        time.sleep(_SOON)

    def _queue_messages(self, partition: int, messages: list[OffsetAndMessage]) -> bool:
        """Queue the messages of a partition; whether the first of them is too large for the buffer."""
        for found in messages:
            message: Any = found.message
            if isinstance(message, PartialMessage):
                return True
            if found.offset >= self.fetch_offsets[partition]:  # a compressed set may begin before
                self.queue.append((partition, found))
                self.fetch_offsets[partition] = found.offset + 1
        return False

    def _larger(self, size: int) -> int:
        if self.max_buffer_size is None:
            return size * 2
        if size >= self.max_buffer_size:
            raise ConsumerFetchSizeTooSmall(
                f"a message of {self.topic} is larger than max_buffer_size, {self.max_buffer_size} bytes: raise it"
            )
        return min(size * 2, self.max_buffer_size)

    def __repr__(self) -> str:
        return f"<SimpleConsumer group={self.group}, topic={self.topic}, partitions={list(self.offsets)}>"
