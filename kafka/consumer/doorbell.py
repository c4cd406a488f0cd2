"""How a call waits for the loop to bring something, and is woken for other reasons.

A call that waits first takes the armed future and then looks whether there is something; the loop first brings
something and then completes the future. So nothing is missed, and while no call waits ringing costs little.
"""

from __future__ import annotations

from kafka.future import Future

__all__ = ["Doorbell"]


class Doorbell:
    """Ends the wait in poll().

    >>> bell = Doorbell()
    >>> future = bell.armed()
    >>> bell.ring()
    >>> future.is_done
    True
    """

    __slots__ = ("_future",)

    def __init__(self) -> None:
        self._future: Future[None] = Future()

    def armed(self) -> Future[None]:
        """Return the future that the next `ring` completes. Calls that wait at the same time share it."""
        future = self._future
        if future.is_done:
            future = self._future = Future[None]()
        return future

    def ring(self) -> None:
        """Wake the calls that wait. Safe from every thread."""
        self._future.try_success(None)
