"""Where records and tables are kept: in memory, or in a directory.

A :class:`Storage` opens and deletes logs and has the :class:`~kafka.broker.cluster.store.Store` of small things. The
cluster does not know which kind of storage it has.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final
from uuid import UUID

from kafka.broker.cluster.store import Store
from kafka.broker.storage.log import Log
from kafka.broker.storage.segment import MemorySegment

if TYPE_CHECKING:
    from kafka.broker.cluster.clock import BrokerClock
    from kafka.broker.cluster.topics import Topic
    from kafka.broker.configs import Configs

__all__ = ["MemoryStorage", "Storage"]

#: Segments in memory grow by doubling, so they are kept small enough that a copy goes unnoticed.
_MEMORY_SEGMENT: Final = 4 * 1024 * 1024


class Storage:
    """What both kinds of storage offer."""

    store: Store
    is_durable = False
    """Whether it may hold what an earlier broker has left."""

    def open_log(self, topic: Topic, index: int, configs: Configs, clock: BrokerClock) -> Log:
        """Open, or make, the log of a partition."""
        raise NotImplementedError

    def delete_log(self, log: Log) -> None:
        """Remove a log and its files."""
        for segment in log.segments:
            segment.delete()
        log.segments.clear()

    @property
    def directory_name(self) -> str:
        """What DescribeLogDirs calls it."""
        return "/memory"

    def space(self) -> tuple[int, int]:
        """Return total and free bytes, -1 if that cannot be said."""
        return -1, -1

    def close(self, topics: Iterable[Topic]) -> None:
        """Close everything in an orderly manner."""
        for topic in topics:
            for partition in topic.partitions:
                partition.log.close()
        self.store.close()


class MemoryStorage(Storage):
    """Everything in memory, gone with the process."""

    def __init__(self) -> None:
        self.store = Store()
        #: By the topic's id and the partition's number.
        self._logs: dict[tuple[UUID, int], Log] = {}

    def open_log(self, topic: Topic, index: int, configs: Configs, clock: BrokerClock) -> Log:
        """Return the log of a partition, an empty one if there is none yet."""
        config = configs.log_config(topic)
        log = self._logs.get((topic.id, index))
        if log is None:
            log = Log(MemorySegment, clock.now_ms, config, max_segment_bytes=_MEMORY_SEGMENT)
            log.directory = (topic.id, index)
            self._logs[topic.id, index] = log
        log.config = config
        return log

    def delete_log(self, log: Log) -> None:
        """Forget a log."""
        self._logs.pop(log.directory, None)
        super().delete_log(log)
