"""Which partition records without a key go to (KIP-480, KIP-794): one for about a batch, then another.

A partition needs a leader. One whose queue is shorter is chosen more often (partitioner_adaptive_partitioning_enable),
and one whose broker accepts no data is avoided (partitioner_availability_timeout_ms).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from kafka.producer.partition import Partition, Topic

if TYPE_CHECKING:
    from random import Random

    from kafka._core.topology import Topology
    from kafka.cluster import ClusterMetadata
    from kafka.config import Config

__all__ = ["BuiltInPartitioner"]

_PARTITIONS_PER_CHOICE: Final = 16
# A broker that accepts no data is noticed after this time at the latest, in seconds.
_LONGEST_USE: Final = 0.1


class BuiltInPartitioner:
    """Chooses partitions for records without a key, as the Java client's class of that name."""

    def __init__(self, config: Config, cluster: ClusterMetadata, now: Callable[[], float], rng: Random) -> None:
        self._cluster = cluster
        self._now = now
        self._rng = rng
        self._is_adaptive: bool = config["partitioner_adaptive_partitioning_enable"]
        self._availability_timeout = config.seconds("partitioner_availability_timeout_ms")

    def choose(self, topic: Topic) -> Partition:
        """Choose the next partition to fill, once for about each batch. The caller holds the accumulator's lock.

        To look at all partitions takes longer than to fill a batch where there are thousands, so a choice may be made
        from candidates that were found some choices ago.
        """
        if len(topic.ordered) == 1:
            return topic.ordered[0]
        now = self._now()
        candidates: _Candidates | None = topic.candidates
        if candidates is None or not candidates.hold(topic, self._cluster.topology, now):
            candidates = topic.candidates = self._candidates(topic, now)
        candidates.choices_left -= 1
        able, weights = candidates.able, candidates.weights
        if len(able) == 1:
            return able[0]
        return self._rng.choice(able) if weights is None else self._rng.choices(able, cum_weights=weights)[0]

    def _candidates(self, topic: Topic, now: float) -> _Candidates:
        topology = self._cluster.topology
        known = topology.topics.get(topic.name, {})
        everything = list(topic.partitions.values())
        able = [one for one in everything if one.index in known and known[one.index].leader >= 0] or everything
        if self._availability_timeout:
            limit = now - self._availability_timeout
            able = [one for one in able if one.sink is None or (one.sink.stalled_since or limit) >= limit] or able
        weights = None
        if self._is_adaptive:
            lengths = [len(one.queue) for one in able]
            longest = max(lengths)
            if longest > min(lengths):
                weights = list(accumulate(longest + 1 - length for length in lengths))
        return _Candidates(able, weights, topic.partitions, topology, now)


class _Candidates:
    """The partitions that records may go to next, and how likely they are to go to each.

    Found by a look at all partitions of the topic, and used for one choice per sixteen partitions: so a choice costs as
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
        """Their weights, each added to the sum of the earlier ones; None if all weigh the same."""
        self.partitions = partitions
        self.topology = topology
        self.choices_left = max(1, len(partitions) // _PARTITIONS_PER_CHOICE)
        self.stale_at = now + _LONGEST_USE

    def hold(self, topic: Topic, topology: Topology, now: float) -> bool:
        """Whether the next partition may be chosen from these."""
        return (
            self.choices_left > 0
            and now < self.stale_at
            and self.topology is topology
            and self.partitions is topic.partitions
        )
