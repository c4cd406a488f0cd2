"""What a broker does by itself from time to time: retention, and compaction of compacted topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka.broker.storage.compaction import compact

if TYPE_CHECKING:
    from kafka.broker.cluster.cluster import Cluster

__all__ = ["Upkeep"]


class Upkeep:
    """A service: runs on the broker's clock as often as its configuration says."""

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
