"""How the application's thread waits for the loop to bring something, and is woken for other reasons.

The waiting thread first hangs up a fresh future and then looks whether there is something; whoever
brings something puts it down first and then takes the future. So nothing is missed, and while
nobody waits ringing costs one attribute.
"""

from __future__ import annotations

from kafka.future import Future

__all__ = ["Doorbell"]


class Doorbell:
    """Ends the wait in poll.

    >>> bell = Doorbell()
    >>> future = bell.hang_up()
    >>> bell.ring()
    >>> future.is_done
    True
    """

    __slots__ = ("_future",)

    def __init__(self) -> None:
        self._future: Future[None] | None = None

    def hang_up(self) -> Future[None]:
        """Return the future to wait for, after one more look at what there is."""
        future = self._future = Future[None]()
        return future

    def take_down(self) -> None:
        """Nobody waits any more."""
        self._future = None

    def ring(self) -> None:
        """Wake who waits, if anybody does. Safe from every thread."""
        future = self._future
        if future is not None:  # and it stays: a ring that is slow must not take down what was hung up since
            future.try_success(None)
