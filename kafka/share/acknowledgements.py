"""Acknowledgements: their types, those on the way to a broker, and their form in a request. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka.future import Future

if TYPE_CHECKING:
    from uuid import UUID

    from kafka.errors import KafkaError
    from kafka.structs import TopicPartition


class AcknowledgeType(IntEnum):
    """The outcome of a record that a member has acquired, as the member tells the broker.

    >>> AcknowledgeType.ACCEPT.name, int(AcknowledgeType.RENEW)
    ('ACCEPT', 4)
    """

    ACCEPT = 1
    """It is done."""
    RELEASE = 2
    """It could not be done now: the group delivers it again, until it has done so share.delivery.count.limit times."""
    REJECT = 3
    """It cannot be done: the group does not deliver it again."""
    RENEW = 4
    """It takes longer: the member keeps it for another share.record.lock.duration.ms."""


#: The type for an offset that was acquired and has no record: compaction removed it, or it is a control record.
GAP: Final = 0


class AcknowledgedRange(NamedTuple):
    """Consecutive offsets in a request, with one type for all or one for each."""

    first: int
    last: int
    types: list[int]


class Acknowledgements:
    """Acknowledgements of one partition on the way to the broker from which the member acquired the records."""

    __slots__ = ("deadline", "done", "failures", "node_id", "partition", "ranges", "topic_id")

    def __init__(
        self, partition: TopicPartition, topic_id: UUID, node_id: int, ranges: Iterable[AcknowledgedRange]
    ) -> None:
        self.partition = partition
        self.topic_id = topic_id
        self.node_id = node_id
        self.ranges = sorted(ranges)
        """Ascending, without overlaps, as a request has them."""
        self.deadline: float | None = None
        """Until when they may be sent again after an error that may pass, and that they are not sent with a fetch,
        which may wait at the broker; None: once."""
        self.failures = 0
        self.done: Future[KafkaError | None] = Future()
        """Resolves to the broker's answer: None, or the error. It never fails."""

    @property
    def count(self) -> int:
        """How many offsets there are."""
        return sum([last - first + 1 for first, last, _ in self.ranges])

    @property
    def types(self) -> dict[int, int]:
        """The type for each offset."""
        return types_of(self.ranges)

    @property
    def renews(self) -> bool:
        """Whether locks are renewed."""
        return any(AcknowledgeType.RENEW in types for _, _, types in self.ranges)


def acknowledged_ranges(types: Mapping[int, int]) -> list[AcknowledgedRange]:
    """Return acknowledgements as a request has them: ascending, without overlaps, one entry per run of offsets.

    >>> acknowledged_ranges({7: 2, 4: 1, 5: 1, 8: 1})
    [AcknowledgedRange(first=4, last=5, types=[1]), AcknowledgedRange(first=7, last=8, types=[2, 1])]
    """
    runs: list[tuple[int, bytearray]] = []
    for offset in sorted(types):
        if not runs or offset != runs[-1][0] + len(runs[-1][1]):
            runs.append((offset, bytearray()))
        runs[-1][1].append(types[offset])
    return [one for first, run in runs for one in runs_of_types(first, run)]


def types_of(ranges: Iterable[AcknowledgedRange]) -> dict[int, int]:
    """Return the type for each offset: what `acknowledged_ranges` was given."""
    return {
        offset: types[offset - first if len(types) > 1 else 0]
        for first, last, types in ranges
        for offset in range(first, last + 1)
    }


_TYPES: Final = re.compile(b"[\0-\4]+")


def runs_of_types(first: int, states: bytes | bytearray) -> Iterable[AcknowledgedRange]:
    """Yield the acknowledgements in a row of bytes from an offset on; bytes above 4 are none.

    >>> list(runs_of_types(7, bytes([1, 1, 255, 2, 3])))
    [AcknowledgedRange(first=7, last=8, types=[1]), AcknowledgedRange(first=10, last=11, types=[2, 3])]
    """
    for found in _TYPES.finditer(states):
        run = found.group()
        is_one = run.count(run[:1]) == len(run)
        yield AcknowledgedRange(first + found.start(), first + found.end() - 1, list(run[:1] if is_one else run))
