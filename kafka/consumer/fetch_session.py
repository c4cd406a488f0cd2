"""A broker's fetch session: each request names only the partitions that changed (KIP-227). Sans-IO.

The first request of a session is full and has epoch 0; the response has the session's id, and each further request the
next epoch. When a response is lost or the broker has dropped the session, the next request is full again and replaces
it. A broker that returns no id keeps no session: then all requests are full.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple
from uuid import UUID

from kafka.errors import Code
from kafka.structs import TopicPartition

__all__ = ["NO_TOPIC_ID", "FetchSession", "Outgoing", "Wanted"]

NO_TOPIC_ID: Final = UUID(int=0)
_SESSIONLESS: Final = -1
_LAST_EPOCH: Final = 2**31 - 1


class Wanted(NamedTuple):
    """One partition of a request; it is sent again when any of its fields has changed."""

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

    def next(
        self, wanted: Mapping[TopicPartition, Wanted], touched: Iterable[TopicPartition] | None = None
    ) -> Outgoing:
        """Return the next request's part, for all partitions that are wanted: all with topic ids, or all without.

        `touched` has each partition that may differ from the last request, or is gone since; None if that is not known.
        """
        if not self.enabled:
            return Outgoing(0, _SESSIONLESS, wanted, ())
        by_id = bool(wanted) and next(iter(wanted.values())).topic_id is not NO_TOPIC_ID
        if by_id != self._by_id and wanted:
            # A session goes by names or by ids, not by both (KIP-516).
            self._by_id = by_id
            self.failed()
        known = self._known
        if self.epoch == 0:
            self._known = dict(wanted)
            return Outgoing(self.id, 0, wanted, ())
        changed: dict[TopicPartition, Wanted] = {}
        forgotten: list[tuple[TopicPartition, UUID]] = []
        for partition in {**known, **wanted} if touched is None else touched:
            before, entry = known.get(partition), wanted.get(partition)
            if entry == before:
                continue
            if entry is None:
                forgotten.append((partition, known.pop(partition).topic_id))
                continue
            if before is not None and entry.topic_id is not before.topic_id and entry.topic_id != before.topic_id:
                # A topic that was created again under the same name has another id: the old one is forgotten.
                forgotten.append((partition, before.topic_id))
            changed[partition] = known[partition] = entry
        return Outgoing(self.id, self.epoch, changed, forgotten)

    def answered(self, session_id: int) -> None:
        """Record a response without an error."""
        if not self.enabled:
            return
        if session_id == 0:
            self.id = self.epoch = 0
        elif self.epoch == 0 or session_id != self.id:
            self.id, self.epoch = session_id, 1
        else:
            self.epoch = 1 if self.epoch == _LAST_EPOCH else self.epoch + 1

    def refused(self, error_code: int) -> None:
        """Record that the broker does not have the session, or not at this epoch."""
        if error_code == Code.FETCH_SESSION_ID_NOT_FOUND:
            self.id = 0
        self.failed()

    def failed(self) -> None:
        """Start a new session with the next request, which ends the old one: its epoch at the broker is unknown."""
        self.epoch = 0

    def closing(self) -> Outgoing | None:
        """Return the request that ends the session; None if there is none."""
        if not self.id:
            return None
        return Outgoing(self.id, _SESSIONLESS, {}, ())
