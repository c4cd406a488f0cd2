"""The connections of a client to the brokers of its cluster, and the choice among the brokers.

Connections are split by use: a fetch that waits at the broker for data must not hold up a heartbeat, and a broker
answers the requests of one connection one after another.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from kafka._runtime.tasks import Event
from kafka._text import host_port
from kafka.errors import (
    ClientClosedError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    UnknownBrokerIdError,
)
from kafka.net.connection import Connection
from kafka.net.states import WAITS_FOR, ConnectionStates

if TYPE_CHECKING:
    from kafka._runtime.loop import Loop
    from kafka.cluster import ClusterMetadata
    from kafka.future import Future
    from kafka.net.settings import ConnectionContext, ConnectionSettings
    from kafka.protocol.negotiation import ApiVersions
    from kafka.structs import BrokerMetadata

__all__ = ["DEFAULT", "SLOW_TO_CONNECT", "Connections", "NodeId"]

log = logging.getLogger("kafka.client")

NodeId = int | str

DEFAULT: Final = "default"
"""The use of a connection for everything that has no connection for itself."""

SLOW_TO_CONNECT: Final = 1.0
"""A broker that is not connected after this long, in seconds, may be slow or stuck: other brokers are preferred."""

# How often, in seconds, to look at a connection that is in use, with a shorter connections_max_idle_ms.
_IDLE_CHECK: Final = 0.1


class Connections:
    """One connection for each broker and use, made when it is first asked for."""

    def __init__(self, context: ConnectionContext, cluster: ClusterMetadata) -> None:
        self.context = context
        self.loop: Loop = context.loop
        self.settings: ConnectionSettings = context.settings
        self.cluster = cluster
        self.versions: ApiVersions | None = None
        """The API versions of the first broker that answered."""
        self.closed = False
        self.delivered: Callable[[Future[Any], object], object] | None = None
        """Called with each future that a response resolved, and the response."""
        self._links: dict[tuple[NodeId, str], Connection] = {}
        self._idle_timer_set = False
        self._look_again = Event()

    def link(self, node_id: NodeId, use: str = DEFAULT) -> Connection:
        """Return the connection to a broker for a use, connected or not."""
        if self.closed:
            raise ClientClosedError("This client is closed.")
        broker = self.cluster.broker_metadata(node_id)
        link = self._links.get((node_id, use))
        if link is not None:
            if broker is None or (broker.host, broker.port) == (link.host, link.port):
                return link
            # The broker moved: requests under way at the old address fail, and callers retry at the new one.
            del self._links[node_id, use]
            link.close(KafkaConnectionError(f"{link} is at {host_port(broker.host, broker.port)} now"))
        if broker is None:
            why = "" if self.cluster.topology.brokers else f": {self.no_brokers_error('none can be reached')}"
            raise UnknownBrokerIdError(f"no broker has the id {node_id}{why}", node_id=node_id)
        link = Connection(self.context, broker.host, broker.port, node_id=node_id)
        link.on_state = self._link_changed
        link.delivered = self.delivered
        self._links[node_id, use] = link
        return link

    def known_link(self, node_id: NodeId, use: str = DEFAULT) -> Connection | None:
        """Return the connection to a broker for a use, if one was ever asked for; from any thread."""
        return self._links.get((node_id, use))

    def links(self, node_id: NodeId | None = None) -> Iterator[Connection]:
        """Go through the connections, of one broker or of all."""
        for (known, _), link in tuple(self._links.items()):
            if node_id is None or known == node_id:
                yield link

    def _link_changed(self, link: Connection) -> None:
        if link.state is ConnectionStates.CONNECTED:
            if self.versions is None:
                self.versions = link.versions
            if not self._idle_timer_set:
                self._idle_timer_set = True
                self.loop.call_later(self.settings.max_idle, self._close_idle)
        elif (
            link.state is ConnectionStates.DISCONNECTED
            and link.error is not None
            and not self.closed
            and not self.cluster.is_bootstrap(link.node_id)
        ):
            # A broker that closed the connection may have left, and its partitions have other leaders.
            self.cluster.request_update()

    def _close_idle(self) -> None:
        """Close connections that were idle for connections_max_idle_ms, and set the timer for the next one."""
        now = self.loop.time()
        next_due = None
        for link in self.links():
            since = link.idle_since
            if link.state is ConnectionStates.DISCONNECTED:
                continue
            # One that is in use is looked at again after a while, also where connections are to be closed at once.
            due = now + max(self.settings.max_idle, _IDLE_CHECK) if since is None else since + self.settings.max_idle
            if since is not None and due <= now:
                log.debug("Closing %s, which was idle for %.0f seconds", link, now - since)
                link.disconnect()
            else:
                next_due = due if next_due is None else min(due, next_due)
        self._idle_timer_set = next_due is not None
        if next_due is not None:
            self.loop.call_at(next_due, self._close_idle)

    # Choosing a broker…

    def candidates(self) -> list[BrokerMetadata]:
        """Return the brokers to choose from: those known, else the bootstrap servers."""
        return list(self.cluster.topology.brokers.values()) or list(self.cluster.bootstrap_brokers())

    def least_loaded_node(self) -> NodeId | None:
        """Return the broker with the fewest requests under way; None if all are backing off.

        Connected brokers come first, then brokers with an attempt to connect under way, then brokers without a
        connection, those with the fewest failures first, then brokers that throttle or whose attempt takes long.
        """
        connected: list[tuple[int, float, NodeId]] = []
        connecting: list[NodeId] = []
        others: list[tuple[int, float, NodeId]] = []
        slow: list[NodeId] = []
        now = self.loop.time()
        for broker in self.candidates():
            link = self._links.get((broker.nodeId, DEFAULT))
            if link is not None and link.throttled():
                slow.append(broker.nodeId)
            elif link is not None and link.ready:
                connected.append((link.in_flight_requests, self.loop.rng.random(), broker.nodeId))
            elif link is not None and link.is_opening:
                (connecting if now - link.last_attempt < SLOW_TO_CONNECT else slow).append(broker.nodeId)
            elif link is None or not link.backing_off():
                others.append((0 if link is None else link.failures, self.loop.rng.random(), broker.nodeId))
        if connected:
            return min(connected)[2]
        if connecting:
            return connecting[0]
        if others:
            return min(others)[2]
        return slow[0] if slow else None

    def soonest_retry(self) -> float:
        """Return when the first of the brokers that back off may be tried again."""
        times = [
            self._links[broker.nodeId, DEFAULT].retry_at
            for broker in self.candidates()
            if (broker.nodeId, DEFAULT) in self._links
        ]
        return max(min(times, default=0.0), self.loop.time())

    async def some_node(self, deadline: float) -> NodeId:
        """Wait for a broker that may be asked, and return it."""
        while True:
            node_id = self.least_loaded_node()
            if node_id is not None:
                return node_id
            soonest = self.soonest_retry()
            if soonest >= deadline:
                raise self.no_brokers_error("No broker can be reached")
            self._look_again.clear()
            await self._look_again.wait_until(self.loop, soonest)

    async def some_link(self, deadline: float) -> Connection:
        """Wait for a connection to any broker, and return it; another broker replaces one that is slow to connect."""
        while True:
            link = self.link(await self.some_node(deadline))
            try:
                await self.open(link, min(deadline, self.loop.time() + SLOW_TO_CONNECT))
            except KafkaError as error:
                if not error.retriable or self.loop.time() >= deadline:
                    raise
            else:
                return link

    def no_brokers_error(self, what: str) -> NoBrokersAvailable:
        """Return the error that lists each address that was tried, once, with the reason of its failure."""
        reasons: dict[str, str] = {}
        for link in self.links():
            address = host_port(link.host, link.port)
            if link.error is not None:
                reason = str(link.error.args[0]).removeprefix(f"{link}: ").removeprefix(f"{address}: ")
                reasons[address] = reason.replace(f" to {link}", "")
            elif not link.ready:
                step = WAITS_FOR.get(link.state)
                reasons.setdefault(address, "no answer yet" + (f", waiting for {step}" if step else ""))
            elif self.cluster.error is not None:
                reasons.setdefault(address, str(self.cluster.error).removeprefix(f"{link} "))
        return NoBrokersAvailable(what, attempts=tuple(reasons.items()))

    # Opening and closing…

    async def open(self, link: Connection, deadline: float) -> None:
        """Wait until a connection is ready."""
        if link.ready:
            return
        try:
            with self.loop.timeout_at(deadline, f"connecting to {link}"):
                delay = link.backing_off()
                if delay:
                    await self.loop.sleep(delay)
                await link.open()
        except KafkaTimeoutError as error:
            raise KafkaTimeoutError(f"{error}{link.why_not_ready()}") from error

    def drop_departed(self) -> None:
        """Close connections to brokers that left the cluster and to bootstrap servers, unless requests are under way.

        The connection to a bootstrap server that turns out to be a broker is kept as that broker's.
        """
        brokers = self.cluster.topology.brokers
        by_address = {(broker.host, broker.port): node_id for node_id, broker in brokers.items()}
        for (node_id, use), link in tuple(self._links.items()):
            if node_id in brokers or (not isinstance(node_id, str) and self.cluster.broker_metadata(node_id)):
                continue
            real = by_address.get((link.host, link.port))
            if link.ready and real is not None and (real, use) not in self._links:
                del self._links[node_id, use]
                link.becomes(real)
                self._links[real, use] = link
            elif link.idle_since is not None:
                del self._links[node_id, use]
                link.close()

    def drop_unready(self) -> None:
        """Forget connections that are being opened: the addresses are about to change.

        A broker that backs off does so at the address that it may still have: an advertised address that cannot be
        reached from here would else be tried many times a second. A request for any broker does not wait for that one:
        until there is metadata again, a bootstrap server may be asked.
        """
        for (node_id, use), link in tuple(self._links.items()):
            if link.is_opening:
                del self._links[node_id, use]
                link.close(KafkaConnectionError(f"{link} is no longer part of the cluster"))
        self._look_again.set()

    def close_links(self, error: KafkaError | None = None) -> None:
        """Close every connection for good; requests under way fail."""
        while self._links:  # a callback of a closed connection may ask for another
            _, link = self._links.popitem()
            link.close(error)

    def close_links_to(self, node_id: NodeId) -> None:
        """Close the connections to one broker for good."""
        for key in [key for key in self._links if key[0] == node_id]:
            self._links.pop(key).close()
