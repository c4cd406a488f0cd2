"""From a broker's name to a connected stream: name resolution, TCP, proxies, TLS.

Coroutines on the client's loop. A cancelled coroutine closes the sockets that it has opened. `OSError` and
`ssl.SSLError` become Kafka's errors here.
"""

from __future__ import annotations

import errno
import os
import socket
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from kafka._runtime.loop import READ, WRITE, Loop
from kafka._runtime.tasks import wait_any
from kafka._runtime.workers import ThreadWorkers, Workers
from kafka.errors import KafkaConnectionError
from kafka.future import Future
from kafka.net.reasons import NobodyThereError

if TYPE_CHECKING:
    from kafka._runtime.loop import Loop
    from kafka.future import Future
    from kafka.net.proxy import ProxyUrl
    from kafka.net.settings import ConnectionSettings
    from kafka.net.tls import TlsStream

__all__ = [
    "Address",
    "Dialed",
    "PlainStream",
    "Resolver",
    "SocketFactory",
    "Stream",
    "dial",
    "interleave",
    "readiness",
    "tunnel",
    "upgrade",
]

# How long a result is reused, in seconds. Names that move (brokers in containers) are looked up again
# after a failure anyway.
_FRESH: Final = 10.0
# How many failed addresses of a name are remembered.
_REMEMBERED: Final = 64
# What a resolver says of a name that does not exist; other failures may pass.
_NO_SUCH_NAME: Final = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}

Lookup = Callable[..., list[tuple[Any, ...]]]


class Address(NamedTuple):
    """Where to connect: the family of the socket, and what to give to `connect`."""

    family: int
    sockaddr: tuple[Any, ...]

    def __str__(self) -> str:
        host, port = self.sockaddr[:2]
        return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"


class Resolver:
    """Resolves for one loop. `lookup` has the signature of `socket.getaddrinfo`."""

    def __init__(
        self,
        loop: Loop,
        workers: Workers | None = None,
        lookup: Lookup = socket.getaddrinfo,
        reverse: Callable[[tuple[Any, ...], int], tuple[str, str]] = socket.getnameinfo,
    ) -> None:
        self._loop = loop
        self._workers = workers or ThreadWorkers(name="kafka-dns")
        self._lookup = lookup
        self._reverse = reverse
        self._known: dict[tuple[str, int, int], tuple[float, list[Address]]] = {}
        self._asked: dict[tuple[str, int, int], Future[list[tuple[Any, ...]]]] = {}
        self._failed: dict[tuple[str, int], dict[Address, int]] = {}
        self._failures = 0

    async def resolve(self, host: str, port: int, family: int = socket.AF_UNSPEC) -> list[Address]:
        """Return all addresses of `host` in the order in which to try them. KafkaConnectionError if there is none.

        That is the order of RFC 8305, with those that have `failed` behind the others, the last one to fail at the end.
        """
        key = (host, port, family)
        known = self._known.get(key)
        if known is not None and self._loop.time() - known[0] < _FRESH:
            return self._in_order(host, port, known[1])
        asked = self._asked.get(key)
        if asked is None:
            asked = self._asked[key] = self._workers.submit(
                self._lookup, host, port, family, socket.SOCK_STREAM, socket.IPPROTO_TCP
            )
        try:
            found = await asked
        except (OSError, UnicodeError) as error:  # UnicodeError: a label that IDNA cannot encode
            kind = KafkaConnectionError if getattr(error, "errno", None) not in _NO_SUCH_NAME else NobodyThereError
            reason = getattr(error, "strerror", None) or error
            raise kind(f"cannot resolve {host}: {reason}", host=host, port=port) from error
        finally:
            if asked.is_done:
                self._asked.pop(key, None)
        addresses = interleave(Address(entry[0], tuple(entry[4])) for entry in found)
        if not addresses:
            raise KafkaConnectionError(f"{host} has no address", host=host, port=port)
        self._known[key] = (self._loop.time(), addresses)
        return self._in_order(host, port, addresses)

    def _in_order(self, host: str, port: int, addresses: list[Address]) -> list[Address]:
        failed = self._failed.get((host, port))
        return sorted(addresses, key=lambda address: failed.get(address, 0)) if failed else addresses

    def failed(self, host: str, port: int, address: Address) -> None:
        """Try the other addresses of `host` first from now on: a connection was made to this one, without success.

        What accepts connections may be a load balancer with no broker behind it, or another program.
        """
        self._failures += 1
        failed = self._failed.setdefault((host, port), {})
        failed.pop(address, None)
        failed[address] = self._failures
        if len(failed) > _REMEMBERED:  # names in containers get new addresses all the time
            del failed[next(iter(failed))]

    def forget(self, host: str) -> None:
        """Look `host` up again the next time: none of its addresses accepted a connection."""
        for key in [key for key in self._known if key[0] == host]:
            del self._known[key]

    async def canonical_names(self, host: str, port: int) -> list[str]:
        """Return the names behind each address of `host` (KIP-235); an address without a name stands for itself.

        For one bootstrap name with many addresses whose brokers' certificates or Kerberos names are
        those of the hosts.
        """
        names = []
        for address in await self.resolve(host, port):
            try:
                name, _ = await self._workers.submit(self._reverse, address.sockaddr, socket.NI_NAMEREQD)
            except OSError:
                name = str(address.sockaddr[0])
            names.append(name)
        return list(dict.fromkeys(names))


