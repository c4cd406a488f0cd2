"""The shapes of replies that Kafka sends: a table of rules by API. Faults of tests obey them too.

A client that is tested against a reply that no broker sends is not tested.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

from kafka.errors import Code
from kafka.protocol.registry import ApiKey

__all__ = ["check_reply"]

Rule = Callable[[Any, Any], Iterator[str]]

_SESSION_CODES: Final = frozenset(
    {Code.FETCH_SESSION_ID_NOT_FOUND, Code.INVALID_FETCH_SESSION_EPOCH, Code.FETCH_SESSION_TOPIC_ID_ERROR}
)


def check_reply(request: Any, reply: Any) -> Iterator[str]:
    """Yield what no broker would send as the reply to this request."""
    if getattr(reply, "API_KEY", request.API_KEY) != request.API_KEY:
        yield f"is answered with {type(reply).__name__}"
        return
    if getattr(reply, "throttle_time_ms", 0) < 0:
        yield "has a negative throttle time"
    rule = _RULES.get(request.API_KEY)
    if rule is not None:
        yield from rule(request, reply)


def _same_places(asked: Counter[Any], answered: Counter[Any]) -> Iterator[str]:
    if asked != answered:
        missing, added = asked - answered, answered - asked
        yield f"does not answer what was asked: {dict(missing)} are missing, {dict(added)} are too many"


def _metadata(request: Any, reply: Any) -> Iterator[str]:
    if reply.error_code not in {0, Code.REBOOTSTRAP_REQUIRED}:
        yield f"has code {reply.error_code} at the top, where only REBOOTSTRAP_REQUIRED can be"
    if not reply.brokers and not reply.error_code:
        yield "lists no broker; the one that replies is always listed"
    for topic in reply.topics or ():
        if topic.error_code and topic.partitions:
            yield f"has partitions of topic {topic.name!r}, which has error code {topic.error_code}"
        for part in topic.partitions or ():
            if part.error_code not in {0, Code.LEADER_NOT_AVAILABLE, Code.REPLICA_NOT_AVAILABLE, 72}:
                yield f"has code {part.error_code} at a partition"
            if part.error_code == 0 and part.leader_id < 0:
                yield f"has no leader for {topic.name!r}-{part.partition_index}, and no error"


def _fetch(request: Any, reply: Any) -> Iterator[str]:
    parts = [part for topic in reply.responses or () for part in topic.partitions or ()]
    if reply.error_code and reply.error_code not in _SESSION_CODES:
        yield f"has code {reply.error_code} at the top, where only those of sessions can be"
    if reply.error_code in _SESSION_CODES and request.session_epoch <= 0:
        yield "has the error of a session, and the request continues none"
    if reply.error_code and parts:
        yield "has an error at the top and partitions"
    if request.session_epoch > 0 and not reply.error_code and reply.session_id not in {request.session_id, 0}:
        yield f"changes the session from {request.session_id} to {reply.session_id}"
    if request.session_epoch < 0 and reply.session_id:
        yield "begins a session that was not asked for"
    for part in parts:
        yield from _fetched_partition(request, part)
    if request.session_epoch <= 0 and not reply.error_code:
        key = "topic_id" if request.API_VERSION > 12 else "topic"
        asked = Counter((getattr(t, key), p.partition) for t in request.topics or () for p in t.partitions)
        got = Counter((getattr(t, key), p.partition_index) for t in reply.responses or () for p in t.partitions)
        yield from _same_places(asked, got)


def _fetched_partition(request: Any, part: Any) -> Iterator[str]:
    if part.error_code in _SESSION_CODES:
        yield f"has code {part.error_code} at a partition, where none of sessions can be"
    if part.error_code and part.records:
        yield f"has records and error code {part.error_code} at partition {part.partition_index}"
    if not part.error_code and request.isolation_level == 0 and part.aborted_transactions:
        yield "lists aborted transactions, and the client reads uncommitted records"


def _produce(request: Any, reply: Any) -> Iterator[str]:
    key = "topic_id" if request.API_VERSION > 12 else "name"
    asked = Counter((getattr(t, key), p.index) for t in request.topic_data or () for p in t.partition_data)
    got = Counter((getattr(t, key), p.index) for t in reply.responses or () for p in t.partition_responses)
    yield from _same_places(asked, got)
    for topic in reply.responses or ():
        for part in topic.partition_responses:
            if part.error_code == 0 and part.base_offset < 0:
                yield "has no offset for a batch that is written"
            if part.error_code not in {0, Code.DUPLICATE_SEQUENCE_NUMBER} and part.base_offset >= 0:
                yield f"has an offset and error code {part.error_code}"


def _offset_commit(request: Any, reply: Any) -> Iterator[str]:
    key = "topic_id" if request.API_VERSION > 9 else "name"
    asked = Counter((getattr(t, key), p.partition_index) for t in request.topics or () for p in t.partitions)
    got = Counter((getattr(t, key), p.partition_index) for t in reply.topics or () for p in t.partitions)
    yield from _same_places(asked, got)


def _list_offsets(request: Any, reply: Any) -> Iterator[str]:
    asked = Counter((t.name, p.partition_index) for t in request.topics or () for p in t.partitions)
    got = Counter((t.name, p.partition_index) for t in reply.topics or () for p in t.partitions)
    yield from _same_places(asked, got)


def _join_group(_request: Any, reply: Any) -> Iterator[str]:
    if reply.error_code and reply.members:
        yield f"has members and error code {reply.error_code}"
    if not reply.error_code and not reply.member_id:
        yield "admits a member without an id"
    if reply.error_code == Code.MEMBER_ID_REQUIRED and not reply.member_id:
        yield "requires a member id and gives none"


def _sync_group(_request: Any, reply: Any) -> Iterator[str]:
    if reply.error_code and reply.assignment:
        yield f"has an assignment and error code {reply.error_code}"


def _consumer_group_heartbeat(_request: Any, reply: Any) -> Iterator[str]:
    if reply.error_code:
        if reply.assignment is not None:
            yield f"has an assignment and error code {reply.error_code}"
    elif reply.member_epoch >= 0 and reply.heartbeat_interval_ms <= 0:
        yield "asks for heartbeats without an interval"


def _find_coordinator(request: Any, reply: Any) -> Iterator[str]:
    if request.API_VERSION < 4:
        if reply.error_code == 0 and reply.node_id < 0:
            yield "names no coordinator, and no error"
        return
    yield from _same_places(
        Counter(request.coordinator_keys or ()), Counter(found.key for found in reply.coordinators or ())
    )
    for found in reply.coordinators or ():
        if found.error_code == 0 and found.node_id < 0:
            yield "names no coordinator, and no error"


def _init_producer_id(_request: Any, reply: Any) -> Iterator[str]:
    if (reply.error_code == 0) != (reply.producer_id >= 0):
        yield f"has producer id {reply.producer_id} and error code {reply.error_code}"


def _add_partitions(request: Any, reply: Any) -> Iterator[str]:
    if reply.error_code not in {0, Code.CLUSTER_AUTHORIZATION_FAILED}:
        yield f"has code {reply.error_code} at the top, where only CLUSTER_AUTHORIZATION_FAILED can be"
    if request.API_VERSION < 4:
        asked = Counter((t.name, index) for t in request.v3_and_below_topics or () for index in t.partitions)
        got = Counter(
            (t.name, p.partition_index)
            for t in reply.results_by_topic_v3_and_below or ()
            for p in t.results_by_partition
        )
        yield from _same_places(asked, got)


_RULES: Final[dict[int, Rule]] = {
    ApiKey.AddPartitionsToTxn: _add_partitions,
    ApiKey.ConsumerGroupHeartbeat: _consumer_group_heartbeat,
    ApiKey.Fetch: _fetch,
    ApiKey.FindCoordinator: _find_coordinator,
    ApiKey.InitProducerId: _init_producer_id,
    ApiKey.JoinGroup: _join_group,
    ApiKey.ListOffsets: _list_offsets,
    ApiKey.Metadata: _metadata,
    ApiKey.OffsetCommit: _offset_commit,
    ApiKey.Produce: _produce,
    ApiKey.SyncGroup: _sync_group,
}
