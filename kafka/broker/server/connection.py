"""One client's connection: bytes to frames, frames to the dispatcher in order, replies back in the same order.

As in Kafka, a connection has one request in work at a time; later ones wait (and, beyond a few frames, is
not even read), so replies leave in the order of the requests whatever takes how long.

Runs on the broker's event loop. A frame gets memory as its bytes arrive, at most four times what has come, never on
the word of its length alone.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kafka.broker.cluster.clock import Timer
    from kafka.broker.security.sasl import SaslSession
    from kafka.broker.server.node import Listener

log = logging.getLogger("kafka.broker")

#: The size of the buffer for what is small; a frame that does not fit gets its own.
_SMALL: Final = 64 * 1024
#: A buffer that is full gets that many times its size: more is kept for nothing, less is copied more often.
_GROWTH: Final = 4
#: The most of a reply that waits to be sent before the next request is served.
_WRITE_LIMIT: Final = 1024 * 1024
#: The largest frame of a client that has not authenticated yet (sasl.server.max.receive.size, KIP-684).
_MAX_SASL_FRAME: Final = 512 * 1024
#: Frames that may wait behind the one in work before reading stops.
_QUEUE: Final = 16
#: Pieces of a reply from this size on are written without being copied together with the others.
_LARGE: Final = 64 * 1024

_SIZE: Final = struct.Struct(">i")
ANONYMOUS: Final = "User:ANONYMOUS"

Frame = bytes | bytearray
Parts = list[bytes]


class Connection(asyncio.BufferedProtocol):
    """A client's connection to one listener of one node."""

    def __init__(self, listener: Listener, number: int) -> None:
        self.listener = listener
        self.node = listener.node
        self.number = number
        self.host = ""
        self.port = 0
        #: The client's principal, from SASL or a client certificate.
        self.principal = ANONYMOUS
        #: Whether requests are served: at once, or after SASL on a listener that asks for it.
        self.is_authenticated = not listener.needs_sasl
        #: Set while SASL tokens come as bare frames (SaslHandshake v0): takes a frame, returns the bare reply.
        self.bare_frames: Callable[[Frame], bytes | None] | None = None
        #: The state of this connection's SASL exchange between its steps.
        self.sasl_state: SaslSession | None = None
        #: What ApiVersions told us about the client.
        self.software_name = "unknown"
        self.software_version = "unknown"
        self._transport: asyncio.Transport | None = None
        self._small = bytearray(_SMALL)
        self._filled = 0
        self._large: bytearray | None = None
        self._large_filled = 0
        self._large_size = 0
        self._waiting: deque[Frame] = deque()
        self._is_reading = True
        self._can_write = True
        self._task: asyncio.Future[Parts | None] | None = None
        self._on_lost: list[Callable[[], None]] = []
        self._used_at = 0.0
        self._idle_timer: Timer | None = None

    # Opening and closing

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin: the listener keeps the list of its connections."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self.host, self.port = peer[:2] if peer else ("", 0)
        if certificate := self.peer_certificate():
            from kafka.broker.security.tls import principal_of

            self.principal = principal_of(certificate) or self.principal
        # A produce request of a megabyte should not come in 64 kB pieces, nor a reply leave in such.
        transport.set_write_buffer_limits(high=_WRITE_LIMIT)
        self._used_at = self.node.cluster.clock.monotonic()
        self._watch_idleness(self.node.max_idle)
        self.listener.opened(self)

    def connection_lost(self, _exc: Exception | None) -> None:
        """End: cancel the request in work."""
        if self._transport is not None:
            # It is closed, but before Python 3.11 a TLS transport that was not closed warns when it is collected.
            self._transport.close()
        self._transport = None
        self._waiting.clear()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._task is not None:
            self._task.cancel()
        for call in self._on_lost:
            call()
        self._on_lost.clear()
        self.listener.closed(self)

    def _watch_idleness(self, seconds: float) -> None:
        self._idle_timer = self.node.cluster.timers.call_later(seconds, self._close_if_idle)

    def _close_if_idle(self) -> None:
        """Close a connection that was unused for connections.max.idle.ms; look again later at any other."""
        limit = self.node.max_idle
        idle = self.node.cluster.clock.monotonic() - self._used_at
        if idle >= limit and self._task is None:
            self.close()
        else:
            self._watch_idleness(max(limit - idle, limit / 10))

    def on_lost(self, call: Callable[[], None]) -> None:
        """Call ``call`` when the connection has ended."""
        self._on_lost.append(call)

    def close(self) -> None:
        """Close after what has been written is sent."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once, as a crash would."""
        if self._transport is not None:
            self._transport.abort()

    def refuse(self, reason: str) -> None:
        """Close a connection whose client did what the protocol does not allow, and log the reason."""
        software = "" if self.software_name == "unknown" else f" ({self.software_name} {self.software_version})"
        # The reason may quote the client, and clients must not be able to write lines of the log.
        shown = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in reason)
        log.warning("closing connection %d from %s%s: %s", self.number, self.host, software, shown)
        self.close()

    @property
    def is_open(self) -> bool:
        """Whether the client is still there."""
        return self._transport is not None and not self._transport.is_closing()

    def peer_certificate(self) -> dict[str, Any] | None:
        """The client's certificate on a TLS listener that asks for one."""
        return self._transport.get_extra_info("peercert") if self._transport is not None else None

    # Receiving

    def get_buffer(self, _sizehint: int) -> memoryview:
        """Return where the next bytes go: into the large frame in progress, or the small buffer."""
        if self._large is not None:
            return memoryview(self._large)[self._large_filled :]
        return memoryview(self._small)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes have come: cut frames off and work on them."""
        if not self.is_open:  # TLS hands over what came before the connection was closed
            return
        if self._large is not None:
            self._large_filled += nbytes
            if self._large_filled < self._large_size:
                self._grow_large()
                return
            frame, self._large = self._large, None
            self._waiting.append(frame)
        else:
            self._filled += nbytes
            if not self._cut_frames():
                return
        self._work()

    def _cut_frames(self) -> bool:
        """Move whole frames from the small buffer to the queue; False if what is there cannot be a frame."""
        small, at, filled = self._small, 0, self._filled
        while filled - at >= 4:
            (size,) = _SIZE.unpack_from(small, at)
            limit = self.node.max_frame if self.is_authenticated else min(self.node.max_frame, _MAX_SASL_FRAME)
            if size < 0 or size > limit:
                self.refuse(_misfit(bytes(small[at : at + 4]), size, limit))
                return False
            if filled - at - 4 < size:
                break
            self._waiting.append(bytes(memoryview(small)[at + 4 : at + 4 + size]))
            at += 4 + size
        if filled - at == _SMALL:
            # All of the buffer is one frame's: it gets one that grows.
            got = _SMALL - 4
            self._large = large = bytearray(min(size, _GROWTH * _SMALL))
            large[:got] = memoryview(self._small)[4:]
            self._large_filled = got
            self._large_size = size
            self._filled = 0
        elif at:
            small[: filled - at] = small[at:filled]
            self._filled = filled - at
        return True

    def _grow_large(self) -> None:
        large = self._large
        assert large is not None
        if self._large_filled == len(large):
            # Another one: asyncio still holds the view that it filled, so this one cannot be made longer.
            grown = bytearray(min(self._large_size, _GROWTH * len(large)))
            grown[: self._large_filled] = large
            self._large = grown

    # Working

    def pause_writing(self) -> None:
        """Stop taking requests while the client does not take its replies."""
        self._can_write = False

    def resume_writing(self) -> None:
        """Resume writing."""
        self._can_write = True
        self._work()

    def _work(self) -> None:
        """Take waiting requests until one has to wait for something."""
        waiting = self._waiting
        self._used_at = self.node.cluster.clock.monotonic()
        while waiting and self._task is None and self._can_write and self.is_open:
            result = self.node.dispatcher.handle(self, waiting.popleft())
            if result is None:
                continue
            if isinstance(result, list):
                self._send(result)
            else:
                self._wait_for(result)
        if self._is_reading != (len(waiting) < _QUEUE):
            self._is_reading = not self._is_reading
            if self._transport is not None and not self._transport.is_closing():
                (self._transport.resume_reading if self._is_reading else self._transport.pause_reading)()

    def _wait_for(self, result: Awaitable[Parts | None]) -> None:
        self._task = asyncio.ensure_future(result)
        self._task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Future[Parts | None]) -> None:
        self._task = None
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            log.error("a request on connection %d failed", self.number, exc_info=error)
            self.abort()
            return
        parts = task.result()
        if parts is not None:
            self._send(parts)
        self._work()

    def _send(self, parts: Parts) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        small: Parts = []
        for part in parts:
            if len(part) >= _LARGE:
                if small:
                    transport.write(b"".join(small))
                    small = []
                transport.write(part)
            else:
                small.append(part)
        if small:
            transport.write(b"".join(small) if len(small) > 1 else small[0])


def _misfit(start: bytes, size: int, limit: int) -> str:
    """Return why no frame begins with these four bytes, and what the client probably speaks instead."""
    if start[:2] == b"\x16\x03":
        return "the client speaks TLS and this listener does not"
    if start in (b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI", b"PRI "):
        return "the client speaks HTTP, not Kafka's protocol"
    return f"a request of {size} bytes: the limit here is {limit}"
