"""The topics and partitions that a producer sends to, and what stands where with each of them."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.producer.batch import ProducerBatch
    from kafka.producer.core import ProducerCore
    from kafka.producer.sink import Sink

__all__ = ["Partition", "Topic"]


class Partition:
    """One partition of a topic, from the producer's side."""

    __slots__ = (
        "acknowledged",
        "answers_due",
        "broken",
        "core",
        "epoch",
        "in_flight",
        "index",
        "known",
        "next_sequence",
        "not_before",
        "open",
        "producer_id",
        "queue",
        "recovering",
        "scheduled",
        "sink",
        "timer",
        "topic",
        "tp",
    )

    def __init__(self, topic: Topic, index: int, core: ProducerCore) -> None:
        self.topic = topic
        self.index = index
        self.tp = TopicPartition(topic.name, index)
        self.core = core
        # Under the accumulator's lock:
        self.queue: deque[ProducerBatch] = deque()
        self.open: ProducerBatch | None = None
        """The last of the queue, as long as it takes records."""
        # On the loop only:
        self.in_flight: deque[ProducerBatch] = deque()
        """Sent and not settled, in order; all of them on one connection."""
        self.answers_due = 0
        """How many answers are still to come; those of batches that were given up meanwhile too."""
        self.recovering = False
        """A batch has to be sent again: nothing goes out until all answers are in."""
        self.broken = False
        """A sequence number was spent on a batch that may not be in the log: the next ones need a new epoch."""
        self.known = False
        """Its leader has taken a batch of this epoch, so it will refuse one that does not follow."""
        self.sink: Sink | None = None
        self.scheduled = False
        """It stands in its sink's line."""
        self.not_before = 0.0
        self.timer: Any = None
        self.producer_id = -1
        self.epoch = -1
        self.next_sequence = 0
        self.acknowledged = 0
        """The sequence number after the last batch of this epoch that is in the log."""

    def __repr__(self) -> str:
        return (
            f"<Partition {self.tp.topic}-{self.tp.partition} queue={len(self.queue)} in_flight={len(self.in_flight)}>"
        )


class Topic:
    """A topic's partitions, and where its records without a key go now (KIP-480, KIP-794)."""

    __slots__ = ("filled", "indexes", "line", "name", "partitions", "sticky", "used_at")

    def __init__(self, name: str) -> None:
        self.name = name
        self.partitions: dict[int, Partition] = {}
        self.indexes: list[int] = []
        self.line: list[Partition] = []
        """The partitions in the order of their numbers."""
        self.sticky: Partition | None = None
        self.filled = 0
        """Bytes that went to the sticky partition since it was chosen."""
        self.used_at = 0.0
        """When a batch was last opened, or a call last asked for the topic."""
