"""A connection to one broker while it has bytes to send and receive: the stream, the requests over it, their deadlines.

`Channel` is the lower half of `kafka.net.connection.Connection`. It moves requests into the stream and responses out of
it and knows the state of the connection; how a connection is set up is in `kafka.net.connection_setup`, and when it is
opened, renewed and closed in `kafka.net.connection`. It runs on the client's loop only, so it takes no lock. It never
blocks.
"""

from __future__ import annotations

import logging
import math
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafka._runtime.loop import READ, WRITE
from kafka._runtime.tasks import Scope
from kafka._text import host_port, printable
from kafka.errors import KafkaConnectionError, KafkaError
from kafka.future import Future
from kafka.net.pipeline import FrameReader, Pipeline
from kafka.net.states import ConnectionEvent, ConnectionStates, next_state
from kafka.protocol.api import Request, Response

if TYPE_CHECKING:
    from kafka.net.resolver import Address
    from kafka.net.settings import ConnectionContext
    from kafka.net.sockets import Stream
    from kafka.protocol.negotiation import ApiVersions

__all__ = ["Channel", "with_broker"]

log = logging.getLogger("kafka.net.connection")

ResponseT = TypeVar("ResponseT", bound=Response)

_READY: Final = frozenset({ConnectionStates.CONNECTED, ConnectionStates.REAUTHENTICATING})


