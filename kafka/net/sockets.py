"""From a broker's address to a connected stream: TCP, proxies, TLS.

Coroutines on the client's loop. A cancelled coroutine closes the sockets that it has opened. `OSError` and
`ssl.SSLError` become Kafka's errors here.
"""

from __future__ import annotations

import errno
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from kafka._runtime.loop import READ, WRITE, Loop
from kafka._runtime.tasks import wait_any
from kafka._text import host_port
from kafka.errors import KafkaConnectionError
from kafka.future import Future
from kafka.net.resolver import NoListenerError
from kafka.net.states import ConnectionEvent

if TYPE_CHECKING:
    from _typeshed import HasFileno

    from kafka.net.proxy import ProxyUrl
    from kafka.net.resolver import Address
    from kafka.net.settings import ConnectionContext, ConnectionSettings
    from kafka.net.tls import TlsStream

__all__ = [
    "Dialed",
    "PlainStream",
    "SocketFactory",
    "Stream",
    "dial",
    "open_socket",
    "readiness",
    "tunnel",
    "upgrade",
]

# RFC 8305, section 8: the delay before the next address is tried beside the one that has not answered.
_STAGGER: Final = 0.25

SocketFactory = Callable[..., socket.socket]


class PlainStream:
    """A socket without encryption."""

    pending_in: Final = False
    pending_out: Final = False

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.fileno: Callable[[], int] = sock.fileno
        self.recv_into: Callable[[memoryview], int] = sock.recv_into
        self.sendmsg: Callable[[Sequence[bytes | memoryview]], int] = getattr(sock, "sendmsg", self._send_joined)
        self.close: Callable[[], None] = sock.close

    def _send_joined(self, buffers: Sequence[bytes | memoryview]) -> int:
        """Stand in where the system has no sendmsg (Windows)."""
        return int(self._sock.send(b"".join(buffers)))

    def flush(self) -> None:
        """Do nothing: no bytes are buffered here."""


# A non-blocking socket, or TLS over one. `recv_into` and `sendmsg` raise BlockingIOError where nothing is possible now;
# `pending_in`: something can be received though the socket may have nothing; `pending_out`: `flush` has more to send.
Stream: TypeAlias = "PlainStream | TlsStream"


async def readiness(loop: Loop, file: HasFileno, events: int) -> None:
    """Wait until a socket or a stream is ready."""
    ready: Future[None] = Future()
    loop.watch(file, events, lambda _: ready.try_success(None))
    try:
        await ready
    finally:
        loop.unwatch(file)


# TCP…


class Dialed(NamedTuple):
    """A socket that is connected."""

    sock: socket.socket
    address: Address
    has_others: bool
    """Whether there are addresses that have not refused, and may be tried instead."""


async def dial(
    loop: Loop,
    addresses: Sequence[Address],
    settings: ConnectionSettings,
    make_socket: SocketFactory,
    name: str = "",
) -> Dialed:
    """Connect to the first address that answers (RFC 8305): the next is tried after a failure, or beside a slow one.

    An error lists the addresses, except one that is `name`, which its caller puts in front.
    """
    waiting = deque(addresses)
    attempts: dict[Future[None], tuple[socket.socket | None, Address]] = {}
    problems: list[tuple[Address, BaseException]] = []
    try:
        while waiting or attempts:
            if waiting:
                address = waiting.popleft()
                _start(loop, address, settings, make_socket, attempts)
            deadline = loop.time() + _STAGGER if waiting else None
            await wait_any(loop, *attempts, deadline=deadline)
            for future in [future for future in attempts if future.is_done]:
                sock, address = attempts.pop(future)
                if future.exception is None:
                    assert sock is not None
                    loop.unwatch(sock)
                    return Dialed(sock, address, has_others=bool(waiting or attempts))
                problems.append((address, future.exception))
                _discard(loop, sock)
    finally:
        for sock, _ in attempts.values():
            _discard(loop, sock)
    raise _not_connected(problems, name)


def _not_connected(problems: Sequence[tuple[Address, BaseException]], name: str) -> KafkaConnectionError:
    reasons = []
    for address, error in problems:
        reason = str(getattr(error, "strerror", None) or error)
        reasons.append(reason if str(address) == name else f"{address}: {reason}")
    text = "; ".join(reasons)
    if all(isinstance(error, ConnectionRefusedError) for _, error in problems):
        return NoListenerError(text or "no address to connect to")
    return KafkaConnectionError(text)


