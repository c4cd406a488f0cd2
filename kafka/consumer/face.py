"""The base of the synchronous consumer and of the one for asyncio: arguments, units, and all calls that do not wait.

A public call that waits is an application-side coroutine here, under its name with an underscore: `KafkaConsumer` runs
it to its end in the calling thread, `kafka.aio` awaits it. So both check their arguments, and fail, in the same way.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

from kafka.config import defaults, resolve
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
    hint_for_attribute,
)
from kafka.consumer.partition_state import EARLIEST, LATEST, Reset
from kafka.consumer.subscription_state import Mode, SubscriptionState
from kafka.errors import ClientClosedError, IllegalStateError
from kafka.structs import (
    ConsumerGroupMetadata,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    OnCommit,
    SubscriptionPattern,
    TopicPartition,
    check_topic,
)

if TYPE_CHECKING:
    from kafka.consumer.engine import Engine
    from kafka.future import Future
    from kafka.protocol.commit import OffsetCommitResponse

__all__ = ["ConsumerFace"]

_FOREVER: Final = math.inf
# A timeout up to this that is not of a whole number's type is in seconds, in the mind of its author.
_LIKELY_SECONDS: Final = 10.0
# Records that poll_batches returns unless max_records is given: columns pay off by the thousand.
_COLUMN_RECORDS: Final = 65_536


class ConsumerFace:
    """A consumer's public calls, as far as they do not depend on how the application waits.

    A face sets `_engine` to an `Engine` that it made with `_subscription` and the application to wait with.
    """

    DEFAULT_CONFIG: ClassVar[dict[str, Any]] = defaults("consumer")

    def __init__(self, topics: Collection[str], configs: Mapping[str, Any]) -> None:
        self._engine: Engine | None = None
        for topic in topics:
            if isinstance(topic, (Mapping, list, tuple, set, frozenset)):
                raise TypeError(
                    f"KafkaConsumer() takes names of topics and options by name, not {type(topic).__name__}: "
                    "KafkaConsumer('events', 'orders', bootstrap_servers='localhost:9092', group_id='readers')"
                )
        self.config = resolve("consumer", dict(configs), self.DEFAULT_CONFIG)
        self._subscription = SubscriptionState()
        timeout = self.config["consumer_timeout_ms"]
        self._iteration_timeout = _FOREVER if timeout < 0 or timeout == math.inf else timeout / 1000

    # Subscription and assignment…

    def subscribe(self, topics: Iterable[str] = (), pattern: object = None, listener: object = None) -> None:
        """Read these topics, or the topics whose names match a pattern, in place of the subscription before.

        Without a group_id this consumer reads all of their partitions, also partitions that are added later. A pattern
        is a str or the result of `re.compile`, which the consumer matches from the start of the names; or a
        `SubscriptionPattern`, which the brokers match (``group_protocol='consumer'``).
        """
        engine = self._open()
        if isinstance(pattern, SubscriptionPattern) and (
            self.config["group_id"] is None or self.config["group_protocol"] == "classic"
        ):
            raise IllegalStateError(
                "The group's coordinator matches a SubscriptionPattern, so it needs a group_id and "
                "group_protocol='consumer'. With subscribe(pattern='...') the consumer matches the pattern itself."
            )
        engine.subscription.subscribe(topics, pattern, listener)
        engine.look_again()

    async def _unsubscribe(self) -> None:
        await self._open().unsubscribe()

    def subscription(self) -> set[str] | None:
        """The topics subscribed to; with a pattern the topics that it matches now. None if there are none.

        Only the brokers know the topics that a SubscriptionPattern matches: then the topics of `assignment`.
        """
        subscription = self._subscription
        if isinstance(subscription.pattern, SubscriptionPattern):
            return {partition.topic for partition in subscription.assigned()} or None
        return set(subscription.subscribed_topics) or None

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions. A partition that was assigned before keeps its position."""
        self._open().subscription.assign_by_user(partitions)

    def assignment(self) -> set[TopicPartition]:
        """The partitions that are read."""
        return self._subscription.assigned()

    # Positions…

    async def _position(self, partition: TopicPartition, timeout_ms: float | None) -> int:
        return await self._open().position(checked_partition(partition), self._deadline(timeout_ms))

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Continue with this offset."""
        self._open().subscription.seek(checked_partition(partition), *checked_place(offset))

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Go to the first record of these partitions, or of all; looked up when it is needed.

        IllegalStateError if none are named and none were assigned yet: poll() assigns a subscription's partitions.
        """
        self._seek_all("seek_to_beginning()", partitions, EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Go to the end, behind the last record of these partitions, or of all; looked up when it is needed.

        IllegalStateError if none are named and none were assigned yet: poll() assigns a subscription's partitions.
        """
        self._seek_all("seek_to_end()", partitions, LATEST)

    def seek_to_timestamp(self, timestamp_ms: int, *partitions: TopicPartition) -> None:
        """Go to the first record at or after a time (in ms) in these partitions, or in all; else to the end.

        IllegalStateError if none are named and none were assigned yet: poll() assigns a subscription's partitions.
        """
        self._seek_all("seek_to_timestamp()", partitions, Reset(checked_timestamp(timestamp_ms)))

    def _seek_all(self, what: str, partitions: Collection[TopicPartition], reset: Reset) -> None:
        subscription = self._open().subscription
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
        for partition in checked_partitions(partitions):
            self._open().subscription.pause(partition)

    def resume(self, *partitions: TopicPartition) -> None:
        """Return records of these partitions again."""
        for partition in checked_partitions(partitions):
            self._open().subscription.resume(partition)

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
        state = self._subscription.get(partition)
        committed_only = self.config["isolation_level"] == "read_committed"
        end = state.stable_offset if committed_only and state.stable_offset is not None else state.high_watermark
        if end is None or state.cursor.position is None:
            return None
        return max(0, end - state.cursor.position)

    # The group…

    async def _commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None, timeout_ms: float | None
    ) -> None:
        engine = self._open()
        engine.check_group()
        await engine.commit(None if offsets is None else checked_offsets(offsets), self._deadline(timeout_ms))

    def commit_async(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None, callback: OnCommit | None = None
    ) -> Future[OffsetCommitResponse | None]:
        """Commit without waiting. `callback(offsets, response or error)` is called from a later poll or close."""
        membership = self._open().check_group()
        chosen = self.config["default_offset_commit_callback"] if callback is None else checked_callback(callback)
        return membership.commit_async(None if offsets is None else checked_offsets(offsets), chosen)

    async def _committed(
        self, partition: TopicPartition | Collection[TopicPartition], metadata: bool, timeout_ms: float | None
    ) -> Any:
        engine = self._open()
        engine.check_group()
        one = isinstance(partition, TopicPartition)
        asked = checked_partitions([partition] if isinstance(partition, TopicPartition) else partition, "partition")
        found = await engine.committed(asked, self._deadline(timeout_ms))
        if not one:
            return {entry: found.get(entry) for entry in asked}
        offset = found.get(asked[0])
        return offset if metadata or offset is None else offset.offset

    def seek_to_committed(self, *partitions: TopicPartition) -> None:
        """Go to the committed offsets of these partitions, or of all; without one auto_offset_reset decides.

        Partitions that are not assigned yet start there anyway.
        """
        engine = self._open()
        engine.check_group()
        checked_partitions(partitions)
        self._for_all(partitions, engine.subscription.seek_to_committed)

    def group_metadata(self) -> ConsumerGroupMetadata:
        """The identity of this member, for `KafkaProducer.send_offsets_to_transaction`."""
        return self._open().check_group().group_metadata()

    def enforce_rebalance(self, reason: str = "the application asked for it") -> None:
        """Ask the group to rebalance; that happens in the polls to come."""
        self._open().check_group().request_rejoin(checked_reason(reason))

    # Looking offsets up…

    async def _beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None
    ) -> dict[TopicPartition, int]:
        return await self._edge(partitions, EARLIEST, timeout_ms)

    async def _end_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None
    ) -> dict[TopicPartition, int]:
        return await self._edge(partitions, LATEST, timeout_ms)

    async def _edge(
        self, partitions: Iterable[TopicPartition], place: Reset, timeout_ms: float | None
    ) -> dict[TopicPartition, int]:
        wanted = dict.fromkeys(checked_partitions(partitions), place.timestamp)
        found = await self._open().find_offsets(wanted, self._deadline(timeout_ms))
        return {partition: 0 if offset is None else offset.offset for partition, offset in found.items()}

    async def _offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: float | None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        wanted = checked_timestamps(timestamps)
        return dict(await self._open().find_offsets(wanted, self._deadline(timeout_ms)))

    # Topics…

    async def _topics(self, timeout_ms: float | None) -> set[str]:
        return await self._open().topics(self._deadline(timeout_ms))

    async def _partitions_for_topic(self, topic: str, timeout_ms: float | None) -> set[int] | None:
        check_topic(topic)
        return await self._open().partitions_for_topic(topic, self._deadline(timeout_ms))

    # Health and metrics…

    async def _bootstrap(self, timeout_ms: float | None, refresh: bool) -> None:
        engine = self._open()
        if refresh:
            await engine.refresh_metadata(self._deadline(timeout_ms))

    def bootstrap_connected(self) -> bool:
        """Whether there is a connection to a broker."""
        return any(link.ready for link in self._open_for_any_thread().client.links())

    def metrics(self, raw: bool = False) -> Any:
        """The metrics: names and values by group, or with `raw` the metrics themselves; None if they are off."""
        metrics = self._open_for_any_thread().metrics
        if metrics is None:
            return None
        return dict(metrics.metrics) if raw else dict(metrics.snapshot())

    def health(self) -> dict[str, Any]:
        """Return the state of this consumer for people, probes and dashboards; `json.dumps` takes it.

        It has the form of all clients (``docs/operations.rst``). ``partitions`` has each assigned partition with its
        position and the problem that keeps records from coming, ``group`` the member's state and what it waits for.
        """
        if self._engine is None:
            raise ClientClosedError("KafkaConsumer() raised an error, so this consumer cannot be used.")
        return self._engine.health()

    def wakeup(self) -> None:
        """End the present or the next call that takes records (`poll`, an iteration) with WakeupError. From any thread.

        Other calls, `position` and `commit` for instance, take their time; Java's client ends these too.
        """
        if self._engine is not None:
            self._engine.wakeup()

    # Closing…

    async def _close(self, autocommit: bool, timeout_ms: float | None) -> None:
        engine = self._engine
        if engine is not None:
            await engine.close(None if timeout_ms is None else self._seconds(timeout_ms), commit=autocommit)

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} cannot be copied or pickled: make one in each process that needs one")

    if not TYPE_CHECKING:  # type checkers would accept every name

        def __getattr__(self, name: str) -> NoReturn:
            hint = "" if name.startswith("_") else hint_for_attribute(name, dir(type(self)))
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}", name=name, obj=self)

    def __repr__(self) -> str:
        closed = " closed" if self._engine is None or self._engine.closed else ""
        names = f"client_id={self.config['client_id']!r} group_id={self.config['group_id']!r}"
        return f"<{type(self).__name__} {names}{closed}>"

    # Arguments…

    def _open(self) -> Engine:
        """Return the engine for a call; a face may add a check of the calling thread."""
        return self._open_for_any_thread()

    def _open_for_any_thread(self) -> Engine:
        engine = self._engine
        if engine is None or engine.closed:
            raise ClientClosedError("This consumer is closed.")
        if engine.loop.forked:  # the records that were fetched before belong to the parent
            engine.loop.check_usable()
        return engine

    def _seconds(self, timeout_ms: float | None) -> float:
        return checked_timeout(self.config["default_api_timeout_ms"] if timeout_ms is None else timeout_ms)

    def _deadline(self, timeout_ms: float | None) -> float:
        return self._open().deadline(self._seconds(timeout_ms))

    @staticmethod
    def _poll_deadline(engine: Engine, timeout_ms: float, stacklevel: int = 3) -> float:
        if type(timeout_ms) is float and 0 < timeout_ms <= _LIKELY_SECONDS:
            warnings.warn(
                f"poll({timeout_ms}) waits for {timeout_ms:g} milliseconds: timeouts of a KafkaConsumer are in "
                f"milliseconds, as in poll({timeout_ms * 1000:.0f}) for {timeout_ms:g} seconds",
                stacklevel=stacklevel,
            )
        return engine.deadline(checked_timeout(timeout_ms))

    def _limit(self, max_records: int | None) -> int:
        if max_records is None:
            return int(self.config["max_poll_records"])
        return checked_limit(max_records)

    def _column_limit(self, engine: Engine, max_records: int | None) -> int:
        """Return how many records poll_batches() should return."""
        if engine.interceptors is not None and engine.interceptors.has("on_consume"):
            raise IllegalStateError(
                "poll_batches() returns columns, which on_consume() of this consumer's interceptors cannot see: use "
                "poll(), or make a consumer without them"
            )
        return _COLUMN_RECORDS if max_records is None else self._limit(max_records)
