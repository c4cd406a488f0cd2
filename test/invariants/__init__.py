"""What holds in every test: rules over the connections, requests and replies of each broker, and over leftovers.

A :class:`Checker` watches each broker that a test starts, and its rules see what our clients send and what they are
sent. A rule that is broken fails the test, unless it is marked for that rule, with the reason::

    @pytest.mark.breaks_invariant("commits", reason="the application commits an offset that it chose itself")

Only our clients are judged: those of this process are known by their sockets, those of other processes by the name
of their software. What a test writes to a socket itself is not.

======================  ===================================================================================
``storms``              no request or connection again and again without progress
``sequence numbers``    idempotent batches: no gap, no number with other bytes, five in flight at most
``transactions``        no batch before its partition is in the transaction, none after the end
``fetch sessions``      epochs grow by one, forgotten partitions were known, full fetches have a reason
``commits``             no offset goes back, no commit for a partition that the member does not own
``replies``             the shapes that Kafka sends, from the broker and from faults
``closing``             no connection of a closed client is open, or opened
``leftovers``           no client, thread or file is left at the end of the test
======================  ===================================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from test.invariants.clients import Clients, Peer
from test.invariants.consumers import Commits, FetchSessions
from test.invariants.producers import SequenceNumbers, Transactions
from test.invariants.replies import check_reply
from test.invariants.storms import Connecting, EmptyFetches, Heartbeats, Repetitions

if TYPE_CHECKING:
    from kafka.broker.server.call import Call
    from kafka.broker.server.connection import Connection

__all__ = ["RULES", "Checker", "Record", "Violation"]

RULES = (
    "storms",
    "sequence numbers",
    "transactions",
    "fetch sessions",
    "commits",
    "replies",
    "closing",
    "leftovers",
)
#: A rule that is broken at each request is not listed more often than this for one test.
_MOST = 20


class Violation(NamedTuple):
    """A rule that was broken, and how."""

    rule: str
    text: str


class Record:
    """The violations since the last look. Brokers add to it from their threads."""

    def __init__(self) -> None:
        self._violations: list[Violation] = []

    def report(self, rule: str, text: str) -> None:
        """Add a violation."""
        assert rule in RULES, rule
        if len(self._violations) < _MOST:
            self._violations.append(Violation(rule, text))

    def take(self) -> list[Violation]:
        """Return the violations, and forget them."""
        taken, self._violations = self._violations, []
        return taken


class Checker:
    """The rules for the clients of one cluster; a `Watcher` of its broker, on whose loop it runs."""

    def __init__(self, clients: Clients, record: Record) -> None:
        self._clients = clients
        self._record = record
        self._peers: dict[int, Peer] = {}
        self._connecting = Connecting(record.report)
        self.commits = Commits(record.report)
        self._rules = (
            Repetitions(record.report),
            EmptyFetches(record.report),
            Heartbeats(record.report),
            SequenceNumbers(record.report),
            Transactions(record.report),
            FetchSessions(record.report),
            self.commits,
        )
        self._by_api: dict[int, tuple[Any, ...]] = {}

    def opened(self, connection: Connection) -> None:
        """A client has connected."""
        peer = self._clients.peer(connection.host, connection.port)
        if peer is not None:
            self._connecting.opened(peer, connection)

    def closed(self, connection: Connection) -> None:
        """A connection has ended."""
        self._peers.pop(connection.number, None)
        for rule in self._rules:
            rule.closed(connection.number)

    def arrived(self, call: Call, request: Any) -> None:
        """A request has been read."""
        peer = self._peer(call)
        if peer is not None:
            for rule in self._rules_of(request.API_KEY):
                rule.arrived(peer, call, request)

    def answered(self, call: Call, request: Any, reply: Any) -> None:
        """A reply is about to be sent."""
        peer = self._peer(call)
        if peer is None:
            return
        if reply is not None:
            for problem in check_reply(request, reply):
                self._record.report("replies", f"{type(request).__name__} v{call.version}: {problem}")
        self._connecting.answered(peer, call)
        for rule in self._rules_of(request.API_KEY):
            rule.answered(peer, call, request, reply)

    def _peer(self, call: Call) -> Peer | None:
        # Looked up with the first request: a connection is accepted before its client knows its own address.
        connection = call.connection
        peer = self._peers.get(connection.number)
        if peer is None:
            peer = self._clients.peer(connection.host, connection.port)
            if peer is None and connection.software_name == "purekafka":
                peer = Peer(f"client {call.client_id!r}")  # of another process, or behind a proxy: without options
            if peer is not None:
                self._peers[connection.number] = peer
        return peer

    def _rules_of(self, api_key: int) -> tuple[Any, ...]:
        found = self._by_api.get(api_key)
        if found is None:
            found = self._by_api[api_key] = tuple(
                rule for rule in self._rules if rule.apis is None or api_key in rule.apis
            )
        return found
