"""The records of share groups, and what became of them (KIP-932)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from uuid import UUID

from kafka.broker.server.api import Call, Code, Operation, Resource
from kafka.broker.sharing.share_partition import RENEW, Acknowledgement, SharePartition
from kafka.broker.sharing.share_sessions import CLOSE, OPEN, Place, ShareSession, share_sessions
from kafka.errors import (
    InvalidRequestError,
    InvalidShareSessionEpochError,
    ShareSessionLimitReachedError,
    UnsupportedVersionError,
)
from kafka.protocol.share import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)

if TYPE_CHECKING:
    from kafka.broker.cluster.topics import Partition

_FEATURE: Final = "share.version"
#: Kafka's ids of members are UUIDs in text form.
_LONGEST_MEMBER_ID: Final = 36
Reply: TypeAlias = "dict[Place, ShareFetchResponse.PartitionData]"
_RECORD_LIMIT: Final = 1
_LEADER_CODES: Final = frozenset({Code.NOT_LEADER_OR_FOLLOWER})


def share_fetch(
    call: Call[ShareFetchResponse], request: ShareFetchRequest
) -> ShareFetchResponse | Awaitable[ShareFetchResponse]:
    """ShareFetch (78), versions 1-2: records for a member of a share group, and acknowledgements (KIP-932).

    * v1: limits in records; the reply says how long a member has them.
    * v2: an exact limit of records (KIP-1206); locks can be renewed (KIP-1222).
    """
    _check_member(call, request.group_id, request.member_id)
    group_id, member_id, epoch = request.group_id or "", request.member_id or "", request.share_session_epoch
    renews = call.version >= 2 and request.is_renew_ack
    if renews and (request.max_wait_ms or request.min_bytes or request.max_bytes or request.max_records):
        raise InvalidRequestError
    if epoch == OPEN and _acknowledgements_of(request.topics):
        raise InvalidRequestError
    sessions = share_sessions(call.node)
    places = [(topic.topic_id, part.partition_index) for topic in request.topics for part in topic.partitions]
    forgotten = [(topic.topic_id, index) for topic in request.forgotten_topics_data for index in topic.partitions]
    try:
        if epoch == OPEN:
            session = sessions.open(group_id, member_id, places, call.connection)
        else:
            session = sessions.resume(group_id, member_id, epoch, places, forgotten)
    except ShareSessionLimitReachedError as error:
        return _after_wait(call, request, call.response(error_code=error.code))
    acknowledging = _Acknowledging(call, group_id, member_id, request.topics, may_renew=renews)
    fetch = _Fetch(call, request, session)
    reads = epoch != CLOSE and not renews
    is_ready = reads and fetch.is_ready()
    if is_ready:
        # Before the acknowledgements: Kafka stores these meanwhile, so no fetch gets what it has released itself.
        fetch.read()
    acknowledging.do()
    fetch.acknowledged(acknowledging.codes)
    if epoch == CLOSE:
        sessions.close(group_id, member_id)
    return fetch.wait() if reads and not is_ready else fetch.answer()


async def _after_wait(
    call: Call[ShareFetchResponse], request: ShareFetchRequest, reply: ShareFetchResponse
) -> ShareFetchResponse:
    await call.cluster.sleep(request.max_wait_ms / 1000)
    return reply


class _Fetch:
    """The reading part of a request."""

    def __init__(self, call: Call[ShareFetchResponse], request: ShareFetchRequest, session: ShareSession) -> None:
        self._call = call
        self._request = request
        self._reply: Reply = {}
        self._has_errors = False
        self._deadline = call.cluster.clock.monotonic() + request.max_wait_ms / 1000
        # A member that reads several partitions begins with another one each time.
        places = list(session.places)
        turn = max(request.share_session_epoch, 0) % len(places) if places else 0
        self._places = places[turn:] + places[:turn]

    def _partitions(self) -> dict[Place, SharePartition]:
        """Return what can be read; errors are entered into the reply."""
        call, found = self._call, {}
        sessions = share_sessions(call.node)
        self._has_errors = False
        for place in self._places:
            partition, code = _find_partition(call, place)
            if partition is not None and partition.leader != call.node.node_id:
                code = Code.NOT_LEADER_OR_FOLLOWER
            if partition is None or code:
                self._has_errors = True
                data = self._reply.setdefault(place, _data(call, place))
                data.error_code = code
                if partition is not None:
                    data.current_leader = call.response.LeaderIdAndEpoch(partition.leader, partition.leader_epoch)
            else:
                found[place] = sessions.begin(self._request.group_id or "", partition)
        return found

    def is_ready(self) -> bool:
        """Whether there is enough to deliver, an error to report, or nothing to wait for."""
        request = self._request
        partitions = self._partitions()
        if self._has_errors or not partitions or min(request.max_wait_ms, request.max_bytes, request.max_records) <= 0:
            return True
        enough = max(1, request.min_bytes)
        size = 0
        for shared in partitions.values():
            size += shared.acquirable_bytes(enough - size)
            if size >= enough:
                return True
        return False

    def acknowledged(self, codes: dict[Place, int]) -> None:
        """Enter the outcome of acknowledgements."""
        for place, code in codes.items():
            self._reply.setdefault(place, _data(self._call, place)).acknowledge_error_code = code
            if code == Code.NOT_LEADER_OR_FOLLOWER and place in self._places:
                self._places.remove(place)  # the next fetch begins with what is stored

    async def wait(self) -> ShareFetchResponse:
        """Answer as soon as there is something, or when the time is up."""
        call = self._call
        while not self.is_ready():
            done: asyncio.Future[bool] = call.cluster.loop.create_future()

            def wake(is_late: bool = False, done: asyncio.Future[bool] = done) -> None:
                if not done.done():
                    done.set_result(is_late)

            watched = list(self._partitions().values())
            for shared in watched:
                shared.watch(wake)
            timer = call.cluster.timers.call_at(self._deadline, wake, True)
            try:
                is_late = await done
            finally:
                timer.cancel()
                for shared in watched:
                    shared.unwatch(wake)
            if is_late:
                break
        self.read()
        return self.answer()

    def answer(self) -> ShareFetchResponse:
        """Return the reply."""
        return _reply(self._call, self._request, self._reply)

    def read(self) -> None:
        """Deliver what there is."""
        call, request = self._call, self._request
        partitions = {place: shared for place, shared in self._partitions().items() if shared.acquirable_bytes(1)}
        left = request.max_records
        for place, shared in partitions.items():
            if left <= 0 or request.max_bytes <= 0:
                break
            acquired = shared.acquire(
                request.member_id or "",
                most=left,
                batch_size=max(1, request.batch_size),
                max_bytes=request.max_bytes // len(partitions),
                exactly=call.version >= 2 and request.share_acquire_mode == _RECORD_LIMIT,
            )
            if acquired.ranges:
                left -= acquired.count
                data = self._reply.setdefault(place, _data(call, place))
                data.records = acquired.data
                data.acquired_records = [call.response.AcquiredRecords(*one) for one in acquired.ranges]


def _data(call: Call[ShareFetchResponse], place: Place) -> ShareFetchResponse.PartitionData:
    return call.response.PartitionData(partition_index=place[1], records=b"", acquired_records=[])


def _reply(call: Call[ShareFetchResponse], request: ShareFetchRequest, reply: Reply) -> ShareFetchResponse:
    by_topic: dict[UUID, ShareFetchResponse.ShareFetchableTopicResponse] = {}
    leaders = set()
    for (topic_id, _), data in reply.items():
        topic = by_topic.get(topic_id)
        if topic is None:
            topic = by_topic[topic_id] = call.response.ShareFetchableTopicResponse(topic_id=topic_id, partitions=[])
        topic.partitions.append(data)
        if data.error_code in _LEADER_CODES:
            leaders.add(data.current_leader.leader_id)
    whole = call.response(responses=list(by_topic.values()))
    whole.acquisition_lock_timeout_ms = _lock_timeout_ms(call, request.group_id or "")
    whole.node_endpoints = [call.response.NodeEndpoint(*node) for node in call.cluster.endpoints(leaders)]
    return whole


def share_acknowledge(
    call: Call[ShareAcknowledgeResponse], request: ShareAcknowledgeRequest
) -> ShareAcknowledgeResponse:
    """ShareAcknowledge (79), versions 1-2: what became of the records that a member of a share group has (KIP-932).

    * v2: locks can be renewed (KIP-1222); the reply says how long locks are.

    Take acknowledgements; with epoch -1 the member's session ends, too.
    """
    _check_member(call, request.group_id, request.member_id)
    group_id, member_id = request.group_id or "", request.member_id or ""
    sessions = share_sessions(call.node)
    if request.share_session_epoch == OPEN:
        raise InvalidShareSessionEpochError
    sessions.resume(group_id, member_id, request.share_session_epoch, (), ())
    acknowledging = _Acknowledging(call, group_id, member_id, request.topics, may_renew=request.is_renew_ack)
    acknowledging.do()
    reply = call.response()
    by_topic: dict[UUID, ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse] = {}
    for place, code in acknowledging.codes.items():
        topic = by_topic.get(place[0])
        if topic is None:
            topic = by_topic[place[0]] = call.response.ShareAcknowledgeTopicResponse(topic_id=place[0], partitions=[])
        topic.partitions.append(call.response.PartitionData(partition_index=place[1], error_code=code))
    reply.responses = list(by_topic.values())
    if request.share_session_epoch == CLOSE:
        sessions.close(group_id, member_id)
    if call.version >= 2:
        reply.acquisition_lock_timeout_ms = _lock_timeout_ms(call, group_id)
    return reply


# Rights, partitions, and acknowledgements


def _check_member(call: Call, group_id: str | None, member_id: str | None) -> None:
    """Raise if this client may not read for this group."""
    if not call.cluster.features.serves(_FEATURE):
        raise UnsupportedVersionError
    call.require(Operation.READ, Resource.GROUP, group_id or "")
    if not group_id or not member_id or len(member_id) > _LONGEST_MEMBER_ID:
        raise InvalidRequestError


def _lock_timeout_ms(call: Call, group_id: str) -> int:
    """Return how long a member of the group has what it acquires."""
    return round(share_sessions(call.node).settings_of(group_id).share_record_lock_duration * 1000)


def _find_partition(call: Call, place: Place) -> tuple[Partition | None, int]:
    """Return a partition that the client may read, or why it may not."""
    topic = call.cluster.topic(topic_id=place[0])
    if topic is None:
        return None, Code.UNKNOWN_TOPIC_ID
    if not call.allows(Operation.READ, Resource.TOPIC, topic.name):
        return None, Code.TOPIC_AUTHORIZATION_FAILED
    partition = topic.partition(place[1])
    return partition, Code.NONE if partition is not None else Code.UNKNOWN_TOPIC_OR_PARTITION


def _acknowledgements_of(topics: Iterable[Any]) -> dict[Place, list[Acknowledgement]]:
    """Return the acknowledgements of a request, by partition."""
    found: dict[tuple[UUID, int], list[Acknowledgement]] = {}
    for topic in topics:
        for part in topic.partitions:
            rows = [
                Acknowledgement(one.first_offset, one.last_offset, one.acknowledge_types)
                for one in part.acknowledgement_batches
            ]
            if rows:
                found[topic.topic_id, part.partition_index] = rows
    return found


class _Acknowledging:
    """The acknowledgements of a request: all are checked first, and done later."""

    def __init__(self, call: Call, group_id: str, member_id: str, topics: Iterable[Any], *, may_renew: bool) -> None:
        self._member_id = member_id
        #: Error codes by partition.
        self.codes: dict[Place, int] = {}
        self._checked: dict[Place, tuple[SharePartition, dict[int, int]]] = {}
        for place, rows in _acknowledgements_of(topics).items():
            partition, code = _find_partition(call, place)
            shared = share_sessions(call.node).partition(group_id, place)
            if partition is not None and not _is_valid(rows, may_renew=may_renew):
                code = Code.INVALID_REQUEST
            elif partition is not None and shared is None:
                code = Code.UNKNOWN_TOPIC_OR_PARTITION
            if not code and shared is not None:
                outcome = shared.check(member_id, rows)
                if isinstance(outcome, Code):
                    code = outcome
                else:
                    self._checked[place] = (shared, outcome)
            self.codes[place] = code

    def do(self) -> None:
        """Do all that is correct."""
        for place, (shared, outcome) in self._checked.items():
            self.codes[place] = shared.acknowledge(self._member_id, outcome)


def _is_valid(rows: Iterable[Acknowledgement], *, may_renew: bool) -> bool:
    """Whether acknowledgements ascend, and have a type for all offsets or for each."""
    known = range(RENEW + 1 if may_renew else RENEW)
    before = -1
    for first, last, types in rows:
        if not types or not before < first <= last or len(types) not in {1, last - first + 1}:
            return False
        if not all(kind in known for kind in types):
            return False
        before = last
    return True
