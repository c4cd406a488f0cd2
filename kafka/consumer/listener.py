"""What an application is told about the partitions of its consumer."""

from __future__ import annotations

from collections.abc import Collection

from kafka.structs import TopicPartition

__all__ = ["ConsumerRebalanceListener"]


class ConsumerRebalanceListener:
    """Derive from this, override what matters, and give it to `KafkaConsumer.subscribe`.

    The methods run in the application's thread, inside `poll`. They may call any method of the
    consumer: commit, seek, position.

    >>> class Saver(ConsumerRebalanceListener):
    ...     def on_partitions_assigned(self, assigned):
    ...         print(sorted(assigned))
    >>> Saver().on_partitions_assigned({TopicPartition("events", 0)})
    [TopicPartition(topic='events', partition=0)]
    """

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Partitions are about to go to another member: the last chance to commit what was processed."""

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Partitions were added; nothing was read from them yet."""

    def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        """Partitions belong to others already, so nothing can be committed; the same as revoked unless overridden."""
        self.on_partitions_revoked(lost)
