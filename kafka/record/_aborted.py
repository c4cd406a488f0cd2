"""Which batches of a fetched buffer belong to aborted transactions, as the fetch response lists these."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heappop
from typing import Final

from kafka.record.batch import Body, control_type
from kafka.record.header import BatchHeader

__all__ = ["Aborted"]

_ABORT: Final = 0


class Aborted:
    """The aborted transactions in a buffer; its batches are to be asked about in their order.

    A transaction reaches from its first offset to its producer's next abort marker. Its batches are known by the
    producer's id, as that has one transaction at a time.

    >>> aborted = Aborted([(7, 100)])
    >>> bool(aborted), bool(Aborted([]))
    (True, False)
    """

    __slots__ = ("_begun", "_coming")

    def __init__(self, aborted: Iterable[tuple[int, int]]) -> None:
        """Take the producer id and the first offset of each, in any order."""
        self._coming = [(first, producer) for producer, first in aborted]
        heapify(self._coming)
        self._begun: set[int] = set()

    def __bool__(self) -> bool:
        """Whether any may still concern a batch."""
        return bool(self._coming or self._begun)

    def copy(self) -> Aborted:
        """Return another that knows the same."""
        other = Aborted(())
        other._coming, other._begun = self._coming.copy(), self._begun.copy()
        return other

    def covers(self, header: BatchHeader, unpack: Callable[[BatchHeader], Body]) -> bool:
        """Whether the batch is of an aborted transaction. ``unpack`` opens a marker, if it has to be looked into."""
        coming, begun = self._coming, self._begun
        while coming and coming[0][0] <= header.last_offset:
            begun.add(coming[0][1])  # before it is taken away: an interruption in between may not lose it
            heappop(coming)
        if header.producer_id not in begun:
            return False
        if header.is_control:
            if control_type(unpack(header), header) == _ABORT:
                begun.discard(header.producer_id)
            return False
        return header.is_transactional
