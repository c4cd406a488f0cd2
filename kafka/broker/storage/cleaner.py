"""The log cleaner: retention, and compaction, which keeps the latest record of each key (cleanup.policy=compact).

As in Kafka the segment at the end and records above the last stable offset are left alone; offsets never change, so
a compacted log has gaps. Gone are: records without a key, records with a later one of the same key, records of aborted
transactions; and, delete.retention.ms after the first compaction that saw them, tombstones and the markers of
transactions without records.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Iterator
from functools import partial
from time import monotonic
from typing import Any, Final, TypeAlias, TypeVar

from kafka.broker.cluster.cluster import Cluster
from kafka.broker.cluster.topics import Partition
from kafka.broker.storage.log import Log
from kafka.broker.storage.segment import Segment
from kafka.errors import KafkaError
from kafka.record.batch import decode_batch, rebuild_batch
from kafka.record.header import BatchHeader, Buffer, read_header

logger = logging.getLogger("kafka.broker")

T = TypeVar("T")
Work: TypeAlias = Callable[[], object]
#: Steps of something that takes long; one that yields work is sent its result.
Steps: TypeAlias = Generator["Work | None", Any, T]

#: How long compaction and retention hold the event loop.
_SLICE_S: Final = 0.005
#: Batches of more records are decoded in a thread.
_LARGE: Final = 1000


class LogCleaner:
    """``cluster.service(LogCleaner)``: runs retention and compaction on the broker's clock, as often as configured."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        #: One compaction at a time: a test may order one while another is in work.
        self._lock = asyncio.Lock()
        self._slice_began = 0.0
        self._plan_retention()
        self._plan_compaction()

    def _plan_retention(self) -> None:
        interval = self._cluster.configs.broker_int("log.retention.check.interval.ms")
        self._cluster.timers.call_later(interval / 1000, self._retention_due)

    def _plan_compaction(self) -> None:
        interval = self._cluster.configs.broker_int("log.cleaner.backoff.ms")
        self._cluster.timers.call_later(interval / 1000, self._compaction_due)

    def _retention_due(self) -> None:
        self._cluster.background(self._retain_and_plan())

    async def _retain_and_plan(self) -> None:
        await self.apply_retention()
        self._plan_retention()

    def _compaction_due(self) -> None:
        self._cluster.background(self._compact_and_plan())

    async def _compact_and_plan(self) -> None:
        await self.compact()
        self._plan_compaction()

    async def apply_retention(self) -> None:
        """Remove records that are too old or too many, everywhere; wake readers whose offset is gone."""
        for topic in list(self._cluster.topics.values()):
            for partition in list(topic.partitions):
                if await self._in_slices(partition.log.retention(), "apply the retention of", partition):
                    partition.changed()

    async def compact(self, *, always: bool = False) -> int:
        """Compact the logs that are dirty enough, with ``always`` all compacted ones; return the bytes saved.

        Requests are served meanwhile: a log is read and written in slices of a few milliseconds.
        """
        async with self._lock:
            saved = 0
            now = self._cluster.clock.now_ms()
            for topic in list(self._cluster.topics.values()):
                ratio = float(self._cluster.configs.topic_value(topic, "min.cleanable.dirty.ratio"))
                for partition in list(topic.partitions):
                    log = partition.log
                    if log.config.compacts and (always or _is_due(log, ratio, now)):
                        saved += await self._in_slices(compaction(log, now), "compact", partition) or 0
            return saved

    async def _in_slices(self, steps: Steps[T], what: str, partition: Partition) -> T | None:
        """Carry out the steps, and let others run between them; the work of large batches is done in a thread.

        An error, as of a full disk or a damaged batch, ends the work on that log until it is due again.
        """
        result: object = None
        while True:
            try:
                work = steps.send(result)
                result = None if work is None else await self._cluster.in_thread(work)
            except StopIteration as end:
                value: T = end.value
                return value
            except (OSError, KafkaError) as error:
                logger.error("cannot %s %s-%d: %s", what, *partition.tp, error)
                return None
            if monotonic() - self._slice_began > _SLICE_S:
                await asyncio.sleep(0)
                self._slice_began = monotonic()


def _is_due(log: Log, ratio: float, now_ms: int) -> bool:
    return log.dirty_ratio() >= max(ratio, 1e-9) or log.is_dirty_before(now_ms - log.config.max_compaction_lag_ms)


def compact(log: Log, now_ms: int) -> int:
    """Compact a log in one step; return how many bytes that saved."""
    steps = compaction(log, now_ms)
    result: object = None
    try:
        while True:
            work = steps.send(result)
            result = None if work is None else work()
    except StopIteration as end:
        return int(end.value)


class _SegmentGone(Exception):  # noqa: N818 - an outcome
    """The log has removed a segment between two steps."""


def compaction(log: Log, now_ms: int) -> Steps[int]:
    """Compact a log, at each step a batch of it; return how many bytes that saved."""
    saved = 0
    try:
        cleanable = _cleanable(log, now_ms)
        latest = yield from _latest(log, cleanable)
        transactions = _Transactions(log)
        for segment in cleanable:
            end = segment.last_offset + 1
            saved += yield from _clean(log, segment, latest, transactions, now_ms)
            log.compacted_to = max(log.compacted_to, end)
    except _SegmentGone:
        pass  # by retention, or with its topic: the next compaction sees what is left
    return saved


