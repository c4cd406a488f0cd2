"""The records that the application has, and what it has said about them since the last acknowledgements were sent.

The one part of a share consumer that several threads may use at a time: workers acknowledge what another thread polled.
They take no lock, which can cost more than all else here (0.7 of 1.8 µs per record, November 2026): what they say is
checked and put into a queue, and entered by the thread that sends. No I/O.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, Final

from kafka.errors import IllegalStateError, UnsupportedVersionError
from kafka.share.acknowledgements import AcknowledgedRange, Acknowledgements, AcknowledgeType, runs_of_types
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from uuid import UUID

    from kafka.share.acquired_records import AcquiredRecords

# For each offset there is a byte: the type of its acknowledgement, or one of these.
_RENEWED: Final = 0xFC
"""Its lock was renewed, and the application will acknowledge it some time."""
_UNREADABLE: Final = 0xFD
"""A deserializer has raised, so the application has no record."""
_OPEN: Final = 0xFE
"""The application has the record."""
_NONE: Final = 0xFF
"""Not held."""
_RENEW: Final = AcknowledgeType.RENEW.value
_ACCEPTING: Final = bytes.maketrans(b"\xfe", b"\1")
_RELEASING: Final = bytes.maketrans(b"\xfd", b"\2")
_SENDING: Final = bytes.maketrans(b"\0\1\2\3\4", b"\xff\xff\xff\xff\xfc")
_OPEN_RUN: Final = re.compile(b"\xfe+")
#: Offsets that compaction has removed are bytes of a span up to this many in a row.
_MOST_BETWEEN: Final = 1000
#: A span ends behind this many offsets, else one record that stays open would keep all that come after it.
_LONGEST: Final = 4096
_RENEW_SINCE: Final = 2


class _Span:
    """Records of one partition that one broker has delivered, by offset from the first on, which stays."""

    __slots__ = ("first", "node_id", "states", "topic_id", "version")

    def __init__(self, source: AcquiredRecords, first: int, states: bytes) -> None:
        self.topic_id: UUID = source.topic_id
        self.node_id = source.node_id
        self.version = source.version
        self.first = first
        self.states = bytearray(states)

    def is_from(self, source: AcquiredRecords) -> bool:
        """Whether it has the records of this source."""
        return self.topic_id == source.topic_id and self.node_id == source.node_id


class HeldRecords:
    """The records of one consumer that are not acknowledged, or whose acknowledgements were not sent yet."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._partitions: dict[TopicPartition, tuple[_Span, ...]] = {}
        """The latest first. Changed under the lock, and replaced: other threads read it."""
        self._said: deque[tuple[bytearray, int, int, bool]] = deque()
        """Entries to be made: where, the type, and whether only if the record is open."""
        self._ready: list[Acknowledgements] = []

    def add(self, source: AcquiredRecords, offsets: Sequence[int], *, unreadable: bool = False) -> None:
        """Have records that are about to be returned, ascending, or whose error is about to be raised."""
        state = bytes([_UNREADABLE if unreadable else _OPEN])
        is_run = offsets[-1] - offsets[0] + 1 == len(offsets)
        with self._lock:
            spans = list(self._partitions.get(source.partition, ()))
            if spans and not spans[0].is_from(source):
                # The leader has moved, or the topic was created again: the old broker's records are not held any more.
                self._move_to_ready(source.partition, spans)
                spans = []
            for span in spans:
                if span.first <= offsets[-1] and offsets[0] < span.first + len(span.states):
                    self._enter_said()
                    for offset in offsets:  # acquired again
                        if 0 <= offset - span.first < len(span.states):
                            span.states[offset - span.first] = _NONE
            for first, states in [(offsets[0], state * len(offsets))] if is_run else [(one, state) for one in offsets]:
                length = len(spans[0].states) if spans else _LONGEST
                between = first - spans[0].first - length if length < _LONGEST else -1
                if 0 <= between <= _MOST_BETWEEN:
                    spans[0].states += bytes([_NONE]) * between + states
                else:
                    spans.insert(0, _Span(source, first, states))
            self._partitions[source.partition] = tuple(spans)

    def add_ready(self, source: AcquiredRecords, ranges: list[AcknowledgedRange]) -> None:
        """Acknowledge offsets that the application does not get."""
        if ranges:
            with self._lock:
                self._ready.append(Acknowledgements(source.partition, source.topic_id, source.node_id, ranges))

    def acknowledge(self, partition: tuple[str, int], offset: int, kind: int, *, unreadable_only: bool = False) -> None:
        """Acknowledge a record; the last call before the acknowledgements are sent counts."""
        for span in self._partitions.get(partition, ()):  # type: ignore[call-overload]
            states, at = span.states, offset - span.first
            if 0 <= at < len(states) and states[at] != _NONE:
                break
        else:
            raise IllegalStateError(
                f"The record at offset {offset} of {partition[0]}-{partition[1]} is not waiting for an "
                "acknowledgement: it was acknowledged and committed before, or this consumer did not return it"
            )
        if unreadable_only and states[at] != _UNREADABLE:
            raise IllegalStateError(
                "This consumer accepts records automatically (share_acknowledgement_mode='implicit'): make it with "
                "share_acknowledgement_mode='explicit' to acknowledge each record"
            )
        if kind == _RENEW and span.version < _RENEW_SINCE:
            raise UnsupportedVersionError(
                f"AcknowledgeType.RENEW needs brokers of Kafka 4.2, and the leader of "
                f"{partition[0]}-{partition[1]} is older"
            )
        self._said.append((states, at, kind, False))

    def acknowledge_if_open(self, partition: tuple[str, int], offset: int, kind: int) -> None:
        """Acknowledge a record that has no acknowledgement yet, or whose lock was renewed."""
        for span in self._partitions.get(partition, ()):  # type: ignore[call-overload]
            if 0 <= offset - span.first < len(span.states):
                self._said.append((span.states, offset - span.first, kind, True))

    def _enter_said(self) -> None:
        said = self._said
        while said:
            states, at, kind, if_open = said.popleft()
            state = states[at]
            if state != _NONE and (not if_open or state in {_OPEN, _RENEWED, _RENEW}):
                states[at] = kind

    def accept_open(self) -> None:
        """Accept all records that the application has not acknowledged."""
        self._translate(_ACCEPTING)

    def release_unreadable(self) -> None:
        """Release the records that a deserializer has refused, unless the application has acknowledged them."""
        self._translate(_RELEASING)

    def _translate(self, table: bytes) -> None:
        with self._lock:
            self._enter_said()
            for spans in self._partitions.values():
                for span in spans:
                    span.states[:] = span.states.translate(table)

    def unacknowledged(self) -> dict[TopicPartition, list[int]]:
        """Return the offsets of the records that the application has and has not acknowledged."""
        with self._lock:
            self._enter_said()
            found = {
                partition: [
                    offset
                    for span in reversed(spans)
                    for run in _OPEN_RUN.finditer(span.states)
                    for offset in range(span.first + run.start(), span.first + run.end())
                ]
                for partition, spans in self._partitions.items()
            }
        return {partition: offsets for partition, offsets in found.items() if offsets}

    def take(self) -> list[Acknowledgements]:
        """Return the acknowledgements to send; the records are not held any more, unless their locks are renewed."""
        with self._lock:
            for partition, spans in tuple(self._partitions.items()):
                self._move_to_ready(partition, spans)
                left = tuple([span for span in spans if span.states.strip(bytes([_NONE]))])
                if left:
                    self._partitions[partition] = left
                else:
                    del self._partitions[partition]
            ready, self._ready = self._ready, []
        return ready

    def _move_to_ready(self, partition: TopicPartition, spans: Sequence[_Span]) -> None:
        self._enter_said()
        ranges = [one for span in spans for one in runs_of_types(span.first, span.states)]
        if ranges:
            self._ready.append(Acknowledgements(partition, spans[0].topic_id, spans[0].node_id, ranges))
            for span in spans:
                span.states[:] = span.states.translate(_SENDING)
