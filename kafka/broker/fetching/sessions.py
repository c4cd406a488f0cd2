"""Incremental fetch sessions (KIP-227): the client names a partition once, and receives it when it has news.

Sessions belong to a node and are gone when it stops. A request carries a session id and an epoch:

======  =======  ============================================================================
id      epoch    meaning
======  =======  ============================================================================
any     -1       a full fetch, no session; ends the one with this id
any     0        a full fetch that begins a session; ends the one with this id
n       k > 0    the k-th request of session n: only what changes in the list of partitions
======  =======  ============================================================================
"""

from __future__ import annotations

from collections import OrderedDict
from random import Random
from typing import TYPE_CHECKING, Final, TypeAlias

from kafka.errors import Code

if TYPE_CHECKING:
    from uuid import UUID

    from kafka.protocol.fetch import FetchRequest

FINAL: Final = -1
INITIAL: Final = 0
_EPOCH_END: Final = 2**31 - 1
_IDS_FROM: Final = 13


class SessionRefused(Exception):  # noqa: N818 - an outcome, which becomes a code in the reply
    """The request does not continue a session that is there."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


Key: TypeAlias = "tuple[UUID | str, int]"
"""Topic (its name, or its id from v13 on) and partition."""


class RequestedPartition:
    """One partition as a client asks for it, with what an incremental session remembers of the last reply."""

    __slots__ = (
        "epoch",
        "index",
        "last_epoch",
        "max_bytes",
        "name",
        "offset",
        "sent_high_watermark",
        "sent_start",
        "topic_id",
    )

    def __init__(self, name: str, topic_id: UUID, part: FetchRequest.FetchPartition) -> None:
        self.name = name
        self.topic_id = topic_id
        self.index: int = part.partition
        #: The state in the last reply of the session; -1 before the first reply.
        self.sent_high_watermark = -1
        self.sent_start = -1
        self.update(part)

    def update(self, part: FetchRequest.FetchPartition) -> None:
        """Take what a later request of the session says."""
        self.offset: int = part.fetch_offset
        self.max_bytes: int = part.partition_max_bytes
        self.epoch: int = part.current_leader_epoch
        self.last_epoch: int = part.last_fetched_epoch


class FetchSession:
    """The partitions of one session, in the order in which they are read."""

    __slots__ = ("epoch", "requested", "session_id", "uses_ids")

    def __init__(self, session_id: int, uses_ids: bool) -> None:
        self.session_id = session_id
        self.uses_ids = uses_ids
        #: The epoch that the next request must have.
        self.epoch = 1
        self.requested: OrderedDict[Key, RequestedPartition] = OrderedDict()

    def advance(self) -> None:
        """Count a request; after 2**31 - 1 comes 1."""
        self.epoch = 1 if self.epoch == _EPOCH_END else self.epoch + 1


class FetchSessions:
    """The sessions of one node."""

    def __init__(self, random: Random, slots: int) -> None:
        self._random = random
        self._slots = slots
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def continue_session(self, request: FetchRequest) -> FetchSession:
        """Return the session of an incremental request, brought up to date by it; or raise SessionRefused."""
        session = self._sessions.get(request.session_id)
        if session is None:
            raise SessionRefused(Code.FETCH_SESSION_ID_NOT_FOUND)
        if request.session_epoch != session.epoch:
            raise SessionRefused(Code.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_ids != (request.API_VERSION >= _IDS_FROM):
            raise SessionRefused(Code.FETCH_SESSION_TOPIC_ID_ERROR)
        self._sessions.move_to_end(session.session_id)
        session.advance()
        _change(session, request)
        return session

    def begin(self, requested: OrderedDict[Key, RequestedPartition], uses_ids: bool) -> int:
        """Begin a session with these partitions; return its id, or 0 if there is not enough room."""
        if not requested or not self._slots:
            return 0
        while len(self._sessions) >= self._slots:
            self._sessions.popitem(last=False)
        session_id = 0
        while session_id == 0 or session_id in self._sessions:
            session_id = self._random.randrange(1, 2**31)
        session = self._sessions[session_id] = FetchSession(session_id, uses_ids)
        session.requested = requested
        return session_id

    def end(self, session_id: int) -> None:
        """End a session, if there is one of that id."""
        self._sessions.pop(session_id, None)


def partitions_of(request: FetchRequest) -> OrderedDict[Key, RequestedPartition]:
    """Return what a full request asks for."""
    by_id = request.API_VERSION >= _IDS_FROM
    requested: OrderedDict[Key, RequestedPartition] = OrderedDict()
    for topic in request.topics:
        key: UUID | str = topic.topic_id if by_id else topic.topic
        for part in topic.partitions:
            requested[key, part.partition] = RequestedPartition(topic.topic, topic.topic_id, part)
    return requested


def _change(session: FetchSession, request: FetchRequest) -> None:
    by_id = session.uses_ids
    requested = session.requested
    for topic in request.topics:
        key: UUID | str = topic.topic_id if by_id else topic.topic
        for part in topic.partitions:
            known = requested.get((key, part.partition))
            if known is None:
                requested[key, part.partition] = RequestedPartition(topic.topic, topic.topic_id, part)
            else:
                known.update(part)
    for forgotten in request.forgotten_topics_data:
        key = forgotten.topic_id if by_id else forgotten.topic
        for index in forgotten.partitions:
            requested.pop((key, index), None)
