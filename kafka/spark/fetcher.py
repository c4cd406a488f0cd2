"""Reading ranges of offsets in a Spark worker: one fetch per leader is in flight while the one before is decoded."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka import KafkaClient
from kafka.config import Config, resolve
from kafka.errors import KafkaError, NoBrokersAvailable, for_code
from kafka.future import Future
from kafka.net.environment import Environment
from kafka.protocol.fetch import FetchRequest
from kafka.record import RecordReader
from kafka.spark.arrow import batch_of
from kafka.spark.client_cache import ClientCache
from kafka.spark.offset_ranges import OffsetRange
from kafka.spark.planning import DataLoss
from kafka.spark.range_position import FetchErrorHandler, RangePosition, timed_out
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from typing import Protocol

    from kafka.protocol.fetch import FetchResponse
    from kafka.spark.options import SourceOptions

    class Clock(Protocol):
        """A machine's clock, as the module ``time`` has it."""

        def monotonic(self) -> float: ...
        def time(self) -> float: ...


__all__ = ["Found", "Replies", "TaskClient", "TaskClock", "read_ranges"]


Found = list[tuple[RangePosition, RecordReader]]

# Java's default of 1 MiB for a partition makes many small replies. A value that the program gives counts.
_PARTITION_BYTES: Final = 8 << 20


class Replies:
    """The responses to one task's fetches."""

    def __init__(self, config: Config, troubles: FetchErrorHandler) -> None:
        self._config = config
        self._troubles = troubles
        self._committed: bool = config["isolation_level"] == "read_committed"
        self.partition_bytes: int = _PARTITION_BYTES
        """How much of one partition a reply may have."""
        if "max_partition_fetch_bytes" in config.given:
            self.partition_bytes = config["max_partition_fetch_bytes"]

    def take(self, response: FetchResponse, ranges: list[RangePosition], began: float) -> Found:
        """Return readers of what a reply brought; ``began`` is when the task began to wait for it."""
        missing = {each.tp: each for each in ranges}
        found: Found = []
        empty: list[RangePosition] = []
        for topic in response.responses:
            for part in topic.partitions:
                each = missing.pop(TopicPartition(topic.topic, part.partition_index), None)
                if each is None:  # the task has not asked for it, or it comes twice
                    continue
                if part.error_code:
                    self._troubles.refused(each, part.error_code, began)
                    continue
                self._troubles.check_start(each, part)
                if part.preferred_read_replica >= 0 and each.replica is None:
                    each.replica = part.preferred_read_replica
                elif not each.is_done:
                    self._open(each, part, found, empty)
        empty += missing.values()
        for each in empty:
            if found:  # there may only have been no room for it; its leader answers
                each.failing_since = None
            else:  # alone there is nothing where there should be
                self._troubles.failed(each, None, began)
        return found

    def _open(
        self, each: RangePosition, part: FetchResponse.PartitionData, found: Found, empty: list[RangePosition]
    ) -> None:
        """Find a reader of a reply's records, and move the range on to where they end."""
        position = each.position
        buffer = bytes(part.records or b"")
        end = each.advance(buffer)
        if each.position == position:
            if not each.needs_more(buffer, self.partition_bytes):
                empty.append(each)
            return
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


# A value that the program gives counts; Java's default belongs to partitions of 1 MiB.
_REPLY_BYTES: Final = 16 << 20
# The least number of records that go to Spark at once, if a reply has them.
_BATCH_ROWS: Final = 65_536
# From 13 on topics go by ids, which a range does not have.
_LAST_WITH_NAMES: Final = 12
# The connections of fetches: a large reply holds up neither metadata nor lookups.
_USE: Final = "fetch"


class TaskClock:
    """The machine's clock without the time in which Spark has a task's rows, and nothing is read from connections.

    Minutes may pass until Spark takes the next batch. By the machine's clock a response that has come meanwhile would
    be late, and the client would close the connection.

    >>> clock = TaskClock()
    >>> before = clock.monotonic()
    >>> clock.leave_out(60)
    >>> clock.monotonic() < before
    True
    """

    def __init__(self, base: Clock = time) -> None:
        self.base = base
        self._left_out = 0.0

    def monotonic(self) -> float:
        """Return seconds since an arbitrary point."""
        return self.base.monotonic() - self._left_out

    def time(self) -> float:
        """Return seconds since the epoch; nothing of them is left out."""
        return self.base.time()

    def leave_out(self, seconds: float) -> None:
        """Leave out the time that has just passed."""
        self._left_out += seconds


class TaskClient:
    """The client of tasks with the same options, and its clock."""

    def __init__(self, options: Mapping[str, object], clock: TaskClock | None = None) -> None:
        self.clock = clock or TaskClock()
        config = resolve("consumer", options)
        self.client = KafkaClient(config=config, environment=Environment(clock=self.clock))

    def close(self) -> None:
        """Close the connections."""
        self.client.close()


_clients: Final = ClientCache(TaskClient)


def read_ranges(ranges: Sequence[OffsetRange], options: SourceOptions, columns: Sequence[str]) -> Iterator[Any]:
    """Yield the records of the ranges as Arrow batches of these columns."""
    if not ranges:
        return
    # A task may begin while the brokers are away: it waits for them as one does that has begun.
    configs = {"bootstrap_timeout_ms": round(options.poll_timeout * 1000), **options.client}
    try:
        client = _clients.get(configs)
    except NoBrokersAvailable as error:
        raise timed_out(ranges[0].tp, ranges[0].start, options.poll_timeout, error) from error
    reading = _Reading(client, ranges, options, columns)
    try:
        yield from reading.batches()
    except GeneratorExit:
        raise
    except BaseException:
        _clients.drop(configs)
        raise


