"""The committed offsets of one group, and the offsets that open transactions will commit.

Knows nothing of members or topics. Each commit has a number: when a transaction ends, what was committed beside it in
the meantime stays (KAFKA-17219).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kafka.structs import TopicPartition

#: Expires when the broker's retention says so, not at a time that the client asked for (versions 2 to 4).
NO_EXPIRY = -1


class CommittedOffset(NamedTuple):
    """One committed offset."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_ms: int = -1
    expire_ms: int = NO_EXPIRY


#: Told of each change: partition, and the offset or None.
OnChange = Callable[[TopicPartition, "CommittedOffset | None"], object]


#: The same for what an open transaction will commit, with its producer's id.
OnPending = Callable[[int, TopicPartition, "CommittedOffset | None"], object]


class GroupOffsets:
    """Committed offsets by partition.

    >>> offsets = GroupOffsets()
    >>> offsets.commit(TopicPartition("events", 0), CommittedOffset(7))
    >>> offsets.committed[TopicPartition("events", 0)].offset
    7
    """

    def __init__(
        self,
        on_change: OnChange = lambda _partition, _offset: None,
        on_pending: OnPending = lambda _producer_id, _partition, _offset: None,
    ) -> None:
        self._on_pending = on_pending
        self.committed: dict[TopicPartition, CommittedOffset] = {}
        self._on_change = on_change
        self._numbers: dict[TopicPartition, int] = {}
        self._next_number = 0
        #: Producer id -> partition -> number and offset.
        self._pending: dict[int, dict[TopicPartition, tuple[int, CommittedOffset]]] = {}

    def __bool__(self) -> bool:
        return bool(self.committed or self._pending)

    def commit(self, partition: TopicPartition, offset: CommittedOffset) -> None:
        """Commit at once."""
        self._next_number += 1
        self._set(partition, offset, self._next_number)

    def _set(self, partition: TopicPartition, offset: CommittedOffset, number: int) -> None:
        self.committed[partition] = offset
        self._numbers[partition] = number
        self._on_change(partition, offset)

    @property
    def partitions(self) -> set[TopicPartition]:
        """The partitions with an offset, or with one that an open transaction will commit."""
        return {*self.committed, *(partition for pending in self._pending.values() for partition in pending)}

    def delete(self, partition: TopicPartition) -> None:
        """Forget an offset, and the offset that a transaction would commit."""
        for producer_id, pending in self._pending.items():
            if pending.pop(partition, None) is not None:
                self._on_pending(producer_id, partition, None)
        self._numbers.pop(partition, None)
        if self.committed.pop(partition, None) is not None:
            self._on_change(partition, None)

    # Transactions

    def commit_pending(self, producer_id: int, partition: TopicPartition, offset: CommittedOffset) -> None:
        """Commit when the producer's transaction does."""
        self._next_number += 1
        self._pending.setdefault(producer_id, {})[partition] = (self._next_number, offset)
        self._on_pending(producer_id, partition, offset)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """The producer's transaction has ended."""
        for partition, (number, offset) in self._pending.pop(producer_id, {}).items():
            self._on_pending(producer_id, partition, None)
            if committed and number > self._numbers.get(partition, 0):
                self._set(partition, offset, number)

    def is_unstable(self, partition: TopicPartition) -> bool:
        """Whether an open transaction will move this offset."""
        return any(partition in pending for pending in self._pending.values())

    # Expiry

    def expire(self, is_expired: Callable[[TopicPartition, CommittedOffset], bool]) -> None:
        """Forget what has expired, save what a transaction is about to move."""
        for partition, offset in list(self.committed.items()):
            if is_expired(partition, offset) and not self.is_unstable(partition):
                self.delete(partition)
