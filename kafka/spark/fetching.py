"""Reading ranges of offsets in a Spark worker: one fetch per leader in flight ahead of the one that is being decoded.

Turns the client's loop in the task's own thread; its clock stands still while Spark has the rows. Requests are of the
ranges of one leader together. A reply is scanned for where it ends, the next request leaves, and then the reply is
decoded, all of a partition's batches at once.

Whatever passes by itself (a leader that moves, a broker that restarts) is waited for until a range has not advanced
for kafkaConsumer.pollTimeoutMs; then the error names partition and offset.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kafka._client import FETCH
from kafka._drivers import run_here
from kafka._tasks import Task, wait_any
from kafka.client_async import KafkaClient
from kafka.config import Config, resolve
from kafka.consumer.offsets import OffsetLookup
from kafka.errors import (
    CorruptRecordError,
    KafkaError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    NoBrokersAvailable,
    OffsetOutOfRangeError,
    UnknownError,
    UnknownTopicOrPartitionError,
    for_code,
)
from kafka.net.environment import Environment
from kafka.record.header import LOG_OVERHEAD, scan
from kafka.record.reader import RecordReader
from kafka.spark.arrow import batch_of
from kafka.spark.connections import Kept, TaskClock
from kafka.spark.offsets import EARLIEST, LATEST
from kafka.spark.planning import DataLoss
from kafka.spark.ranges import OffsetRange
from kafka.structs import TopicPartition

__all__ = ["ReadSettings", "read_ranges"]

log = logging.getLogger(__name__)

# Java's default of 1 MiB for a partition makes many small replies; what was given counts.
_PARTITION_BYTES: Final = 8 << 20
_REPLY_BYTES: Final = 16 << 20
# So many records at least go to Spark at once, if a reply has them.
_BATCH_ROWS: Final = 65_536
_BACKOFF: Final = 0.1
# How often a task that waits says so, in seconds.
_TELL_EVERY: Final = 10.0
# The size of a record, as long as none of its range is known. A short range in front of a long backlog shall not bring
# megabytes of it along; where the guess is too low, the rest takes another request.
_GUESS: Final = 4 << 10
# What is asked for beyond the estimate of what is left of a range.
_SPARE: Final = 64 << 10
# From 13 on topics go by ids, which a range does not have.
_LAST_WITH_NAMES: Final = 12


@dataclass(frozen=True)
class ReadSettings:
    """What a task needs to know besides its ranges."""

    client: Mapping[str, Any] = field(repr=False)  # passwords are among them
    columns: Sequence[str]
    fail_on_data_loss: bool
    poll_timeout: float


class _Range:
    """A range that is being read."""

    __slots__ = (
        "bytes_each",
        "bytes_least",
        "end",
        "failing_since",
        "not_before",
        "position",
        "replica",
        "start",
        "tp",
    )

    def __init__(self, whole: OffsetRange) -> None:
        self.tp = whole.tp
        self.start = self.position = whole.start
        self.end = whole.end
        self.bytes_each = 0.0
        self.bytes_least = 0
        self.failing_since: float | None = None
        self.not_before = 0.0
        self.replica: int | None = None
        """Who is asked instead of the leader, which has named it as nearer (KIP-392)."""


def _make_client(options: Mapping[str, Any]) -> KafkaClient:
    return KafkaClient(config=resolve("consumer", options), environment=Environment(clock=TaskClock()))


_clients: Final = Kept(_make_client)


def read_ranges(ranges: Sequence[OffsetRange], settings: ReadSettings) -> Iterator[Any]:
    """Yield the records of the ranges as Arrow batches."""
    if not ranges:
        return
    # A task may begin while the brokers are away: it waits for them as one does that has begun.
    options = {"bootstrap_timeout_ms": round(settings.poll_timeout * 1000), **settings.client}
    try:
        client = _clients.get(options)
    except NoBrokersAvailable as error:
        raise _timed_out(ranges[0].start, settings.poll_timeout, error, ranges[0].tp) from error
    reading = _Reading(client, ranges, settings)
    try:
        yield from reading.batches()
    except GeneratorExit:
        raise
    except BaseException:
        _clients.drop(options)
        raise
    finally:
        reading.stop()


def _timed_out(offset: int, timeout: float, cause: object, tp: TopicPartition) -> KafkaTimeoutError:
    return KafkaTimeoutError(
        f"Cannot fetch record for offset {offset} in {timeout * 1000:.0f} milliseconds: {cause}", topic_partition=tp
    )


class _Reading:
    """One task's reading."""

    def __init__(self, client: KafkaClient, ranges: Sequence[OffsetRange], settings: ReadSettings) -> None:
        self._client = client
        self._loop = client.loop
        assert isinstance(client.environment.clock, TaskClock)
        self._clock = client.environment.clock
        self._config: Config = client.config
        self._settings = settings
        self._committed = self._config["isolation_level"] == "read_committed"
        self._left = [_Range(each) for each in ranges]
        self._asked: dict[Task[Any], list[_Range]] = {}
        self._rack: str = self._config["client_rack"]
        self._told: dict[type | None, float] = {}
        self._loss = DataLoss(fail=settings.fail_on_data_loss)
        given = self._config.given
        self._partition_bytes: int = (
            self._config["max_partition_fetch_bytes"] if "max_partition_fetch_bytes" in given else _PARTITION_BYTES
        )
        self._reply_bytes: int = self._config["fetch_max_bytes"] if "fetch_max_bytes" in given else _REPLY_BYTES

    def batches(self) -> Iterator[Any]:
        """Yield all there is in the ranges."""
        topics = {each.tp.topic for each in self._left}
        self._client.cluster.set_topics(self._client.cluster.wanted_topics | topics)
        while self._left:
            self._ask()
            received = self._receive()
            self._left = [each for each in self._left if each.position < each.end]
            if self._left:
                self._ask()
                self._loop.turn(0.0)  # the request leaves before the reply is decoded
            for each, reader in received:
                for columns in reader.columns(at_least=_BATCH_ROWS):
                    batch = batch_of(columns, each.tp, each.end, self._settings.columns)
                    given_at = self._clock.monotonic()
                    yield batch
                    self._clock.leave_out(self._clock.monotonic() - given_at)

    def stop(self) -> None:
        """Ask for nothing more."""
        for task in self._asked:
            task.cancel()

    # Asking…

    def _ask(self) -> None:
        """Have one request under way to each leader that there is something to ask of."""
        now = self._loop.time()
        busy = {each.tp for ranges in self._asked.values() for each in ranges}
        by_node: dict[int, list[_Range]] = {}
        for each in self._left:
            if each.tp in busy or each.not_before > now:
                continue
            by_node.setdefault(self._node_for(each), []).append(each)
            busy.add(each.tp)  # a reply tells partitions apart, not ranges
        asked_nodes = {self._node_for(each) for ranges in self._asked.values() for each in ranges}
        for node, ranges in by_node.items():
            if node < 0:
                self._asked[self._loop.spawn(self._find_leaders(), "find leaders")] = ranges
            elif node not in asked_nodes:
                self._asked[self._loop.spawn(self._fetch(node, ranges), "fetch")] = ranges

    def _node_for(self, each: _Range) -> int:
        """Return the broker to ask; -1 if there is none."""
        if each.replica is not None:
            return each.replica
        leader = self._client.cluster.leader_for_partition(each.tp)
        return -1 if leader is None else leader

    async def _find_leaders(self) -> None:
        await self._client.refresh(self._loop.time() + self._client.settings.request_timeout)

    async def _fetch(self, node: int, ranges: list[_Range]) -> Any:
        from kafka.protocol.fetch import FetchRequest

        client, config = self._client, self._config
        timeout = client.settings.request_timeout
        link = client.link(node, FETCH)
        await client.open(link, self._loop.time() + timeout)
        assert link.versions is not None
        version = min(link.versions.version_for(FetchRequest()), _LAST_WITH_NAMES)
        topics: dict[str, list[Any]] = {}
        part: Any = FetchRequest.FetchPartition
        topic: Any = FetchRequest.FetchTopic
        for each in ranges:
            topics.setdefault(each.tp.topic, []).append(
                part(
                    partition=each.tp.partition,
                    fetch_offset=each.position,
                    partition_max_bytes=self._wanted_bytes(each),
                )
            )
        request = FetchRequest[version](
            max_wait_ms=config["fetch_max_wait_ms"],
            min_bytes=1,
            max_bytes=self._reply_bytes,
            isolation_level=int(self._committed),
            topics=[topic(topic=name, partitions=parts) for name, parts in topics.items()],
            rack_id=self._rack,
        )
        return await link.submit(request, timeout + config["fetch_max_wait_ms"] / 1000)

    def _wanted_bytes(self, each: _Range) -> int:
        """Return how much to ask for: no more than is left of the range, as far as one can tell."""
        bytes_each = each.bytes_each or _GUESS
        wanted = min(self._partition_bytes, int((each.end - each.position) * bytes_each * 1.1) + _SPARE)
        return max(wanted, each.bytes_least)

    # Receiving…

    def _receive(self) -> list[tuple[_Range, RecordReader]]:
        """Wait for one reply; return readers of what it brought. Ranges have moved on already."""
        if not self._asked:
            self._rest(min(each.not_before for each in self._left))
            return []
        began = self._loop.time()
        # What is to be tried again soon does not wait for another leader's reply.
        again_at = min((each.not_before for each in self._left if each.not_before > began), default=None)
        waiting = wait_any(self._loop, *self._asked, deadline=again_at)
        if not run_here(self._loop, self._loop.spawn(waiting, "wait for a fetch")):
            return []
        task = next(task for task in self._asked if task.is_done)
        ranges = self._asked.pop(task)
        try:
            response = task.result()
            if response is not None and response.error_code:
                raise for_code(response.error_code)("the fetch as a whole")
        except KafkaError as error:
            if not error.retriable:
                raise
            self._client.cluster.request_update()
            for each in ranges:
                self._failed(each, error, began)
            return []
        if response is None:
            self._check_leaders(ranges, began)
            return []
        return self._take(response, ranges, began)

    def _check_leaders(self, ranges: list[_Range], began: float) -> None:
        """Fresh metadata has come, which need not know a leader: a topic may be gone, or all its replicas."""
        for each in ranges:
            leader = self._client.cluster.leader_for_partition(each.tp)
            if leader is None:
                told = self._client.cluster.topic_error(each.tp.topic)
                if told is not None and issubclass(told, KafkaError) and not told.retriable:
                    raise told(topic_partition=each.tp)
                self._failed(each, UnknownTopicOrPartitionError(topic_partition=each.tp), began)
            elif leader < 0:
                self._failed(each, LeaderNotAvailableError(topic_partition=each.tp), began)

    def _rest(self, until: float) -> None:
        run_here(self._loop, self._loop.spawn(self._loop.sleep_until(until), "rest"))

    def _take(self, response: Any, ranges: list[_Range], began: float) -> list[tuple[_Range, RecordReader]]:
        missing = {each.tp: each for each in ranges}
        found: list[tuple[_Range, RecordReader]] = []
        empty: list[_Range] = []
        for topic in response.topics:
            for part in topic.partitions:
                each = missing.pop(TopicPartition(topic.topic, part.partition_index), None)
                if each is None:  # nobody has asked for it, or it comes twice
                    continue
                if part.error_code:
                    self._refused(each, part.error_code, began)
                    continue
                self._check_start(each, part)
                if part.preferred_read_replica >= 0 and each.replica is None:
                    each.replica = part.preferred_read_replica
                elif each.position < each.end:
                    self._open(each, part, found, empty)
        empty += missing.values()
        for each in empty:
            if found:  # there may only have been no room for it; its leader answers
                each.failing_since = None
            else:  # alone there is nothing where there should be
                self._failed(each, None, began)
        return found

    def _open(self, each: _Range, part: Any, found: list[tuple[_Range, RecordReader]], empty: list[_Range]) -> None:
        """Find a reader of a reply's records, and move the range on to where they end."""
        position = each.position
        buffer = bytes(part.records or b"")
        end = self._advance(each, buffer)
        if each.position == position:
            size = _size_of_first(buffer)
            if size > self._wanted_bytes(each):
                each.bytes_least = size
            else:
                empty.append(each)
            return
        each.bytes_each = len(buffer) / (each.position - position)
        each.failing_since = None
        reader = RecordReader(
            buffer if end == len(buffer) else buffer[:end],
            each.tp.topic,
            each.tp.partition,
            position,
            check_crcs=self._config["check_crcs"],
            read_committed=self._committed,
            aborted=[(entry.producer_id, entry.first_offset) for entry in part.aborted_transactions or ()],
            max_batch_bytes=self._config["max_decompressed_bytes"],
        )
        found.append((each, reader))

    def _advance(self, each: _Range, buffer: bytes) -> int:
        """Move a range to behind the batches of a buffer; return where those end that are of the range."""
        try:
            for header in scan(buffer):
                if header.magic > 1 and header.base_offset >= each.end:
                    # What is left of the range was compacted away.
                    each.position = each.end
                    return header.position
                each.position = max(each.position, header.last_offset + 1)
        except CorruptRecordError as error:
            error.topic_partition = each.tp
            raise
        return len(buffer)

    # Trouble…

    def _failed(self, each: _Range, error: KafkaError | None, began: float) -> None:
        """Try a range again soon, unless it has not advanced for too long."""
        now = self._loop.time()
        if each.failing_since is None:
            each.failing_since = began
        if each.replica is not None:
            # It may be behind, or gone: for the rest of this task the leader is asked, and not for another.
            each.replica, self._rack = None, ""
        timeout = self._settings.poll_timeout
        if now - each.failing_since >= timeout:
            raise _timed_out(each.position, timeout, error or "the broker sends nothing", each.tp) from error
        each.not_before = now + _BACKOFF
        kind = None if error is None else type(error)
        if now - self._told.get(kind, -_TELL_EVERY) >= _TELL_EVERY:
            self._told[kind] = now
            said = error or "nothing is there"
            log.warning("Reading %s-%d from offset %d waits: %s", *each.tp, each.position, said)

    def _refused(self, each: _Range, code: int, began: float) -> None:
        kind = for_code(code)
        error = kind(topic_partition=each.tp)
        if isinstance(error, OffsetOutOfRangeError) and each.replica is None:
            self._out_of_range(each, began)
        elif not (error.retriable or isinstance(error, (OffsetOutOfRangeError, UnknownError))):
            raise error  # what a broker has no name for is its affair of the moment
        else:
            if error.invalid_metadata:
                self._client.cluster.request_update()
            self._failed(each, error, began)

    def _check_start(self, each: _Range, part: Any) -> None:
        """Records before the log's start are gone; a reply may say so without an error."""
        if part.log_start_offset > each.position:
            self._lost(each, min(part.log_start_offset, each.end))

    def _out_of_range(self, each: _Range, began: float) -> None:
        lookup = OffsetLookup(self._client, committed_only=self._committed)

        async def edges() -> tuple[int, int]:
            deadline = self._loop.time() + self._settings.poll_timeout
            found = []
            for edge in (EARLIEST, LATEST):
                place = (await lookup.find({each.tp: edge}, deadline))[each.tp]
                found.append(0 if place is None else place.offset)
            return found[0], found[1]

        try:
            earliest, latest = run_here(self._loop, self._loop.spawn(edges(), "look up the edges of a partition"))
        except KafkaError as error:
            if not error.retriable:
                raise
            self._failed(each, error, began)
            return
        if each.position >= latest or earliest >= each.end:
            self._lost(each, each.end)
        elif earliest > each.position:
            self._lost(each, earliest)
        else:  # it is there after all
            self._failed(each, OffsetOutOfRangeError(topic_partition=each.tp), began)

    def _lost(self, each: _Range, until: int) -> None:
        """Tell that the records from here on are gone, and go on behind them."""
        topic, partition = each.tp
        left = f"Those left begin at {until}." if until < each.end else "None of them is left."
        self._loss.report(
            "COULD_NOT_READ_OFFSET_RANGE",
            f"Could not read records in offset [{each.position}, {each.end}) for topic partition {topic}-{partition} "
            f"with consumer group {self._config['client_id']}. {left}",
        )
        each.position = until


def _size_of_first(buffer: bytes) -> int:
    """Return the size of the batch that a buffer begins with, which brokers before 0.10.1 cut to what was asked for."""
    if len(buffer) < LOG_OVERHEAD:
        return 0
    return int.from_bytes(buffer[LOG_OVERHEAD - 4 : LOG_OVERHEAD], "big", signed=True) + LOG_OVERHEAD
