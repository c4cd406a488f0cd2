"""Offsets of partitions: the beginning, the end, the first record of a time, and the end of a leader epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, cast

from kafka.acl import Named
from kafka.admin.calls import Calls, call
from kafka.admin.partitions import as_partition, by_topic
from kafka.admin.results import error_of, raise_first
from kafka.errors import KafkaError
from kafka.protocol.offset import ListOffsetsRequest, OffsetForLeaderEpochRequest
from kafka.structs import OffsetAndTimestamp, TopicPartition

if TYPE_CHECKING:
    from typing_extensions import Self

    from kafka.protocol.offset import ListOffsetsResponse, OffsetForLeaderEpochResponse

_BY_TIME_SINCE: Final = 1
_ISOLATION_SINCE: Final = 2
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)


class IsolationLevel(Named, IntEnum):
    """Whether offsets of transactions that are not committed yet count."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class OffsetSpec(Named, IntEnum):
    """A place in the log of a partition."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


# The version of ListOffsets, and the release, that each place needs.
_NEEDED: Final = {
    OffsetSpec.MAX_TIMESTAMP: (7, "3.0"),
    OffsetSpec.EARLIEST_LOCAL: (8, "3.4"),
    OffsetSpec.LATEST_TIERED: (9, "3.9"),
    OffsetSpec.EARLIEST_PENDING_UPLOAD: (11, "4.2"),
}


class OffsetTimestamp(int):
    """The first record at or after a time, which is a datetime, or milliseconds since 1970.

    >>> OffsetTimestamp(datetime(2024, 1, 1, tzinfo=timezone.utc))
    OffsetTimestamp(1704067200000)
    """

    def __new__(cls, time: datetime | float) -> Self:
        """Make it from a time."""
        return super().__new__(cls, _milliseconds(time) if isinstance(time, datetime) else int(time))

    def __repr__(self) -> str:
        return f"OffsetTimestamp({int(self)})"


def _milliseconds(time: datetime) -> int:
    return (time.astimezone(timezone.utc) - _EPOCH) // timedelta(milliseconds=1)


def as_timestamp(given: object, now: Callable[[], datetime] = lambda: datetime.now(timezone.utc)) -> int:
    """Return what ListOffsets takes, from an `OffsetSpec` or its name, a datetime, a timedelta (ago), or milliseconds.

    >>> [as_timestamp(given) for given in (OffsetSpec.LATEST, "earliest", 1704067200000)]
    [-1, -2, 1704067200000]
    """
    if isinstance(given, datetime):
        return _milliseconds(given)
    if isinstance(given, timedelta):
        return _milliseconds(now() - given)
    if isinstance(given, (str, OffsetSpec)):
        return int(OffsetSpec.build_from(given))
    if isinstance(given, bool) or not isinstance(given, int):
        raise TypeError(
            f"an offset is looked up by an OffsetSpec, a datetime, a timedelta or milliseconds, not {given!r}"
        )
    if given < 0:
        return int(OffsetSpec.build_from(given))
    return int(given)


class Offsets(Calls):
    """The calls about offsets of partitions."""

    @call
    async def list_partition_offsets(
        self,
        topic_partition_specs: Mapping[TopicPartition, OffsetSpec | datetime | timedelta | int | str],
        isolation_level: IsolationLevel | str = IsolationLevel.READ_UNCOMMITTED,
        timeout_ms: float | None = None,
        *,
        raise_errors: bool = True,
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Look up an offset of each partition: at an `OffsetSpec`, or of the first record at or after a time.

        A time is a datetime, a timedelta before now, or milliseconds since 1970; where no record is as late the offset
        is -1. The first error of a partition is raised, with all answers in ``error.results``; with
        ``raise_errors=False`` a partition that failed has its error instead of an offset.

        >>> from kafka import KafkaAdminClient, OffsetSpec, TopicPartition
        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...         admin.list_partition_offsets({TopicPartition("events", 0): OffsetSpec.LATEST})
        {TopicPartition(topic='events', partition=0): OffsetAndTimestamp(offset=0, timestamp=-1, leader_epoch=0)}
        """
        deadline = self._core.deadline(timeout_ms)
        wanted = {as_partition(partition): as_timestamp(spec) for partition, spec in topic_partition_specs.items()}
        level = IsolationLevel.build_from(isolation_level)
        found = await self._look_up_offsets(deadline, wanted, level)
        if raise_errors:
            raise_first(found.values(), found)
        return found

    list_offsets = list_partition_offsets  # as in Java

    async def _look_up_offsets(
        self, deadline: float, wanted: Mapping[TopicPartition, int], level: IsolationLevel, *, waits: bool = True
    ) -> dict[TopicPartition, Any]:
        """Return an offset or a `KafkaError` for each partition."""
        version = await self._core.version_of(ListOffsetsRequest(), deadline)
        for timestamp in set(wanted.values()):
            needed, release = (
                _NEEDED.get(OffsetSpec(timestamp), (0, "")) if timestamp < 0 else (_BY_TIME_SINCE, "0.10.1")
            )
            if version < needed:
                name = OffsetSpec(timestamp).name if timestamp < 0 else "a time"
                raise self._core.unsupported(f"looking up an offset by {name}", release)
        if level and version < _ISOLATION_SINCE:
            raise self._core.unsupported("read_committed", "0.11")
        part = ListOffsetsRequest.ListOffsetsPartition

        def request(some: list[TopicPartition]) -> ListOffsetsRequest:
            return ListOffsetsRequest(
                replica_id=-1,
                isolation_level=int(level),
                topics=by_topic(
                    some, "name", "partitions", lambda one: part(partition_index=one.partition, timestamp=wanted[one])
                ),
                timeout_ms=self._core.left(deadline),
            )

        def read(response: ListOffsetsResponse) -> dict[TopicPartition, OffsetAndTimestamp | KafkaError]:
            return {
                TopicPartition(topic.name, one.partition_index): error_of(
                    one.error_code, f"{topic.name}-{one.partition_index}"
                )
                or _offset(one)
                for topic in response.topics
                for one in topic.partitions
            }

        what = "list_partition_offsets()"
        return await self._core.ask_leaders(list(wanted), request, read, deadline, what, waits=waits)

    @call
    async def offsets_for_leader_epochs(
        self, epochs: Mapping[TopicPartition, int], timeout_ms: float | None = None, *, raise_errors: bool = True
    ) -> dict[TopicPartition, tuple[int, int]]:
        """Return the last leader epoch up to the given one, and the offset at which it ends (Kafka 0.11).

        >>> from kafka import KafkaAdminClient, TopicPartition
        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...         admin.offsets_for_leader_epochs({TopicPartition("events", 0): 0})
        {TopicPartition(topic='events', partition=0): (0, 0)}
        """
        deadline = self._core.deadline(timeout_ms)
        wanted = {as_partition(partition): epoch for partition, epoch in epochs.items()}
        kind = OffsetForLeaderEpochRequest
        await self._core.require(deadline, kind.API_KEY, 0, "offsets_for_leader_epochs()", "0.11")

        def request(some: Sequence[TopicPartition]) -> OffsetForLeaderEpochRequest:
            return kind(
                replica_id=-1,
                topics=by_topic(
                    some, "topic", "partitions", lambda one: {"partition": one.partition, "leader_epoch": wanted[one]}
                ),
            )

        def read(response: OffsetForLeaderEpochResponse) -> dict[TopicPartition, tuple[int, int] | KafkaError]:
            return {
                TopicPartition(topic.topic, one.partition): error_of(one.error_code, f"{topic.topic}-{one.partition}")
                or (one.leader_epoch, one.end_offset)
                for topic in response.topics
                for one in topic.partitions
            }

        found = await self._core.ask_leaders(list(wanted), request, read, deadline, "offsets_for_leader_epochs()")
        if raise_errors:
            raise_first(found.values(), found)
        return cast("dict[TopicPartition, tuple[int, int]]", found)

    async def _ends(
        self,
        deadline: float,
        partitions: Iterable[TopicPartition],
        level: IsolationLevel,
        spec: OffsetSpec,
        *,
        waits: bool = True,
    ) -> dict[TopicPartition, int | KafkaError]:
        """Return the offset of one place for all partitions, or the error of a partition."""
        found = await self._look_up_offsets(deadline, dict.fromkeys(partitions, int(spec)), level, waits=waits)
        return {one: at if isinstance(at, KafkaError) else at.offset for one, at in found.items()}


def _offset(entry: ListOffsetsResponse.ListOffsetsPartitionResponse) -> OffsetAndTimestamp:
    if entry.old_style_offsets:  # of version 0
        return OffsetAndTimestamp(entry.old_style_offsets[0], -1)
    return OffsetAndTimestamp(entry.offset, entry.timestamp, entry.leader_epoch)
