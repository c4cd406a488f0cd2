"""The state of a consumer: its subscription, its assignment, and the positions; the rebalance listener.

The faces, the fetcher and the group share it. Only the application's thread or task changes the subscription and the
assignment, for the group too: it applies a rebalance inside `poll()`, between the calls of the listener. The loop
reads; the mapping of partitions is replaced as a whole and never changed, so iterating it is safe
(`kafka.consumer.partition_state` has the other rules).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from kafka._historic import historic_names
from kafka.consumer.arguments import (
    checked_listener,
    checked_partition,
    checked_partitions,
    checked_pattern,
    checked_topics,
)
from kafka.consumer.partition_state import EARLIEST, LATEST, AssignedPartition, Chunk, Cursor, Reset
from kafka.errors import IllegalArgumentError, IllegalStateError
from kafka.structs import OffsetAndMetadata, SubscriptionPattern, TopicPartition

if TYPE_CHECKING:
    from uuid import UUID

__all__ = [
    "AsyncConsumerRebalanceListener",
    "ConsumerRebalanceListener",
    "Mode",
    "SubscriptionState",
    "SubscriptionType",
    "TopicPartitionState",
]


class Mode(Enum):
    """How the partitions came to be assigned."""

    NONE = "nothing"
    TOPICS = "topics"
    PATTERN = "a pattern"
    MANUAL = "partitions assigned by hand"
    # The names of kafka-python.
    AUTO_TOPICS = TOPICS
    AUTO_PATTERN = PATTERN
    USER_ASSIGNED = MANUAL


@historic_names("kafka.legacy.subscription_calls:SubscriptionCalls")
class SubscriptionState:
    """The subscription, the assignment and the positions of one consumer.

    >>> state = SubscriptionState()
    >>> state.subscribe(["events"])
    >>> state.subscribed_topics
    frozenset({'events'})
    >>> state.assign_from_group([TopicPartition("events", 0)])
    >>> state.seek(TopicPartition("events", 0), 5)
    >>> state.consumed()
    {TopicPartition(topic='events', partition=0): OffsetAndMetadata(offset=5, metadata='', leader_epoch=-1)}
    """

    #: What `need_offset_reset` takes.
    resets: ClassVar[Mapping[object, Reset]] = {"latest": LATEST, "earliest": EARLIEST, -1: LATEST, -2: EARLIEST}

    def __init__(self, offset_reset_strategy: str = "earliest") -> None:
        self.offset_reset_strategy = offset_reset_strategy  # historic; the consumer's option decides
        self.mode = Mode.NONE
        self.pattern: re.Pattern[str] | SubscriptionPattern | None = None
        """A compiled pattern, or a SubscriptionPattern for the broker to match."""
        self.listener: Any = None
        """The application's ConsumerRebalanceListener, or None."""
        self.partitions: Mapping[TopicPartition, AssignedPartition] = {}
        """The assignment. A new mapping with every change."""
        self.departing: Mapping[TopicPartition, AssignedPartition] = {}
        """The partitions of a subscription that has ended, until its listener was called for them."""
        self.departing_listener: Any = None
        self.had_assignment = False
        """Whether partitions, maybe none, came from the group, or without one from the cluster, since `subscribe`."""
        self.subscription_version = 0
        """Counts changes of the subscription: a member rejoins when it differs from the one that it joined with."""
        self.on_change: Callable[[], object] = lambda: None
        """Called in the application's thread after any change that the fetcher may have to act on."""
        self.on_change_of: Callable[[AssignedPartition], object] = lambda _state: None
        """Called in place of it if the change is of one partition."""
        self.on_ready: Callable[[AssignedPartition], object] = lambda _state: None
        """Called in the application's thread when a partition may have records to take again."""
        self.topic_ids: Callable[[], Mapping[str, UUID]] = dict
        """Returns the ids of topics, by the client's metadata."""
        self.chunk: Chunk | None = None
        """The records that an iteration is returning."""
        # The position of each partition that was taken away before a commit of it was answered. The application adds,
        # the loop removes.
        self._unstored: dict[TopicPartition, int] = {}
        self._topics: frozenset[str] = frozenset()
        self._group_topics: frozenset[str] = frozenset()

    # The subscription…

    @property
    def subscribed_topics(self) -> frozenset[str]:
        """The topics subscribed to; with a pattern the topics that it matches now."""
        return self._topics

    @property
    def wanted_topics(self) -> frozenset[str]:
        """The topics to request metadata of: its own topics and, for a group's leader, the topics of all members."""
        if self.mode is Mode.MANUAL:
            return frozenset(partition.topic for partition in self.partitions)
        return self._topics | self._group_topics

    @property
    def metadata_key(self) -> tuple[object, ...]:
        """The values that decide which metadata is requested; equal keys mean the same metadata."""
        return self.mode, self.pattern, self._topics, self._group_topics, self.partitions

    @property
    def is_automatic(self) -> bool:
        """Whether partitions are assigned by the group (or, without a group, all of the topics)."""
        return self.mode is Mode.TOPICS or self.mode is Mode.PATTERN

    def subscribe(self, topics: Iterable[str] = (), pattern: object = None, listener: object = None) -> None:
        """Subscribe to topics, or to the topics that a pattern matches, in place of the subscription before."""
        if self.mode is Mode.MANUAL:
            raise IllegalStateError("Partitions are assigned by hand; call unsubscribe() before subscribe()")
        topics = checked_topics(topics)
        if bool(topics) == (pattern is not None):
            raise IllegalArgumentError("subscribe() takes either topics or a pattern")
        if pattern is not None:
            pattern = checked_pattern(pattern)
        self.listener = checked_listener(listener)
        self.mode = Mode.TOPICS if pattern is None else Mode.PATTERN
        before, self.pattern = self.pattern, pattern
        if isinstance(pattern, SubscriptionPattern) and pattern != before:
            self.subscription_version += 1
        self._set_topics(topics)

    def match(self, available: Iterable[str]) -> bool:
        """Subscribe to the topics of the cluster that the pattern matches; return whether that is a change."""
        pattern = self.pattern
        if self.mode is not Mode.PATTERN or not isinstance(pattern, re.Pattern):
            return False
        found = frozenset(topic for topic in available if pattern.match(topic))
        changed = found != self._topics
        if changed:
            self._set_topics(found)
        return changed

    def watch_for_group(self, topics: Iterable[str]) -> None:
        """Request metadata of these topics too: the leader of a group assigns partitions for all members."""
        self._group_topics = frozenset(topics)
        self.on_change()

    def unsubscribe(self) -> None:
        """Subscribe to nothing, and drop the assignment."""
        self.had_assignment = False
        self.mode, self.pattern, self.listener = Mode.NONE, None, None
        self._unstored.clear()
        self._group_topics = frozenset()
        self._replace({})
        self._set_topics(())

    def depart(self) -> None:
        """Unsubscribe at once; the group's partitions keep their positions until the listener was called for them."""
        departing, listener = (self.partitions, self.listener) if self.is_automatic else ({}, None)
        self.unsubscribe()
        if departing:
            self.departing, self.departing_listener = departing, listener

    def departed(self, partitions: Collection[TopicPartition]) -> None:
        """Forget partitions that were kept by `depart`: the listener was called for them."""
        self.departing = {partition: kept for partition, kept in self.departing.items() if partition not in partitions}
        if not self.departing:
            self.departing_listener = None

    def _set_topics(self, topics: Iterable[str]) -> None:
        topics = frozenset(topics)
        if topics != self._topics:
            self._topics = topics
            self.subscription_version += 1
        self.on_change()

    # The assignment…

    def assign_by_user(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign these partitions; a partition that was assigned before keeps its position."""
        if self.is_automatic:
            raise IllegalStateError(
                f"This consumer subscribes to {self.mode.value}; call unsubscribe() before assign()"
            )
        wanted = checked_partitions(partitions)
        self.mode = Mode.MANUAL if wanted else Mode.NONE
        self._replace(self._kept_and_new(wanted))

    def assign_from_group(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign the partitions from the group; one that was assigned before keeps position, data and pause."""
        if not self.is_automatic:
            raise IllegalStateError("Partitions came from the group, but nothing is subscribed to any more")
        self.had_assignment = True
        before = self.partitions
        self._replace(self._kept_and_new(partitions))
        for partition in before.keys() - self.partitions.keys():
            position = before[partition].unstored
            if position is not None:
                self._unstored[partition] = position

    def _kept_and_new(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, AssignedPartition]:
        old = self.partitions
        return {partition: old.get(partition) or AssignedPartition(partition) for partition in partitions}

    def _replace(self, partitions: Mapping[TopicPartition, AssignedPartition]) -> None:
        self.end_iteration()
        self.partitions = partitions
        self.on_change()

    def forget_positions(self) -> None:
        """Be as before any record was fetched: partitions that were assigned by hand stay, partitions of a group go."""
        self.had_assignment = False
        self._replace(
            {} if self.is_automatic else {partition: AssignedPartition(partition) for partition in self.partitions}
        )

    def mark_leaving(self, partitions: Collection[TopicPartition]) -> None:
        """Stop fetching and returning records of partitions that are being revoked; positions stay for the commit."""
        self.end_iteration()
        for partition in partitions:
            state = self.partitions.get(partition)
            if state is not None:
                state.leaving = True
        self.on_change()

    def assigned(self) -> set[TopicPartition]:
        """The assigned partitions."""
        return set(self.partitions)

    def get(self, partition: TopicPartition) -> AssignedPartition:
        """The state of an assigned partition; IllegalStateError if it is not assigned."""
        try:
            state = self.partitions.get(partition) or self.departing.get(partition)
        except TypeError:  # not hashable
            state = None
        if state is None:
            checked_partition(partition)
            raise IllegalStateError(f"{partition.topic}-{partition.partition} is not assigned to this consumer")
        return state

    # Positions…

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The offsets to commit: for each partition the offset after the last record that was returned.

        Not the position in a topic that was deleted and created again: a group that has it stored skips that many
        records of the new topic.
        """
        ids = self.topic_ids()
        return {
            partition: OffsetAndMetadata(cursor.position, "", cursor.epoch)
            for partition, state in {**self.departing, **self.partitions}.items()
            if (cursor := state.cursor).position is not None
            and (cursor.topic_id is None or ids.get(partition.topic, cursor.topic_id) == cursor.topic_id)
        }

    def note_answered(self, offsets: Mapping[TopicPartition, OffsetAndMetadata | None]) -> None:
        """Record offsets that the group has stored, or whose commit has failed for good. Called on the loop."""
        for partition, answered in offsets.items():
            if answered is None:
                continue
            state = self.partitions.get(partition)
            if state is not None:
                state.answered = answered.offset
            if answered.offset >= self._unstored.get(partition, answered.offset + 1):
                self._unstored.pop(partition, None)

    def take_unstored(self) -> set[TopicPartition]:
        """Return, once, the partitions that were taken away before the group had stored their positions."""
        found = set(self._unstored)
        self._unstored.clear()
        return found

    def last_taken(self) -> tuple[TopicPartition, int] | None:
        """The partition and the offset of the record that an iteration returned last; None without an iteration.

        From any thread.
        """
        chunk = self.chunk
        returned = None if chunk is None else chunk.cursor.returned
        return None if chunk is None or returned is None else (chunk.state.topic_partition, returned.offset)

    def end_iteration(self) -> None:
        """End the iteration over its chunk; the next call that takes records gets the rest."""
        chunk = self.chunk
        if chunk is None:
            return
        # In this order: Ctrl-C in between must not lose the rest, and giving back twice is harmless.
        has_rest = chunk.give_back()
        self.chunk = None
        if has_rest:
            self.on_ready(chunk.state)

    def without_position(self) -> list[TopicPartition]:
        """The partitions whose position is the committed offset, which is not known yet."""
        return [
            partition
            for partition, state in self.partitions.items()
            if state.cursor.position is None and state.cursor.reset is None
        ]

    def seek(self, partition: TopicPartition, offset: int, epoch: int = -1) -> None:
        """Go to an offset. Buffered data is dropped, unless this skips a record that could not be read."""
        state = self.get(partition)
        if self.chunk is not None and self.chunk.state is state:
            self.end_iteration()
        if state.cursor.step_over(offset):
            state.problem = None
            self.on_ready(state)
        else:
            self.move(state, Cursor(offset, epoch))

    def seek_to(self, partition: TopicPartition, reset: Reset) -> None:
        """Go to a place, which is looked up when it is needed."""
        self.move(self.get(partition), Cursor(reset=reset))

    def seek_to_committed(self, partition: TopicPartition) -> None:
        """Go to the committed offset, or the place that auto_offset_reset names."""
        self.move(self.get(partition), Cursor())

    def move(self, state: AssignedPartition, cursor: Cursor) -> None:
        """Give a partition another cursor."""
        if self.chunk is not None and self.chunk.state is state:
            self.end_iteration()
        state.cursor = cursor
        state.retry_at = 0.0
        state.problem = None
        self.on_change_of(state)

    # Pausing…

    def pause(self, partition: TopicPartition) -> None:
        """Return no records of a partition for now; buffered data stays."""
        state = self.get(partition)
        if self.chunk is not None and self.chunk.state is state:
            self.end_iteration()
        state.paused = True
        self.on_change_of(state)

    def resume(self, partition: TopicPartition) -> None:
        """Return records of a partition again."""
        state = self.get(partition)
        state.paused = False
        self.on_ready(state)
        self.on_change_of(state)

    def paused(self) -> set[TopicPartition]:
        """The partitions that are paused."""
        return {partition for partition, state in self.partitions.items() if state.paused}


class ConsumerRebalanceListener:
    """The base of rebalance listeners: override its methods, and pass an instance to `KafkaConsumer.subscribe`.

    The methods run in the application's thread, inside `poll`. They may call any method of the consumer: commit, seek,
    position. They may be coroutine functions, see `AsyncConsumerRebalanceListener`.

    >>> class Saver(ConsumerRebalanceListener):
    ...     def on_partitions_assigned(self, assigned):
    ...         print(sorted(assigned))
    >>> Saver().on_partitions_assigned({TopicPartition("events", 0)})
    [TopicPartition(topic='events', partition=0)]
    """

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> object:
        """Partitions are about to go to another member: the last chance to commit the processed records.

        With an eager assignor each rebalance begins with it, the first one with an empty set.
        """

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> object:
        """Partitions were added; no record of them was returned yet."""

    def on_partitions_lost(self, lost: Collection[TopicPartition]) -> object:
        """Partitions belong to other members already: nothing can be committed. Calls on_partitions_revoked()."""
        return self.on_partitions_revoked(lost)


class AsyncConsumerRebalanceListener(ABC):
    """The base of rebalance listeners with coroutine functions, as in kafka-python 3.

    `KafkaConsumer` runs each to its end, in its own event loop, in the thread that called `poll`; heartbeats
    continue. They may call any method of the consumer. `kafka.aio.AIOKafkaConsumer` takes such a listener too.

    >>> class Saver(AsyncConsumerRebalanceListener):
    ...     async def on_partitions_revoked(self, revoked):
    ...         await save(revoked)
    ...     async def on_partitions_assigned(self, assigned):
    ...         await load(assigned)
    """

    @abstractmethod
    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """See `ConsumerRebalanceListener.on_partitions_revoked`."""

    @abstractmethod
    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """See `ConsumerRebalanceListener.on_partitions_assigned`."""

    async def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        """Partitions belong to other members already. Calls on_partitions_revoked()."""
        await self.on_partitions_revoked(lost)


# Historic names.
SubscriptionType = Mode
TopicPartitionState = AssignedPartition