class _Asked(NamedTuple):
    """A request that is under way."""

    ranges: list[RangePosition]
    node: int
    """The broker; -1 for metadata, which the client asks for until it comes."""


class _Reading:
    """One task's reading."""

    def __init__(
        self, worker: TaskClient, ranges: Sequence[OffsetRange], options: SourceOptions, columns: Sequence[str]
    ) -> None:
        self._client = client = worker.client
        self._clock = worker.clock
        self._config: Config = client.config
        self._columns = columns
        committed = self._config["isolation_level"] == "read_committed"
        self._isolation = int(committed)
        loss = DataLoss(fail=options.fail_on_data_loss)
        now = self._clock.monotonic
        self._troubles = FetchErrorHandler(client, options.poll_timeout, loss, committed_only=committed, now=now)
        self._replies = Replies(self._config, self._troubles)
        self._left = [RangePosition(each) for each in ranges]
        self._asked: dict[Future[Any], _Asked] = {}
        self._reply_bytes: int = _REPLY_BYTES
        if "fetch_max_bytes" in self._config.given:
            self._reply_bytes = self._config["fetch_max_bytes"]
        self._timeout = self._config.seconds("request_timeout_ms") + self._config.seconds("fetch_max_wait_ms")

    def batches(self) -> Iterator[Any]:
        """Yield all records of the ranges."""
        topics = {each.tp.topic for each in self._left}
        self._client.set_topics(self._client.cluster.wanted_topics | topics)
        while self._left:
            self._ask()
            received = self._receive()
            self._left = [each for each in self._left if not each.is_done]
            if self._left:
                self._ask()
                self._client.poll(timeout_ms=0)  # the request leaves before the reply is decoded
            for each, reader in received:
                for columns in reader.columns(at_least=_BATCH_ROWS):
                    batch = batch_of(columns, each.tp, each.end, self._columns)
                    given_at = self._clock.monotonic()
                    yield batch
                    self._clock.leave_out(self._clock.monotonic() - given_at)

    # Asking…

    def _ask(self) -> None:
        """Have one request under way to each leader of a range that is not done."""
        now = self._clock.monotonic()
        busy = {each.tp for asked in self._asked.values() for each in asked.ranges}
        by_node: dict[int, list[RangePosition]] = {}
        for each in self._left:
            if each.tp in busy or each.not_before > now:
                continue
            by_node.setdefault(self._node_for(each), []).append(each)
            busy.add(each.tp)  # a reply tells partitions apart, not ranges
        asked_nodes = {asked.node for asked in self._asked.values()}
        for node, ranges in by_node.items():
            if node not in asked_nodes:
                future = self._fetch(node, ranges) if node >= 0 else self._find_leaders()
                self._asked[future] = _Asked(ranges, node)

    def _node_for(self, each: RangePosition) -> int:
        """Return the broker to ask; -1 if the leader is not known."""
        if each.replica is not None:
            return each.replica
        leader = self._client.cluster.leader_for_partition(each.tp)
        return -1 if leader is None else leader

    def _find_leaders(self) -> Future[Any]:
        found: Future[Any] = Future()
        self._client.cluster.request_update().chain(found)
        return found

    def _fetch(self, node: int, ranges: list[RangePosition]) -> Future[Any]:
        topics: dict[str, list[FetchRequest.FetchPartition]] = {}
        part = FetchRequest.FetchPartition
        topic = FetchRequest.FetchTopic
        for each in ranges:
            topics.setdefault(each.tp.topic, []).append(
                part(
                    partition=each.tp.partition,
                    fetch_offset=each.position,
                    partition_max_bytes=each.wanted_bytes(self._replies.partition_bytes),
                )
            )
        request = FetchRequest(
            max_wait_ms=self._config["fetch_max_wait_ms"],
            min_bytes=1,
            max_bytes=self._reply_bytes,
            isolation_level=self._isolation,
            topics=[topic(topic=name, partitions=parts) for name, parts in topics.items()],
            rack_id="" if self._troubles.leaders_only else self._config["client_rack"],
        )
        try:
            return self._client.submit(node, request, use=_USE, timeout=self._timeout, newest=_LAST_WITH_NAMES)
        except KafkaError as error:  # the broker left meanwhile
            return Future[Any]().failure(error)

    # Receiving…

    def _receive(self) -> Found:
        """Wait for one reply; return readers of what it brought. Ranges have moved on already."""
        began = self._clock.monotonic()
        future = self._wait(began)
        if future is None:
            return []
        ranges, node = self._asked.pop(future)
        try:
            response = future.result()
            if node >= 0 and response.error_code:
                raise for_code(response.error_code)("the fetch as a whole")
        except KafkaError as error:
            if not error.retriable:
                raise
            self._client.cluster.request_update()
            for each in ranges:
                self._troubles.failed(each, error, began)
            return []
        if node < 0:
            self._troubles.check_leaders(ranges, began)
            return []
        return self._replies.take(response, ranges, began)

    def _wait(self, began: float) -> Future[Any] | None:
        """Wait for a request to end, or until there is another one to send; return the one that has ended."""
        again_at = min((each.not_before for each in self._left if each.not_before > began), default=None)
        timeout_ms = None if again_at is None else (again_at - began) * 1000
        ended: Future[None] = Future()

        def note(_outcome: object) -> None:
            ended.try_success(None)

        for future in self._asked:
            future.add_both(note)
        self._client.poll(timeout_ms=timeout_ms, future=ended)
        for future in self._asked:
            future.discard(note)
        return next((future for future in self._asked if future.is_done), None)
