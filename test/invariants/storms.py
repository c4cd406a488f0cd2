"""No storm: nothing is asked again and again, faster than the client's own back-off, while nothing changes.

Counted are repetitions in a row, never requests per second, so that a slow machine changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from kafka.protocol.registry import ApiKey
from kafka.protocol.struct import Struct

if TYPE_CHECKING:
    from kafka.broker.server.call import Call
    from kafka.broker.server.connection import Connection
    from test.invariants.clients import Peer

__all__ = ["Connecting", "EmptyFetches", "Heartbeats", "Repetitions", "error_codes"]

Report = Callable[[str, str], None]

#: A back-off is shortened by at most 20 % at random; half of it is never a back-off.
_HASTE: Final = 0.5
#: So many times in a row: an exponential back-off of 100 ms is at its maximum of a second after five attempts.
_MOST_REPETITIONS: Final = 20
#: An empty fetch that is answered early has a reason (a leader that moved, a log that began later), but no twenty.
_MOST_EMPTY: Final = 20
#: A heartbeat may come early once: when a rebalance ends, when the application polls again.
_MOST_EARLY: Final = 5
#: A client has four connections to a node, each with a back-off, so these fail in the same moment, for some rounds.
_MOST_CONNECTIONS: Final = 30

#: What a client asks by itself; other requests may be an application's that calls in a loop.
_BY_ITSELF: Final = frozenset(
    {
        ApiKey.ApiVersions,
        ApiKey.FindCoordinator,
        ApiKey.Heartbeat,
        ApiKey.InitProducerId,
        ApiKey.JoinGroup,
        ApiKey.Metadata,
        ApiKey.SyncGroup,
    }
)
_HANDSHAKES: Final = frozenset({ApiKey.ApiVersions, ApiKey.SaslHandshake, ApiKey.SaslAuthenticate})


def error_codes(message: Any) -> Iterator[int]:
    """Yield the error codes of a reply that are not 0."""
    for name in type(message)._fields or ():
        value = getattr(message, name)
        if name in {"error_code", "partition_error_code"}:
            if value:
                yield value
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, Struct):
                    yield from error_codes(item)


class _Run:
    """Exchanges in a row that have brought nothing."""

    __slots__ = ("count", "ended", "reply", "request", "started")

    def __init__(self, started: float) -> None:
        self.started = started
        self.ended = 0.0
        self.request: Any = None
        self.reply: Any = None
        self.count = 0


class _Runs:
    apis: frozenset[int] | None = None

    def __init__(self, report: Report) -> None:
        self._report = report
        self._runs: dict[Any, _Run] = {}

    def closed(self, connection: int) -> None:
        pass


class Repetitions(_Runs):
    """The same request with the same answer, sooner than the back-off (retry_backoff_ms) allows."""

    def arrived(self, peer: Peer, _call: Call, request: Any) -> None:
        run = self._runs.get((peer, request.API_KEY))
        if run is None:
            self._runs[peer, request.API_KEY] = _Run(time.monotonic())
        else:
            run.started = time.monotonic()

    def answered(self, peer: Peer, _call: Call, request: Any, reply: Any) -> None:
        run = self._runs.get((peer, request.API_KEY))
        backoff = peer.seconds("retry_backoff_ms") * _HASTE
        if run is None or not backoff or reply is None or ApiKey.Fetch == request.API_KEY:
            return
        if (
            peer.kind != "admin"  # each of its requests is a call of the application
            and run.started - run.ended < backoff
            and (request.API_KEY in _BY_ITSELF or any(error_codes(reply)))
            and request == run.request
            and reply == run.reply
        ):
            run.count += 1
            if run.count == _MOST_REPETITIONS:
                name = type(request).__name__
                self._report(
                    "storms",
                    f"{peer}: {name} {run.count} times in a row with the same answer, each sooner than "
                    f"{backoff * 1000:g} ms (half of retry_backoff_ms) after the one before: {request} -> {reply}",
                )
        else:
            run.count = 0
        run.request, run.reply, run.ended = request, reply, time.monotonic()


class EmptyFetches(_Runs):
    """Fetches that bring nothing, though the broker holds an empty one back for fetch_max_wait_ms.

    Measured by the broker's clock, which a test may advance: then all waits are over.
    """

    apis = frozenset({ApiKey.Fetch})

    def arrived(self, _peer: Peer, call: Call, _request: Any) -> None:
        run = self._runs.get(call.connection.number)
        if run is None:
            self._runs[call.connection.number] = _Run(call.cluster.clock.monotonic())
        else:
            run.started = call.cluster.clock.monotonic()

    def answered(self, peer: Peer, call: Call, request: Any, reply: Any) -> None:
        run = self._runs.get(call.connection.number)
        if run is None:
            return
        now = call.cluster.clock.monotonic()
        is_early = now - run.started < request.max_wait_ms / 1000 * _HASTE
        is_hasty = run.started - run.ended < (peer.seconds("retry_backoff_ms") or 0.1) * _HASTE
        is_empty = not any(part.records for topic in reply.responses or () for part in topic.partitions or ())
        run.ended = now
        if not (is_early and is_hasty and is_empty):
            run.count = 0
            return
        run.count += 1
        if run.count == _MOST_EMPTY:
            self._report(
                "storms",
                f"{peer}: {run.count} fetches in a row brought no records, each answered sooner than half "
                f"of its max_wait_ms of {request.max_wait_ms}: {request} -> {reply}",
            )

    def closed(self, connection: int) -> None:
        self._runs.pop(connection, None)


class Heartbeats(_Runs):
    """Heartbeats faster than heartbeat_interval_ms, or than the coordinator has asked for (KIP-848)."""

    apis = frozenset({ApiKey.Heartbeat, ApiKey.ConsumerGroupHeartbeat})

    def arrived(self, peer: Peer, _call: Call, request: Any) -> None:
        run = self._runs.get((peer, request.group_id))
        now = time.monotonic()
        if run is None:
            run = self._runs[peer, request.group_id] = _Run(now)
        interval = peer.seconds("heartbeat_interval_ms") if ApiKey.Heartbeat == request.API_KEY else run.reply or 0.0
        run.started = now
        if not run.ended or now - run.ended >= interval * _HASTE or _has_news(request):
            run.count = 0
        else:
            run.count += 1
            if run.count == _MOST_EARLY:
                self._report(
                    "storms",
                    f"{peer}: {run.count} heartbeats in a row sooner than half of the interval of "
                    f"{interval:g} s after the one before: {request}",
                )
        run.ended = now

    def answered(self, peer: Peer, _call: Call, request: Any, reply: Any) -> None:
        run = self._runs.get((peer, request.group_id))
        if run is None:
            return
        if reply is None or reply.error_code:
            run.ended = 0.0  # what follows an error is not an early heartbeat: Repetitions counts it
        elif ApiKey.ConsumerGroupHeartbeat == request.API_KEY:
            run.reply = reply.heartbeat_interval_ms / 1000
            if reply.assignment is not None:
                run.ended = 0.0  # a new assignment is acknowledged at once


def _has_news(request: Any) -> bool:
    if ApiKey.Heartbeat == request.API_KEY:
        return False
    return (
        request.member_epoch <= 0
        or request.topic_partitions is not None
        or request.subscribed_topic_names is not None
        or request.subscribed_topic_regex is not None
    )


class Connecting:
    """Connections in a row on which nothing came to be asked, sooner than reconnect_backoff_ms allows."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._runs: dict[Any, _Run] = {}

    def opened(self, peer: Peer, connection: Connection) -> None:
        """A client has connected."""
        key = peer, connection.node.node_id
        now = time.monotonic()
        run = self._runs.get(key)
        backoff = peer.seconds("reconnect_backoff_ms") * _HASTE
        if run is None or not backoff or now - run.started >= backoff:
            self._runs[key] = _Run(now)
            return
        run.started = now
        run.count += 1
        if run.count == _MOST_CONNECTIONS:
            self._report(
                "storms",
                f"{peer} has connected {run.count} times in a row to node {connection.node.node_id}, each "
                f"sooner than {backoff * 1000:g} ms (half of reconnect_backoff_ms) after the time before",
            )

    def answered(self, peer: Peer, call: Call) -> None:
        """A connection is used."""
        if call.header.request_api_key not in _HANDSHAKES:
            self._runs.pop((peer, call.node.node_id), None)
