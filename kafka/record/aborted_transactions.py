"""The records of aborted transactions in a fetched buffer: which batches have them. Sans-IO."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heappop
from typing import TYPE_CHECKING, Final

from kafka.record.batch import control_type

if TYPE_CHECKING:
    from kafka.record.batch import RecordsPayload
    from kafka.record.header import BatchHeader

__all__ = ["AbortedTransactionFilter"]

_ABORT: Final = 0


class AbortedTransactionFilter:
    """The aborted transactions in a buffer, as the fetch response lists them; asks are to come in the batches' order.

    A transaction reaches from its first offset to its producer's next abort marker. Its batches are known by the
    producer's id, because a producer has one transaction at a time.

    >>> aborted = AbortedTransactionFilter([(7, 100)])
    >>> bool(aborted), bool(AbortedTransactionFilter([]))
    (True, False)
    """

    __slots__ = ("_active", "_pending")

    def __init__(self, aborted: Iterable[tuple[int, int]]) -> None:
        """Take the producer id and the first offset of each, in any order."""
        self._pending = [(first, producer) for producer, first in aborted]
        heapify(self._pending)
        self._active: set[int] = set()

    def __bool__(self) -> bool:
        """Whether any may still concern a batch."""
        return bool(self._pending or self._active)

    def copy(self) -> AbortedTransactionFilter:
        """Return a filter in the same state."""
        other = AbortedTransactionFilter(())
        other._pending, other._active = self._pending.copy(), self._active.copy()
        return other

    def covers(self, header: BatchHeader, unpack: Callable[[BatchHeader], RecordsPayload]) -> bool:
        """Whether the batch is of an aborted transaction. ``unpack`` opens a marker, if its type matters."""
        pending, active = self._pending, self._active
        while pending and pending[0][0] <= header.last_offset:
            active.add(pending[0][1])  # before it is taken away: an interruption in between may not lose it
            heappop(pending)
        if header.producer_id not in active:
            return False
        if header.is_control:
            if control_type(unpack(header), header) == _ABORT:
                active.discard(header.producer_id)
            return False
        return header.is_transactional
