"""The stored state of the partitions that a share group reads (KIP-932): start offsets, and the ends of deliveries.

Kafka keeps the same in ``__share_group_state``. A delivery that its member has not acknowledged or released is not stored:
after a restart of the broker, or a move of the leader, the record counts as never delivered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final
from uuid import UUID

__all__ = ["UNINITIALIZED", "RecordState", "ShareOffsets", "SharePartitionState"]

#: The start offset of a partition that the group has not read yet.
UNINITIALIZED: Final = -1


class RecordState(IntEnum):
    """The state of a record, with Kafka's numbers."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4

    @property
    def is_final(self) -> bool:
        """Whether the record is not delivered again."""
        return self >= RecordState.ACKNOWLEDGED


@dataclass
class SharePartitionState:
    """The stored state of one partition."""

    start: int = UNINITIALIZED
    #: Offset -> state and delivery count, from the start on; ascending.
    deliveries: dict[int, tuple[RecordState, int]] = field(default_factory=dict)
    #: How many records from the start on are not delivered again.
    finished: int = 0

    def to_json(self) -> list[Any]:
        """Return the start, rows of first offset, last offset, state, and delivery count, and the number finished."""
        rows: list[list[int]] = []
        for offset, (state, count) in self.deliveries.items():
            if rows and rows[-1][1] == offset - 1 and rows[-1][2:] == [state, count]:
                rows[-1][1] = offset
            else:
                rows.append([offset, offset, int(state), count])
        return [self.start, rows, self.finished]

    @classmethod
    def from_json(cls, saved: list[Any]) -> SharePartitionState:
        """Read what `to_json` has returned."""
        start, rows, finished = saved
        return cls(
            start,
            {
                offset: (RecordState(state), count)
                for first, last, state, count in rows
                for offset in range(first, last + 1)
            },
            finished,
        )


class ShareOffsets:
    """The stored states of one group, for each topic that it has read, or that an administrator has set.

    >>> offsets = ShareOffsets({}, "g")
    >>> offsets.set(UUID(int=1), 0, 5)
    >>> offsets.of_topic(UUID(int=1))[0].start, offsets.topic_ids()
    (5, [UUID('00000000-0000-0000-0000-000000000001')])
    """

    def __init__(self, table: MutableMapping[str, Any], group_id: str) -> None:
        self._table = table
        self._group_id = group_id
        self._topics: dict[UUID, dict[int, SharePartitionState]] = {}
        for key in table:
            group, topic, index = key.rsplit("/", 2)
            if group == group_id:
                self._topics.setdefault(UUID(topic), {})[int(index)] = SharePartitionState.from_json(table[key])

    def __iter__(self) -> Iterator[tuple[UUID, int]]:
        return iter([(topic_id, index) for topic_id, states in self._topics.items() for index in states])

    def topic_ids(self) -> list[UUID]:
        """Return the topics that have offsets."""
        return list(self._topics)

    def of_topic(self, topic_id: UUID) -> Mapping[int, SharePartitionState]:
        """Return the state of each partition of a topic."""
        return self._topics.get(topic_id, {})

    def initialize(self, topic_id: UUID, partitions: int) -> None:
        """Begin to keep offsets for a topic's partitions."""
        known = self._topics.setdefault(topic_id, {})
        for index in range(partitions):
            if index not in known:
                self.set(topic_id, index, UNINITIALIZED)

    def set(self, topic_id: UUID, index: int, start: int) -> None:
        """Set the start offset of a partition, and forget all deliveries."""
        self._topics.setdefault(topic_id, {})[index] = SharePartitionState(start)
        self._save(topic_id, index)

    def write(
        self, topic_id: UUID, index: int, start: int, changes: Mapping[int, tuple[RecordState, int]], finished: int
    ) -> None:
        """Store where a partition's reading starts, what became of some deliveries, and how many are finished."""
        state = self._topics.setdefault(topic_id, {}).setdefault(index, SharePartitionState())
        merged = {offset: one for offset, one in state.deliveries.items() if offset >= start} | dict(changes)
        state.start, state.deliveries, state.finished = start, dict(sorted(merged.items())), finished
        self._save(topic_id, index)

    def delete(self, topic_id: UUID) -> None:
        """Delete the offsets of a topic."""
        for index in self._topics.pop(topic_id, {}):
            self._table.pop(self._key(topic_id, index), None)

    def clear(self) -> None:
        """Delete all."""
        for topic_id in self.topic_ids():
            self.delete(topic_id)

    def _key(self, topic_id: UUID, index: int) -> str:
        return f"{self._group_id}/{topic_id}/{index}"

    def _save(self, topic_id: UUID, index: int) -> None:
        self._table[self._key(topic_id, index)] = self._topics[topic_id][index].to_json()
