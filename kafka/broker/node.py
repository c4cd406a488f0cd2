"""One broker node: its id, its listeners, and the connections that they have taken."""

from __future__ import annotations

import asyncio
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

_numbers = count(1)


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
        self._server: asyncio.Server | None = None
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

    async def start(self) -> None:
        """Listen."""
        sock = self._socket or self.bind()
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self, next(_numbers)), sock=sock, ssl=self.options.ssl_context, backlog=1024
        )

    def stop(self, *, crash: bool = False) -> None:
        """Stop listening and close every connection."""
        if self._server is not None:
            self._server.close()
            self._server = None
        elif self._socket is not None:
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
        """A connection has been made."""
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

    async def start(self) -> None:
        """Listen and serve."""
        await self.listener.start()
        self.is_running = True

    def stop(self, *, crash: bool = False) -> None:
        """Go away; connections are closed."""
        self.is_running = False
        self.memory.clear()
        self.listener.stop(crash=crash)
