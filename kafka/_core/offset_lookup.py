"""Looking up offsets: the beginning, the end, the first record at or after a time (ListOffsets).

Coroutines on the client's loop. One round asks each leader once; after a retriable error the next round asks again,
with fresh metadata, until the deadline.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from kafka.errors import (
    KafkaError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
    for_code,
)
from kafka.structs import OffsetAndTimestamp, TopicPartition

if TYPE_CHECKING:
    from kafka._core.client import Client
    from kafka.protocol.offset import ListOffsetsResponse

__all__ = ["OffsetLookup", "no_leader"]

# The first version that finds single offsets by time, and the first that knows of transactions.
_BY_TIME: Final = 1
_ISOLATION: Final = 2

Found = dict[TopicPartition, OffsetAndTimestamp | None]
Failed = dict[TopicPartition, KafkaError]


class OffsetLookup:
    """Finds offsets for one consumer."""

    def __init__(self, client: Client, *, committed_only: bool) -> None:
        self._client = client
        self._committed_only = committed_only

    async def find(self, wanted: Mapping[TopicPartition, int], deadline: float) -> Found:
        """Return the offset at each timestamp (-1: the end, -2: the beginning); None where all records are earlier.

        Raises the first error that is not retriable; at the deadline, KafkaTimeoutError from the last one.
        """
        found: Found = {}
        left = dict(wanted)
        cluster = self._client.cluster
        unknown = {partition.topic for partition in wanted if cluster.leader_for_partition(partition) is None}
        with cluster.also({partition.topic for partition in wanted}):
            try:
                async for attempt in self._client.attempts(deadline, "looking offsets up"):
                    with attempt:
                        if unknown and not attempt.failures:
                            await self._client.refresh(attempt.deadline, unknown)
                        answered, failed = await self._round(left, attempt.deadline)
                        found.update(answered)
                        left = {partition: left[partition] for partition in failed}
                        if failed:
                            attempt.topics = {partition.topic for partition in failed}
                            raise _decisive(failed.values())
            except KafkaError as error:
                if not error.retriable:
                    raise
                raise KafkaTimeoutError(f"offsets could not be looked up: {error}") from error
        return found

    async def _round(self, wanted: Mapping[TopicPartition, int], deadline: float) -> tuple[Found, Failed]:
        """Ask each leader once; return the offsets found, and the errors."""
        found: Found = {}
        failed: Failed = {}
        by_leader: dict[int, dict[TopicPartition, int]] = {}
        for partition, timestamp in wanted.items():
            leader = self._client.cluster.leader_for_partition(partition)
            if leader is None or leader < 0:
                failed[partition] = no_leader(partition, leader)
            else:
                by_leader.setdefault(leader, {})[partition] = timestamp
        tasks = [
            self._client.loop.spawn(self.ask(leader, part, deadline), "list offsets")
            for leader, part in by_leader.items()
        ]
        try:
            for task in tasks:
                found_there, failed_there = await task
                found.update(found_there)
                failed.update(failed_there)
        finally:
            for task in tasks:
                task.cancel()
        return found, failed

    async def ask(self, leader: int, wanted: Mapping[TopicPartition, int], deadline: float) -> tuple[Found, Failed]:
        """Ask one leader once; return for each partition either the offset or the error."""
        try:
            response = await self._request(leader, wanted, deadline)
        except KafkaError as error:
            return {}, dict.fromkeys(wanted, error)
        return _read(response, wanted)

    async def _request(self, leader: int, wanted: Mapping[TopicPartition, int], deadline: float) -> ListOffsetsResponse:
        from kafka.protocol.offset import ListOffsetsRequest

        link = self._client.link(leader)
        await self._client.open(link, deadline)
        assert link.versions is not None
        version = link.versions.version_for(ListOffsetsRequest())
        topics: dict[str, list[ListOffsetsRequest.ListOffsetsPartition]] = {}
        part = ListOffsetsRequest.ListOffsetsPartition
        for partition, timestamp in wanted.items():
            if version < _BY_TIME and timestamp >= 0:
                raise UnsupportedVersionError("Brokers before 0.10.1 cannot find an offset by a timestamp")
            epoch = self._client.cluster.leader_epoch_for_partition(partition)
            topics.setdefault(partition.topic, []).append(
                part(partition_index=partition.partition, timestamp=timestamp, current_leader_epoch=epoch)
            )
        topic = ListOffsetsRequest.ListOffsetsTopic
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(self._committed_only and version >= _ISOLATION),
            topics=[topic(name=name, partitions=parts) for name, parts in topics.items()],
        )
        return await link.submit(request, deadline=deadline)


def _decisive(errors: Iterable[KafkaError]) -> KafkaError:
    """Return an error that is not retriable if there is one, else one that asks for fresh metadata, else the first."""
    return min(errors, key=lambda error: (error.retriable, not error.invalid_metadata))


def no_leader(partition: TopicPartition, leader: int | None) -> KafkaError:
    """Return the error for a partition whose leader is -1 or, if the cluster does not know it, None."""
    if leader is None:
        return UnknownTopicOrPartitionError("the cluster does not know the partition", topic_partition=partition)
    return LeaderNotAvailableError("no leader now", topic_partition=partition)


def _read(response: ListOffsetsResponse, wanted: Iterable[TopicPartition]) -> tuple[Found, Failed]:
    entries = {(topic.name, entry.partition_index): entry for topic in response.topics for entry in topic.partitions}
    found: Found = {}
    failed: Failed = {}
    for partition in wanted:
        entry = entries.get(partition)
        if entry is None:
            failed[partition] = UnknownTopicOrPartitionError("the response leaves it out", topic_partition=partition)
        elif entry.error_code:
            failed[partition] = for_code(entry.error_code)(topic_partition=partition)
        elif entry.old_style_offsets:
            found[partition] = OffsetAndTimestamp(entry.old_style_offsets[0], -1)
        elif entry.offset < 0:
            found[partition] = None
        else:
            found[partition] = OffsetAndTimestamp(entry.offset, entry.timestamp, entry.leader_epoch)
    return found, failed
