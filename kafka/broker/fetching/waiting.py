"""The long poll: a fetch that found too little waits until its partitions have enough, or until its time is up.

Nothing is polled: each partition tells its watchers what happens to it, and only the partition that
changed is looked at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafka.broker.fetching.reading import READ_COMMITTED, find_partition

if TYPE_CHECKING:
    from kafka.broker.cluster.topics import Partition
    from kafka.broker.fetching.sessions import RequestedPartition
    from kafka.broker.server.call import Call
    from kafka.protocol.fetch import FetchRequest

__all__ = ["wait_for_bytes"]


class _Wait:
    """One waiting fetch."""

    def __init__(
        self, call: Call, request: FetchRequest, partitions: Iterable[RequestedPartition], min_bytes: int
    ) -> None:
        self._node_id = call.node.node_id
        self._loop = call.cluster.loop
        self._committed = request.isolation_level == READ_COMMITTED
        self._min_bytes = min_bytes
        self._total = 0
        #: Partition -> what is requested of it, and how many bytes it has so far.
        self._wanted: dict[Partition, RequestedPartition] = {}
        self._bytes: dict[Partition, int] = {}
        self._epochs: dict[Partition, int] = {}
        self.done: asyncio.Future[None] = self._loop.create_future()
        for requested in partitions:
            partition, _ = find_partition(call, requested)
            if partition is not None:
                self._wanted[partition] = requested
                self._epochs[partition] = partition.leader_epoch
                self._bytes[partition] = 0
                self._count(partition)
                partition.watch(self.changed)
        if self._total >= self._min_bytes or not self._wanted:
            self.finish()  # it came, or was deleted, after the fetch had looked and before it began to wait

    def changed(self, partition: Partition) -> None:
        """Something happened to one of the partitions."""
        if partition.leader_epoch != self._epochs[partition] or partition.topic.is_deleted:
            self.finish()
            return
        self._count(partition)
        if self._total >= self._min_bytes:
            self.finish()

    def _count(self, partition: Partition) -> None:
        requested, log = self._wanted[partition], partition.log
        if requested.offset < log.start_offset:
            self._total = self._min_bytes
            return
        upper = log.stable_offset if self._committed else log.high_watermark
        found = log.available(requested.offset, upper, requested.max_bytes) if requested.offset < upper else 0
        found = min(found, requested.max_bytes)
        self._total += found - self._bytes[partition]
        self._bytes[partition] = found

    def finish(self) -> None:
        """End the wait."""
        if not self.done.done():
            self.done.set_result(None)

    def close(self) -> None:
        """Stop watching."""
        for partition in self._wanted:
            partition.unwatch(self.changed)


async def wait_for_bytes(
    call: Call, request: FetchRequest, partitions: Iterable[RequestedPartition], min_bytes: int
) -> None:
    """Return when there is enough to read, a change must be reported, or the time is up."""
    wait = _Wait(call, request, partitions, min_bytes)
    timer = call.cluster.timers.call_later(request.max_wait_ms / 1000, wait.finish)
    try:
        await wait.done
    finally:
        timer.cancel()
        wait.close()
