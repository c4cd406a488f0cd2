"""What a consumer may send: fetch sessions as KIP-227 has them, commits for partitions that it owns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from kafka.errors import KafkaError
from kafka.protocol.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.protocol.registry import ApiKey
from kafka.protocol.versioned import decode_versioned

if TYPE_CHECKING:
    from kafka.broker.server.call import Call
    from test.invariants.clients import Peer

__all__ = ["Commits", "FetchSessions"]

Report = Callable[[str, str], None]
Place = tuple[str, int]

_SESSIONS_FROM: Final = 7
_LAST_EPOCH: Final = 2**31 - 1


class _Session:
    """The fetch session of a client at one node, as the client must know it."""

    __slots__ = ("by_id", "connection", "ended_on", "epoch", "id", "is_usable", "partitions")

    def __init__(self, connection: int, *, by_id: bool) -> None:
        self.connection = connection
        self.by_id = by_id
        self.id = 0
        self.epoch = 0
        self.ended_on: int | None = None
        """The connection on which the client has ended it, which may overtake a request on another one."""
        self.is_usable = False
        """Whether the client has the last reply, and it was without an error: then the session continues."""
        self.partitions: set[tuple[Any, int]] = set()


class FetchSessions:
    """Ids and epochs of fetch sessions, and their partitions. A session may continue on another connection."""

    apis: frozenset[int] | None = frozenset({ApiKey.Fetch})

    def __init__(self, report: Report) -> None:
        self._report = report
        self._sessions: dict[tuple[Peer, int], _Session] = {}

    def arrived(self, peer: Peer, call: Call, request: Any) -> None:
        epoch, number = request.session_epoch, call.connection.number
        if call.version < _SESSIONS_FROM or (epoch == -1 and not request.session_id):
            return  # a request without a session, beside one or where the client has switched them off
        key = peer, call.node.node_id
        session = self._sessions.get(key)
        if epoch == -1:
            if session is not None:
                session.is_usable, session.ended_on = False, number
            return
        if epoch > 0 and _is_elsewhere(session, peer, request, number):
            return
        by_id = call.version > 12
        named = [(t.topic_id if by_id else t.topic, part.partition) for t in request.topics for part in t.partitions]
        if epoch > 0:
            problem = self._continued(session, request, by_id=by_id)
        else:
            problem = None if epoch == 0 else "an epoch below -1"
            if session is not None and session.is_usable and session.by_id == by_id:
                problem = "a full fetch, though the session could be continued"
            session = self._sessions[key] = _Session(number, by_id=by_id)
        if len(named) != len(set(named)):
            problem = problem or "a partition is named twice"
        if problem is not None:
            self._report("fetch sessions", f"{peer}: {problem}: {request}")
        if session is not None:
            session.is_usable = False  # until the reply says so
            session.connection = number
            session.partitions.update(named)

    def _continued(self, session: _Session | None, request: Any, *, by_id: bool) -> str | None:
        if not request.session_id:
            return "a session epoch without a session id"
        if session is None or not session.id:
            return "there is no session here"
        if session.ended_on is not None:
            return "the session was ended"
        if (session.id, session.epoch) != (request.session_id, request.session_epoch):
            return f"session {session.id} at epoch {session.epoch} follows"
        forgotten = {
            (topic.topic_id if by_id else topic.topic, index)
            for topic in request.forgotten_topics_data
            for index in topic.partitions
        }
        unknown = forgotten - session.partitions
        session.partitions -= forgotten
        return f"forgotten partitions that the session did not have: {unknown}" if unknown else None

    def answered(self, peer: Peer, call: Call, request: Any, reply: Any) -> None:
        session = self._sessions.get((peer, call.node.node_id))
        if session is None or reply is None or request.session_epoch < 0:
            return
        session.is_usable = not reply.error_code and reply.session_id != 0
        if session.is_usable:
            session.id = reply.session_id
            session.epoch = 1 if request.session_epoch == _LAST_EPOCH else request.session_epoch + 1
        else:
            session.id = 0

    def closed(self, connection: int) -> None:
        for session in self._sessions.values():
            if session.connection == connection:
                session.is_usable = False  # the reply may be lost; without that the session may continue


def _is_elsewhere(session: _Session | None, peer: Peer, request: Any, connection: int) -> bool:
    """Whether a session continues of which the rule does not know, as it depends on another connection."""
    if session is None:  # a program of another process is a peer for each connection, and its session outlives that
        return bool(request.session_id) and not peer.knows_options
    # One that was under way when the session was ended is refused.
    return bool(session.id) and session.ended_on not in {None, connection}


class _Member:
    """A member of a group: what it was assigned, by generation, and the offsets that it has committed."""

    def __init__(self) -> None:
        self.assigned: dict[int, set[Place]] = {}
        #: The classic generation before the last join, in which the coordinator has the member until the round's end.
        self.before: tuple[int, set[Place]] = (-1, set())
        self.committed: dict[Place, int] = {}


class Commits:
    """Commits of members: not backwards unless the position went back, and not for partitions of other members."""

    apis: frozenset[int] | None = frozenset(
        {ApiKey.Fetch, ApiKey.OffsetCommit, ApiKey.JoinGroup, ApiKey.SyncGroup, ApiKey.ConsumerGroupHeartbeat}
    )

    def __init__(self, report: Report) -> None:
        self._report = report
        self._members: dict[tuple[str, str], _Member] = {}
        #: The lowest offset that a client has fetched from since it committed.
        self._lowest: dict[Peer, dict[Place, float]] = {}
        #: Of topics that are deleted, too.
        self._names: dict[Any, str] = {}

    def sought(self, place: Place) -> None:
        """Take a position for one that went back: a commit behind a seek() may come before the fetch from there."""
        for lowest in self._lowest.values():
            lowest[place] = -1

    def arrived(self, peer: Peer, call: Call, request: Any) -> None:
        if ApiKey.Fetch == request.API_KEY:
            lowest = self._lowest.setdefault(peer, {})
            for topic in request.topics:
                name = self._name(call, topic.topic, topic.topic_id)
                for part in topic.partitions:
                    place = name, part.partition
                    lowest[place] = min(lowest.get(place, math.inf), part.fetch_offset)
        elif ApiKey.OffsetCommit == request.API_KEY and request.member_id:
            self._committed(peer, call, request)
        elif ApiKey.JoinGroup == request.API_KEY and request.member_id:
            member = self._member(request)
            last = max(member.assigned, default=-1)
            if member.before[0] != last:
                member.before = last, member.assigned.get(last, set())
            member.assigned = {last: _kept(request)}
        elif ApiKey.ConsumerGroupHeartbeat == request.API_KEY and request.topic_partitions is not None:
            # The member has these until it says otherwise, whatever it is told to give up.
            member = self._member(request)
            member.assigned.clear()
            member.assigned[request.member_epoch] = set(self._places(call, request.topic_partitions))

    def _member(self, request: Any) -> _Member:
        return self._members.setdefault((request.group_id, request.member_id), _Member())

    def _committed(self, peer: Peer, call: Call, request: Any) -> None:
        member = self._members.get((request.group_id, request.member_id))
        if member is None:
            return  # its assignment came before this broker
        generation = request.generation_id_or_member_epoch
        # What a rebalance takes away is committed in the new generation, before it is given up (KIP-429).
        owned = set().union(*(places for number, places in member.assigned.items() if number <= generation))
        # A join may overtake a commit, on another connection. Nobody else has these before the next generation, and
        # from then on the coordinator refuses the commit.
        if generation == member.before[0]:
            owned |= member.before[1]
        lowest = self._lowest.setdefault(peer, {})
        for topic in request.topics:
            name = self._name(call, topic.name, topic.topic_id)
            for part in topic.partitions:
                place, offset = (name, part.partition_index), part.committed_offset
                where = f"{peer}: group {request.group_id!r}, member {request.member_id!r}: {name}-{place[1]}"
                if place not in owned:
                    self._report("commits", f"{where}: committed, but not owned in generation {generation}: {owned}")
                before = member.committed.get(place, -1)
                if offset < before and lowest.get(place, math.inf) > offset:
                    self._report(
                        "commits", f"{where}: offset {offset} after {before}, and the position did not go back"
                    )

    def answered(self, peer: Peer, call: Call, request: Any, reply: Any) -> None:
        if reply is None:
            return
        if ApiKey.SyncGroup == request.API_KEY:
            if not reply.error_code:
                self._assigned(self._member(request), request.generation_id, _assignment(reply.assignment))
        elif ApiKey.ConsumerGroupHeartbeat == request.API_KEY:
            if not reply.error_code and reply.assignment is not None:
                member = self._members.setdefault((request.group_id, reply.member_id or request.member_id), _Member())
                given = set(self._places(call, reply.assignment.topic_partitions))
                member.assigned.setdefault(reply.member_epoch, set()).update(given)
        elif ApiKey.OffsetCommit == request.API_KEY and request.member_id:
            self._accepted(peer, call, request, reply)

    def _assigned(self, member: _Member, generation: int, places: set[Place] | None) -> None:
        if places is None:
            return  # another protocol than consumers'
        last = max((number for number in member.assigned if number < generation), default=None)
        member.assigned = {} if last is None else {last: member.assigned[last]}
        member.assigned[generation] = places

    def _accepted(self, peer: Peer, call: Call, request: Any, reply: Any) -> None:
        member = self._member(request)
        codes = {
            (self._name(call, topic.name, topic.topic_id), part.partition_index): part.error_code
            for topic in reply.topics
            for part in topic.partitions
        }
        lowest = self._lowest.setdefault(peer, {})
        for topic in request.topics:
            name = self._name(call, topic.name, topic.topic_id)
            for part in topic.partitions:
                place = name, part.partition_index
                if codes.get(place) == 0:
                    member.committed[place] = part.committed_offset
                    lowest.pop(place, None)

    def _name(self, call: Call, name: str, topic_id: Any) -> str:
        """Return a topic's name: newer versions have its id."""
        if name:
            return name
        found = call.cluster.topics_by_id.get(topic_id)
        if found is not None:
            self._names[topic_id] = found.name
        return self._names.get(topic_id, str(topic_id))

    def _places(self, call: Call, topics: Any) -> Iterator[Place]:
        for topic in topics:
            name = self._name(call, "", topic.topic_id)
            for index in topic.partitions:
                yield name, index

    def closed(self, connection: int) -> None:
        pass


def _assignment(data: bytes | None) -> set[Place] | None:
    """Return the partitions of a classic assignment; None for what is not a consumer's."""
    if not data:
        return set()
    try:
        decoded = decode_versioned(ConsumerProtocolAssignment, bytes(data))
    except KafkaError:
        return None
    return {(topic.topic, index) for topic in decoded.assigned_partitions for index in topic.partitions}


def _kept(request: Any) -> set[Place]:
    """Return the partitions that a classic member keeps while it joins again; none, unless it rebalances by KIP-429."""
    kept = set()
    for protocol in request.protocols:
        try:
            decoded = decode_versioned(ConsumerProtocolSubscription, bytes(protocol.metadata))
        except KafkaError:
            continue
        kept |= {(topic.topic, index) for topic in decoded.owned_partitions for index in topic.partitions}
    return kept