def _start(
    loop: Loop,
    address: Address,
    settings: ConnectionSettings,
    make_socket: SocketFactory,
    attempts: dict[Future[None], tuple[socket.socket | None, Address]],
) -> None:
    """Begin to connect; the future tells how it ended."""
    future: Future[None] = Future()
    attempts[future] = (None, address)
    try:
        sock = make_socket(address.family, socket.SOCK_STREAM)
        attempts[future] = (sock, address)
        sock.setblocking(False)
        _set_options(sock, settings)
        code = sock.connect_ex(address.sockaddr)
    except OSError as error:  # no descriptors left, no such family here, an option that is not known
        future.failure(error)
        return
    if code == 0:
        future.success(None)
    elif code in {errno.EINPROGRESS, errno.EWOULDBLOCK, getattr(errno, "WSAEWOULDBLOCK", errno.EINPROGRESS)}:
        loop.watch(sock, WRITE, lambda _: _finish(sock, future))
    else:
        future.failure(OSError(code, os.strerror(code)))


def _discard(loop: Loop, sock: socket.socket | None) -> None:
    if sock is not None:
        loop.unwatch(sock)
        sock.close()


def _finish(sock: socket.socket, future: Future[None]) -> None:
    code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code:
        future.try_failure(OSError(code, os.strerror(code)))
    else:
        future.try_success(None)


def _set_options(sock: socket.socket, settings: ConnectionSettings) -> None:
    for option in settings.socket_options:
        sock.setsockopt(*option)
    if settings.receive_buffer is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, settings.receive_buffer)
    if settings.send_buffer is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, settings.send_buffer)


# Proxy…


class Progress(Protocol):
    """The steps and addresses that an attempt to connect reports."""

    address: Address | None
    has_other_addresses: bool

    def move(self, event: ConnectionEvent) -> None:
        """Take the next step."""
        ...


async def open_socket(
    context: ConnectionContext, host: str, port: int, family: int, progress: Progress | None = None
) -> socket.socket:
    """Return a socket that is connected to a broker, through the proxy if there is one."""
    settings, proxy = context.settings, context.settings.proxy
    first_host, first_port = (host, port) if proxy is None else (proxy.host, proxy.port)
    addresses = await context.resolver.resolve(first_host, first_port, family if proxy is None else socket.AF_UNSPEC)
    if progress is not None:
        progress.move(ConnectionEvent.DIAL)
    name = host_port(host, port) if proxy is None else ""
    try:
        sock, address, has_others = await dial(context.loop, addresses, settings, context.make_socket, name)
    except KafkaConnectionError:
        context.resolver.forget(first_host)
        raise
    if proxy is None:
        if progress is not None:
            progress.address, progress.has_other_addresses = address, has_others
        return sock
    try:
        if progress is not None:
            progress.move(ConnectionEvent.TUNNEL)
        target = host
        if not proxy.resolves:
            found = await context.resolver.resolve(host, port, family)
            target = str(found[0].sockaddr[0])
            if progress is not None:
                progress.address, progress.has_other_addresses = found[0], len(found) > 1
        await tunnel(context.loop, sock, proxy, target, port)
    except BaseException:
        context.resolver.failed(first_host, first_port, address)  # the proxy may have another address, too
        sock.close()
        raise
    return sock


async def tunnel(loop: Loop, sock: socket.socket, proxy: ProxyUrl, host: str, port: int) -> None:
    """Have the proxy lead the connection on to the broker."""
    steps = proxy.steps(host, port)
    try:
        unsent = next(steps)
        while True:
            while unsent:
                try:
                    unsent = unsent[sock.send(unsent) :]
                except BlockingIOError:  # noqa: PERF203 - a few hundred bytes, once per connection
                    await readiness(loop, sock, WRITE)
            await readiness(loop, sock, READ)
            try:
                data = sock.recv(4096)
            except BlockingIOError:
                continue
            if not data:
                raise KafkaConnectionError(f"the proxy {proxy.host}:{proxy.port} closed the connection")
            unsent = steps.send(data)
    except StopIteration:
        return
    except OSError as error:
        raise KafkaConnectionError(f"the proxy {proxy.host}:{proxy.port} failed: {error}") from error


# TLS…


async def upgrade(
    loop: Loop, sock: socket.socket, host: str, settings: ConnectionSettings, *, lenient: bool = False
) -> TlsStream:
    """Make the connection an encrypted one. Closes nothing: on failure the socket is still the caller's."""
    from kafka.net.tls import TlsStream, tls_error

    context = settings.lenient_tls_context if lenient else settings.tls_context
    assert context is not None
    stream = TlsStream(sock, context, host)
    import ssl

    while True:
        try:
            stream.handshake()
        except BlockingIOError:  # noqa: PERF203 - two or three times per connection
            await readiness(loop, sock, READ | (WRITE if stream.pending_out else 0))
        except ssl.SSLError as error:
            raise tls_error(error, host) from error
        except OSError as error:
            raise KafkaConnectionError(f"the connection broke during the TLS handshake: {error}") from error
        else:
            return stream