def _apart(header: BatchHeader, call: Callable[..., T], *args: object) -> Steps[T]:
    """Return the result of a call, which is made in a thread if the batch is large."""
    if 0 <= header.count <= _LARGE:
        yield None
        return call(*args)
    result: T = yield partial(call, *args)
    return result


def _cleanable(log: Log, now_ms: int) -> list[Segment]:
    """Return the complete segments below the last stable offset up to the first that is too young."""
    found = []
    limit, lag = log.stable_offset, log.config.min_compaction_lag_ms
    for segment in log.segments[:-1]:
        if segment.last_offset >= limit or (lag and now_ms - segment.max_timestamp < lag):
            break
        found.append(segment)
    return found


def _batches(segment: Segment) -> Iterator[tuple[Buffer, BatchHeader]]:
    for number in range(len(segment)):
        if segment.is_gone:
            raise _SegmentGone
        entry = segment.entry(number)
        data = segment.read(entry.position, entry.end)
        header = read_header(data)
        assert header is not None
        yield data, header


def _latest(log: Log, segments: list[Segment]) -> Steps[dict[bytes, int]]:
    """Return each key's last offset."""
    latest: dict[bytes, int] = {}
    for segment in segments:
        for data, header in _batches(segment):
            if not header.is_control and not _was_aborted(log, header):
                latest.update((yield from _apart(header, _last_offsets, data, header)))
    return latest


def _last_offsets(data: Buffer, header: BatchHeader) -> dict[bytes, int]:
    return {row.key: row.offset for row in decode_batch(data, header, check_crc=False) if row.key is not None}


def _was_aborted(log: Log, header: BatchHeader) -> bool:
    if not header.is_transactional:
        return False
    return any(
        one.producer_id == header.producer_id and one.first_offset <= header.base_offset <= one.last_offset
        for one in log.producers.aborted
    )


class _Transactions:
    """Which transactions have records in the part of the log that was passed: their markers stay."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._with_records: set[int] = set()

    def is_aborted(self, header: BatchHeader) -> bool:
        """Note a batch of records; whether its transaction was aborted."""
        if not header.is_transactional:
            return False
        self._with_records.add(header.producer_id)
        return _was_aborted(self._log, header)

    def is_empty(self, marker: BatchHeader) -> bool:
        """Whether the transaction that this marker ends has no records any more."""
        if marker.producer_id in self._with_records:
            self._with_records.remove(marker.producer_id)
            return False
        return True


def _clean(
    log: Log, segment: Segment, latest: dict[bytes, int], transactions: _Transactions, now_ms: int
) -> Steps[int]:
    """Rewrite one segment without the records that are superseded; return the bytes saved."""
    kept: list[int | bytes] = []
    """The number of a batch that stays as it is, or the batch that takes its place."""
    changed = False
    for number, (data, header) in enumerate(_batches(segment)):
        is_dropped = transactions.is_empty(header) if header.is_control else transactions.is_aborted(header)
        cleaned = yield from _apart(
            header, _cleaned, data, header, latest, is_dropped, now_ms, log.config.delete_retention_ms
        )
        if cleaned is None:
            kept.append(number)
            continue
        changed = True
        if cleaned:
            kept.append(cleaned)
    if not changed:
        return 0
    fresh = segment.replacement()
    try:
        for one in kept:
            if segment.is_gone:
                raise _SegmentGone
            data = one if isinstance(one, bytes) else segment.read(*segment.entry(one)[2:4])
            again = read_header(data)
            assert again is not None
            fresh.append(data, again, again.base_offset, again.leader_epoch)
            yield None
    except BaseException:  # the end of the broker, too
        fresh.delete()
        raise
    return log.replace(segment, fresh)


def _cleaned(
    data: Buffer, header: BatchHeader, latest: dict[bytes, int], is_dropped: bool, now_ms: int, retention_ms: int
) -> bytes | None:
    """Return what stays of a batch, possibly nothing; None if it stays as it is.

    ``is_dropped`` says that the records' transaction was aborted, or that the marker's transaction has no records.
    The pass that first finds a tombstone the latest of its key, or a marker without records, gives its batch a horizon,
    delete.retention.ms from then on; a pass after the horizon removes it (KIP-534).
    """
    horizon = header.delete_horizon_ms
    is_over = horizon is not None and now_ms >= horizon
    if header.is_control:
        keep, needs_horizon = [not (is_dropped and is_over)], is_dropped and horizon is None
    else:
        rows = decode_batch(data, header, check_crc=False)
        # As in Kafka, records without a key are not kept.
        keep = [
            not is_dropped
            and row.key is not None
            and row.offset >= latest.get(row.key, -1)
            and (row.value is not None or not is_over)
            for row in rows
        ]
        has_tombstones = any(row.value is None for row, kept in zip(rows, keep, strict=True) if kept)
        needs_horizon = has_tombstones and horizon is None
    if all(keep) and not needs_horizon:
        return None
    return rebuild_batch(data, header, keep, now_ms + retention_ms if needs_horizon else None) if any(keep) else b""
