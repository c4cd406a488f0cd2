"""A TCP proxy before the embedded broker that cuts connections at a byte that the test chooses.

It stands before every node: the broker's answers name the proxy's ports in place of its own, so clients know nothing
else. What it forwards goes on unchanged, until as many bytes as were ordered have gone through in one direction; then
the connection ends on both sides, with the bytes before that one delivered and the rest lost.

>>> with Broker(topics=["events"]) as broker, CuttingProxy(broker) as proxy:    # doctest: +SKIP
...     producer = KafkaProducer(bootstrap_servers=proxy.bootstrap_servers)
...     proxy.cut_after(17, DOWN)
...     producer.send("events", b"x").get()
...     assert proxy.cuts == 1
"""

from __future__ import annotations

import selectors
import socket
import threading
from random import Random
from typing import TYPE_CHECKING, Any, Final

from kafka.broker import Broker

if TYPE_CHECKING:
    from typing_extensions import Self

    from kafka.broker.faults import Exchange

__all__ = ["DOWN", "UP", "CuttingProxy"]

#: From the client to the broker.
UP: Final = "up"
#: From the broker to the client.
DOWN: Final = "down"
_CHUNK: Final = 65_536
_WITH_ADDRESSES: Final = ("Metadata", "FindCoordinator", "DescribeCluster")


class _Flow:
    """One direction of one connection."""

    def __init__(self, source: socket.socket, sink: socket.socket, direction: str) -> None:
        self.source = source
        self.sink = sink
        self.direction = direction
        self.passed = 0  # bytes since the last order
        self.most: int | None = None  # how many may pass, whatever is ordered
        self.other: _Flow = self


class CuttingProxy:
    """See the head of this file. Orders may be given from any thread while it runs."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()
        self._flows: set[_Flow] = set()
        self._order: tuple[int, str] | None = None
        self._times = 0
        self._lifetimes: tuple[Random, int, int] | None = None
        self._woken, self._waker = socket.socketpair()
        self._selector.register(self._woken, selectors.EVENT_READ, None)
        self._listeners: dict[int, socket.socket] = {}
        self._ports: dict[
            int, int
        ] = {}  # asked for by the broker, which may still answer when the listeners are closed
        for node in broker.node_ids:
            listener = socket.create_server(("127.0.0.1", 0))
            listener.setblocking(False)
            self._listeners[node] = listener
            self._ports[node] = int(listener.getsockname()[1])
            self._selector.register(listener, selectors.EVENT_READ, node)
        self._stopping = False
        self._cut_asked: list[threading.Event] = []
        self.cuts = 0
        """How many connections were cut by order."""
        self._thread = threading.Thread(target=self._run, name="cutting-proxy", daemon=True)
        self._rewriting = [broker.intercept(api, self._rewrite) for api in _WITH_ADDRESSES]
        self._thread.start()

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect."""
        return ",".join(f"127.0.0.1:{self.port(node)}" for node in self._listeners)

    def port(self, node: int) -> int:
        """The port that stands for a node."""
        return self._ports[node]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Cut everything and stop."""
        for order in self._rewriting:
            order.remove()
        self._stopping = True
        self._waker.send(b"x")
        self._thread.join(60)
        for flow in list(self._flows):
            self._end(flow)
        for listener in self._listeners.values():
            listener.close()
        self._selector.close()
        self._woken.close()
        self._waker.close()

    # Orders

    def cut_after(self, count: int, direction: str, times: int = 1) -> None:
        """Cut connections when `count` bytes are through in that direction, until so many were cut.

        Each connection is counted for itself, from now on; with 0 the first byte is lost already.
        """
        with self._lock:
            for flow in self._flows:
                flow.passed = 0
            self._order, self._times = (count, direction), times

    def cut_all_after(self, rng: Random, least: int, most: int) -> None:
        """Let no connection carry more than a random number of bytes, in either direction."""
        with self._lock:
            self._lifetimes = (rng, least, most)

    def cut_now(self) -> None:
        """Cut all connections there are; they are cut when it returns."""
        done = threading.Event()
        self._cut_asked.append(done)
        self._waker.send(b"x")
        assert done.wait(60), "the proxy is stuck"

    def stop_cutting(self) -> None:
        """Take back all orders."""
        with self._lock:
            self._order = self._lifetimes = None
            for flow in self._flows:
                flow.most = None

    def altered(self, data: bytes, direction: str) -> bytes:
        """Return what goes on in place of the data, in the proxy's thread."""
        return data

    # Its thread

    def _run(self) -> None:
        while not self._stopping:
            for key, _ in self._selector.select():
                if isinstance(key.data, _Flow):
                    if key.data in self._flows:
                        self._carry(key.data)
                elif key.data is not None:
                    self._accept(key.data)
                else:
                    self._woken.recv(_CHUNK)
            while self._cut_asked:
                for flow in list(self._flows):
                    self._end(flow)
                self._cut_asked.pop().set()

    def _accept(self, node: int) -> None:
        client, _ = self._listeners[node].accept()
        try:
            server = socket.create_connection(("127.0.0.1", self._broker.port(node)), timeout=10)
        except OSError:
            client.close()
            return
        up, down = _Flow(client, server, UP), _Flow(server, client, DOWN)
        up.other, down.other = down, up
        for flow in (up, down):
            flow.source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(flow.source, selectors.EVENT_READ, flow)
        with self._lock:
            self._flows |= {up, down}
            if self._lifetimes is not None:
                rng, least, most = self._lifetimes
                rng.choice((up, down)).most = rng.randint(least, most)

    def _carry(self, flow: _Flow) -> None:
        try:
            data = self.altered(flow.source.recv(_CHUNK), flow.direction)
        except OSError:
            data = b""
        if not data:
            self._end(flow)
            return
        with self._lock:
            room = self._room(flow)
            is_cut = room is not None and room < len(data)
            if is_cut:
                self.cuts += 1
                self._times -= 1
                if not self._times:
                    self._order = None
            flow.passed += len(data)
        try:
            flow.sink.sendall(data[:room] if is_cut else data)
        except OSError:
            is_cut = True
        if is_cut:
            self._end(flow)

    def _room(self, flow: _Flow) -> int | None:
        """How many more bytes may pass; None: any number."""
        limit = flow.most
        if self._order is not None and self._order[1] == flow.direction:
            limit = self._order[0]
        return None if limit is None else max(0, limit - flow.passed)

    def _end(self, flow: _Flow) -> None:
        if flow not in self._flows:
            return
        for one in (flow, flow.other):
            self._selector.unregister(one.source)
        with self._lock:
            self._flows -= {flow, flow.other}
        # What was let through reaches the client (an end, not a reset); the broker hears of it at once.
        client, server = (flow.source, flow.sink) if flow.direction == UP else (flow.sink, flow.source)
        server.close()
        client.close()

    def _rewrite(self, exchange: Exchange) -> None:
        """Name our ports in place of the broker's."""
        reply = exchange.reply
        ends: list[Any] = [*(getattr(reply, "brokers", None) or ()), *(getattr(reply, "coordinators", None) or ())]
        if hasattr(reply, "port"):  # FindCoordinator of one key
            ends.append(reply)
        for end in ends:
            node = getattr(end, "node_id", None)
            node = getattr(end, "broker_id", None) if node is None else node
            if node in self._listeners:
                end.port = self.port(node)
