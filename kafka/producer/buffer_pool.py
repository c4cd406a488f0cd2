"""buffer_memory: how many bytes batches may hold, and the calls that wait for room. First come, first served.

A call that finds no room queues a `Reservation` of the size of a batch. Memory that comes free is granted to the oldest
one that it suffices for; nothing overtakes it. The call then adds its record to a batch that is open by then, and gives
the memory back, or opens a batch with it.

The accumulator's lock guards all of this. The futures in the lists that the methods return are completed by the caller.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Protocol

from kafka.future import Future

if TYPE_CHECKING:
    from kafka._runtime.tasks import Pending

__all__ = ["BufferPool", "Reservation"]


class Reservation:
    """A place in the queue for memory. A call that leaves the queue cancels it (`BufferPool.cancel`), at any point."""

    __slots__ = ("held", "ready", "size")

    def __init__(self, size: int, ready: Pending | None = None) -> None:
        self.size = size
        """Bytes that a new batch with this record takes."""
        self.held = 0
        """Bytes that were granted, and were neither spent nor released."""
        self.ready: Pending = Future() if ready is None else ready
        """Done when there is memory; it fails where records are not accepted any more."""


class Holder(Protocol):
    """An object that holds memory and stores how much: a batch."""

    reserved: int


class BufferPool:
    """A number of bytes to be allocated and released.

    >>> from types import SimpleNamespace
    >>> pool = BufferPool(100)
    >>> batch = SimpleNamespace(reserved=0)
    >>> pool.allocate(batch, 80)
    >>> pool.has(10), pool.has(30)
    (True, False)
    >>> waiting = Reservation(30)
    >>> pool.queue(waiting)
    >>> pool.has(10)  # the reservation is older
    False
    >>> pool.release(batch, 60) == [waiting], waiting.held, pool.free
    (True, 30, 10)
    """

    __slots__ = ("_waiting", "free", "total")

    def __init__(self, total: int) -> None:
        self.total = total
        self.free = total
        # 10,000 tasks may wait, and each may be cancelled; a dict takes longer to find its first entry with each that
        # was removed before it.
        self._waiting: OrderedDict[Reservation, None] = OrderedDict()

    @property
    def has_waiters(self) -> bool:
        """Whether a call waits."""
        return bool(self._waiting)

    @property
    def waiting(self) -> int:
        """How many calls wait."""
        return len(self._waiting)

    def has(self, size: int) -> bool:
        """Whether there is enough, and no call waits."""
        return not self._waiting and size <= self.free

    # Ctrl-C comes before or after each of these: there is no call between the two stores.

    def allocate(self, holder: Holder, size: int) -> None:
        """Give memory to a holder, even if there is too little."""
        self.free, holder.reserved = self.free - size, size

    def release(self, holder: Holder, left: int = 0) -> list[Reservation]:
        """Take memory from a holder, all but `left` bytes; return the reservations that were granted with it."""
        self.free, holder.reserved = self.free + holder.reserved - left, left
        return self.grant() if self._waiting else []

    def give_back(self, reservation: Reservation) -> None:
        """Take back what a reservation was granted; `grant` must follow, when its call has taken what it needs."""
        self.free, reservation.held = self.free + reservation.held, 0

    # Waiting…

    def queue(self, reservation: Reservation) -> None:
        """Add a reservation at the end of the queue."""
        self._waiting[reservation] = None

    def grant(self) -> list[Reservation]:
        """Grant free memory to the oldest reservations; return them."""
        granted: list[Reservation] = []
        while self._waiting and (first := next(iter(self._waiting))).size <= self.free:
            del self._waiting[first]
            self.free, first.held = self.free - first.size, first.size
            granted.append(first)
        return granted

    def cancel(self, reservation: Reservation) -> list[Reservation]:
        """Take a reservation out of the queue, and its memory back; return what is granted without it. Idempotent."""
        self._waiting.pop(reservation, None)
        self.give_back(reservation)
        return self.grant()

    def refuse_all(self) -> list[Reservation]:
        """Empty the queue; return the reservations, whose futures the caller fails."""
        refused, self._waiting = list(self._waiting), OrderedDict()
        return refused
