"""A network in memory and a clock that jumps: a client runs without a socket and without waiting.

The in-memory socket has the methods and errors of a socket, the in-memory selector the interface of a selector. When
no socket is ready, the selector moves the clock to the next deadline, so a test of a five-minute timeout ends at once.
When no deadline is set either, it raises `NothingWillHappenError` instead of hanging.

For one thread only.

>>> network = MemoryNetwork()
>>> server = network.listen("broker", 9092)
>>> client = network.socket()
>>> client.connect_ex(("broker", 9092))
0
>>> accepted = server.accept()
>>> client.sendmsg([b"hel", b"lo"]), bytes(accepted.take())
(5, b'hello')
"""

# ruff: noqa: SLF001 - the two ends of a connection are one thing

from __future__ import annotations

import errno
import selectors
import socket
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

    from kafka.net.environment import Environment

__all__ = ["FakeClock", "MemoryListener", "MemoryNetwork", "MemorySelector", "MemorySocket"]

_READ: Final = selectors.EVENT_READ
_WRITE: Final = selectors.EVENT_WRITE
_FIRST_FD: Final = 1_000_000  # far from any real descriptor


class FakeClock:
    """A clock whose time passes when a test advances it.

    >>> clock = FakeClock()
    >>> before = clock.monotonic()
    >>> clock.advance(300)
    >>> clock.monotonic() - before
    300.0
    """

    def __init__(self, start: float = 1000.0, epoch: float = 1_700_000_000.0) -> None:
        self._now = start
        self._epoch = epoch - start

    def monotonic(self) -> float:
        """Return seconds since an arbitrary point."""
        return self._now

    def time(self) -> float:
        """Return seconds since the epoch."""
        return self._now + self._epoch

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        assert seconds >= 0, "time does not go back"
        self._now += seconds


class NothingWillHappenError(AssertionError):
    """The loop would sleep forever: no socket is ready and no timer is set."""


class MemoryNetwork:
    """Listeners by (host, port), the sockets that connect to them, and the clock they share.

    `buffer_size` bounds what one direction of a connection holds, as a socket buffer does.
    `unreachable` addresses never answer a connection attempt; all others without a listener refuse.
    """

    def __init__(self, clock: FakeClock | None = None, buffer_size: int = 1 << 20) -> None:
        self.clock = clock or FakeClock()
        self.buffer_size = buffer_size
        self.listeners: dict[tuple[str, int], MemoryListener] = {}
        self.names: dict[str, list[str]] = {}
        """Names with other addresses than themselves; an empty list cannot be resolved."""
        self.unreachable: set[tuple[str, int]] = set()
        self.sockets: list[MemorySocket] = []
        self.by_fd: dict[int, MemorySocket] = {}
        self._fds = count(_FIRST_FD)

    def listen(
        self, host: str, port: int, on_connect: Callable[[MemorySocket], object] | None = None
    ) -> MemoryListener:
        """Accept connections at an address; `on_connect` is called with the server's end of each."""
        listener = self.listeners[host, port] = MemoryListener(on_connect)
        return listener

    def socket(self, *_family_and_type: object) -> MemorySocket:
        """Return a new socket; takes what `socket.socket` takes."""
        made = MemorySocket(self, next(self._fds))
        self.sockets.append(made)
        self.by_fd[made.fileno()] = made
        return made

    def lookup(self, host: str, port: int, *_hints: int) -> list[tuple[Any, ...]]:
        """Resolve a name as `socket.getaddrinfo` does: to `names[host]`, else to itself."""
        addresses = self.names.get(host, [host])
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (each, port)) for each in addresses]

    def environment(self, seed: int = 0) -> Environment:
        """Return the `environment` argument for a client on this network; `seed` determines its jitter."""
        from kafka._runtime.workers import InlineWorkers
        from kafka.net.environment import Environment

        return Environment(
            clock=self.clock,
            rng=Random(seed),  # noqa: S311 - so that a test does the same each time
            selector=self.selector,
            make_socket=self.socket,
            lookup=self.lookup,
            reverse=lambda sockaddr, _flags: (str(sockaddr[0]), str(sockaddr[1])),
            workers=InlineWorkers(),
        )

    def selector(self) -> MemorySelector:
        """Return a new selector; this method is a loop's `selector`."""
        return MemorySelector(self)

    @property
    def open_sockets(self) -> list[MemorySocket]:
        """Sockets that the client made and did not close; a test asserts that none is left."""
        return [made for made in self.sockets if not made.closed and not made.accepted]