def interleave(addresses: Iterable[Address]) -> list[Address]:
    """Alternate between families, beginning with the system's first choice (RFC 8305, section 4).

    >>> six, four = socket.AF_INET6, socket.AF_INET
    >>> [address.sockaddr for address in interleave(Address(*a) for a in [(six, (1,)), (six, (2,)), (four, (3,))])]
    [(1,), (3,), (2,)]
    """
    families: dict[int, list[Address]] = {}
    for address in dict.fromkeys(addresses):
        families.setdefault(address.family, []).append(address)
    return [address for address in chain.from_iterable(zip_longest(*families.values())) if address is not None]


# RFC 8305, section 8: the delay before the next address is tried beside the one that has not answered.
_STAGGER: Final = 0.25

SocketFactory = Callable[..., Any]


class Stream(Protocol):
    """What a connection sends to and receives from: a non-blocking socket, or TLS over one."""

    @property
    def pending_in(self) -> bool:
        """Whether something can be received although the socket may have nothing."""
        ...

    @property
    def pending_out(self) -> bool:
        """Whether `flush` has something to send."""
        ...

    @property
    def fileno(self) -> Callable[[], int]:
        """Return the descriptor to watch."""
        ...

    @property
    def recv_into(self) -> Callable[[memoryview], int]:
        """Receive; 0 is the end of the stream, BlockingIOError means nothing now."""
        ...

    @property
    def sendmsg(self) -> Callable[[Sequence[bytes | memoryview]], int]:
        """Send; BlockingIOError means nothing now."""
        ...

    def flush(self) -> None:
        """Send what `sendmsg` has taken and not sent yet."""
        ...

    @property
    def close(self) -> Callable[[], None]:
        """Close."""
        ...


class PlainStream:
    """A socket without encryption."""

    pending_in: Final = False
    pending_out: Final = False

    def __init__(self, sock: Any) -> None:
        self._sock = sock
        self.fileno: Callable[[], int] = sock.fileno
        self.recv_into: Callable[[memoryview], int] = sock.recv_into
        self.sendmsg: Callable[[Sequence[bytes | memoryview]], int] = getattr(sock, "sendmsg", self._send_joined)
        self.close: Callable[[], None] = sock.close

    def _send_joined(self, buffers: Sequence[bytes | memoryview]) -> int:
        """Stand in where the system has no sendmsg (Windows)."""
        return int(self._sock.send(b"".join(buffers)))

    def flush(self) -> None:
        """Nothing is kept here."""


async def readiness(loop: Loop, sock: Any, events: int) -> None:
    """Wait until a socket is ready."""
    ready: Future[None] = Future()
    loop.watch(sock, events, lambda _: ready.try_success(None))
    try:
        await ready
    finally:
        loop.unwatch(sock)


# TCP…


class Dialed(NamedTuple):
    """A socket that is connected."""

    sock: Any
    address: Address
    has_others: bool
    """Whether there are addresses that have not refused, and may be tried instead."""


async def dial(
    loop: Loop, addresses: Sequence[Address], settings: ConnectionSettings, make_socket: SocketFactory
) -> Dialed:
    """Connect to the first address that answers (RFC 8305): the next is tried after a failure, or beside a slow one."""
    waiting = deque(addresses)
    attempts: dict[Future[None], tuple[Any, Address]] = {}
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
                    loop.unwatch(sock)
                    return Dialed(sock, address, has_others=bool(waiting or attempts))
                problems.append((address, future.exception))
                _discard(loop, sock)
    finally:
        for sock, _ in attempts.values():
            _discard(loop, sock)
    raise _not_connected(problems)


def _not_connected(problems: Sequence[tuple[Address, BaseException]]) -> KafkaConnectionError:
    told = "; ".join(f"{address}: {getattr(error, 'strerror', None) or error}" for address, error in problems)
    if all(isinstance(error, ConnectionRefusedError) for _, error in problems):
        return NobodyThereError(told or "no address to connect to")
    return KafkaConnectionError(told)


def _start(
    loop: Loop,
    address: Address,
    settings: ConnectionSettings,
    make_socket: SocketFactory,
    attempts: dict[Future[None], tuple[Any, Address]],
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


def _discard(loop: Loop, sock: Any) -> None:
    if sock is not None:
        loop.unwatch(sock)
        sock.close()


def _finish(sock: Any, future: Future[None]) -> None:
    code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code:
        future.try_failure(OSError(code, os.strerror(code)))
    else:
        future.try_success(None)


def _set_options(sock: Any, settings: ConnectionSettings) -> None:
    for option in settings.socket_options:
        sock.setsockopt(*option)
    if settings.receive_buffer is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, settings.receive_buffer)
    if settings.send_buffer is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, settings.send_buffer)


# Proxy…


async def tunnel(loop: Loop, sock: Any, proxy: ProxyUrl, host: str, port: int) -> None:
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
    loop: Loop, sock: Any, host: str, settings: ConnectionSettings, *, lenient: bool = False
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
