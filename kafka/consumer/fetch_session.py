"""What a broker remembers of our fetches, so that a request names only what has changed (KIP-227). Sans-IO.

The first request of a session is full and has epoch 0; the reply gives the session an id, and each
further request the next epoch. When a reply is lost or the broker has forgotten the session, the
next request is full again and replaces it. A broker that gives no id keeps no session: then all
requests are full.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple
from uuid import UUID

from kafka.structs import TopicPartition

__all__ = ["NO_TOPIC_ID", "FetchSession", "Outgoing", "Wanted"]

NO_TOPIC_ID: Final = UUID(int=0)
_SESSIONLESS: Final = -1
_LAST_EPOCH: Final = 2**31 - 1
_ID_NOT_FOUND: Final = 70


class Wanted(NamedTuple):
    """What is asked of one partition; a broker is told again when any of it has changed."""

    offset: int
    leader_epoch: int
    last_epoch: int
    max_bytes: int
    topic_id: UUID = NO_TOPIC_ID


class Outgoing(NamedTuple):
    """The part of a request that depends on the session."""

    session_id: int
    epoch: int
    wanted: Mapping[TopicPartition, Wanted]
    forgotten: Iterable[tuple[TopicPartition, UUID]]


class FetchSession:
    """The session of one connection.

    >>> session = FetchSession()
    >>> a, b = TopicPartition("t", 0), TopicPartition("t", 1)
    >>> out = session.next({a: Wanted(0, -1, -1, 100), b: Wanted(0, -1, -1, 100)})
    >>> out.epoch, len(out.wanted)
    (0, 2)
    >>> session.answered(7)
    >>> out = session.next({a: Wanted(5, -1, -1, 100)})
    >>> out.session_id, out.epoch, list(out.wanted), [partition for partition, _ in out.forgotten]
    (7, 1, [TopicPartition(topic='t', partition=0)], [TopicPartition(topic='t', partition=1)])
    """

    def __init__(self, *, enabled: bool = True) -> None:
        self.enabled = enabled
        self.id = 0
        self.epoch = 0
        self._known: dict[TopicPartition, Wanted] = {}
        self._by_id = False

    def next(self, wanted: Mapping[TopicPartition, Wanted]) -> Outgoing:
        """Return what the next request says, given all that is wanted."""
        if not self.enabled:
            return Outgoing(0, _SESSIONLESS, wanted, ())
        by_id = all(entry.topic_id != NO_TOPIC_ID for entry in wanted.values())
        if by_id != self._by_id and wanted:
            # A session goes by names or by ids, not by both (KIP-516).
            self._by_id = by_id
            self.failed()
        if self.epoch == 0:
            self._known = dict(wanted)
            return Outgoing(self.id, 0, wanted, ())
        changed = {partition: entry for partition, entry in wanted.items() if self._known.get(partition) != entry}
        # A topic that was made anew under the same name is another one: the old one goes.
        forgotten = [
            (partition, entry.topic_id)
            for partition, entry in self._known.items()
            if partition not in wanted or wanted[partition].topic_id != entry.topic_id
        ]
        self._known = dict(wanted)
        return Outgoing(self.id, self.epoch, changed, forgotten)

    def answered(self, session_id: int) -> None:
        """Take note of a reply without an error."""
        if not self.enabled:
            return
        if session_id == 0:
            self.id = self.epoch = 0
        elif self.epoch == 0 or session_id != self.id:
            self.id, self.epoch = session_id, 1
        else:
            self.epoch = 1 if self.epoch == _LAST_EPOCH else self.epoch + 1

    def refused(self, error_code: int) -> None:
        """Take note that the broker does not have the session, or not at this epoch."""
        if error_code == _ID_NOT_FOUND:
            self.id = 0
        self.failed()

    def failed(self) -> None:
        """Start a new one with the next request; it ends the old one, of which nobody knows where it is."""
        self.epoch = 0

    def closing(self) -> Outgoing | None:
        """Return the request that ends the session; None if there is none."""
        if not self.id:
            return None
        return Outgoing(self.id, _SESSIONLESS, {}, ())
