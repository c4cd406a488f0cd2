"""The log cleaner: retention, and compaction, which keeps the latest record of each key (cleanup.policy=compact).

As in Kafka the segment at the end and records above the last stable offset are left alone; offsets never change, so
a compacted log has gaps. Gone are: records with a later one of the same key, tombstones and transaction markers older
than delete.retention.ms, and records of aborted transactions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.record.batch import decode_batch, rebuild_batch
from kafka.record.header import read_header

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka.broker.cluster.cluster import Cluster
    from kafka.broker.storage.log import Log
    from kafka.broker.storage.segment import Segment
    from kafka.record.header import BatchHeader, Buffer

__all__ = ["LogCleaner", "compact"]


class LogCleaner:
    """``cluster.service(LogCleaner)``: runs retention and compaction on the broker's clock, as often as configured."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._plan_retention()
        self._plan_compaction()

    def _plan_retention(self) -> None:
        interval = self._cluster.configs.broker_int("log.retention.check.interval.ms")
        self._cluster.timers.call_later(interval / 1000, self._retention_due)

    def _plan_compaction(self) -> None:
        interval = self._cluster.configs.broker_int("log.cleaner.backoff.ms")
        self._cluster.timers.call_later(interval / 1000, self._compaction_due)

    def _retention_due(self) -> None:
        self.apply_retention()
        self._plan_retention()

    def _compaction_due(self) -> None:
        self.compact()
        self._plan_compaction()

    def apply_retention(self) -> None:
        """Remove what is too old or too much, everywhere; wake readers whose offset is gone."""
        for topic in self._cluster.topics.values():
            for partition in topic.partitions:
                if partition.log.apply_retention():
                    partition.changed()

    def compact(self, *, always: bool = False) -> int:
        """Compact the logs that are dirty enough, with ``always`` all compacted ones; return the bytes saved."""
        saved = 0
        now = self._cluster.clock.now_ms()
        for topic in self._cluster.topics.values():
            ratio = float(self._cluster.configs.topic_value(topic, "min.cleanable.dirty.ratio"))
            for partition in topic.partitions:
                log = partition.log
                if log.config.compacts and (always or log.dirty_ratio() >= max(ratio, 1e-9)):
                    saved += compact(log, now)
        return saved


def compact(log: Log, now_ms: int) -> int:
    """Compact a log; return how many bytes that saved."""
    limit = log.stable_offset
    cleanable = [
        segment
        for segment in log.segments[:-1]
        if segment.last_offset < limit and now_ms - segment.max_timestamp >= log.config.min_compaction_lag_ms
    ]
    if not cleanable:
        return 0
    latest = _latest(log, cleanable)
    saved = 0
    for segment in cleanable:
        end = segment.last_offset + 1
        saved += _clean(log, segment, latest, now_ms - log.config.delete_retention_ms)
        log.compacted_to = max(log.compacted_to, end)
    return saved


def _batches(segment: Segment) -> Iterator[tuple[Buffer, BatchHeader]]:
    for number in range(len(segment)):
        entry = segment.entry(number)
        data = segment.read(entry.position, entry.end)
        header = read_header(data)
        assert header is not None
        yield data, header


def _latest(log: Log, segments: list[Segment]) -> dict[bytes | None, int]:
    """Return each key's last offset."""
    latest: dict[bytes | None, int] = {}
    for segment in segments:
        for data, header in _batches(segment):
            if header.is_control or _was_aborted(log, header):
                continue
            for row in decode_batch(data, header, check_crc=False):
                latest[row.key] = row.offset
    return latest


def _was_aborted(log: Log, header: BatchHeader) -> bool:
    if not header.is_transactional:
        return False
    return any(
        one.producer_id == header.producer_id and one.first_offset <= header.base_offset <= one.last_offset
        for one in log.producers.aborted
    )


def _clean(log: Log, segment: Segment, latest: dict[bytes | None, int], horizon_ms: int) -> int:
    """Rewrite one segment without what is superseded; return the bytes saved."""
    kept: list[tuple[Buffer, BatchHeader]] = []
    changed = False
    for data, header in _batches(segment):
        if header.is_control:
            keep = header.max_timestamp > horizon_ms
            changed = changed or not keep
            if keep:
                kept.append((data, header))
            continue
        rows = decode_batch(data, header, check_crc=False)
        is_aborted = _was_aborted(log, header)
        kept_rows = [not is_aborted and _is_kept(row, latest, horizon_ms) for row in rows]
        if all(kept_rows):
            kept.append((data, header))
            continue
        changed = True
        if any(kept_rows):
            fresh = rebuild_batch(data, header, kept_rows)
            again = read_header(fresh)
            assert again is not None
            kept.append((fresh, again))
    if not changed:
        return 0
    return log.rewrite(segment, kept)


def _is_kept(row: Any, latest: dict[bytes | None, int], horizon_ms: int) -> bool:
    if row.offset < latest.get(row.key, -1):
        return False
    return row.value is not None or row.timestamp > horizon_ms
