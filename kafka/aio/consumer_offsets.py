"""Offsets of an asyncio consumer: positions, commits, and what the cluster says about the offsets of partitions."""

# ruff: noqa: SLF001 - a consumer, its face and its engine are one thing in some modules

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from kafka._core.client import Client
from kafka._runtime.asyncio_driver import as_asyncio
from kafka.aio.arguments import as_offsets
from kafka.aio.consumer_engine import AIOEngine
from kafka.aio.lifecycle import Lifecycle, Phase
from kafka.config import Config
from kafka.consumer.arguments import checked_partition, checked_partitions
from kafka.consumer.face import ConsumerFace
from kafka.consumer.subscription_state import Mode, SubscriptionState
from kafka.errors import IllegalOperation, IllegalStateError, KafkaTimeoutError
from kafka.structs import (
    OffsetAndMetadata,
    OffsetAndTimestamp,
    OnCommit,
    TopicPartition,
)

__all__ = ["ConsumerOffsets", "SharedCalls"]


class SharedCalls(ConsumerFace):
    """The checks and the calls that both consumers share, for a configuration that was made elsewhere."""

    def __init__(self, config: Config) -> None:
        self._engine: AIOEngine | None = None
        self.config = config
        self._subscription = SubscriptionState()
        self._iteration_timeout = float("inf")


