"""The stored state of the partitions that a share group reads (KIP-932): start offsets, and the ends of deliveries.

Kafka keeps the same in ``__share_group_state``. A delivery that its member has not acknowledged or
released is not stored: after a restart of the broker, or a move of the leader, the record counts as never delivered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final, TypeAlias
from uuid import UUID

#: The start offset of a partition that the group has not read yet.
UNINITIALIZED: Final = -1
#: The number of offsets that are saved under one key: a change costs no more, however many records are in delivery.
_BLOCK: Final = 64


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


Delivery: TypeAlias = "tuple[RecordState, int]"
"""State and delivery count."""


@dataclass
class SharePartitionState:
    """The stored state of one partition."""

    start: int = UNINITIALIZED
    #: How many records from the start on are not delivered again.
    finished: int = 0
    #: By block of offsets, from that of the start on: state and count by offset.
    blocks: dict[int, dict[int, Delivery]] = field(default_factory=dict)

    @property
    def deliveries(self) -> dict[int, Delivery]:
        """State and delivery count, by offset from the start on; ascending."""
        rows = (one for number in sorted(self.blocks) for one in sorted(self.blocks[number].items()))
        return {offset: delivery for offset, delivery in rows if offset >= self.start}


def _to_json(block: Mapping[int, Delivery]) -> list[list[int]]:
    """Return rows of first offset, last offset, state, and delivery count."""
    rows: list[list[int]] = []
    for offset, (state, count) in sorted(block.items()):
        if rows and rows[-1][1] == offset - 1 and rows[-1][2:] == [state, count]:
            rows[-1][1] = offset
        else:
            rows.append([offset, offset, int(state), count])
    return rows


def _from_json(rows: Iterable[list[int]]) -> dict[int, Delivery]:
    return {
        offset: (RecordState(state), count) for first, last, state, count in rows for offset in range(first, last + 1)
    }


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
        for key, saved in table.items():
            group, topic, place = key.rsplit("/", 2)
            if group == group_id:
                index, _, block = place.partition(".")
                state = self._topics.setdefault(UUID(topic), {}).setdefault(int(index), SharePartitionState())
                if block:
                    state.blocks[int(block)] = _from_json(saved)
                else:
                    state.start, state.finished = saved

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
        state = self._topics.setdefault(topic_id, {}).setdefault(index, SharePartitionState())
        for number in tuple(state.blocks):
            self._drop(topic_id, index, number)
        state.start, state.finished = start, 0
        self._table[self._key(topic_id, index)] = [start, 0]

    def write(self, topic_id: UUID, index: int, start: int, changes: Mapping[int, Delivery], finished: int) -> None:
        """Store where a partition's reading starts, what became of some deliveries, and how many are finished."""
        state = self._topics.setdefault(topic_id, {}).setdefault(index, SharePartitionState())
        changed = set()
        for offset, delivery in changes.items():
            changed.add(number := offset // _BLOCK)
            state.blocks.setdefault(number, {})[offset] = delivery
        for number in changed:
            self._table[self._key(topic_id, index, number)] = _to_json(state.blocks[number])
        if start // _BLOCK > state.start // _BLOCK:
            for number in [one for one in state.blocks if one < start // _BLOCK]:
                self._drop(topic_id, index, number)
        state.start, state.finished = start, finished
        # Last: the saved part of a write that a crash interrupts was not acknowledged, and does no harm.
        self._table[self._key(topic_id, index)] = [start, finished]

    def delete(self, topic_id: UUID) -> None:
        """Delete the offsets of a topic."""
        for index, state in self._topics.pop(topic_id, {}).items():
            for number in (None, *state.blocks):
                self._table.pop(self._key(topic_id, index, number), None)

    def clear(self) -> None:
        """Delete all."""
        for topic_id in self.topic_ids():
            self.delete(topic_id)

    def _drop(self, topic_id: UUID, index: int, number: int) -> None:
        del self._topics[topic_id][index].blocks[number]
        self._table.pop(self._key(topic_id, index, number), None)

    def _key(self, topic_id: UUID, index: int, block: int | None = None) -> str:
        return f"{self._group_id}/{topic_id}/{index}" + ("" if block is None else f".{block}")
