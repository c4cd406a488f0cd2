"""The base class of users' partitioners in the releases up to 2.x."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["Partitioner"]


class Partitioner:
    """Base of partitioners that override ``__call__`` (KafkaProducer) or `partition` (KeyedProducer), or both.

    >>> class Last(Partitioner):
    ...     def partition(self, key, partitions=None):
    ...         return (partitions or self.partitions)[-1]
    >>> Last([0, 1, 2]).partition(b"key"), Last()(b"key", [0, 1], [0])
    (2, 1)
    """

    def __init__(self, partitions: Sequence[int] | None = None) -> None:
        self.partitions = partitions

    def __call__(
        self,
        key: object,
        all_partitions: Sequence[int] | None = None,
        available_partitions: Sequence[int] | None = None,  # noqa: ARG002 - for subclasses
    ) -> int:
        """Return the partition of a key among all partitions or the partitions that have a leader."""
        if type(self).partition is Partitioner.partition:
            raise NotImplementedError(f"{type(self).__name__} has neither __call__ nor partition")
        return self.partition(key, all_partitions)

    def partition(self, key: object, partitions: Sequence[int] | None = None) -> int:
        """Return the partition of a key among these partitions, or those given to the constructor."""
        if type(self).__call__ is Partitioner.__call__:
            raise NotImplementedError(f"{type(self).__name__} has neither __call__ nor partition")
        wanted = partitions or self.partitions
        return self(key, wanted, wanted)
