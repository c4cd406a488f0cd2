"""The calls of both consumers, `KafkaConsumer` and the one of asyncio: each is written once, with its checks.

A call that waits is an application-side coroutine of `ConsumerCalls`: `KafkaConsumer` has a method that `blocking`
makes of it, `kafka.aio.AIOKafkaConsumer` inherits it. Both inherit the calls that do not wait, `ImmediateCalls`. A
consumer brings `_usable`, which returns the core for a call or says why there is none. A call whose form is
aiokafka's in asyncio is overridden there.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Literal, NoReturn, TypeVar, overload

from kafka._core.status import ClientStatus
from kafka.config import refuse_arguments
from kafka.consumer.arguments import (
    checked_callback,
    checked_limit,
    checked_offsets,
    checked_partition,
    checked_partitions,
    checked_place,
    checked_reason,
    checked_timeout,
    checked_timestamp,
    checked_timestamps,
)
from kafka.consumer.partition_state import EARLIEST, LATEST, Reset
from kafka.consumer.subscription_state import Mode, SubscriptionState
from kafka.errors import IllegalStateError
from kafka.structs import (
    ConsumerGroupMetadata,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    OnCommit,
    SubscriptionPattern,
    TopicPartition,
)

if TYPE_CHECKING:
    from uuid import UUID

    from kafka._core.client import Client
    from kafka.config import Config
    from kafka.consumer.core import ConsumerCore
    from kafka.coordinator.consumer_group import ConsumerGroup
    from kafka.future import Future
    from kafka.metrics import Metrics
    from kafka.protocol.commit import OffsetCommitResponse
    from kafka.record.columns import Columns

__all__ = ["ConsumerCalls", "ImmediateCalls"]

RecordT = TypeVar("RecordT")

# Records that poll_batches returns unless max_records is given: columns pay off by the thousand.
_COLUMN_RECORDS: Final = 65_536
# A timeout up to this that is not of a whole number's type is in seconds, in the mind of its author.
_LIKELY_SECONDS: Final = 10.0


class ImmediateCalls(ClientStatus):
    """The calls that do not wait."""

    config: Config
    _frames: ClassVar[Mapping[str, int]]
    """How far above a warning about an argument the application's frame is, by calls that take records."""
    _subscription: SubscriptionState
    _core: ConsumerCore | None = None
    """Made with `_subscription`, and with the application that waits."""

    # Subscription and assignment…

    def subscribe(
        self, topics: Iterable[str] = (), pattern: object = None, listener: object = None, **unknown: NoReturn
    ) -> None:
        """Read these topics, or the topics whose names match a pattern, in place of the subscription before.

        Without a group_id this consumer reads all of their partitions, also partitions that are added later. A pattern
        is a str or the result of `re.compile`, which the consumer matches from the start of the names; or a
        `SubscriptionPattern`, which the brokers match (``group_protocol='consumer'``). The `listener` is a
        `ConsumerRebalanceListener`; in asyncio its methods may be coroutine functions, which run in the context of this
        call, and a consumer that was not started yet may subscribe.
        """
        if unknown:
            refuse_arguments("subscribe", unknown)
        self._check_may_choose()
        topics = self._checked_topics(topics, pattern)
        if isinstance(pattern, SubscriptionPattern) and (
            self.config["group_id"] is None or self.config["group_protocol"] == "classic"
        ):
            raise IllegalStateError(
                "The group's coordinator matches a SubscriptionPattern, so it needs a group_id and "
                "group_protocol='consumer'. With subscribe(pattern='...') the consumer matches the pattern itself."
            )
        self._subscription.subscribe(topics, pattern, listener)
        if self._core is not None:
            self._core.topics.look_again()
        self._chosen(listener)

    def unsubscribe(self) -> None:
        """Read nothing, neither topics nor partitions that were assigned by hand.

        The consumer commits, if that is automatic, calls the listener's on_partitions_revoked, and leaves its group:
        before this returns, in asyncio in the background. A static member keeps its place until its session ends.
        """
        self._check_may_choose()
        self._depart()

    def _subscribed(self) -> set[str]:
        subscription = self._subscription
        if isinstance(subscription.pattern, SubscriptionPattern):
            return {partition.topic for partition in subscription.assigned()}
        return set(subscription.subscribed_topics)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions. A partition that was assigned before keeps its position."""
        self._check_may_choose()
        self._subscription.assign_by_user(partitions)
        self._chosen()

    def assignment(self) -> set[TopicPartition]:
        """The partitions that are read."""
        return self._subscription.assigned()

    # Positions…

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Continue with this offset."""
        self._usable().subscription.seek(checked_partition(partition), *checked_place(offset))

    def seek_to_timestamp(self, timestamp_ms: int, *partitions: TopicPartition) -> None:
        """Go to the first record at or after a time (in ms) in these partitions, or in all; else to the end.

        IllegalStateError if none are named and none were assigned yet: poll() assigns a subscription's partitions.
        """
        self._seek_all("seek_to_timestamp()", partitions, Reset(checked_timestamp(timestamp_ms)))

    def _seek_all(self, what: str, partitions: Collection[TopicPartition], reset: Reset) -> None:
        subscription = self._usable().subscription
        checked_partitions(partitions)
        if not partitions:
            self._check_assigned(what)
        self._for_all(partitions, lambda partition: subscription.seek_to(partition, reset))

    def _for_all(self, partitions: Collection[TopicPartition], move: Callable[[TopicPartition], None]) -> None:
        for partition in partitions or tuple(self._subscription.partitions):
            move(partition)

    def _check_assigned(self, what: str) -> None:
        """Raise IllegalStateError if no partitions were assigned since the last subscribe()."""
        subscription = self._subscription
        if subscription.partitions or subscription.had_assignment:
            return
        if subscription.mode is Mode.NONE:
            raise IllegalStateError(f"{what} has no partitions to move: call subscribe() or assign() first")
        raise IllegalStateError(
            f"{what} has no partitions to move: a subscription gets its partitions within poll(). Call it in "
            "on_partitions_assigned() of a ConsumerRebalanceListener, or once assignment() is not empty. (Without a "
            "committed offset auto_offset_reset decides where a partition starts.)"
        )

    def pause(self, *partitions: TopicPartition) -> None:
        """Return no records of these partitions until `resume`; buffered records are kept."""
        subscription = self._usable().subscription
        for partition in checked_partitions(partitions):
            subscription.pause(partition)

    def resume(self, *partitions: TopicPartition) -> None:
        """Return records of these partitions again."""
        subscription = self._usable().subscription
        for partition in checked_partitions(partitions):
            subscription.resume(partition)

    def paused(self) -> set[TopicPartition]:
        """The partitions that are paused."""
        return self._subscription.paused()

    def highwater(self, partition: TopicPartition) -> int | None:
        """The offset that the next record written to a partition gets, as of the last fetch; None before the first."""
        return self._subscription.get(partition).high_watermark

    def current_lag(self, partition: TopicPartition) -> int | None:
        """How many offsets the position is behind the end, as of the last fetch; None before the first.

        With isolation_level='read_committed' the end is the first record of a transaction that is still open.
        """
        committed_only = self.config["isolation_level"] == "read_committed"
        return self._subscription.get(partition).lag(committed_only=committed_only)

    # The group…

    def _commit_async(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None, callback: OnCommit | None = None
    ) -> Future[OffsetCommitResponse | None]:
        offsets_of_group = self._group().offsets
        chosen = self.config["default_offset_commit_callback"] if callback is None else checked_callback(callback)
        return offsets_of_group.commit_async(None if offsets is None else checked_offsets(offsets), chosen)

    def group_metadata(self) -> ConsumerGroupMetadata:
        """The identity of this member, for `send_offsets_to_transaction()` of a producer.

        In asyncio, where the group may rebalance at any time, it is the one of the last call that returned records, or
        of the listener that calls this. If the group has rebalanced since, a transaction with the offsets of these
        records fails, and can be aborted: another member may read them. In a thread the group rebalances in poll():
        take it before the next one.
        """
        return self._identity(self._group())

    def enforce_rebalance(self, reason: str = "the application asked for it") -> None:
        """Ask the group to rebalance; that happens in the polls to come."""
        self._group().membership.request_rejoin(checked_reason(reason))

    # Health and metrics…

    def wakeup(self) -> None:
        """End the present or the next call that takes records (`poll`, an iteration) with WakeupError. From any thread.

        Other calls, `position` and `commit` for instance, take their time; Java's client ends these too.
        """
        if self._core is not None:
            self._core.wakeup()

    def health(self) -> dict[str, Any]:
        """Return the state of this consumer for people, probes and dashboards; `json.dumps` takes it. From any thread.

        It has the form of all clients (``docs/operations.rst``). ``partitions`` has each assigned partition with its
        position and the problem that keeps records from coming, ``group`` the member's state and what it waits for.
        """
        core = self._core
        return self._health_without_core() if core is None else core.health()

    def _health_without_core(self) -> dict[str, Any]:
        raise NotImplementedError

    def _connections(self) -> Client | None:
        return None if self._core is None else self._core.client

    def _measured(self) -> Metrics | None:
        return None if self._core is None else self._core.metrics

    # For the consumers…

    def _check_may_choose(self) -> None:
        """Raise where the application may not choose what to read."""
        self._usable()

    def _checked_topics(self, topics: Iterable[str], pattern: object) -> Iterable[str]:  # noqa: ARG002
        return topics

    def _chosen(self, listener: object = None) -> None:
        """Called when the application has chosen what to read."""

    def _depart(self) -> None:
        """Read nothing, and leave the group."""
        raise NotImplementedError

    def _to_commit(
        self, offsets: Mapping[TopicPartition, Any] | None
    ) -> dict[TopicPartition, OffsetAndMetadata] | None:
        return None if offsets is None else checked_offsets(offsets)

    def _identity(self, group: ConsumerGroup) -> ConsumerGroupMetadata:
        return group.metadata()

    def _usable(self, taking: str = "") -> ConsumerCore:
        """Return the core for a call; `taking` is the name of one that takes records."""
        raise NotImplementedError

    def _group(self) -> ConsumerGroup:
        """Return the group for a call that needs one."""
        return self._usable().check_group()

    def _until(self, timeout_ms: float | None) -> float:
        """Return the deadline of a call with this timeout; with None, default_api_timeout_ms from now."""
        chosen = self.config["default_api_timeout_ms"] if timeout_ms is None else timeout_ms
        return self._usable().deadline(checked_timeout(chosen))

    def _lookup_until(self, timeout_ms: float | None) -> float:
        """Return the deadline of a call that looks offsets up."""
        return self._until(timeout_ms)

    def _taking(self, what: str, timeout_ms: float) -> tuple[ConsumerCore, float]:
        """Return the core for a call that takes records, and the deadline."""
        core = self._usable(what)
        if type(timeout_ms) is float and 0 < timeout_ms <= _LIKELY_SECONDS:
            warnings.warn(
                f"{what}({timeout_ms}) waits for {timeout_ms:g} milliseconds: timeouts of a {type(self).__name__} are "
                f"in milliseconds, as in {what}({timeout_ms * 1000:.0f}) for {timeout_ms:g} seconds",
                stacklevel=self._frames[what],
            )
        return core, core.loop.time() + checked_timeout(timeout_ms)

    async def _edge(
        self, partitions: Iterable[TopicPartition], place: Reset, timeout_ms: float | None
    ) -> dict[TopicPartition, int]:
        wanted = dict.fromkeys(checked_partitions(partitions), place.timestamp)
        found = await self._usable().find_offsets(wanted, self._lookup_until(timeout_ms))
        return {partition: 0 if offset is None else offset.offset for partition, offset in found.items()}