class MemoryListener:
    """Connections that wait for a test's server to accept them."""

    def __init__(self, on_connect: Callable[[MemorySocket], object] | None = None) -> None:
        self._waiting: deque[MemorySocket] = deque()
        self._on_connect = on_connect

    def connected(self, server_end: MemorySocket) -> None:
        """Take the server's end of a new connection."""
        if self._on_connect is not None:
            self._on_connect(server_end)
        else:
            self._waiting.append(server_end)

    def accept(self) -> MemorySocket:
        """Return the server's end of the oldest connection that was not accepted yet."""
        return self._waiting.popleft()

    def __len__(self) -> int:
        return len(self._waiting)


class MemorySocket:
    """One end of a connection, with the part of a non-blocking socket's interface that the client uses."""

    def __init__(self, network: MemoryNetwork, fd: int) -> None:
        self._network = network
        self._fd = fd
        self._inbox = bytearray()
        self._ended = False  # the other end will send no more
        self._reset = False
        self._connecting = False
        self._error = 0
        self.peer: MemorySocket | None = None
        self.address: tuple[str, int] | None = None
        self.options: list[tuple[object, ...]] = []
        self.closed = False
        self.accepted = False
        """Whether it is the server's end of the connection."""
        self.on_data: Callable[[MemorySocket], object] | None = None
        """Called when the other end has sent something, so that a test's server can answer at once."""
        self.recv_limit: int | None = None
        """The most bytes that one receive returns (1 splits every message everywhere)."""
        self.send_limit: int | None = None
        """The most bytes that one send takes; 0 blocks."""

    # As a socket…

    def fileno(self) -> int:
        """Return the descriptor, -1 when closed."""
        return -1 if self.closed else self._fd

    def setblocking(self, flag: bool) -> None:
        """Accept False only."""
        assert not flag, "the client's sockets do not block"

    def setsockopt(self, *option: object) -> None:
        """Remember the option in `options`."""
        self.options.append(option)

    def getsockopt(self, *_option: int) -> int:
        """Return the pending error, which is what the client asks for."""
        return self._error

    def getpeername(self) -> tuple[str, int]:
        """Return the address of the other side."""
        if self.address is None or self.peer is None:
            raise OSError(errno.ENOTCONN, "not connected")
        return self.address

    def connect_ex(self, address: tuple[Any, ...]) -> int:
        """Connect at once, or be refused at once, or stay in progress (see `MemoryNetwork.unreachable`)."""
        where = (str(address[0]), int(address[1]))
        self.address = where
        if where in self._network.unreachable:
            self._connecting = True
            return errno.EINPROGRESS
        listener = self._network.listeners.get(where)
        if listener is None:
            self._error = errno.ECONNREFUSED
            return errno.ECONNREFUSED
        server_end = self._network.socket()
        self.peer, server_end.peer = server_end, self
        server_end.address = where
        server_end.accepted = True
        listener.connected(server_end)
        return 0

    def recv_into(self, buffer: bytearray | memoryview, nbytes: int = 0) -> int:
        """Receive into `buffer`."""
        self._check()
        if self._reset:
            raise ConnectionResetError(errno.ECONNRESET, "reset by peer")
        if not self._inbox:
            if self._ended:
                return 0
            raise BlockingIOError(errno.EAGAIN, "nothing to read")
        size = min(nbytes or len(buffer), len(buffer), len(self._inbox), self.recv_limit or len(self._inbox))
        memoryview(buffer)[:size] = self._inbox[:size]
        del self._inbox[:size]
        return size

    def recv(self, size: int) -> bytes:
        """Receive up to `size` bytes."""
        buffer = bytearray(size)
        return bytes(buffer[: self.recv_into(buffer)])

    def sendmsg(self, buffers: Iterable[bytes | bytearray | memoryview]) -> int:
        """Send what fits of `buffers`."""
        return self.send(b"".join(bytes(part) for part in buffers))

    def send(self, data: bytes | bytearray | memoryview) -> int:
        """Send what fits of `data`."""
        self._check()
        peer = self.peer
        if self._reset or peer is None or peer.closed:
            raise BrokenPipeError(errno.EPIPE, "the other end is gone")
        room = self._network.buffer_size - len(peer._inbox)
        size = min(len(data), room, len(data) if self.send_limit is None else self.send_limit)
        if size <= 0:
            raise BlockingIOError(errno.EAGAIN, "no room")
        peer._inbox += data[:size]
        if peer.on_data is not None:
            peer.on_data(peer)
        return size

    def shutdown(self, _how: int) -> None:
        """Send no more."""
        if self.peer is not None:
            self.peer._ended = True

    def close(self) -> None:
        """Close; the other end reads what is left and then the end of the stream."""
        if not self.closed:
            self.closed = True
            if self.peer is not None:
                self.peer._ended = True

    def _check(self) -> None:
        if self.closed:
            raise OSError(errno.EBADF, "closed")

    # Faults and inspection, for tests…

    def take(self) -> bytearray:
        """Return and remove all that was received so far."""
        data, self._inbox = self._inbox, bytearray()
        return data

    def reset(self) -> None:
        """Break the connection so that the other end sees ECONNRESET."""
        self.closed = True
        if self.peer is not None:
            self.peer._reset = True

    def finish_connecting(self, error: int = 0) -> None:
        """Let an attempt at an unreachable address succeed (with a listener set up since) or fail."""
        assert self._connecting
        self._connecting = False
        self._error = error
        if not error:
            assert self.address is not None
            self._network.unreachable.discard(self.address)
            self.connect_ex(self.address)

    def ready(self) -> int:
        """Return the events that the socket is ready for."""
        if self._connecting:
            return 0
        events = 0
        if self._inbox or self._ended or self._reset or self._error:
            events |= _READ
        peer = self.peer
        room = peer is None or peer.closed or len(peer._inbox) < self._network.buffer_size
        if room and self.send_limit != 0:
            events |= _WRITE
        return events


