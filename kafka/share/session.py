"""A broker's share session: which request has which epoch, and which partitions it must name (KIP-932). Sans-IO.

A member has one session with each broker. Epoch 0 opens it, and may carry no acknowledgements; each further request,
a ShareFetch or a ShareAcknowledge, has the next epoch, and epoch -1 closes it: then the broker releases what the member
has. The broker keeps the session's partitions, so a fetch names the partitions that are new and the ones to forget.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

Place: TypeAlias = tuple[UUID, int]
"""A partition: the id of its topic, and its number."""

OPENING: Final = 0
CLOSING: Final = -1
_LAST_EPOCH: Final = 2**31 - 1


class SharedFetch(NamedTuple):
    """The part of a fetch that depends on the session."""

    epoch: int
    added: Collection[Place]
    forgotten: Collection[Place]


class ShareSession:
    """The session with one broker.

    >>> session = ShareSession()
    >>> a, b = (UUID(int=1), 0), (UUID(int=1), 1)
    >>> session.fetch([a, b]).epoch
    0
    >>> session.answered()
    >>> after = session.fetch([b])
    >>> after.epoch, list(after.added), list(after.forgotten) == [a]
    (1, [], True)
    """

    def __init__(self) -> None:
        self.epoch = OPENING
        """The epoch of the next request."""
        self._known: tuple[Place, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether the broker has it, as far as is known."""
        return self.epoch != OPENING

    def fetch(self, wanted: Collection[Place]) -> SharedFetch:
        """Return the next fetch's part, which is to read these partitions."""
        known = self._known if self.is_open else ()
        self._known = tuple(wanted)
        return SharedFetch(
            self.epoch,
            [place for place in wanted if place not in known],
            [place for place in known if place not in wanted],
        )

    def answered(self) -> None:
        """Record a response without an error of the whole request."""
        self.epoch = 1 if self.epoch == _LAST_EPOCH else self.epoch + 1

    def failed(self) -> None:
        """Open another one with the next fetch: the broker does not have this one, or its epoch there is unknown."""
        self.epoch = OPENING
        self._known = ()