class ConsumerCalls(ImmediateCalls, Generic[RecordT]):
    """The calls that wait. `KafkaConsumer` passes itself to them: they use what `ImmediateCalls` has, no more."""

    async def poll(
        self,
        /,
        timeout_ms: float = 0,
        max_records: int | None = None,
        update_offsets: bool = True,
        **unknown: NoReturn,
    ) -> dict[TopicPartition, list[RecordT]]:
        """Return records by partition, `max_records` (max_poll_records) in all at most.

        Waits for `timeout_ms` if there are none. With ``update_offsets=False`` the positions stay, and the same
        records come again.
        """
        if unknown:
            refuse_arguments("poll", unknown)
        core, deadline = self._taking("poll", timeout_ms)
        limit = self.config["max_poll_records"] if max_records is None else checked_limit(max_records)
        # Nothing is called after it, not even `cast`: where a function begins Ctrl-C may come, and lose these records.
        found: Any = await core.poll(core.take if update_offsets else core.peek, limit, deadline, {})
        return found  # type: ignore[no-any-return]

    async def poll_batches(
        self, timeout_ms: float = 0, max_records: int | None = None
    ) -> dict[TopicPartition, Columns]:
        """Return records as columns, for programs that take them by the thousand and need no object for each.

        Batches are returned whole, so there may be more records than `max_records` (65,536) by one batch.
        Keys and values are bytes; deserializers are not applied. ``columns.to_arrow()`` gives a
        ``pyarrow.RecordBatch``. An interceptor cannot see columns: IllegalStateError with one that has on_consume().
        """
        core, deadline = self._taking("poll_batches", timeout_ms)
        if core.interceptors is not None and core.interceptors.has("on_consume"):
            raise IllegalStateError(
                "poll_batches() returns columns, which on_consume() of this consumer's interceptors cannot see: use "
                "poll(), or make a consumer without them"
            )
        at_least = _COLUMN_RECORDS if max_records is None else checked_limit(max_records)
        return await core.poll(core.take_columns, at_least, deadline, {})

    # Positions…

    async def position(self, partition: TopicPartition, timeout_ms: float | None = None) -> int:
        """The offset of the next record of a partition; waits until it is known."""
        return await self._usable().position(checked_partition(partition), self._until(timeout_ms))

    # The group…

    async def commit(
        self,
        /,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int | tuple[int, str]] | None = None,
        timeout_ms: float | None = None,
        **unknown: NoReturn,
    ) -> None:
        """Commit offsets, by default behind all returned records, and wait until the broker has stored them.

        An offset may be a number, or a number and a text, instead of an `OffsetAndMetadata`.
        CommitFailedError, once, if a rebalance took partitions away before their offsets were stored: their records
        come again, here or to another member. The error names the partitions and the cause. If the wait is cancelled
        the commit continues.
        """
        if unknown:
            refuse_arguments("commit", unknown)
        self._group()
        await self._usable().commit(self._to_commit(offsets), self._until(timeout_ms))

    @overload
    async def committed(
        self, partition: TopicPartition, metadata: Literal[False] = False, timeout_ms: float | None = None
    ) -> int | None: ...
    @overload
    async def committed(
        self, partition: TopicPartition, metadata: Literal[True], timeout_ms: float | None = None
    ) -> OffsetAndMetadata | None: ...
    @overload
    async def committed(
        self, partition: Collection[TopicPartition], metadata: bool = False, timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]: ...
    async def committed(
        self,
        partition: TopicPartition | Collection[TopicPartition],
        metadata: bool = False,
        timeout_ms: float | None = None,
    ) -> Any:
        """The committed offset of a partition, or None; with ``metadata=True`` as OffsetAndMetadata.

        For a collection of partitions a dictionary of OffsetAndMetadata or None.
        """
        self._group()
        one = isinstance(partition, TopicPartition)
        asked = checked_partitions([partition] if isinstance(partition, TopicPartition) else partition, "partition")
        found = await self._usable().committed(asked, self._until(timeout_ms))
        if not one:
            return {entry: found.get(entry) for entry in asked}
        offset = found.get(asked[0])
        return offset if metadata or offset is None else offset.offset

    # Looking offsets and topics up…

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first offsets of partitions, assigned or not."""
        return await self._edge(partitions, EARLIEST, timeout_ms)

    async def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offsets that the next records of partitions get; with read_committed the last stable offsets."""
        return await self._edge(partitions, LATEST, timeout_ms)

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after a time (in ms) in each partition; None where all are earlier."""
        wanted = checked_timestamps(timestamps)
        return dict(await self._usable().find_offsets(wanted, self._lookup_until(timeout_ms)))

    async def client_instance_id(self, timeout_ms: float | None = None) -> UUID:
        """Return the id that brokers know this client by in its metrics (KIP-714), the same for its life.

        UnsupportedVersionError if no broker has a plugin that takes metrics.
        """
        from kafka._core.telemetry import client_instance_id

        core, deadline = self._usable(), self._until(timeout_ms)
        return await core.run(client_instance_id(core.client.telemetry, deadline), deadline, "client_instance_id()")

    async def topics(self, timeout_ms: float | None = None) -> set[str]:
        """All topics of the cluster that this client may see."""
        return await self._usable().list_topics(self._until(timeout_ms))

    async def bootstrap(self, timeout_ms: float | None = None, refresh: bool = False) -> None:
        """Know the cluster, as the consumer does once it is made; with `refresh` ask for its metadata again, and wait.

        >>> from kafka import KafkaConsumer
        >>> from kafka.broker import Broker
        >>> with Broker() as broker, KafkaConsumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
        ...     consumer.bootstrap(timeout_ms=5000, refresh=True)
        """
        core = self._usable()
        if refresh:
            await core.refresh_metadata(self._until(timeout_ms))