class MemorySelector(selectors.BaseSelector):
    """A selector over sockets in memory. To sleep is to move the clock."""

    def __init__(self, network: MemoryNetwork) -> None:
        self._network = network
        self._keys: dict[int, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Watch a socket; real descriptors (a loop's waker) are accepted and never ready."""
        fd = fileobj.fileno()
        if fd < 0:
            raise ValueError("the socket is closed")
        if fd in self._keys:
            raise KeyError(f"{fileobj!r} is already registered")
        key = self._keys[fd] = selectors.SelectorKey(fileobj, fd, events, data)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        """Stop watching a socket."""
        return self._keys.pop(fileobj.fileno())

    def modify(self, fileobj: object, events: int, data: object = None) -> selectors.SelectorKey:
        """Watch for other events."""
        self.unregister(fileobj)
        return self.register(fileobj, events, data)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready; if nothing is, move the clock by `timeout`."""
        ready = []
        for key in tuple(self._keys.values()):
            sock = self._network.by_fd.get(key.fd)  # the registered object may be a stream over the socket
            if sock is not None:
                assert not sock.closed, f"{key.fileobj!r} was closed while it was watched"
                mask = sock.ready() & key.events
                if mask:
                    ready.append((key, mask))
        if not ready:
            if timeout is None:
                raise NothingWillHappenError("No socket is ready and no deadline is set: the loop would wait forever")
            if timeout > 0:
                self._network.clock.advance(timeout)
        return ready

    def get_map(self) -> Mapping[FileDescriptorLike, selectors.SelectorKey]:
        """Return what is watched."""
        return {key.fileobj: key for key in self._keys.values()}

    def close(self) -> None:
        """Forget everything."""
        self._keys.clear()
