"""What a coordinator needs to know of a subscription, and to tell it; the real one is the consumer's."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

from kafka.structs import OffsetAndMetadata, TopicPartition

__all__ = ["Subscription"]


class Subscription(Protocol):
    """The topics that an application wants and the partitions that it has; changed in its own thread only."""

    pattern: Any
    """A compiled pattern, a SubscriptionPattern for the broker to match, or None."""
    listener: Any
    """The ConsumerRebalanceListener, or None."""
    subscription_version: int
    """Counts changes of what is subscribed to."""

    @property
    def subscribed_topics(self) -> Collection[str]:
        """The topics subscribed to; with a pattern those that it matches now."""

    @property
    def is_automatic(self) -> bool:
        """Whether partitions come from a subscription rather than from assign()."""

    def match(self, available: Iterable[str]) -> bool:
        """Subscribe to the topics that the pattern matches; whether that is a change."""

    def watch_for_group(self, topics: Iterable[str]) -> None:
        """Know metadata of these topics too, for the members that this one assigns partitions to."""

    def assigned(self) -> set[TopicPartition]:
        """The partitions that it has."""

    def assign_from_group(self, partitions: Iterable[TopicPartition]) -> None:
        """Have these partitions; those that stay keep their position."""

    def mark_leaving(self, partitions: Collection[TopicPartition]) -> None:
        """Hand out no more records of these: they are about to go."""

    def consumed(self) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """What may be committed: how far the application was given records."""

    def without_position(self) -> Collection[TopicPartition]:
        """The partitions for which the committed offset decides where to begin."""

    def seek(self, partition: TopicPartition, offset: int, epoch: int = -1) -> None:
        """Go to an offset."""
