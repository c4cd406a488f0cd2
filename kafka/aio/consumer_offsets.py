"""Offsets of an asyncio consumer: positions, commits, and what the cluster says about the offsets of partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from kafka._runtime.asyncio_driver import as_asyncio
from kafka.aio.arguments import as_offsets
from kafka.aio.lifecycle import Lifecycle, Phase
from kafka.consumer.arguments import checked_partition, checked_partitions
from kafka.consumer.calls import ConsumerCalls, RecordT
from kafka.consumer.partition_state import EARLIEST, LATEST
from kafka.consumer.subscription_state import Mode
from kafka.errors import IllegalOperation, IllegalStateError, KafkaTimeoutError
from kafka.structs import OffsetAndMetadata, OnCommit, TopicPartition

if TYPE_CHECKING:
    from kafka._core.client import Client
    from kafka.coordinator.consumer_group import ConsumerGroup

__all__ = ["ConsumerOffsets"]


class ConsumerOffsets(ConsumerCalls[RecordT], Lifecycle):
    """The calls of `AIOKafkaConsumer` that concern offsets and have the form of aiokafka's. They return no records."""

    _client: Client

    # Positions…

    async def seek_to_beginning(self, *partitions: TopicPartition) -> bool:
        """Go to the first record of these partitions, or of all; whether the positions are known in time."""
        self._seek_all("seek_to_beginning()", partitions, EARLIEST)
        return await self._placed(partitions)

    async def seek_to_end(self, *partitions: TopicPartition) -> bool:
        """Go behind the last record of these partitions, or of all; whether the positions are known in time."""
        self._seek_all("seek_to_end()", partitions, LATEST)
        return await self._placed(partitions)

    async def _placed(self, partitions: Collection[TopicPartition]) -> bool:
        """Wait for positions, for request_timeout_ms; a partition that a rebalance takes away meanwhile has none."""
        states = {partition: self._subscription.get(partition) for partition in partitions or self.assignment()}
        for partition, state in states.items():
            try:
                if self._subscription.partitions.get(partition) is state:
                    await self.position(partition, self.config["request_timeout_ms"])
            except KafkaTimeoutError:  # noqa: PERF203
                return False
            except IllegalStateError:
                if self._subscription.partitions.get(partition) is state:
                    raise
        return True

    async def seek_to_committed(
        self, *partitions: TopicPartition, timeout_ms: float | None = None
    ) -> dict[TopicPartition, int | None]:
        """Go to the committed offsets of these partitions, or of all; return the offsets, None where there is none.

        A partition that a rebalance takes away meanwhile is left alone.
        """
        self._group()
        wanted = checked_partitions(partitions) or list(self.assignment())
        states = {partition: self._subscription.get(partition) for partition in wanted}
        found = await self.committed(wanted, True, timeout_ms)
        for partition, entry in found.items():
            if entry is not None and self._subscription.partitions.get(partition) is states[partition]:
                self.seek(partition, entry)
        return {partition: None if entry is None else entry.offset for partition, entry in found.items()}

    def last_stable_offset(self, partition: TopicPartition) -> int | None:
        """The first offset that an open transaction may still take back, as of the last fetch; None before the first.

        -1 with isolation_level='read_uncommitted', where brokers do not tell it.
        """
        state = self._subscription.get(checked_partition(partition))
        if self.config["isolation_level"] == "read_uncommitted":
            return None if state.high_watermark is None else -1
        return state.stable_offset

    def last_poll_timestamp(self, partition: TopicPartition) -> int | None:
        """When the last fetch of a partition was answered, in milliseconds since 1970; None before the first."""
        fetched_at = self._subscription.get(checked_partition(partition)).fetched_at
        if fetched_at is None:
            return None
        clock = self._client.environment.clock
        return int((clock.time() - (clock.monotonic() - fetched_at)) * 1000)

    # The group…

    def _to_commit(
        self, offsets: Mapping[TopicPartition, Any] | None
    ) -> dict[TopicPartition, OffsetAndMetadata] | None:
        checked = None if offsets is None else as_offsets(offsets)
        if self._subscription.mode is Mode.NONE and not self._subscription.departing:
            raise IllegalStateError("commit() needs partitions: call subscribe() or assign() first")
        for partition in checked or ():
            self._subscription.get(partition)
        return checked

    def commit_async(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None, callback: OnCommit | None = None
    ) -> asyncio.Future[Any]:
        """Commit without waiting. `callback(offsets, response or error)` is called by the consumer's task."""
        future = self._commit_async(offsets, callback)
        told = as_asyncio(future)
        # A commit whose future no task looks at is not an error of the event loop.
        told.add_done_callback(lambda _: told.cancelled() or told.exception())
        return told

    def _group(self) -> ConsumerGroup:
        self._check_usable()
        if self.config["group_id"] is None:
            raise IllegalOperation("This needs a group: make the consumer with group_id=...")
        return super()._group()

    # Looking offsets and topics up…

    def _lookup_until(self, timeout_ms: float | None) -> float:
        return self._until(self.config["request_timeout_ms"] if timeout_ms is None else timeout_ms)

    def partitions_for_topic(self, topic: str, timeout_ms: float | None = None) -> set[int] | None:  # noqa: ARG002
        """The partitions of a topic as far as it is known: one that is read, or after `topics`. Else None."""
        if self._phase is Phase.NEW:
            return None
        return self._client.cluster.partitions_for_topic(topic)
