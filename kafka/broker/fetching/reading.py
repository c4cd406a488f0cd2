"""Serving a fetch request: the records of each partition within the limits, the errors, and the wait for more.

A fetch that found too little waits until its partitions have enough records, or until the request's maximum wait.
Nothing is polled: each partition calls its watchers after a change, and only that partition is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, TypeAlias

from kafka.broker.cluster.topics import NO_LEADER
from kafka.broker.security.acls import Operation, Resource
from kafka.errors import Code, KafkaError, UnsupportedCompressionTypeError
from kafka.record.log_append import down_convert

if TYPE_CHECKING:
    from kafka.broker.cluster.topics import Partition
    from kafka.broker.fetching.sessions import RequestedPartition
    from kafka.broker.server.call import Call
    from kafka.protocol.fetch import FetchRequest, FetchResponse

#: A partition that a request names, and its part of the reply.
ReadPartition: TypeAlias = "tuple[RequestedPartition, FetchResponse.PartitionData]"

_IDS_FROM: Final = 13
_WHOLE_FIRST_FROM: Final = 3
#: The field is there from version 12 on, but Kafka fills it in from where it tells the address too (KIP-951).
_LEADER_FROM: Final = 16
_FOLLOWERS_FROM: Final = 11
READ_COMMITTED: Final = 1
_RACK_AWARE: Final = "RackAwareReplicaSelector"


class Reading:
    """What one pass over the partitions brought."""

    __slots__ = ("data", "has_partitions", "is_final", "leaders", "min_bytes", "size")

    def __init__(self, min_bytes: int) -> None:
        #: (requested, the reply's PartitionData) in the order of the request, but missing partitions come last.
        self.data: list[ReadPartition] = []
        self.size = 0
        #: How many bytes are enough: as many as the request asks for, but no more than a reply may have.
        self.min_bytes = min_bytes
        #: Whether there is any partition whose records can be waited for.
        self.has_partitions = False
        #: Whether to reply at once, with or without records: after an error, a divergence, or for another replica.
        self.is_final = False
        #: Leaders whose addresses the reply must have.
        self.leaders: set[int] = set()


def find_partition(call: Call, requested: RequestedPartition) -> tuple[Partition | None, int]:
    """Return the partition that is requested, or why it cannot be had."""
    by_id = call.version >= _IDS_FROM
    topic = call.cluster.topic(topic_id=requested.topic_id) if by_id else call.cluster.topic(requested.name)
    name = requested.name
    if topic is not None:
        # A session and a waiting fetch go by it when the topic is gone.
        name = requested.name = topic.name
    elif by_id and not name:
        return None, Code.UNKNOWN_TOPIC_ID
    if not call.allows(Operation.READ, Resource.TOPIC, name):
        return None, Code.TOPIC_AUTHORIZATION_FAILED
    if topic is None and by_id and call.cluster.topic(name) is not None:
        return None, Code.INCONSISTENT_TOPIC_ID
    partition = None if topic is None else topic.partition(requested.index)
    if partition is None:
        return None, Code.UNKNOWN_TOPIC_OR_PARTITION
    return partition, 0


def read_all(
    call: Call[FetchResponse],
    request: FetchRequest,
    partitions: Iterable[RequestedPartition],
    *,
    only_news: bool = False,
) -> Reading:
    """Read each partition in turn until the limit is reached; the others come back without records.

    With ``only_news``, for a continued session, partitions without news are left out.
    """
    whole_first = call.version >= _WHOLE_FIRST_FROM
    left = request.max_bytes if whole_first else 2**31 - 1
    left = min(left, call.cluster.configs.broker_int("fetch.max.bytes"))
    reading = Reading(min(request.min_bytes, left))
    missing: list[ReadPartition] = []
    only_news = only_news and call.cluster.authorizer is None
    for requested in partitions:
        if only_news and _is_quiet(call, requested):
            reading.has_partitions = True
            continue
        data = call.response.PartitionData(
            partition_index=requested.index, error_code=0, high_watermark=-1, aborted_transactions=[], records=b""
        )
        partition, code = find_partition(call, requested)
        if partition is None:
            data.error_code = code
            missing.append((requested, data))
            # A topic that was created again is news; one that does not exist does not keep the others from waiting.
            reading.is_final = reading.is_final or code == Code.INCONSISTENT_TOPIC_ID
            continue
        reading.has_partitions = True
        size = _read(call, request, requested, partition, data, min(left, requested.max_bytes), whole_first, reading)
        if size:
            whole_first = False
            left -= min(size, left)
            reading.size += size
        reading.data.append((requested, data))
    reading.data += missing
    return reading


def _is_quiet(call: Call, requested: RequestedPartition) -> bool:
    """Whether the reader is at the end of the log and knows it: the usual case, found without building a response."""
    by_id = call.version >= _IDS_FROM
    topic = call.cluster.topics_by_id.get(requested.topic_id) if by_id else call.cluster.topics.get(requested.name)
    partition = topic.partition(requested.index) if topic is not None else None
    if partition is None or partition.leader != call.node.node_id:
        return False
    log = partition.log
    return bool(
        requested.offset == log.end_offset == requested.sent_high_watermark
        and log.start_offset == requested.sent_start
        and requested.last_epoch < 0
        and requested.epoch in {-1, partition.leader_epoch}
    )


def _read(
    call: Call[FetchResponse],
    request: FetchRequest,
    requested: RequestedPartition,
    partition: Partition,
    data: FetchResponse.PartitionData,
    limit: int,
    whole_first: bool,
    reading: Reading,
) -> int:
    """Read one partition into ``data``; return how many bytes of records."""
    code = _check_leader(call, requested, partition)
    log = partition.log
    diverges = False
    if not code and requested.last_epoch >= 0:
        # Before the range, as a log that was cut may not reach up to the offset again (KIP-595).
        epoch, end = log.epoch_end(requested.last_epoch)
        if epoch < 0:
            code = Code.OFFSET_OUT_OF_RANGE  # an epoch that this log does not know
        else:
            diverges = epoch < requested.last_epoch or end < requested.offset
    if not code and not diverges and not log.start_offset <= requested.offset <= log.high_watermark:
        code = Code.OFFSET_OUT_OF_RANGE
    if code:
        reading.is_final = True
        data.error_code = code
        data.aborted_transactions = None
        if code in {Code.NOT_LEADER_OR_FOLLOWER, Code.FENCED_LEADER_EPOCH} and call.version >= _LEADER_FROM:
            data.current_leader = call.response.LeaderIdAndEpoch(partition.leader, partition.leader_epoch)
            reading.leaders.add(partition.leader)
        return 0
    data.high_watermark = log.high_watermark
    data.last_stable_offset = log.stable_offset
    data.log_start_offset = log.start_offset
    if diverges:
        data.diverging_epoch = call.response.EpochEndOffset(epoch, end)
        reading.is_final = True
        return 0
    nearest = _nearest_replica(call, request, partition)
    if nearest != NO_LEADER:
        data.preferred_read_replica = nearest
        reading.is_final = True
        return 0
    return _read_records(call, request, requested, partition, data, limit, whole_first)


def _read_records(
    call: Call[FetchResponse],
    request: FetchRequest,
    requested: RequestedPartition,
    partition: Partition,
    data: FetchResponse.PartitionData,
    limit: int,
    whole_first: bool,
) -> int:
    log = partition.log
    committed = request.isolation_level == READ_COMMITTED
    upper = log.stable_offset if committed else log.high_watermark
    records = (
        log.read(requested.offset, max(0, limit), upper, whole_first=whole_first) if requested.offset < upper else b""
    )
    if committed:
        end = _end_of(partition, requested.offset, len(records), upper)
        data.aborted_transactions = [
            call.response.AbortedTransaction(one.producer_id, one.first_offset)
            for one in log.producers.aborted_between(requested.offset, end)
        ]
    else:
        data.aborted_transactions = None
    size = len(records)
    magic = _oldest_magic(request.API_VERSION)
    if magic is not None and size:
        try:
            records = down_convert(records, magic)
        except UnsupportedCompressionTypeError:
            data.error_code = Code.UNSUPPORTED_COMPRESSION_TYPE
            records = b""
        except KafkaError:
            data.error_code = Code.CORRUPT_MESSAGE
            records = b""
    data.records = records
    return size


def _oldest_magic(version: int) -> int | None:
    """Return the newest record format that a fetch request of this version can carry; None for v2."""
    if version >= 4:
        return None
    return 1 if version >= 2 else 0


def _end_of(partition: Partition, offset: int, size: int, upper: int) -> int:
    """Return the offset up to which aborted transactions matter for what was read."""
    if not size:
        return offset
    end = partition.log.offset_after(offset, size)
    return min(upper, end)


def _check_leader(call: Call, requested: RequestedPartition, partition: Partition) -> int:
    node_id = call.node.node_id
    is_leader = partition.leader == node_id
    may_follow = call.version >= _FOLLOWERS_FROM and node_id in partition.isr
    if not is_leader and not may_follow:
        return Code.NOT_LEADER_OR_FOLLOWER
    if requested.epoch >= 0:
        if requested.epoch < partition.leader_epoch:
            return Code.FENCED_LEADER_EPOCH
        if requested.epoch > partition.leader_epoch:
            return Code.UNKNOWN_LEADER_EPOCH
    return 0


def _nearest_replica(call: Call, request: FetchRequest, partition: Partition) -> int:
    """Return the replica in the reader's rack if that is another one and a selector is configured (KIP-392)."""
    if not request.rack_id or partition.leader != call.node.node_id or call.node.rack == request.rack_id:
        return NO_LEADER
    selector = call.cluster.configs.broker_value("replica.selector.class") or ""
    if not selector.endswith(_RACK_AWARE):
        return NO_LEADER
    for node_id in partition.isr:
        node = call.cluster.nodes.get(node_id)
        if node is not None and node.is_live and node.rack == request.rack_id:
            return node_id
    return NO_LEADER


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
