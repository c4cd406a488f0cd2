"""The names that `SubscriptionState` had in kafka-python, which programs and tracers read of a consumer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kafka.errors import IllegalStateError
from kafka.structs import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from typing import ClassVar, Protocol

    class Position(int):
        """An offset that is read as ``position.offset`` too, of `kafka.consumer.partition_state`."""

        leader_epoch: int

        @property
        def offset(self) -> int: ...

    class _Cursor(Protocol):
        @property
        def reset(self) -> object: ...

    class _Partition(Protocol):
        paused: bool

        @property
        def cursor(self) -> _Cursor: ...
        @property
        def position(self) -> Position | None: ...
        def is_fetchable(self) -> bool: ...


__all__ = ["SubscriptionCalls"]


if TYPE_CHECKING:

    class _State:
        """The names of `SubscriptionState`, which a module below kafka.consumer cannot import."""

        pattern: Any
        partitions: Mapping[TopicPartition, _Partition]
        resets: ClassVar[Mapping[Any, Any]]

        @property
        def is_automatic(self) -> bool: ...
        @property
        def subscribed_topics(self) -> frozenset[str]: ...
        @property
        def wanted_topics(self) -> frozenset[str]: ...
        def subscribe(self, topics: Iterable[str], *, listener: Any) -> None: ...
        def assign_by_user(self, partitions: Iterable[TopicPartition]) -> None: ...
        def assign_from_group(self, partitions: Iterable[TopicPartition]) -> None: ...
        def seek_to(self, partition: TopicPartition, reset: Any) -> None: ...
        def watch_for_group(self, topics: Iterable[str]) -> None: ...

else:
    _State = object


class SubscriptionCalls(_State):
    """Names of `SubscriptionState`: each stands for a call or an attribute of today."""

    offset_reset_strategy: str

    @property
    def subscription(self) -> set[str] | None:
        """The topics subscribed to; None without a subscription."""
        return set(self.subscribed_topics) if self.is_automatic else None

    @property
    def subscribed_pattern(self) -> Any:
        """The pattern subscribed to, or None."""
        return self.pattern

    @property
    def assignment(self) -> Mapping[TopicPartition, _Partition]:
        """The assigned partitions with their states."""
        return dict(self.partitions)

    @property
    def _user_assignment(self) -> set[TopicPartition]:
        """The partitions assigned by hand, which a tracer reads."""
        return set() if self.is_automatic else set(self.partitions)

    def assigned_partitions(self) -> set[TopicPartition]:
        """Return the assigned partitions."""
        return set(self.partitions)

    def partitions_auto_assigned(self) -> bool:
        """Whether partitions are assigned by the group."""
        return bool(self.is_automatic)

    def is_assigned(self, partition: TopicPartition) -> bool:
        """Whether a partition is assigned."""
        return partition in self.partitions

    def group_subscription(self) -> set[str]:
        """Return the topics that the group needs metadata of."""
        return set(self.wanted_topics)

    # Positions

    def position(self, partition: TopicPartition) -> Position | None:
        """Return the offset of the next record of a partition."""
        return self._state(partition).position

    def has_valid_position(self, partition: TopicPartition) -> bool:
        """Whether a partition has a position."""
        return self._state(partition).position is not None

    def has_all_fetch_positions(self) -> bool:
        """Whether all partitions have a position."""
        return not self.missing_fetch_positions()

    def missing_fetch_positions(self) -> set[TopicPartition]:
        """Return the partitions without a position."""
        return {partition for partition, state in self.partitions.items() if state.position is None}

    def all_consumed_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return what a commit would commit."""
        return {
            partition: OffsetAndMetadata(state.position.offset, "", state.position.leader_epoch)
            for partition, state in self.partitions.items()
            if state.position is not None
        }

    def has_default_offset_reset_policy(self) -> bool:
        """Whether a partition without a position starts at the beginning or the end."""
        return bool(self.offset_reset_strategy != "none")

    def partitions_needing_reset(self) -> Collection[TopicPartition]:
        """Return the partitions whose position is being looked up."""
        return {partition for partition in self.partitions if self.is_offset_reset_needed(partition)}

    def is_offset_reset_needed(self, partition: TopicPartition) -> bool:
        """Whether the position of a partition is being looked up."""
        return self._state(partition).cursor.reset is not None

    def need_offset_reset(self, partition: TopicPartition, offset_reset_strategy: Any = None) -> None:
        """Look the position of a partition up again: at its start (-2, 'earliest') or its end (-1, 'latest')."""
        strategy = self.offset_reset_strategy if offset_reset_strategy is None else offset_reset_strategy
        self.seek_to(partition, self.resets[strategy])

    request_offset_reset = need_offset_reset

    # Fetching

    def is_paused(self, partition: TopicPartition) -> bool:
        """Whether a partition is paused."""
        return bool(self.partitions[partition].paused) if partition in self.partitions else False

    def paused_partitions(self) -> set[TopicPartition]:
        """Return the paused partitions."""
        return {partition for partition, state in self.partitions.items() if state.paused}

    def is_fetchable(self, partition: TopicPartition) -> bool:
        """Whether a partition is assigned, has a position and is not paused."""
        return partition in self.partitions and self.partitions[partition].is_fetchable()

    def fetchable_partitions(self) -> set[TopicPartition]:
        """Return the partitions that have a position and are not paused."""
        return {partition for partition in self.partitions if self.is_fetchable(partition)}

    # Changes

    def change_subscription(self, topics: Iterable[str]) -> None:
        """Subscribe to these topics; the listener stays."""
        self.subscribe(topics, listener=getattr(self, "listener", None))

    def assign_from_user(self, partitions: Iterable[TopicPartition]) -> None:
        """Have these partitions."""
        self.assign_by_user(partitions)

    def assign_from_subscribed(self, assignments: Iterable[TopicPartition]) -> None:
        """Have the partitions that the group gave."""
        self.assign_from_group(assignments)

    def group_subscribe(self, topics: Iterable[str]) -> None:
        """Know metadata of these topics of the group too."""
        self.watch_for_group(topics)

    def reset_group_subscription(self) -> None:
        """Know metadata of the topics subscribed to alone."""
        self.watch_for_group(())

    def _state(self, partition: TopicPartition) -> _Partition:
        state = self.partitions.get(partition)
        if state is None:
            raise IllegalStateError(f"{partition} is not assigned to this consumer")
        return state
