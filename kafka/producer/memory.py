"""buffer_memory: how many bytes may be on their way, and who waits for some. First come, first served.

Guarded by the accumulator's lock; whoever holds it calls. The futures of those who were served are completed outside.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from kafka.future import Future

__all__ = ["Memory", "Ticket"]


class Ticket(Future[None]):
    """A place in the queue; done when the memory is the holder's.

    Whoever leaves the queue, for whatever reason and at whatever point, gives the ticket back (`Memory.leave`). It
    knows what it holds, so that doing so twice, or after the memory was spent or refused, changes nothing.
    """

    __slots__ = ("held", "size")

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.held = 0
        """What was granted and neither spent nor given back."""


class Holder(Protocol):
    """What knows by itself how much it holds: a batch."""

    reserved: int


class Memory:
    """A number of bytes to be taken and given back.

    >>> from types import SimpleNamespace
    >>> memory = Memory(100)
    >>> batch = SimpleNamespace(reserved=0)
    >>> memory.lend(batch, 80)
    >>> memory.has(10), memory.has(30)
    (True, False)
    >>> ticket = memory.queue(30)
    >>> memory.has(10)  # another was first
    False
    >>> [served.success(None).size for served in memory.take_back(batch, 60)], memory.free
    ([30], 10)
    """

    __slots__ = ("_waiting", "free", "total")

    def __init__(self, total: int) -> None:
        self.total = total
        self.free = total
        self._waiting: deque[Ticket] = deque()

    @property
    def waited_for(self) -> bool:
        """Whether a call waits."""
        return bool(self._waiting)

    @property
    def waiting(self) -> int:
        """How many calls wait."""
        return len(self._waiting)

    def has(self, size: int) -> bool:
        """Whether there is enough, and no call came first."""
        return not self._waiting and size <= self.free

    def lend(self, holder: Holder, size: int, ticket: Ticket | None = None) -> None:
        """Take memory for a holder, that of a ticket if there is one; without it even if there is too little.

        Ctrl-C comes before or after that, here as in `take_back`: there is no call between the two stores.
        """
        if ticket is None:
            self.free, holder.reserved = self.free - size, size
        else:
            holder.reserved, ticket.held = ticket.held, 0

    def take_back(self, holder: Holder, left: int = 0) -> list[Ticket]:
        """Take memory from a holder, all but what is left to it; return those who have theirs now."""
        self.free, holder.reserved = self.free + holder.reserved - left, left
        return self.give(0) if self._waiting else []

    def queue(self, size: int) -> Ticket:
        """Wait for memory."""
        ticket = Ticket(size)
        self._waiting.append(ticket)
        return ticket

    def give(self, size: int) -> list[Ticket]:
        """Give memory back; return those who have theirs now."""
        self.free += size
        served = []
        while self._waiting and self._waiting[0].size <= self.free:
            ticket = self._waiting.popleft()
            self.free, ticket.held = self.free - ticket.size, ticket.size
            served.append(ticket)
        return served

    def spend(self, ticket: Ticket) -> int:
        """Return what a ticket holds: it is the caller's now, to give back by itself."""
        held, ticket.held = ticket.held, 0
        return held

    def leave(self, ticket: Ticket) -> list[Ticket]:
        """Wait no more; memory that was granted meanwhile goes back. Returns who has theirs now."""
        if ticket in self._waiting:
            self._waiting.remove(ticket)
        return self.give(self.spend(ticket))

    def refuse_all(self) -> list[Ticket]:
        """Send everybody away; return whom to tell."""
        waiting, self._waiting = list(self._waiting), deque()
        return waiting
