"""One broker node: its id, its listeners, and the connections that they have taken."""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, cast

from kafka.broker.server.connection import Connection
from kafka.errors import IllegalArgumentError, KafkaConnectionError

if TYPE_CHECKING:
    import ssl

    from kafka.broker.cluster.cluster import Cluster
    from kafka.broker.server.dispatch import Dispatcher

log = logging.getLogger("kafka.broker")

_numbers = count(1)
#: Addresses to listen on that mean every interface, and the address of this machine that is advertised in their place.
_ANY = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}  # noqa: S104 - nothing is bound here
_BACKLOG = 1024
_LAST_PORT = 65535
#: Seconds until connections are taken again where descriptors have run out.
_RETRY_AFTER = 0.5
#: Errors of a handshake that say no more than that the client has left.
_GONE = frozenset({"ConnectionResetError", "ConnectionAbortedError", "BrokenPipeError", "SSLEOFError"})
#: Seconds that a client that was refused has to take the last words and close.
_GOODBYE = 1.0


class ListenerOptions:
    """The options that the listeners of all nodes share."""

    __slots__ = ("advertised_host", "advertised_port", "host", "needs_sasl", "ssl_context")

    def __init__(
        self,
        host: str = "127.0.0.1",
        ssl_context: ssl.SSLContext | None = None,
        needs_sasl: bool = False,
        advertise: str | None = None,
    ) -> None:
        self.host = host
        #: The address that clients connect to; the port is that of the first node, None for the one it listens on.
        self.advertised_host, self.advertised_port = _advertised(host, advertise)
        self.ssl_context = ssl_context
        self.needs_sasl = needs_sasl

    @property
    def protocol(self) -> str:
        """Kafka's name for it, as ``SASL_SSL``."""
        return ("SASL_" if self.needs_sasl else "") + ("SSL" if self.ssl_context else "PLAINTEXT")


def _advertised(host: str, advertise: str | None) -> tuple[str, int | None]:
    """Return the advertised host, and the port if it has one."""
    if advertise is None:
        # An address that means "all interfaces" leads nowhere.
        return _ANY.get(host, host), None
    name, colon, port = advertise.rpartition(":")
    has_port = bool(colon) and (":" not in name or name.startswith("["))  # an IPv6 address has colons too
    host = (name if has_port else advertise).removeprefix("[").removesuffix("]")
    is_port = port.isascii() and port.isdigit() and 0 < int(port) <= _LAST_PORT
    if host in _ANY or (has_port and not is_port):
        raise IllegalArgumentError(
            f"advertise takes HOST or HOST:PORT, an address that clients can connect to, not {advertise!r}"
        )
    return host, int(port) if has_port else None


