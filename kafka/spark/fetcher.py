"""Reading ranges of offsets in a Spark worker: one fetch per leader is in flight while the one before is decoded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kafka._core.client import FETCH
from kafka._runtime.network_thread import run_here
from kafka._runtime.tasks import Task, wait_any
from kafka.client_async import KafkaClient
from kafka.config import Config, resolve
from kafka.errors import KafkaError, NoBrokersAvailable, for_code
from kafka.net.environment import Environment
from kafka.record.batch_reader import RecordReader
from kafka.spark.arrow import batch_of
from kafka.spark.client_cache import ClientCache, TaskClock
from kafka.spark.fetch_errors import FetchErrorHandler, timed_out
from kafka.spark.offset_ranges import OffsetRange
from kafka.spark.planning import DataLoss
from kafka.spark.range_position import RangePosition
from kafka.structs import TopicPartition

__all__ = ["Found", "Replies", "ReadSettings", "read_ranges"]


Found = list[tuple[RangePosition, RecordReader]]

# Java's default of 1 MiB for a partition makes many small replies; what was given counts.
_PARTITION_BYTES: Final = 8 << 20


class Replies:
    """Those of one task."""

    def __init__(self, config: Config, troubles: FetchErrorHandler) -> None:
        self._config = config
        self._troubles = troubles
        self._committed: bool = config["isolation_level"] == "read_committed"
        self.partition_bytes: int = _PARTITION_BYTES
        """How much of one partition a reply may have."""
        if "max_partition_fetch_bytes" in config.given:
            self.partition_bytes = config["max_partition_fetch_bytes"]

    def take(self, response: Any, ranges: list[RangePosition], began: float) -> Found:
        """Return readers of what a reply brought; ``began`` is when the task began to wait for it."""
        missing = {each.tp: each for each in ranges}
        found: Found = []
        empty: list[RangePosition] = []
        for topic in response.topics:
            for part in topic.partitions:
                each = missing.pop(TopicPartition(topic.topic, part.partition_index), None)
                if each is None:  # nobody has asked for it, or it comes twice
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

    def _open(self, each: RangePosition, part: Any, found: Found, empty: list[RangePosition]) -> None:
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


# What was given counts; Java's default belongs to partitions of 1 MiB.
_REPLY_BYTES: Final = 16 << 20
# So many records at least go to Spark at once, if a reply has them.
_BATCH_ROWS: Final = 65_536
# From 13 on topics go by ids, which a range does not have.
_LAST_WITH_NAMES: Final = 12


@dataclass(frozen=True)
class ReadSettings:
    """What a task needs to know besides its ranges."""

    client: Mapping[str, Any] = field(repr=False)  # passwords are among them
    columns: Sequence[str]
    fail_on_data_loss: bool
    poll_timeout: float


def _make_client(options: Mapping[str, Any]) -> KafkaClient:
    return KafkaClient(config=resolve("consumer", options), environment=Environment(clock=TaskClock()))


_clients: Final = ClientCache(_make_client)


def read_ranges(ranges: Sequence[OffsetRange], settings: ReadSettings) -> Iterator[Any]:
    """Yield the records of the ranges as Arrow batches."""
    if not ranges:
        return
    # A task may begin while the brokers are away: it waits for them as one does that has begun.
    options = {"bootstrap_timeout_ms": round(settings.poll_timeout * 1000), **settings.client}
    try:
        client = _clients.get(options)
    except NoBrokersAvailable as error:
        raise timed_out(ranges[0].tp, ranges[0].start, settings.poll_timeout, error) from error
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


class _Reading:
    """One task's reading."""

    def __init__(self, client: KafkaClient, ranges: Sequence[OffsetRange], settings: ReadSettings) -> None:
        self._client = client
        self._loop = client.core.loop
        assert isinstance(client.core.environment.clock, TaskClock)
        self._clock = client.core.environment.clock
        self._config: Config = client.config
        self._settings = settings
        committed = self._config["isolation_level"] == "read_committed"
        self._isolation = int(committed)
        loss = DataLoss(fail=settings.fail_on_data_loss)
        self._troubles = FetchErrorHandler(client, settings.poll_timeout, loss, committed=committed)
        self._replies = Replies(self._config, self._troubles)
        self._left = [RangePosition(each) for each in ranges]
        self._asked: dict[Task[Any], list[RangePosition]] = {}
        self._reply_bytes: int = _REPLY_BYTES
        if "fetch_max_bytes" in self._config.given:
            self._reply_bytes = self._config["fetch_max_bytes"]

    def batches(self) -> Iterator[Any]:
        """Yield all there is in the ranges."""
        topics = {each.tp.topic for each in self._left}
        self._client.cluster.set_topics(self._client.cluster.wanted_topics | topics)
        while self._left:
            self._ask()
            received = self._receive()
            self._left = [each for each in self._left if not each.is_done]
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
        by_node: dict[int, list[RangePosition]] = {}
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

    def _node_for(self, each: RangePosition) -> int:
        """Return the broker to ask; -1 if there is none."""
        if each.replica is not None:
            return each.replica
        leader = self._client.cluster.leader_for_partition(each.tp)
        return -1 if leader is None else leader

    async def _find_leaders(self) -> None:
        await self._client.core.refresh(self._loop.time() + self._client.core.settings.request_timeout)

    async def _fetch(self, node: int, ranges: list[RangePosition]) -> Any:
        from kafka.protocol.fetch import FetchRequest

        client, config = self._client, self._config
        timeout = client.core.settings.request_timeout
        link = client.link(node, FETCH)
        await client.core.open(link, self._loop.time() + timeout)
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
                    partition_max_bytes=each.wanted_bytes(self._replies.partition_bytes),
                )
            )
        request = FetchRequest[version](
            max_wait_ms=config["fetch_max_wait_ms"],
            min_bytes=1,
            max_bytes=self._reply_bytes,
            isolation_level=self._isolation,
            topics=[topic(topic=name, partitions=parts) for name, parts in topics.items()],
            rack_id="" if self._troubles.leaders_only else config["client_rack"],
        )
        return await link.submit(request, timeout + config["fetch_max_wait_ms"] / 1000)

    # Receiving…

    def _receive(self) -> Found:
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
                self._troubles.failed(each, error, began)
            return []
        if response is None:
            self._troubles.check_leaders(ranges, began)
            return []
        return self._replies.take(response, ranges, began)

    def _rest(self, until: float) -> None:
        run_here(self._loop, self._loop.spawn(self._loop.sleep_until(until), "rest"))
