"""The topics and partitions that a producer sends to, and what stands where with each of them."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka._core.topology import Topology
    from kafka.producer.batch import ProducerBatch
    from kafka.producer.core import ProducerCore
    from kafka.producer.sink import Sink

__all__ = ["Candidates", "Partition", "Topic"]

_LOOKED_AT_PER_CHOICE: Final = 16
# A broker that takes no data is noticed after this time at the latest, in seconds.
_LONGEST_USE: Final = 0.1


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


class Candidates:
    """The partitions that records without a key may go to next, and how likely they are to go to each.

    Made by a look at all partitions of the topic, and used for one choice in sixteen partitions: so a choice costs as
    much as a look at sixteen of them, however many there are.
    """

    __slots__ = ("able", "choices_left", "partitions", "stale_at", "topology", "weights")

    def __init__(
        self,
        able: list[Partition],
        weights: list[int] | None,
        partitions: dict[int, Partition],
        topology: Topology,
        now: float,
    ) -> None:
        self.able = able
        self.weights = weights
        """Their weights, each added to those before it; None if all weigh the same."""
        self.partitions = partitions
        self.topology = topology
        self.choices_left = max(1, len(partitions) // _LOOKED_AT_PER_CHOICE)
        self.stale_at = now + _LONGEST_USE

    def hold(self, topic: Topic, topology: Topology, now: float) -> bool:
        """Whether they may be chosen from once more."""
        return (
            self.choices_left > 0
            and now < self.stale_at
            and self.topology is topology
            and self.partitions is topic.partitions
        )


class Topic:
    """A topic's partitions, and where its records without a key go now (KIP-480, KIP-794)."""

    __slots__ = ("candidates", "filled", "indexes", "line", "name", "partitions", "sticky", "used_at")

    def __init__(self, name: str) -> None:
        self.name = name
        self.partitions: dict[int, Partition] = {}
        self.indexes: list[int] = []
        self.line: list[Partition] = []
        """The partitions in the order of their numbers."""
        self.candidates: Candidates | None = None
        self.sticky: Partition | None = None
        self.filled = 0
        """Bytes that went to the sticky partition since it was chosen."""
        self.used_at = 0.0
        """When a batch was last opened, or a call last asked for the topic."""
