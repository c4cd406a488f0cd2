"""A TCP proxy on loopback with the faults of a network: slow, silent, cut, refusing.

One stands for one address. It works on a thread of its own; the test changes its state at any time.

>>> with Proxy() as proxy:                              # doctest: +SKIP
...     proxy.target = "127.0.0.1", broker.port()
...     proxy.delay_down = 2.5                          # each answer arrives 2.5 seconds late
...     client = KafkaClient(bootstrap_servers=proxy.address)
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Proxy"]

_CHUNK: Final = 65_536
_PATIENCE: Final = 30.0
_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER of 0 s: close() sends RST


class Proxy:
    """Forwards connections to `target`. `host` and `port` say where it listens; port 0 takes a free one."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self.host = host
        self.target: tuple[str, int] | None = None
        """Host and port of the server behind it; None: connections are accepted, and nothing answers."""
        self.hangs_up = False
        """Whether each connection is closed as soon as it was accepted."""
        self.delay_up = 0.0
        """Seconds that bytes from the client are late."""
        self.delay_down = 0.0
        """Seconds that bytes from the server are late."""
        self.accepted = 0
        """How many connections were accepted."""
        self._passing = True
        self._resets = False
        self._loop = asyncio.new_event_loop()
        self._changed = asyncio.Event()
        self._connections: set[asyncio.Task[None]] = set()
        self._listener: socket.socket | None = self._listen(port)
        self.port = int(self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"proxy {self.address}", daemon=True)
        self._thread.start()
        self._order(self._start_listening())

    @property
    def address(self) -> str:
        """Where it listens, as a bootstrap server."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    # What a test orders; each is done when it returns

    def hold(self) -> None:
        """Carry nothing from now on, in either direction; connections stay open, and new ones are accepted."""
        self._order(self._set_passing(False))

    def cut(self) -> None:
        """Reset all connections there are."""
        self._order(self._reset_all())

    def refuse(self) -> None:
        """Refuse new connections, and reset those there are."""
        self._order(self._stop_listening())
        self._order(self._reset_all())

    def heal(self) -> None:
        """Carry everything without delay, and accept connections; bytes that were held arrive now."""
        self.delay_up = self.delay_down = 0.0
        self._order(self._start_listening())
        self._order(self._set_passing(True))

    def close(self) -> None:
        """Reset all connections and end."""
        if self._loop.is_closed():
            return
        self.refuse()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE)
        self._loop.close()

    # Its thread

    def _order(self, action: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(action, self._loop).result(_PATIENCE)

    def _listen(self, port: int) -> socket.socket:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listener = socket.create_server((self.host, port), family=family, backlog=128)
        listener.setblocking(False)
        return listener

    async def _start_listening(self) -> None:
        if self._listener is None:
            self._listener = self._listen(self.port)
        self._loop.add_reader(self._listener, self._accept, self._listener)

    async def _stop_listening(self) -> None:
        if self._listener is not None:
            self._loop.remove_reader(self._listener)
            self._listener.close()
            self._listener = None

    async def _set_passing(self, passing: bool) -> None:
        self._passing = passing
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _reset_all(self) -> None:
        self._resets = True
        for connection in self._connections:
            connection.cancel()
        if self._connections:
            await asyncio.wait(self._connections)
        self._resets = False

    def _accept(self, listener: socket.socket) -> None:
        try:
            client, _ = listener.accept()
        except OSError:  # it has gone again
            return
        self.accepted += 1
        if self.hangs_up:
            client.close()
            return
        client.setblocking(False)
        connection = self._loop.create_task(self._serve(client))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)
        # A task that is cancelled before its first step does nothing at all.
        connection.add_done_callback(lambda _: client.close())

    async def _serve(self, client: socket.socket) -> None:
        server: socket.socket | None = None
        flows: list[asyncio.Task[None]] = []
        try:
            while not self._passing or self.target is None:
                await self._changed.wait()
            server = socket.socket(socket.AF_INET6 if ":" in self.target[0] else socket.AF_INET)
            server.setblocking(False)
            await self._loop.sock_connect(server, self.target)
            for sock in (client, server):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            up, down = asyncio.Queue[tuple[float, bytes]](64), asyncio.Queue[tuple[float, bytes]](64)
            ends = [self._send(server, up), self._send(client, down)]
            begins = [
                self._receive(client, up, lambda: self.delay_up),
                self._receive(server, down, lambda: self.delay_down),
            ]
            flows = [self._loop.create_task(flow) for flow in (*ends, *begins)]
            await asyncio.wait(flows[:2], return_when=asyncio.FIRST_COMPLETED)
        except OSError:
            pass  # nothing listens behind us: the client is hung up on
        finally:
            for flow in flows:
                flow.cancel()
            try:
                await asyncio.gather(*flows, return_exceptions=True)
            finally:  # the proxy may be closed while this ends because its client has gone
                for each in (client, server):
                    if each is not None:
                        self._close(each)

    async def _receive(
        self, source: socket.socket, queue: asyncio.Queue[tuple[float, bytes]], delay: Callable[[], float]
    ) -> None:
        data = b"any"
        while data:
            data = b""
            with suppress(OSError):
                data = await self._loop.sock_recv(source, _CHUNK)
            await queue.put((self._loop.time() + delay(), data))

    async def _send(self, sink: socket.socket, queue: asyncio.Queue[tuple[float, bytes]]) -> None:
        while True:
            due, data = await queue.get()
            await asyncio.sleep(due - self._loop.time())
            while not self._passing:
                await self._changed.wait()
            if not data:
                return
            try:
                await self._loop.sock_sendall(sink, data)
            except OSError:
                return

    def _close(self, sock: socket.socket) -> None:
        if self._resets:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        sock.close()
