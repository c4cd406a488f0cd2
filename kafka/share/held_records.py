"""The records that the application has, and what it has said about them since the last acknowledgements were sent.

The one part of a share consumer that several threads may use at a time: workers acknowledge what another thread polled.
No I/O.
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
from typing import TYPE_CHECKING, Final

from kafka.errors import IllegalStateError, UnsupportedVersionError
from kafka.share.acknowledgements import Acknowledgements, AcknowledgeType
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from uuid import UUID

    from kafka.share.acquired_records import AcquiredRecords

__all__ = ["HeldRecords"]

# The state of an offset that is not acknowledged: the application has the record; it has none, because a deserializer
# raised; it has renewed the lock, and will acknowledge the record some time.
_OPEN: Final = -1
_UNREADABLE: Final = -2
_RENEWED: Final = -3
_RENEW_SINCE: Final = 2


class _HeldPartition:
    """Records of one partition that one broker has delivered."""

    __slots__ = ("node_id", "states", "topic_id", "version")

    def __init__(self, source: AcquiredRecords) -> None:
        self.topic_id: UUID = source.topic_id
        self.node_id = source.node_id
        self.version = source.version
        self.states: dict[int, int] = {}
        """For each offset a state, or the type of its acknowledgement."""

    def is_from(self, source: AcquiredRecords) -> bool:
        """Whether it has the records of this source."""
        return self.topic_id == source.topic_id and self.node_id == source.node_id


class HeldRecords:
    """The records of one consumer that are not acknowledged, or whose acknowledgements were not sent yet."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._partitions: dict[TopicPartition, _HeldPartition] = {}
        self._ready: list[Acknowledgements] = []

    def add(self, source: AcquiredRecords, offsets: Iterable[int], *, unreadable: bool = False) -> None:
        """Have records that are about to be returned, or whose error is about to be raised."""
        with self._lock:
            held = self._partitions.get(source.partition)
            if held is None or not held.is_from(source):
                # The leader has moved, or the topic was created again: the old broker's records are not held any more.
                if held is not None:
                    self._move_to_ready(source.partition, held)
                held = self._partitions[source.partition] = _HeldPartition(source)
            held.states.update(dict.fromkeys(offsets, _UNREADABLE if unreadable else _OPEN))

    def add_ready(self, source: AcquiredRecords, types: dict[int, int]) -> None:
        """Acknowledge offsets that the application does not get."""
        if types:
            with self._lock:
                self._ready.append(Acknowledgements(source.partition, source.topic_id, source.node_id, types))

    def acknowledge(
        self, partition: TopicPartition, offset: int, kind: AcknowledgeType, *, unreadable_only: bool = False
    ) -> None:
        """Acknowledge a record; the last call before the acknowledgements are sent counts."""
        with self._lock:
            held = self._partitions.get(partition)
            state = None if held is None else held.states.get(offset)
            if held is None or state is None:
                raise IllegalStateError(
                    f"The record at offset {offset} of {partition.topic}-{partition.partition} is not waiting for an "
                    "acknowledgement: it was acknowledged and committed before, or this consumer did not return it"
                )
            if unreadable_only and state != _UNREADABLE:
                raise IllegalStateError(
                    "This consumer accepts records automatically (share_acknowledgement_mode='implicit'): make it with "
                    "share_acknowledgement_mode='explicit' to acknowledge each record"
                )
            if kind is AcknowledgeType.RENEW and held.version < _RENEW_SINCE:
                raise UnsupportedVersionError(
                    f"AcknowledgeType.RENEW needs brokers of Kafka 4.2, and the leader of "
                    f"{partition.topic}-{partition.partition} is older"
                )
            held.states[offset] = kind

    def acknowledge_if_open(self, partition: TopicPartition, offset: int, kind: AcknowledgeType) -> None:
        """Acknowledge a record that has no acknowledgement yet, or whose lock was renewed."""
        with self._lock:
            held = self._partitions.get(partition)
            if held is not None and held.states.get(offset) in {_OPEN, _RENEWED, AcknowledgeType.RENEW}:
                held.states[offset] = kind

    def accept_open(self) -> None:
        """Accept all records that the application has not acknowledged."""
        with self._lock:
            for held in self._partitions.values():
                held.states = {
                    offset: AcknowledgeType.ACCEPT if state == _OPEN else state for offset, state in held.states.items()
                }

    def release_unreadable(self) -> None:
        """Release the records that a deserializer has refused, unless the application has acknowledged them."""
        with self._lock:
            for held in self._partitions.values():
                for offset, state in held.states.items():
                    if state == _UNREADABLE:
                        held.states[offset] = AcknowledgeType.RELEASE

    def unacknowledged(self) -> dict[TopicPartition, list[int]]:
        """Return the offsets of the records that the application has and has not acknowledged."""
        with self._lock:
            found = {
                partition: [offset for offset, state in held.states.items() if state == _OPEN]
                for partition, held in self._partitions.items()
            }
        return {partition: offsets for partition, offsets in found.items() if offsets}

    def take(self) -> list[Acknowledgements]:
        """Return the acknowledgements to send; the records are not held any more, unless their locks are renewed."""
        with self._lock:
            for partition, held in tuple(self._partitions.items()):
                self._move_to_ready(partition, held)
                if not held.states:
                    del self._partitions[partition]
            ready, self._ready = self._ready, []
        return ready

    def _move_to_ready(self, partition: TopicPartition, held: _HeldPartition) -> None:
        types = {offset: int(state) for offset, state in held.states.items() if state >= 0}
        if not types:
            return
        renewed = {offset for offset, kind in types.items() if kind == AcknowledgeType.RENEW}
        held.states = {
            offset: _RENEWED if offset in renewed else state
            for offset, state in held.states.items()
            if state < 0 or offset in renewed
        }
        self._ready.append(Acknowledgements(partition, held.topic_id, held.node_id, types))
