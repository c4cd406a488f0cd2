"""Fetch (1), versions 0-18: records from partitions.

* v0, v1: records come in format v0, whatever they are stored in; v1 has throttle time.
* v2: records come in format v1.
* v3: a limit for the whole reply; the first batch comes whole even if it is larger.
* v4: format v2; isolation level, last stable offset, aborted transactions (KIP-98).
* v5: log start offset. v6: KAFKA_STORAGE_ERROR (not here).
* v7: sessions (KIP-227).
* v8: clients expect throttling after the reply. v9: the reader's leader epoch is checked (KIP-320).
* v10: zstd (KIP-110); older readers get UNSUPPORTED_COMPRESSION_TYPE where it must be converted.
* v11: racks and replicas to read from (KIP-392).
* v12: flexible; diverging epochs (KIP-595); the current leader.
* v13: topics by id. v14: tiered storage's error (not here). v15: replica state.
* v16: where the current leader is (KIP-951). v17, v18: for followers.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Iterable
from typing import Final
from uuid import UUID

from kafka.broker.fetching.reading import Reading, ReadPartition, read_all, wait_for_bytes
from kafka.broker.fetching.sessions import (
    FINAL,
    INITIAL,
    FetchSession,
    FetchSessions,
    Key,
    RequestedPartition,
    SessionRefused,
    partitions_of,
)
from kafka.broker.server.api import Call, Code
from kafka.protocol.fetch import FetchRequest, FetchResponse

_SESSIONS_FROM: Final = 7
_IDS_FROM: Final = 13
_ENDPOINTS_FROM: Final = 16
_SESSION_CODES: Final = frozenset(
    {Code.FETCH_SESSION_ID_NOT_FOUND, Code.INVALID_FETCH_SESSION_EPOCH, Code.FETCH_SESSION_TOPIC_ID_ERROR}
)


def fetch(call: Call[FetchResponse], request: FetchRequest) -> FetchResponse | Awaitable[FetchResponse]:
    """Read, or wait for something to read."""
    try:
        session, requested = _continue(call, request)
    except SessionRefused as refused:
        return call.response(error_code=refused.code)
    reading = read_all(call, request, requested.values(), only_news=session is not None)
    may_wait = request.max_wait_ms > 0 and reading.has_partitions and not reading.is_final
    if may_wait and reading.size < reading.min_bytes:
        return _wait(call, request, session, requested, reading.min_bytes)
    return _reply(call, request, session, requested, reading)


def refuse_fetch(call: Call[FetchResponse], request: FetchRequest, code: int) -> FetchResponse | None:
    """Give the error to each partition of the request and its session; to the whole reply only a session's.

    An error of sessions waits for a request that continues one.
    """
    if call.version >= _SESSIONS_FROM and code in _SESSION_CODES:
        return call.response(error_code=code) if request.session_epoch > INITIAL else None
    try:
        session, requested = _continue(call, request)
    except SessionRefused:
        return None
    reading = Reading(0)
    reading.data = [
        (one, call.response.PartitionData(one.index, code, -1, aborted_transactions=[], records=b""))
        for one in requested.values()
    ]
    return _reply(call, request, session, requested, reading) if requested else None


def _continue(
    call: Call[FetchResponse], request: FetchRequest
) -> tuple[FetchSession | None, OrderedDict[Key, RequestedPartition]]:
    """Return the session that the request continues, if any, and all partitions that are to be read."""
    sessions = _sessions(call)
    if call.version >= _SESSIONS_FROM and request.session_epoch not in {FINAL, INITIAL}:
        session = sessions.continue_session(request)
        if not session.requested:
            sessions.end(session.session_id)
        return session, session.requested
    sessions.end(request.session_id)
    return None, partitions_of(request)


async def _wait(
    call: Call[FetchResponse],
    request: FetchRequest,
    session: FetchSession | None,
    requested: OrderedDict[Key, RequestedPartition],
    min_bytes: int,
) -> FetchResponse:
    await wait_for_bytes(call, request, requested.values(), min_bytes)
    reading = read_all(call, request, requested.values(), only_news=session is not None)
    return _reply(call, request, session, requested, reading)


def _sessions(call: Call[FetchResponse]) -> FetchSessions:
    memory = call.node.memory
    found = memory.get("fetch sessions")
    if found is None:
        slots = call.cluster.configs.broker_int("max.incremental.fetch.session.cache.slots")
        found = memory["fetch sessions"] = FetchSessions(call.cluster.random, slots)
    return found


def _reply(
    call: Call[FetchResponse],
    request: FetchRequest,
    session: FetchSession | None,
    requested: OrderedDict[Key, RequestedPartition],
    reading: Reading,
) -> FetchResponse:
    session_id = 0
    shown: Iterable[ReadPartition] = reading.data
    if session is not None:
        session_id = session.session_id if session.requested else 0
        shown = _news(session, reading)
    elif call.version >= _SESSIONS_FROM and request.session_epoch == INITIAL:
        session_id = _sessions(call).begin(requested, call.version >= _IDS_FROM)
        for one, data in reading.data:
            _remember(one, data)
    reply = call.response(responses=_by_topic(call, shown))
    reply.session_id = session_id
    if reading.leaders and call.version >= _ENDPOINTS_FROM:
        reply.node_endpoints = [call.response.NodeEndpoint(*node) for node in call.cluster.endpoints(reading.leaders)]
    return reply


def _by_topic(call: Call[FetchResponse], shown: Iterable[ReadPartition]) -> list[FetchResponse.FetchableTopicResponse]:
    """Group partitions that follow each other by topic."""
    topics: list[FetchResponse.FetchableTopicResponse] = []
    last: UUID | str | None = None
    for requested, data in shown:
        key = requested.topic_id if call.version >= _IDS_FROM else requested.name
        if not topics or key != last:
            topics.append(
                call.response.FetchableTopicResponse(topic=requested.name, topic_id=requested.topic_id, partitions=[])
            )
            last = key
        topics[-1].partitions.append(data)
    return topics


def _news(session: FetchSession, reading: Reading) -> list[ReadPartition]:
    """Return what the client does not know yet; partitions with records go to the end of the session's order."""
    news = []
    for one, data in reading.data:
        has_records = bool(data.records)
        if (
            has_records
            or data.error_code
            or data.high_watermark != one.sent_high_watermark
            or data.log_start_offset != one.sent_start
            or data.preferred_read_replica >= 0
            or data.diverging_epoch.end_offset >= 0
        ):
            news.append((one, data))
        _remember(one, data)
        if has_records:
            # Fairness: partitions that had their turn come last in the next one.
            key: Key = (one.topic_id if session.uses_ids else one.name, one.index)
            if key in session.requested:
                session.requested.move_to_end(key)
    return news


def _remember(one: RequestedPartition, data: FetchResponse.PartitionData) -> None:
    # An error is repeated until it is gone, and then the partition is news (KAFKA-9835).
    one.sent_high_watermark = -1 if data.error_code else data.high_watermark
    one.sent_start = -1 if data.error_code else data.log_start_offset
