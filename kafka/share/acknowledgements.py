"""Acknowledgements: their types, those on the way to a broker, and their form in a request. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka.future import Future

if TYPE_CHECKING:
    from uuid import UUID

    from kafka.errors import KafkaError
    from kafka.structs import TopicPartition

__all__ = ["GAP", "AcknowledgeType", "AcknowledgedRange", "Acknowledgements", "acknowledged_ranges"]


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


class Acknowledgements:
    """Acknowledgements of one partition on the way to the broker from which the member acquired the records."""

    __slots__ = ("deadline", "done", "failures", "node_id", "partition", "topic_id", "types")

    def __init__(self, partition: TopicPartition, topic_id: UUID, node_id: int, types: Mapping[int, int]) -> None:
        self.partition = partition
        self.topic_id = topic_id
        self.node_id = node_id
        self.types = types
        """The type for each offset."""
        self.deadline: float | None = None
        """Until when they may be sent again after an error that may pass, and that they are not sent with a fetch,
        which may wait at the broker; None: once."""
        self.failures = 0
        self.done: Future[KafkaError | None] = Future()
        """Resolves to the broker's answer: None, or the error. It never fails."""

    @property
    def renews(self) -> bool:
        """Whether locks are renewed."""
        return AcknowledgeType.RENEW in self.types.values()


class AcknowledgedRange(NamedTuple):
    """Consecutive offsets in a request, with one type for all or one for each."""

    first: int
    last: int
    types: list[int]


def acknowledged_ranges(types: Mapping[int, int]) -> list[AcknowledgedRange]:
    """Return acknowledgements as a request has them: ascending, without overlaps, one entry per run of offsets.

    >>> acknowledged_ranges({7: 2, 4: 1, 5: 1, 8: 1})
    [AcknowledgedRange(first=4, last=5, types=[1]), AcknowledgedRange(first=7, last=8, types=[2, 1])]
    """
    found: list[AcknowledgedRange] = []
    first = before = -2
    run: list[int] = []
    for offset in sorted(types):
        if offset != before + 1:
            if run:
                found.append(_range(first, run))
            first, run = offset, []
        run.append(int(types[offset]))
        before = offset
    if run:
        found.append(_range(first, run))
    return found


def _range(first: int, run: list[int]) -> AcknowledgedRange:
    same = run.count(run[0]) == len(run)
    return AcknowledgedRange(first, first + len(run) - 1, run[:1] if same else run)
