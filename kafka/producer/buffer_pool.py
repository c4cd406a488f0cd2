"""buffer_memory: how many bytes batches may hold, and the calls that wait for room. First come, first served.

A call that finds no room queues a `Reservation`. Memory that comes free is granted to the oldest reservation that it
suffices for; nothing overtakes it. A reservation is large enough for a whole batch, and most batches have room for more
than one record: when one is opened, the next call whose record fits into that batch is woken too, and when that has
added its record the next one. Such a call holds no memory, and if it finds the batch closed it returns to its place.

The accumulator's lock guards all of this. The futures in the lists that the methods return are completed by the caller.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import count, takewhile
from typing import Any, Final, Protocol

from kafka.future import Future

__all__ = ["BufferPool", "Reservation"]

_NUMBERS: Final = count()


class Reservation:
    """A place in the queue for memory.

    A call that leaves the queue, at whatever point, cancels its reservation (`BufferPool.cancel`). A reservation knows
    what it holds, so that cancelling it twice, or after its memory was spent, changes nothing.
    """

    __slots__ = ("batch", "held", "number", "ready", "record_size", "size", "target")

    def __init__(self, size: int, target: object = None, record_size: int = 0) -> None:
        self.size = size
        """Bytes that a new batch with this record takes."""
        self.target = target
        """The partition, or topic, that the record is for; None if it cannot join another call's batch."""
        self.record_size = record_size
        """Bytes that the record takes in an open batch, or more."""
        self.number = next(_NUMBERS)
        self.held = 0
        """Bytes that were granted, and were neither spent nor given back."""
        self.batch: Any = None
        """The batch of another call that this record fits into."""
        self.ready: Future[None] = Future()
        """Done when the call can try; it fails where records are not accepted any more."""


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

    __slots__ = ("_by_target", "_waiting", "free", "total")

    def __init__(self, total: int) -> None:
        self.total = total
        self.free = total
        self._waiting: OrderedDict[Reservation, None] = OrderedDict()
        self._by_target: dict[object, OrderedDict[Reservation, None]] = {}

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

    def allocate(self, holder: Holder, size: int, reservation: Reservation | None = None) -> None:
        """Give memory to a holder: that of a reservation, or `size` bytes even if there is too little.

        Ctrl-C comes before or after that, here as in `release`: there is no call between the two stores.
        """
        if reservation is None:
            self.free, holder.reserved = self.free - size, size
        else:
            holder.reserved, reservation.held = reservation.held, 0

    def release(self, holder: Holder, left: int = 0) -> list[Reservation]:
        """Take memory from a holder, all but `left` bytes; return the reservations that were granted with it."""
        self.free, holder.reserved = self.free + holder.reserved - left, left
        return self.grant() if self._waiting else []

    # Waiting…

    def queue(self, reservation: Reservation) -> None:
        """Add a reservation at the end of the queue."""
        self._waiting[reservation] = None
        if reservation.target is not None:
            self._by_target.setdefault(reservation.target, OrderedDict())[reservation] = None

    def queue_again(self, reservation: Reservation) -> list[Reservation]:
        """Put a reservation that was woken for another call's batch back in its place; return what is granted."""
        reservation.ready = Future()
        queues = [self._waiting]
        if reservation.target is not None:
            queues.append(self._by_target.setdefault(reservation.target, OrderedDict()))
        for queue in queues:
            older = list(takewhile(lambda other: other.number < reservation.number, queue))
            queue[reservation] = None
            for one in (reservation, *reversed(older)):
                queue.move_to_end(one, last=False)
        return self.grant()

    def grant(self) -> list[Reservation]:
        """Grant free memory to the oldest reservations; return them."""
        granted = []
        while self._waiting and (first := next(iter(self._waiting))).size <= self.free:
            self._remove(first)
            self.free, first.held = self.free - first.size, first.size
            granted.append(first)
        return granted

    def join(self, target: object, room: int) -> Reservation | None:
        """Take the oldest reservation for `target` out of the queue if its record fits into `room` bytes."""
        first = next(iter(self._by_target.get(target, ())), None)
        if first is None or first.record_size > room:
            return None
        self._remove(first)
        return first

    def cancel(self, reservation: Reservation) -> list[Reservation]:
        """Take a reservation out of the queue; its memory is released. Returns what was granted with that."""
        self._remove(reservation)
        held, reservation.held = reservation.held, 0
        self.free += held
        return self.grant()

    def refuse_all(self) -> list[Reservation]:
        """Empty the queue; return the reservations, whose futures the caller fails."""
        refused, self._waiting = list(self._waiting), OrderedDict()
        self._by_target.clear()
        return refused

    def _remove(self, reservation: Reservation) -> None:
        # Ctrl-C may come between any two steps: each works whether the others were done or not.
        self._waiting.pop(reservation, None)
        same = self._by_target.get(reservation.target)
        if same is not None:
            same.pop(reservation, None)
            if not same:
                self._by_target.pop(reservation.target, None)
