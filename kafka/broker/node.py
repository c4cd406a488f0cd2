"""One broker node: its id, its listeners, and the connections that they have taken."""

from __future__ import annotations

import asyncio
import logging
import socket
from itertools import count
from typing import TYPE_CHECKING, Any

from kafka.broker.connection import Connection
from kafka.errors import KafkaConnectionError

if TYPE_CHECKING:
    import ssl

    from kafka.broker.cluster import Cluster
    from kafka.broker.dispatch import Dispatcher

__all__ = ["Listener", "ListenerOptions", "Node"]

log = logging.getLogger("kafka.broker")

_numbers = count(1)
_BACKLOG = 1024
#: Seconds until connections are taken again where descriptors have run out.
_RETRY_AFTER = 0.5


class ListenerOptions:
    """What the listeners of all nodes have in common."""

    __slots__ = ("host", "needs_sasl", "ssl_context")

    def __init__(
        self, host: str = "127.0.0.1", ssl_context: ssl.SSLContext | None = None, needs_sasl: bool = False
    ) -> None:
        self.host = host
        self.ssl_context = ssl_context
        self.needs_sasl = needs_sasl

    @property
    def protocol(self) -> str:
        """Kafka's name for it, as ``SASL_SSL``."""
        return ("SASL_" if self.needs_sasl else "") + ("SSL" if self.ssl_context else "PLAINTEXT")


class Listener:
    """One listening socket. Its port stays the node's own while the node is stopped."""

    def __init__(self, node: Node, options: ListenerOptions, port: int) -> None:
        self.node = node
        self.options = options
        self.needs_sasl = options.needs_sasl
        self.host = options.host
        self.port = port
        self.connections: set[Connection] = set()
        self.is_open = False
        self._socket: socket.socket | None = None

    def bind(self) -> socket.socket:
        """Take the port; port 0 means any free one, which then is ours for good."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        sock = socket.socket(family)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((self.host, self.port))
        except OSError as error:
            sock.close()
            raise KafkaConnectionError(
                f"cannot listen: {error.strerror or error}", host=self.host, port=self.port
            ) from error
        self.port = sock.getsockname()[1]
        self._socket = sock
        return sock

    def start(self) -> None:
        """Listen.

        Not through ``loop.create_server``: a server that is closed while it takes a connection loses it, open, and the
        client waits for ever (seen with Python 3.11).
        """
        sock = self._socket or self.bind()
        sock.listen(_BACKLOG)
        sock.setblocking(False)
        self.is_open = True
        asyncio.get_running_loop().add_reader(sock, self._accept)

    def _accept(self) -> None:
        assert self._socket is not None
        loop = asyncio.get_running_loop()
        for _ in range(_BACKLOG):
            try:
                client, _address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # out of descriptors: those who wait are served when some are free again
                log.error("node %d cannot take a connection: %s", self.node.node_id, error)
                loop.remove_reader(self._socket)
                self.node.cluster.timers.call_later(_RETRY_AFTER, self._resume)
                return
            client.setblocking(False)
            self.node.cluster.background(self._take(client))

    def _resume(self) -> None:
        if self._socket is not None:
            asyncio.get_running_loop().add_reader(self._socket, self._accept)

    async def _take(self, client: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(
                lambda: Connection(self, next(_numbers)), client, ssl=self.options.ssl_context
            )
        except (OSError, asyncio.CancelledError) as error:  # a TLS handshake that failed, or the end of the broker
            log.debug("a connection to node %d did not come about: %s", self.node.node_id, error)
            client.close()

    def stop(self, *, crash: bool = False) -> None:
        """Stop listening and close every connection."""
        self.is_open = False
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None
        self.drop(crash=crash)

    def drop(self, *, crash: bool = True) -> int:
        """Close the connections and go on listening; return how many there were."""
        connections = list(self.connections)
        for connection in connections:
            (connection.abort if crash else connection.close)()
        return len(connections)

    def opened(self, connection: Connection) -> None:
        """A connection has been made; perhaps just as the node was stopping."""
        if not self.is_open:
            connection.abort()
        self.connections.add(connection)

    def closed(self, connection: Connection) -> None:
        """A connection has ended."""
        self.connections.discard(connection)


class Node:
    """One broker of the cluster."""

    def __init__(
        self, cluster: Cluster, node_id: int, options: ListenerOptions, port: int = 0, rack: str | None = None
    ) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self.rack = rack
        self.dispatcher: Dispatcher = cluster.dispatcher
        self.is_running = False
        self.listener = Listener(self, options, port)
        #: What this node keeps for its connections, as the fetch sessions; gone when it stops.
        self.memory: dict[Any, Any] = {}

    @property
    def max_idle(self) -> float:
        """Seconds after which an unused connection is closed."""
        return self.cluster.configs.broker_int("connections.max.idle.ms", self.node_id) / 1000

    @property
    def max_frame(self) -> int:
        """The largest request that it reads."""
        return self.cluster.max_frame

    @property
    def host(self) -> str:
        """Where clients reach it."""
        return self.listener.host

    @property
    def port(self) -> int:
        """Where clients reach it."""
        return self.listener.port

    def start(self) -> None:
        """Listen and serve."""
        self.listener.start()
        self.is_running = True

    def stop(self, *, crash: bool = False) -> None:
        """Go away; connections are closed."""
        self.is_running = False
        self.memory.clear()
        self.listener.stop(crash=crash)
