"""How far groups are behind: committed offsets, ends of partitions and members, joined."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from kafka._runtime.tasks import TaskGroup
from kafka.admin.calls import call
from kafka.admin.group_description import GroupDescription, GroupDescriptions, MemberAssignment
from kafka.admin.group_offsets import GroupOffsets, ListedOffsets
from kafka.admin.groups import Groups, as_groups
from kafka.admin.offsets import IsolationLevel, Offsets, OffsetSpec
from kafka.admin.resources import as_topics
from kafka.admin.share_groups import ShareGroupDescription, ShareGroupOffset, ShareGroups
from kafka.errors import GroupIdNotFoundError, KafkaError
from kafka.structs import TopicPartition

K = TypeVar("K")

Ends = Mapping[TopicPartition, "int | KafkaError"]


class PartitionLag(NamedTuple):
    """How far a group is behind in a partition.

    `committed` is None where the group has not committed an offset: the lag counts from the beginning then. `lag` is
    None where the end is not known, and `error` says why; and where the group committed offset -1 and no member has the
    partition, as nothing reads it. `member_id` is None where no member has the partition. Of a share group `committed`
    is the start offset, `lag` the records that are not finished, None before the first one was, and `member_id` is None
    where several members read the partition.
    """

    topic: str
    partition: int
    committed: int | None
    end: int | None
    lag: int | None
    member_id: str | None = None
    error: KafkaError | None = None

    @property
    def is_committed(self) -> bool:
        """Whether the group has committed an offset."""
        return self.committed is not None


class GroupLag:
    """How far a group is behind, by partition; a group that cannot be looked at has an `error` and no partitions."""

    __slots__ = ("description", "error", "group_id", "partitions")

    def __init__(
        self,
        group_id: str,
        partitions: list[PartitionLag],
        description: GroupDescription | ShareGroupDescription | None = None,
        error: KafkaError | None = None,
    ) -> None:
        self.group_id = group_id
        self.partitions = partitions
        self.description = description
        self.error = error

    @property
    def ok(self) -> bool:
        """Whether the lag of every partition is known."""
        return self.error is None and all(one.error is None for one in self.partitions)

    @property
    def total(self) -> int:
        """The records that the group is behind, in all partitions whose lag is known."""
        return sum(one.lag for one in self.partitions if one.lag is not None)

    @property
    def by_topic(self) -> dict[str, int]:
        """The records that the group is behind, by topic."""
        return self._summed((one.topic, one.lag) for one in self.partitions)

    @property
    def by_member(self) -> dict[str | None, int]:
        """The records that the group is behind, by member; None for partitions that no member has."""
        return self._summed((one.member_id, one.lag) for one in self.partitions)

    @staticmethod
    def _summed(pairs: Iterable[tuple[K, int | None]]) -> dict[K, int]:
        found: dict[K, int] = {}
        for key, lag in pairs:
            found[key] = found.get(key, 0) + (lag or 0)
        return found

    def __iter__(self) -> Iterator[PartitionLag]:
        return iter(self.partitions)

    def __repr__(self) -> str:
        state = f"total={self.total}" if self.error is None else f"error={self.error!r}"
        return f"GroupLag({self.group_id!r}, {state}, {len(self.partitions)} partitions)"


class Lags(dict[str, GroupLag]):
    """The lag of each group, by its name; `failed_brokers` has the errors of brokers that did not list their groups."""

    __slots__ = ("failed_brokers",)

    def __init__(self, lags: Mapping[str, GroupLag], failed_brokers: Mapping[int, KafkaError]) -> None:
        super().__init__(lags)
        self.failed_brokers: dict[int, KafkaError] = dict(failed_brokers)

    @property
    def ok(self) -> bool:
        """Whether the lag of every partition of every group is known."""
        return not self.failed_brokers and all(lag.ok for lag in self.values())

    @property
    def failed(self) -> dict[str, KafkaError]:
        """The errors of groups that could not be looked at."""
        return {group: lag.error for group, lag in self.items() if lag.error is not None}

    @property
    def total(self) -> int:
        """The records that all groups are behind."""
        return sum(lag.total for lag in self.values())


class GroupLags(ShareGroups, GroupDescriptions, GroupOffsets, Offsets, Groups):
    """The call about the lag of groups."""

    @call
    async def group_lag(
        self,
        group_ids: Iterable[str] | None = None,
        topics: Iterable[str] | None = None,
        isolation_level: IsolationLevel | str = IsolationLevel.READ_UNCOMMITTED,
        timeout_ms: float | None = None,
    ) -> Lags:
        """Return how many records groups of any kind are behind, all groups for None, in all partitions or some topics.

        A group is looked at in the partitions for which it has committed an offset, or which a member has. Partitions
        without a committed offset count from their beginning, and have None for ``committed``. With
        ``"read_committed"`` a partition ends where the first open transaction begins. Nothing is raised for a
        group or a partition that cannot be looked at: it has its ``error``. A partition that has no leader is not
        waited for.

        >>> from kafka import KafkaAdminClient, KafkaProducer
        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        ...         sent = [producer.send("events", b"record") for _ in range(5)]
        ...     with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...         committed = admin.alter_group_offsets("readers", {("events", 0): 2})
        ...         lags = admin.group_lag()
        >>> lags["readers"].total, lags["readers"].partitions[0].committed
        (3, 2)
        """
        deadline = self._core.deadline(timeout_ms)
        groups = None if group_ids is None else as_groups(group_ids)
        names = None if topics is None else {str(topic) for topic in as_topics(topics)}
        level = IsolationLevel.build_from(isolation_level)
        failed_brokers: dict[int, KafkaError] = {}
        if groups is None:
            listed = await self.list_groups(timeout_ms=deadline, raise_errors=False)
            failed_brokers = listed.failed
            groups = [one.group_id for one in listed]
        offsets, descriptions = await self._both(deadline, groups)
        share_groups = await self._share_groups(deadline, descriptions)
        owners = {group: _owners(descriptions[group]) for group in groups}
        wanted: dict[TopicPartition, None] = {}
        bare: set[TopicPartition] = set()
        for group in groups:
            if group in share_groups:
                wanted.update(dict.fromkeys(share_groups[group].partitions))
                continue
            committed = offsets.get(group, {})
            wanted.update(dict.fromkeys(committed))
            bare.update(
                partition
                for partition in owners[group]
                if partition not in committed or committed[partition].offset < 0
            )
        wanted.update(dict.fromkeys(bare))
        chosen = [partition for partition in wanted if names is None or partition.topic in names]
        begins: Ends
        ends: Ends
        ends, begins = await self._core.gather(
            [
                self._ends(deadline, chosen, level, OffsetSpec.LATEST, waits=False),
                self._ends(deadline, bare.intersection(chosen), level, OffsetSpec.EARLIEST, waits=False),
            ]
        )
        lags = {}
        for group in groups:
            if group in share_groups:
                lags[group] = share_groups[group].lag(group, ends)
                continue
            description = descriptions[group]
            error = offsets.failed.get(group)
            rows = [] if error is not None else _rows(group, offsets, owners[group], ends, begins)
            lags[group] = GroupLag(group, rows, description, error)
        return Lags(lags, failed_brokers)

    async def _both(self, deadline: float, groups: list[str]) -> tuple[ListedOffsets, dict[str, GroupDescription]]:
        async with TaskGroup(self._core.loop) as both:
            offsets = both.spawn(self._list_group_offsets(deadline, dict.fromkeys(groups)))
            descriptions = both.spawn(self._describe_groups(deadline, groups))
        return offsets.result(), descriptions.result()

    async def _share_groups(
        self, deadline: float, descriptions: Mapping[str, GroupDescription]
    ) -> dict[str, _ShareGroup]:
        """Return the share groups among the groups that are of no other kind."""
        others = [group for group, one in descriptions.items() if isinstance(one.error, GroupIdNotFoundError)]
        described = await self._existing_share_groups(deadline, others)
        if not described:
            return {}
        offsets: Mapping[str, Any] = await self.list_share_group_offsets(list(described), deadline, raise_errors=False)
        return {group: _ShareGroup(one, offsets[group]) for group, one in described.items()}


class _ShareGroup:
    """A share group, with the partitions that its members read or that it has offsets for."""

    def __init__(
        self,
        description: ShareGroupDescription,
        offsets: dict[TopicPartition, KafkaError | ShareGroupOffset] | KafkaError,
    ) -> None:
        self._description = description
        self._error = offsets if isinstance(offsets, KafkaError) else None
        self._offsets = {} if isinstance(offsets, KafkaError) else offsets
        self._readers: dict[TopicPartition, list[str]] = {}
        for member in description.members:
            for partition in member.assigned_partitions:
                self._readers.setdefault(partition, []).append(member.member_id)

    @property
    def partitions(self) -> list[TopicPartition]:
        return sorted({*self._offsets, *self._readers})

    def lag(self, group: str, ends: Ends) -> GroupLag:
        rows = [self._row(partition, ends[partition]) for partition in self.partitions if partition in ends]
        return GroupLag(group, rows, self._description, self._error)

    def _row(self, partition: TopicPartition, found: int | KafkaError) -> PartitionLag:
        end = None if isinstance(found, KafkaError) else found
        error = found if isinstance(found, KafkaError) else None
        offset = self._offsets.get(partition)
        start = lag = None
        if isinstance(offset, KafkaError):
            error = error or offset
        elif offset is not None and offset.start_offset >= 0:
            start = offset.start_offset
            if offset.lag >= 0:
                lag = offset.lag
            elif end is not None:  # of Kafka 4.1, which does not know what is finished behind the start offset
                lag = max(0, end - start)
        readers = self._readers.get(partition, [])
        return PartitionLag(*partition, start, end, lag, readers[0] if len(readers) == 1 else None, error)


def _owners(description: GroupDescription) -> dict[TopicPartition, str]:
    """Return which member has which partition."""
    return {
        TopicPartition(topic, number): member.member_id
        for member in description.members
        if isinstance(member.member_assignment, MemberAssignment)
        for topic, numbers in member.member_assignment.assignment
        for number in numbers
    }


def _rows(
    group: str, offsets: ListedOffsets, owners: Mapping[TopicPartition, str], ends: Ends, begins: Ends
) -> list[PartitionLag]:
    committed = offsets[group]
    failed = offsets.failed_partitions.get(group, {})
    rows = []
    for partition in sorted({*committed, *owners, *failed}):
        end = ends.get(partition)
        if end is None:  # of a topic that was not asked for
            continue
        at = committed[partition].offset if partition in committed else -1
        start: int | KafkaError = at if at >= 0 else begins.get(partition, 0)
        is_read = at >= 0 or partition in owners  # else it is a text beside no offset
        error = failed.get(partition) or next((one for one in (end, start) if isinstance(one, KafkaError)), None)
        lag = None
        if not isinstance(end, KafkaError) and not isinstance(start, KafkaError) and error is None and is_read:
            lag = max(0, end - start)
        rows.append(
            PartitionLag(
                partition.topic,
                partition.partition,
                at if at >= 0 else None,
                None if isinstance(end, KafkaError) else end,
                lag,
                owners.get(partition),
                error,
            )
        )
    return rows
