"""buffer_memory: how many bytes batches may hold, and the calls that wait for room. First come, first served.

A call that finds no room queues a `Reservation`. Memory that comes free is granted to the oldest reservation that it
suffices for; nothing overtakes it. A reservation is large enough for a whole batch, and most batches have room for more
than one record: so the memory is granted to a `Share`, the oldest call and those after it, for the same partition,
whose records fit into the same batch. All of them are woken at once. The first of them that runs opens the batch, the
others add their records to it, and no other call finds it before they have: each of them has room without a second try.

The accumulator's lock guards all of this. The futures in the lists that the methods return are completed by the caller.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import count, takewhile
from typing import TYPE_CHECKING, Final, Protocol

from kafka.future import Future
from kafka.record.header import V2_HEADER_SIZE

if TYPE_CHECKING:
    from kafka._runtime.tasks import Pending
    from kafka.producer.producer_batch import ProducerBatch

__all__ = ["BufferPool", "Reservation", "Share"]

_NUMBERS: Final = count()


class Share:
    """The memory for one batch, and the calls that were woken to fill it."""

    __slots__ = ("batch", "held", "members", "target")

    def __init__(self, target: object, held: int) -> None:
        self.target = target
        self.held = held
        """Bytes that were granted, and were neither spent nor released."""
        self.batch: ProducerBatch | None = None
        """The batch, once one of the calls has opened it. It has room for the records of all members."""
        self.members: dict[Reservation, None] = {}
        """The calls that have neither added their record nor left."""


class Reservation:
    """A place in the queue for memory.

    A call that leaves the queue, at whatever point, cancels its reservation (`BufferPool.cancel`). Cancelling it twice,
    or after its memory was spent, changes nothing.
    """

    __slots__ = ("number", "ready", "record_size", "share", "size", "target")

    def __init__(self, size: int, target: object = None, record_size: int = 0, ready: Pending | None = None) -> None:
        self.size = size
        """Bytes that a new batch with this record takes."""
        self.target = target
        """The partition, or topic, that the record is for; None if it cannot join another call's batch."""
        self.record_size = record_size
        """Bytes that the record takes in an open batch, or more."""
        self.number = next(_NUMBERS)
        self.share: Share | None = None
        """The memory that was granted to this call and to others."""
        self.ready: Pending = Future() if ready is None else ready
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
    >>> pool.release(batch, 60) == [waiting], waiting.share.held, pool.free
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

    def allocate(self, holder: Holder, size: int, share: Share | None = None) -> None:
        """Give memory to a holder: that of a share, or `size` bytes even if there is too little.

        Ctrl-C comes before or after that, here as in `release`: there is no call between the two stores.
        """
        if share is None:
            self.free, holder.reserved = self.free - size, size
        else:
            holder.reserved, share.held = share.held, 0

    def release(self, holder: Holder, left: int = 0) -> list[Reservation]:
        """Take memory from a holder, all but `left` bytes; return the reservations that were granted with it."""
        self.free, holder.reserved = self.free + holder.reserved - left, left
        return self.grant() if self._waiting else []

    # Waiting…

    def queue(self, reservation: Reservation) -> None:
        """Add a reservation at the end of the queue."""
        self._waiting[reservation] = None
        target = reservation.target
        if target is not None:
            same = self._by_target.get(target)
            if same is None:
                same = self._by_target[target] = OrderedDict()
            same[reservation] = None

    def queue_again(self, reservation: Reservation, ready: Pending) -> list[Reservation]:
        """Put a reservation whose batch was closed early back in its place; return what is granted."""
        reservation.ready = ready
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
        """Grant free memory to the oldest reservations, and to reservations that fit into their batches; return all."""
        granted: list[Reservation] = []
        while self._waiting and (first := next(iter(self._waiting))).size <= self.free:
            share = Share(first.target, 0)
            self._remove(first)
            first.share = share
            share.members[first] = None
            self.free, share.held = self.free - first.size, first.size
            granted.append(first)
            granted += self.join(share, first.size - V2_HEADER_SIZE - first.record_size)
        return granted

    def join(self, share: Share, room: int) -> list[Reservation]:
        """Take the oldest reservations for the target of a share out of the queue, as many as fit into `room` bytes."""
        same = self._by_target.get(share.target)
        if not same:
            return []
        joined: list[Reservation] = []
        members, waiting = share.members, self._waiting
        for reservation in same:
            room -= reservation.record_size
            if room < 0:
                break
            joined.append(reservation)
        for reservation in joined:
            waiting.pop(reservation, None)
            same.pop(reservation, None)
            reservation.share = share
            members[reservation] = None
        if not same:
            self._by_target.pop(share.target, None)
        return joined

    def leave(self, reservation: Reservation) -> Share | None:
        """Take a reservation out of its share; return that if it was the last one there."""
        share, reservation.share = reservation.share, None
        if share is None:
            return None
        share.members.pop(reservation, None)
        return None if share.members else share

    def give_back(self, share: Share) -> list[Reservation]:
        """Release what a share holds still; return what is granted with that."""
        self.free, share.held = self.free + share.held, 0
        return self.grant() if self._waiting else []

    def cancel(self, reservation: Reservation) -> list[Reservation]:
        """Take a reservation out of the queue or its share; return what is granted without it."""
        self._remove(reservation)
        share = self.leave(reservation)
        if share is not None:
            return self.give_back(share)
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