def format_address(host: str, port: int) -> str:
    """Return ``host:port``, as clients take it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class _TlsContext:
    """An SSL context for one connection that keeps the alert in which a failed handshake ends."""

    __slots__ = ("_context", "alert")

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self.alert = b""

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, **options: Any) -> ssl.SSLObject:
        """Begin TLS on two buffers, as asyncio asks of a context."""
        import ssl

        tls = self._context.wrap_bio(incoming, outgoing, **options)
        begin = tls.do_handshake

        def do_handshake() -> None:
            try:
                begin()
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                raise
            except ssl.SSLError:
                self.alert = outgoing.read()
                raise

        tls.do_handshake = do_handshake  # type: ignore[method-assign]
        return tls


async def _say_goodbye(sock: socket.socket, last: bytes) -> None:
    """Send the last bytes of a connection and wait until the client has closed it.

    A socket that is closed with bytes unread resets the connection, and the client may lose what was just sent.
    """
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(sock, last)
    sock.shutdown(socket.SHUT_WR)
    while await loop.sock_recv(sock, _BACKLOG):
        pass


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
            except OSError as error:  # out of descriptors: waiting clients are served when some are free again
                log.error("node %d cannot take a connection: %s", self.node.node_id, error)
                loop.remove_reader(self._socket)
                self.node.cluster.timers.call_later(_RETRY_AFTER, self._resume)
                return
            client.setblocking(False)
            task = self.node.cluster.background(self._take(client))
            task.add_done_callback(partial(_close_if_not_taken, client))

    def _resume(self) -> None:
        if self._socket is not None and self.is_open:
            asyncio.get_running_loop().add_reader(self._socket, self._accept)

    async def _take(self, client: socket.socket) -> None:
        context = self.options.ssl_context
        if context is not None:
            await self._take_tls(client, context)
            return
        try:
            await asyncio.get_running_loop().connect_accepted_socket(self._connection, client)
        except (OSError, asyncio.CancelledError) as error:  # the client has gone, or the broker is closing
            log.debug("a connection to node %d did not come about: %s", self.node.node_id, error)
            client.close()

    def _connection(self) -> Connection:
        return Connection(self, next(_numbers))

    async def _take_tls(self, client: socket.socket, context: ssl.SSLContext) -> None:
        """Take a client through the TLS handshake; one that is refused gets the alert that says why.

        asyncio closes the socket of a failed handshake without sending the alert, which under TLS 1.3 is all that a
        client learns about a refused certificate. So the alert goes out on a duplicate of the socket.
        """
        tls = _TlsContext(context)
        try:
            host, spare = client.getpeername()[0], client.dup()
        except OSError as error:
            log.debug("a TLS connection to node %d did not come about: %s", self.node.node_id, error)
            client.close()
            return
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._connection, client, ssl=cast("ssl.SSLContext", tls)
            )
        except (OSError, asyncio.CancelledError) as error:
            client.close()
            if type(error).__name__ in _GONE or not isinstance(error, OSError):
                log.debug("a TLS connection to node %d did not come about: %r", self.node.node_id, error)
            else:
                log.warning("node %d: the TLS handshake with %s failed: %s", self.node.node_id, host, error)
            if tls.alert:
                with suppress(OSError, asyncio.TimeoutError):
                    await asyncio.wait_for(_say_goodbye(spare, tls.alert), _GOODBYE)
        finally:
            spare.close()

    def stop(self, *, crash: bool = False) -> None:
        """Refuse connections, and close the open ones."""
        self.close()
        with suppress(KafkaConnectionError):  # then `start` tries again
            self.bind()  # without listening: no connection of another program gets this port for its own end
        self.drop(crash=crash)

    def close(self) -> None:
        """Stop listening, and give up the port."""
        self.is_open = False
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None

    def drop(self, *, crash: bool = True) -> int:
        """Close the connections but keep listening; return how many there were."""
        connections = list(self.connections)
        for connection in connections:
            (connection.abort if crash else connection.close)()
        return len(connections)

    def opened(self, connection: Connection) -> None:
        """A connection has been made; perhaps just as the node was stopping."""
        if not self.is_open:
            connection.abort()
        self.connections.add(connection)
        if (watcher := self.node.cluster.faults.watcher) is not None:
            watcher.opened(connection)

    def closed(self, connection: Connection) -> None:
        """A connection has ended."""
        self.connections.discard(connection)
        if (watcher := self.node.cluster.faults.watcher) is not None:
            watcher.closed(connection)


def _close_if_not_taken(client: socket.socket, task: asyncio.Task[None]) -> None:
    # A task that is cancelled before its first step runs none of its code, so nothing in it can close the socket.
    if task.cancelled():
        client.close()


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
        #: False from UnregisterBroker to the next start: the node serves on, but the cluster no longer lists it.
        self.is_registered = True
        #: When it stopped, in milliseconds.
        self.stopped_ms = -1
        self.listener = Listener(self, options, port)
        #: What this node keeps for its connections, as the fetch sessions; gone when it stops.
        self.memory: dict[object, Any] = {}

    @property
    def is_live(self) -> bool:
        """Whether the cluster counts on it: it runs and is registered."""
        return self.is_running and self.is_registered

    @property
    def max_idle(self) -> float:
        """Seconds after which an unused connection is closed."""
        return self.cluster.configs.broker_int("connections.max.idle.ms", self.node_id) / 1000

    @property
    def max_frame(self) -> int:
        """The largest request that it reads."""
        return self.cluster.configs.broker_int("socket.request.max.bytes")

    @property
    def host(self) -> str:
        """The host that clients connect to."""
        return self.listener.options.advertised_host

    @property
    def port(self) -> int:
        """The port that clients connect to; nodes after the first have the next ones."""
        first = self.listener.options.advertised_port
        return self.listener.port if first is None else first + self.node_id - 1

    def start(self) -> None:
        """Listen and serve."""
        self.listener.start()
        self.is_running = self.is_registered = True

    def stop(self, *, crash: bool = False) -> None:
        """Go away; connections are closed."""
        self.is_running = False
        self.stopped_ms = self.cluster.clock.now_ms()
        self.memory.clear()
        self.listener.stop(crash=crash)