class Channel(ABC):
    """Requests to the broker at `host:port` and their responses, over one stream at a time."""

    def __init__(
        self,
        context: ConnectionContext,
        host: str,
        port: int,
        *,
        family: int = socket.AF_UNSPEC,
        node_id: int | str = 0,
    ) -> None:
        self.host = host
        self.port = port
        self.family = family
        self.node_id = node_id
        self.state = ConnectionStates.DISCONNECTED
        self.versions: ApiVersions | None = None
        self.last_activity = context.loop.time()
        self.failures = 0
        """Failures in a row; a response ends the row."""
        self.context = context
        self.pipeline = Pipeline(context.settings.client_id, context.settings.max_in_flight)
        self.pipeline.on_reply = self._measured
        self.pipeline.on_long_pause = self._throttled
        self.address: Address | None = None
        """The address that the last attempt connected to."""
        self.has_other_addresses = False
        """Whether the name has other addresses that may lead to the broker."""
        self.closed_by_peer = False
        """Whether the broker, and not this client, ended the last stream."""
        self.delivered: Callable[[Future[Any], object], object] | None = None
        """Called with each future that a response resolved, and the response."""
        self._loop = context.loop
        self._scope = Scope(context.loop)
        self._stream: Stream | None = None
        self._reader = FrameReader(context.settings.receive_max)
        self._events = 0
        self._flush_due = False
        self._armed_for = math.inf
        self._has_answered = False  # whether the broker has answered a request since the connection is ready
        self._debug = log.isEnabledFor(logging.DEBUG)

    @property
    def ready(self) -> bool:
        """Whether requests go out: as soon as they are submitted, or as soon as the session is renewed (KIP-368)."""
        return self.state in _READY

    @property
    def in_flight_requests(self) -> int:
        """How many requests are under way: sent, or waiting to be sent."""
        return self.pipeline.in_flight + self.pipeline.waiting

    def throttled(self) -> float:
        """Return the seconds until the broker takes requests again (KIP-219)."""
        return max(0.0, self.pipeline.throttled_until - self._loop.time())

    @property
    def sock(self) -> Stream | None:
        """The stream, or None."""
        return self._stream

    @property
    def mid_response(self) -> bool:
        """Whether the last stream has ended, or is, in the middle of a response."""
        return self._reader.is_mid_frame

    # The stream…

    def move(self, event: ConnectionEvent) -> None:
        """Go to the state that `event` leads to."""
        before, self.state = self.state, next_state(self.state, event)
        if before is not self.state:
            if self._debug:
                log.debug("= %s: %s", self, self.state.value)
            self._state_changed(before)

    def _state_changed(self, before: ConnectionStates) -> None:
        if self.context.on_state is not None:
            self.context.on_state(self.node_id, before, self.state)

    def attach(self, stream: Stream) -> None:
        """Take over a stream that leads to the broker."""
        self.closed_by_peer = False
        self._stream = stream
        self._reader = FrameReader(self.context.settings.receive_max)
        self._watch(READ)
        if stream.pending_in:
            self._loop.call_soon(self._read)

    def detach(self) -> None:
        """Close the stream, if there is one."""
        stream, self._stream = self._stream, None
        if stream is not None:
            if self._events:
                self._events = 0
                self._loop.unwatch(stream)
            stream.close()

    @abstractmethod
    def lost(self, error: KafkaError, *, closed_by_peer: bool = False) -> None:
        """Handle the end of the stream."""

    @abstractmethod
    def disconnect(self, error: KafkaError | None = None) -> None:
        """Close the stream; requests under way fail with `error`."""

    @abstractmethod
    def why_not_ready(self) -> str:
        """Return what keeps requests from going out."""

    @abstractmethod
    def _pump(self) -> None:
        """Send waiting requests, if the connection can send them."""

    # Requests of the connection itself…

    async def ask(
        self, request: Request[ResponseT], version: int, decode: Callable[[bytes | bytearray], ResponseT] | None = None
    ) -> ResponseT:
        """Send a request of the connection itself, ahead of the queue, and wait for the response."""
        return await self.control(request, version, decode=decode)

    async def ask_raw(self, data: bytes) -> bytes:
        """Send a bare SASL token and wait for the bare response."""
        now = self._loop.time()
        deadline = now + self.context.settings.request_timeout
        future = self.pipeline.control_raw(data, now, deadline)
        self._sent_control(deadline)
        return bytes(await future)

    def control(
        self,
        request: Request[ResponseT],
        version: int,
        timeout: float | None = None,
        decode: Callable[[bytes | bytearray], ResponseT] | None = None,
    ) -> Future[ResponseT]:
        """Send a request of the connection itself, ahead of the queue.

        An infinite `timeout` never ends the connection.
        """
        now = self._loop.time()
        deadline = now + (self.context.settings.request_timeout if timeout is None else timeout)
        future = self.pipeline.control(request, version, now, deadline, decode=decode)
        self._sent_control(deadline)
        return future

    def _sent_control(self, deadline: float) -> None:
        if self._stream is None:
            self.pipeline.fail_sent(KafkaConnectionError(f"{self} closed the connection"))
            return
        self._arm(deadline)
        # In the next pass, after a look at the socket: if the broker has closed the connection, reading says so, while
        # a failed write says less.
        self._schedule_flush(self._loop.call_soon)

    # Sending…

    def _schedule_flush(self, schedule: Callable[[Callable[[], object]], object]) -> None:
        # Once per pass: the requests of one pass leave in one system call.
        if not self._flush_due:
            self._flush_due = True
            schedule(self._flush)

    def flush(self) -> bool:
        """Give the queued bytes to the stream now; return whether it took all of them."""
        self._flush()
        return not self.pipeline.outgoing

    def _flush(self) -> None:
        self._flush_due = False
        stream, outgoing = self._stream, self.pipeline.outgoing
        if stream is None:
            return
        sent = 0
        try:
            if stream.pending_out:
                stream.flush()
            while outgoing.waiting and not stream.pending_out:
                count = stream.sendmsg(outgoing.pieces())
                outgoing.sent(count)
                sent += count
        except BlockingIOError:
            pass
        except OSError as error:
            self.lost(self._translate(error))
            return
        if sent:
            self.last_activity = self._loop.time()
            if self.context.on_bytes is not None:
                self.context.on_bytes(self.node_id, sent, 0)
        self._watch(READ | WRITE if outgoing.waiting or stream.pending_out else READ)

    # Receiving…

    def _watch(self, events: int) -> None:
        if self._stream is not None and events != self._events:
            self._events = events
            self._loop.watch(self._stream, events, self._on_ready)

    def _on_ready(self, events: int) -> None:
        if events & WRITE:
            self._flush()
        if events & READ:
            self._read()

    def _read(self) -> None:
        """Receive the available bytes, in few large reads, and hand over the frames."""
        stream = self._stream
        if stream is None:
            return
        try:
            more = self._receive(stream)
        except BlockingIOError:
            return
        except OSError as error:
            self.lost(self._translate(error), closed_by_peer=True)
            return
        except KafkaError as error:
            self.disconnect(with_broker(self, error))
            return
        if more and self._stream is stream and stream.pending_in:
            self._loop.call_soon(self._read)

    def _receive(self, stream: Stream) -> bool:
        """Read a bounded number of times; return whether there may be more bytes that the selector does not report."""
        for _ in range(self.context.settings.chunk_count):
            target = self._reader.target()
            view = self.context.scratch if target is None else target
            count = stream.recv_into(view)
            if not count:
                raise ConnectionAbortedError("the broker closed it")
            self.last_activity = self._loop.time()
            if self.context.on_bytes is not None:
                self.context.on_bytes(self.node_id, 0, count)
            if target is None:
                self._handle(self._reader.receive(self.context.scratch[:count]))
            else:
                frame = self._reader.filled(count)
                if frame is not None:
                    self._handle([frame])
            if self._stream is not stream:
                return False
            if count < len(view) and not stream.pending_in:
                return False  # the socket is empty: another read would only fail
        return True

    def _handle(self, frames: Sequence[bytes | bytearray]) -> None:
        if not frames:
            return
        now = self._loop.time()
        for frame in frames:
            if self._debug:
                log.debug("< %s: %d bytes", self, len(frame))
            taken = self.pipeline.received(frame, now)
            if taken is not None and self.delivered is not None:
                self.delivered(*taken)
            if self._stream is None:
                return
        if self.ready:
            # Only now: to a broker that accepts connections and answers nothing, the client connects ever more rarely.
            self._has_answered, self.failures = True, 0
            self._pump()

    def _measured(self, name: str, latency: float, size: int) -> None:
        if self.context.on_reply is not None:
            self.context.on_reply(self.node_id, name, latency, size)

    def _throttled(self, asked: float, pause: float) -> None:
        cut = "" if pause == asked else f"; the client pauses for {pause:.0f} seconds"
        log.warning("%s throttles this client for %.0f seconds, for example because of a quota%s", self, asked, cut)

    # Deadlines…

    def _arm(self, deadline: float) -> None:
        if deadline < self._armed_for:
            self._armed_for = deadline
            self._scope.call_at(deadline, self._on_deadline)

    def _on_deadline(self) -> None:
        self._armed_for = math.inf
        error = self.pipeline.expire(self._loop.time(), self.why_not_ready())
        if error is not None:
            self.lost(KafkaConnectionError(f"the connection to {self} was closed: {error.args[0]}"))
        else:
            self._pump()
        deadline = self.pipeline.next_deadline()
        if deadline is not None:
            self._arm(deadline)

    def _end_scope(self) -> None:
        """Cancel the tasks and timers of the connection."""
        self._scope.cancel()
        self._armed_for = math.inf

    def _translate(self, error: OSError) -> KafkaError:
        if self.context.settings.use_tls:
            import ssl

            if isinstance(error, ssl.SSLError):
                from kafka.net.tls import tls_error

                return tls_error(error, self.host)
        return KafkaConnectionError(f"the connection to {self} ended: {error.strerror or error}")

    def __str__(self) -> str:
        return f"broker {self.node_id} ({printable(host_port(self.host, self.port))})"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self} {self.state.value} in_flight={self.pipeline.in_flight}>"


def with_broker(broker: object, error: KafkaError) -> KafkaError:
    """Return the error with the broker's name in front, once, and all its facts.

    >>> str(with_broker("broker 1 (b1:9092)", KafkaConnectionError("refused")))
    'broker 1 (b1:9092): refused'
    """
    if str(broker) in str(error):
        return error
    prefixed = copy(error)
    prefixed.args = (f"{broker}: {error.args[0] if error.args else type(error).__name__}",)
    return prefixed
