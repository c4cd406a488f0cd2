"""Which connection belongs to which client of this process, and what clients leave behind when they are closed."""

from __future__ import annotations

import socket
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from kafka._core.client import Client

__all__ = ["Clients", "Peer"]

Report = Callable[[str, str], None]


class Peer:
    """One of our clients as a broker meets it; without options where they are not known."""

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, *, kind: str = "") -> None:
        self.name = name
        self.kind = kind
        """``producer``, ``consumer`` or ``admin``, and empty where that is not known."""
        self.knows_options = options is not None
        self._options = options or {}

    def seconds(self, option: str) -> float:
        """Return an option in seconds; 0 where it is not known."""
        value = self._options.get(option)
        return 0.0 if value is None else float(value) / 1000

    def number(self, option: str, default: int) -> int:
        """Return an option."""
        value = self._options.get(option)
        return default if value is None else int(value)

    def __repr__(self) -> str:
        return self.name


class _Socket(socket.socket):
    """A client's socket, which says from which port it has connected."""

    __slots__ = ("connected",)
    connected: Callable[[socket.socket], None]

    def connect_ex(self, address: Any, /) -> int:
        code = super().connect_ex(address)
        self.connected(self)
        return code


class _Tracked:
    """A client, its sockets and its options; the client may be gone."""

    def __init__(self, client: Client) -> None:
        config = client.config
        name = f"{config.get('client_id')!r} ({type(client).__name__} {id(client):#x})"
        kind = "producer" if "acks" in config else "consumer" if "max_poll_records" in config else "admin"
        self.client = weakref.ref(client)
        self.peer = Peer(name, config, kind=kind)
        self.sockets: list[weakref.ref[_Socket]] = []
        self.is_shared = False

    def is_closed(self) -> bool:
        client = self.client()
        return client is None or client.closed

    def open_sockets(self) -> list[_Socket]:
        found = (each() for each in self.sockets)
        return [sock for sock in found if sock is not None and sock.fileno() >= 0]


class Clients:
    """The clients of this process."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._by_address: dict[tuple[str, int], _Tracked] = {}
        self._tracked: list[_Tracked] = []

    def install(self) -> None:
        """Follow each client that is made from now on."""
        initialise = Client.__init__
        clients = self

        def init(client: Client, *args: Any, **options: Any) -> None:
            initialise(client, *args, **options)
            clients.follow(client)

        Client.__init__ = init  # type: ignore[method-assign]

    def follow(self, client: Client) -> None:
        """Remember a client, and the sockets that it opens."""
        context = client.context
        if context.make_socket is not socket.socket:
            return  # a network in memory, or of the test
        tracked = _Tracked(client)
        self._tracked.append(tracked)

        def make(*args: Any) -> _Socket:
            if tracked.is_closed():
                self._report("closing", f"client {tracked.peer} opens a connection after it was closed")
            made = _Socket(*args)
            made.connected = connected
            tracked.sockets.append(weakref.ref(made))
            return made

        def connected(sock: socket.socket) -> None:
            try:
                host, port = sock.getsockname()[:2]
            except OSError:
                return
            self._by_address[host, port] = tracked

        context.make_socket = make

    def peer(self, host: str, port: int) -> Peer | None:
        """Return the client that has connected from this address."""
        tracked = self._by_address.get((host, port))
        return None if tracked is None else tracked.peer

    def share(self) -> None:
        """Take the clients that there are as those of several tests."""
        for tracked in self._tracked:
            tracked.is_shared = True

    def is_shared(self, address: Any) -> bool:
        """Whether several tests share the client that has connected from this address."""
        tracked = self._by_address.get(address[:2])
        return tracked is not None and tracked.is_shared

    def check_closed(self) -> list[Client]:
        """Report connections of closed clients that are open; return the clients that are not closed."""
        left: list[Client] = []
        for tracked in self._tracked:
            client = tracked.client()
            if tracked.is_closed():
                for sock in tracked.open_sockets():
                    self._report("closing", f"client {tracked.peer} is closed, and its socket is not: {sock}")
            elif client is not None and not tracked.is_shared and tracked.open_sockets():
                left.append(client)
        self._tracked = [tracked for tracked in self._tracked if not tracked.is_closed()]
        if not self._tracked:
            self._by_address.clear()
        return left
