"""The base classes of partitioners, with the two call forms that a producer accepts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

from kafka.errors import UnknownTopicOrPartitionError

__all__ = ["Cluster", "KeyPartitioner", "Partitioner"]


class Cluster(Protocol):
    """The part of `kafka.cluster.ClusterMetadata` that a partitioner uses."""

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """All partitions."""
        ...

    def available_partitions_for_topic(self, topic: str) -> set[int] | None:
        """Return the partitions that have a leader."""
        ...


class Partitioner(ABC):
    """Base of users' partitioners.

    >>> class First(Partitioner):
    ...     def partition(self, topic, key, serialized_key, value, serialized_value, cluster):
    ...         return min(cluster.partitions_for_topic(topic))
    """

    def __init__(self, partitions: Sequence[int] | None = None) -> None:
        self.partitions = partitions

    @abstractmethod
    def partition(self, *args: Any, **kwargs: Any) -> int:
        """``partition(topic, key, serialized_key, value, serialized_value, cluster)``: the record's partition."""

    def on_new_batch(self, topic: str, cluster: Any, prev_partition: int) -> None:  # noqa: B027 - optional
        """Called when the producer is about to open a batch: a sticky partitioner may move on."""

    def close(self) -> None:  # noqa: B027 - optional to override
        """Called once when the producer is closed."""


class ChoosesPartition(Protocol):
    """An object with a method ``partition``: for type checkers."""

    def partition(self, *args: Any, **kwargs: Any) -> int:
        """See `Partitioner.partition`."""
        ...


class KeyPartitioner(Partitioner):
    """A partitioner that looks at the key's bytes and the list of partitions only; callable in every historic form."""

    @abstractmethod
    def choose(self, topic: str | None, key: Any, all_partitions: Sequence[int], available: Sequence[int]) -> int:
        """The partition for a key. ``available`` may be empty, and is not sorted."""

    def __call__(
        self, key: Any, all_partitions: Sequence[int] | None = None, available: Sequence[int] | None = None
    ) -> int:
        """The form of 1.x and 2.x; without partitions, the partitions given to the constructor."""
        return self.choose(None, key, all_partitions or self.partitions or (), available or ())

    def partition(self, *args: Any, **kwargs: Any) -> int:
        """The form of 3.x with its six arguments, or of the legacy producers: ``(key, partitions=None)``."""
        if len(args) + len(kwargs) < 6:
            return self(*args, **kwargs)
        return self._partition(*args, **kwargs)

    def _partition(
        self,
        topic: str,
        key: Any,  # noqa: ARG002 - named by callers
        serialized_key: bytes | None,
        value: Any,  # noqa: ARG002
        serialized_value: bytes | None,  # noqa: ARG002
        cluster: Cluster,
    ) -> int:
        everything = cluster.partitions_for_topic(topic)
        if not everything:
            raise UnknownTopicOrPartitionError(f"no partitions are known for topic {topic!r}")
        available = cluster.available_partitions_for_topic(topic) or ()
        return self.choose(topic, serialized_key, sorted(everything), sorted(available))