class ConsumerOffsets(Lifecycle):
    """The calls of `AIOKafkaConsumer` that concern offsets. They return no records."""

    config: Config
    _face: SharedCalls
    _subscription: SubscriptionState
    _core: Client

    def assignment(self) -> set[TopicPartition]:
        """The partitions that are read."""
        return self._face.assignment()

    # Positions…

    async def position(self, partition: TopicPartition, timeout_ms: float | None = None) -> int:
        """The offset of the next record of a partition; waits until it is known."""
        self._check_usable()
        return await self._face._position(partition, timeout_ms)

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Continue with this offset; records that were fetched ahead are dropped."""
        self._check_usable()
        if isinstance(offset, int) and offset < 0:
            raise ValueError(f"offset must not be negative: {offset}")
        try:
            self._face.seek(partition, offset)
        except TypeError as error:
            if isinstance(partition, TopicPartition):
                raise ValueError(str(error)) from None
            raise

    async def seek_to_beginning(self, *partitions: TopicPartition) -> bool:
        """Go to the first record of these partitions, or of all; whether the positions are known in time."""
        self._check_usable()
        self._face.seek_to_beginning(*partitions)
        return await self._placed(partitions)

    async def seek_to_end(self, *partitions: TopicPartition) -> bool:
        """Go behind the last record of these partitions, or of all; whether the positions are known in time."""
        self._check_usable()
        self._face.seek_to_end(*partitions)
        return await self._placed(partitions)

    async def _placed(self, partitions: Collection[TopicPartition]) -> bool:
        """Wait for positions, for request_timeout_ms; a partition that a rebalance takes away meanwhile has none."""
        states = {partition: self._subscription.get(partition) for partition in partitions or self.assignment()}
        for partition, state in states.items():
            try:
                if self._subscription.partitions.get(partition) is state:
                    await self._face._position(partition, self.config["request_timeout_ms"])
            except KafkaTimeoutError:  # noqa: PERF203
                return False
            except IllegalStateError:
                if self._subscription.partitions.get(partition) is state:
                    raise
        return True

    def seek_to_timestamp(self, timestamp_ms: int, *partitions: TopicPartition) -> None:
        """Go to the first record at or after a time (in ms) in these partitions, or in all; else to the end."""
        self._check_usable()
        self._face.seek_to_timestamp(timestamp_ms, *partitions)

    async def seek_to_committed(
        self, *partitions: TopicPartition, timeout_ms: float | None = None
    ) -> dict[TopicPartition, int | None]:
        """Go to the committed offsets of these partitions, or of all; return the offsets, None where there is none.

        A partition that a rebalance takes away meanwhile is left alone.
        """
        self._check_group("seek_to_committed()")
        wanted = checked_partitions(partitions) or list(self.assignment())
        states = {partition: self._subscription.get(partition) for partition in wanted}
        found = await self._face._committed(wanted, True, timeout_ms)
        offsets = {partition: None if entry is None else entry.offset for partition, entry in found.items()}
        for partition, offset in offsets.items():
            if offset is not None and self._subscription.partitions.get(partition) is states[partition]:
                self._face.seek(partition, found[partition])
        return offsets

    def pause(self, *partitions: TopicPartition) -> None:
        """Return no records of these partitions until `resume`; fetched records are kept."""
        self._check_usable()
        self._face.pause(*partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        """Return records of these partitions again."""
        self._check_usable()
        self._face.resume(*partitions)

    def paused(self) -> set[TopicPartition]:
        """The partitions that are paused."""
        return self._face.paused()

    def highwater(self, partition: TopicPartition) -> int | None:
        """The offset that the next record written to a partition gets, as of the last fetch; None before the first."""
        return self._face.highwater(partition)

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
        clock = self._core.environment.clock
        return int((clock.time() - (clock.monotonic() - fetched_at)) * 1000)

    def current_lag(self, partition: TopicPartition) -> int | None:
        """How many offsets the position is behind the end, as of the last fetch; None before the first."""
        return self._face.current_lag(partition)

    # The group…

    async def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int | tuple[int, str]] | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Commit offsets, by default of all that was returned, and wait until the broker has stored them.

        CommitFailedError, once, if a rebalance took partitions away before their offsets were stored: their records
        come again, here or to another member. The error names the partitions and the cause. Cancelled, the commit
        continues.
        """
        self._check_group("commit()")
        checked = None if offsets is None else as_offsets(offsets)
        if self._subscription.mode is Mode.NONE and not self._subscription.departing:
            raise IllegalStateError("commit() needs partitions: call subscribe() or assign() first")
        for partition in checked or ():
            self._subscription.get(partition)
        await self._face._commit(checked, timeout_ms)

    def commit_async(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None, callback: OnCommit | None = None
    ) -> asyncio.Future[Any]:
        """Commit without waiting. `callback(offsets, response or error)` is called by the consumer's task."""
        self._check_group("commit_async()")
        future = self._face.commit_async(offsets, callback)
        told = as_asyncio(future)
        # A commit whose future no task looks at is not an error of the event loop.
        told.add_done_callback(lambda _: told.cancelled() or told.exception())
        return told

    async def committed(
        self,
        partition: TopicPartition | Collection[TopicPartition],
        metadata: bool = False,
        timeout_ms: float | None = None,
    ) -> Any:
        """The committed offset of a partition, or None; with ``metadata=True`` as OffsetAndMetadata.

        For a collection of partitions a dictionary of OffsetAndMetadata or None.
        """
        self._check_group("committed()")
        return await self._face._committed(partition, metadata, timeout_ms)

    def enforce_rebalance(self, reason: str = "the application asked for it") -> None:
        """Ask the group to rebalance."""
        self._check_group("enforce_rebalance()")
        self._face.enforce_rebalance(reason)

    def _check_group(self, what: str) -> None:
        self._check_usable()
        if self.config["group_id"] is None:
            raise IllegalOperation(f"{what} needs a group: make the consumer with group_id=...")

    # Looking offsets and topics up…

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first offsets of partitions, assigned or not."""
        self._check_usable()
        return await self._face._beginning_offsets(partitions, self._lookup_timeout(timeout_ms))

    async def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offsets that the next records of partitions get; with read_committed the first not decided yet."""
        self._check_usable()
        return await self._face._end_offsets(partitions, self._lookup_timeout(timeout_ms))

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after a time (in ms) in each partition; None where none is so late."""
        self._check_usable()
        return await self._face._offsets_for_times(timestamps, self._lookup_timeout(timeout_ms))

    def _lookup_timeout(self, timeout_ms: float | None) -> float:
        return float(self.config["request_timeout_ms"]) if timeout_ms is None else timeout_ms

    async def topics(self, timeout_ms: float | None = None) -> set[str]:
        """All topics of the cluster that this client may see."""
        self._check_usable()
        return await self._face._topics(timeout_ms)

    def partitions_for_topic(self, topic: str, timeout_ms: float | None = None) -> set[int] | None:  # noqa: ARG002
        """The partitions of a topic as far as it is known: one that is read, or after `topics`. Else None."""
        if self._phase is Phase.NEW:
            return None
        return self._core.cluster.partitions_for_topic(topic)
