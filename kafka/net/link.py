"""One connection to one broker: the socket, the pipeline of requests over it, and its state.

Owned by a client (or by a `BrokerConnection` used alone) and run on the client's loop only, so it
takes no lock. It never blocks or sleeps. How a connection comes about is in `establish`; here is how
it works once there are bytes to send and receive, and how it ends. It does not choose a broker,
does not retry a request, and knows no topics.
"""

from __future__ import annotations

import logging
import math
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafka._runtime.loop import READ, WRITE
from kafka._runtime.tasks import deferred
from kafka._text import printable
from kafka.errors import (
    AuthenticationError,
    ClientClosedError,
    KafkaConfigurationError,
    KafkaConnectionError,
    KafkaError,
    NodeNotReadyError,
)
from kafka.future import Future
from kafka.net.context import LinkContext
from kafka.net.pipeline import FrameReader, Pipeline
from kafka.net.reasons import named, unexpected
from kafka.net.sockets import Stream
from kafka.net.states import ConnectionEvent, ConnectionStates, next_state

if TYPE_CHECKING:
    from kafka._runtime.tasks import Task
    from kafka._runtime.timers import Timer
    from kafka.net.sockets import Address
    from kafka.net.versions import BrokerVersions

__all__ = ["Link", "LinkContext"]

log = logging.getLogger(__name__)

# Sessions are renewed after 85 to 95 % of their life (KIP-368), not all at the same time.
_RENEW_FROM, _RENEW_SPREAD = 0.85, 0.10
# Connections to one broker that end within this time, in seconds, with the same error have ended for the same reason.
_SAME_MOMENT: Final = 1.0
# What a configuration or the credentials are to blame for: trying again changes nothing.
_FATAL: Final = (AuthenticationError, KafkaConfigurationError)


class Link:
    """A connection to `host:port`, made when it is first needed and again after each loss."""

    def __init__(
        self, context: LinkContext, host: str, port: int, *, family: int = socket.AF_UNSPEC, node_id: int | str = 0
    ) -> None:
        self.host = host
        self.port = port
        self.family = family
        self.node_id = node_id
        self.state = ConnectionStates.DISCONNECTED
        self.versions: BrokerVersions | None = None
        self.last_activity = context.loop.time()
        self.last_attempt = 0.0
        self.failures = 0
        self.retry_at = 0.0
        self.error: KafkaError | None = None
        """Why the last attempt failed or the last connection ended; None while all is well."""
        self.on_state: Callable[[Link], object] | None = None
        self.context = context
        self.pipeline = Pipeline(context.settings.client_id, context.settings.max_in_flight)
        self.pipeline.on_reply = self._measured
        self.pipeline.on_long_pause = self._told_to_pause
        self._loop = context.loop
        self._stream: Stream | None = None
        self._reader = FrameReader(context.settings.receive_max)
        self._events = 0
        self._flush_due = False
        self._timer: Timer | None = None
        self._opening: Task[None] | None = None
        self._opened: Future[None] | None = None
        self._renew_at: float | None = None
        self._proved = False  # whether a request was answered since the connection is ready
        self.address: Address | None = None
        """Where the last attempt connected to."""
        self.has_other_addresses = False
        """Whether the name has other addresses that may lead to the broker."""
        self._inquiry: Task[KafkaError | None] | None = None
        self._renewal: Task[float] | None = None
        self._reopening: Timer | None = None
        self._retired: KafkaError | None = None
        self.was_hung_up = False
        """Whether it was the broker that ended the last stream."""
        self._debug = log.isEnabledFor(logging.DEBUG)
        self.delivered: Callable[[Future[Any], Any], object] | None = None
        """Called with each future that a reply resolved, and the response."""

    # Asking…

    @property
    def ready(self) -> bool:
        """Whether requests go out as soon as they are submitted."""
        return self.state is ConnectionStates.CONNECTED

    @property
    def is_opening(self) -> bool:
        """Whether it is on the way to being ready."""
        return self._opening is not None

    def backing_off(self) -> float:
        """Return the seconds until another attempt may be made; 0 if now."""
        if self.state is not ConnectionStates.DISCONNECTED or self.is_opening:
            return 0.0
        return max(0.0, self.retry_at - self._loop.time())

    def throttled(self) -> float:
        """Return the seconds until the broker takes requests again (KIP-219)."""
        return max(0.0, self.pipeline.throttled_until - self._loop.time())

    @property
    def sock(self) -> Any:
        """The stream, or None; what is told to whoever wants to know of changes of state."""
        return self._stream

    @property
    def was_answering(self) -> bool:
        """Whether the last stream has ended, or is, in the middle of a reply."""
        return self._reader.is_mid_frame

    @property
    def idle_since(self) -> float | None:
        """When something last happened, if nothing is expected; None while requests are under way."""
        pipeline = self.pipeline
        if pipeline.in_flight or pipeline.waiting or pipeline.outgoing or self.is_opening:
            return None
        return self.last_activity

    # Opening…

    def open(self) -> Future[None]:
        """Begin to connect unless that has begun; the future is done when the connection is ready or was not made."""
        if self._retired is not None:
            return Future[None]().failure(self._retired)
        if self.ready:
            return Future[None]().success(None)
        if self._opened is None:
            from kafka.net.establish import establish

            self.last_attempt = self._loop.time()
            self._proved, self.address, self.has_other_addresses = False, None, False
            self._opened = Future()
            opened = self._opened
            task = self._opening = self._loop.spawn(deferred(establish, self), f"connect {self}")
            task.add_both(partial(self._opening_ended, task))
            return opened
        return self._opened

    def _opening_ended(self, task: Task[None], _outcome: object) -> None:
        if self._opening is not task:
            return  # it was cancelled by `close`, which has said all there is to say
        error = task.exception
        if error is None:
            opened, self._opened, self._opening = self._opened, None, None
            if opened is not None:
                opened.try_success(None)
        else:
            self._opening = None
            self.close(error if isinstance(error, KafkaError) else unexpected(error))

    def _open_if_needed(self) -> None:
        self._reopening = None
        if self.state is ConnectionStates.DISCONNECTED and self.pipeline.waiting:
            self.open()

    def move(self, event: ConnectionEvent) -> None:
        """Go to the state that `event` leads to."""
        before, self.state = self.state, next_state(self.state, event)
        if before is not self.state:
            if self._debug:
                log.debug("= %s: %s", self, self.state.value)
            for listener in (self.on_state, self.context.on_state):
                if listener is not None:
                    listener(self)

    def attach(self, stream: Stream) -> None:
        """Take over a stream that leads to the broker."""
        self.was_hung_up = False
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

    def became_ready(self, versions: BrokerVersions, session: float) -> None:
        """Take requests from now on; `session` is the seconds after which the broker wants to be asked again."""
        self.versions = self.pipeline.versions = versions
        self.error = None
        self._session_began(session)
        self.move(ConnectionEvent.READY)
        self.pipeline.open = True
        self._go_on()

    def _session_began(self, session: float) -> None:
        share = _RENEW_FROM + _RENEW_SPREAD * self._loop.rng.random()
        self._renew_at = self._loop.time() + session * share if session > 0 else None

    # Sending…

    def submit(self, request: Any, timeout: float | None = None) -> Future[Any]:
        """Queue a request, connecting first if need be; the future resolves to the response.

        `timeout` covers the waiting for the connection too; the default is request_timeout_ms.
        """
        if self._retired is not None:
            return Future[Any]().failure(self._retired)
        deadline = self._loop.time() + (self.context.settings.request_timeout if timeout is None else timeout)
        future = self.pipeline.submit(request, deadline)
        self._arm(deadline)
        if self.ready:
            self._go_on()
        elif self.state is ConnectionStates.DISCONNECTED:
            if not self.backing_off():
                self.open()
            elif self._reopening is None:
                self._reopening = self._loop.call_at(self.retry_at, self._open_if_needed)
        return future

    async def ask(self, request: Any, version: int, decode: Callable[[Any], Any] | None = None) -> Any:
        """Send a request of the connection's own past the queue and wait for the reply."""
        return await self.control(request, version, decode=decode)

    async def ask_raw(self, data: bytes) -> bytes:
        """Send a bare SASL token and wait for the bare reply."""
        now = self._loop.time()
        deadline = now + self.context.settings.request_timeout
        future = self.pipeline.control_raw(data, now, deadline)
        self._sent_control(deadline)
        return bytes(await future)

    def control(
        self,
        request: Any,
        version: int,
        timeout: float | None = None,
        decode: Callable[[Any], Any] | None = None,
    ) -> Future[Any]:
        """Send a request of the connection's own past the queue; an infinite `timeout` never ends the connection."""
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
        # After a look at the socket: that a broker has hung up is to be read, before a write fails and says less.
        self._schedule_flush(self._loop.call_soon)

    def _go_on(self) -> None:
        """Move waiting requests out, renewing the session first when it is about to end."""
        now = self._loop.time()
        pipeline = self.pipeline
        if (
            self._renew_at is not None
            and now >= self._renew_at
            and self.ready
            and (pipeline.waiting or pipeline.in_flight)
        ):
            self._renew()
            return
        pipeline.pump(now)
        if pipeline.throttled_until:
            self._arm(pipeline.throttled_until)
        if pipeline.outgoing.waiting:
            self._schedule_flush(self._loop.call_at_end)

    def _renew(self) -> None:
        """Authenticate again (KIP-368). Requests in flight are answered first; those that wait go on waiting."""
        from kafka.net.establish import renew

        self.pipeline.open = False
        self._renew_at = None
        self.move(ConnectionEvent.AUTHENTICATE)
        task = self._renewal = self._loop.spawn(renew(self), f"authenticate {self} again")
        task.add_both(partial(self._renewal_ended, task))

    def _renewal_ended(self, task: Task[float], _outcome: object) -> None:
        if self._renewal is not task:
            return  # it was cancelled by `close`
        self._renewal = None
        error = task.exception
        if error is not None:
            self.close(error if isinstance(error, KafkaError) else unexpected(error))
            return
        self._session_began(task.result())
        self.move(ConnectionEvent.READY)
        self.pipeline.open = True
        self._go_on()

    def _schedule_flush(self, schedule: Callable[[Callable[[], object]], object]) -> None:
        # Once per pass: requests of one pass leave in one system call.
        if not self._flush_due:
            self._flush_due = True
            schedule(self._flush)

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
                self.context.on_bytes(self, sent, 0)
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
        """Receive what is there, in few large reads, and hand over the frames."""
        stream = self._stream
        if stream is None:
            return
        try:
            more = self._receive(stream)
        except BlockingIOError:
            return
        except OSError as error:
            self.lost(self._translate(error), hung_up=True)
            return
        except KafkaError as error:
            self.close(named(self, error))
            return
        if more and self._stream is stream and stream.pending_in:
            self._loop.call_soon(self._read)

    def _receive(self, stream: Stream) -> bool:
        """Read a bounded number of times; whether there may be more that the selector will not tell of."""
        for _ in range(self.context.settings.chunk_count):
            target = self._reader.target()
            view = self.context.scratch if target is None else target
            count = stream.recv_into(view)
            if not count:
                raise ConnectionAbortedError("the broker closed it")
            self.last_activity = self._loop.time()
            if self.context.on_bytes is not None:
                self.context.on_bytes(self, 0, count)
            if target is None:
                self._handle(self._reader.receive(self.context.scratch[:count]))
            else:
                frame = self._reader.filled(count)
                if frame is not None:
                    self._handle([frame])
            if self._stream is not stream:
                return False
            if count < len(view) and not stream.pending_in:
                return False  # the socket is empty: asking again would only tell so
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
            # Only now: a broker that takes connections and answers nothing is to be left alone longer and longer.
            self._proved, self.failures = True, 0
            self._go_on()

    def _measured(self, name: str, latency: float, size: int) -> None:
        if self.context.on_reply is not None:
            self.context.on_reply(self, name, latency, size)

    def _told_to_pause(self, asked: float, pause: float) -> None:
        cut = "" if pause == asked else f"; after {pause:.0f} seconds the client sends to it again"
        log.warning("%s asks this client to pause for %.0f seconds, as by a quota%s", self, asked, cut)

    # Time…

    def _arm(self, deadline: float) -> None:
        timer = self._timer
        if deadline == math.inf:
            return
        if timer is None or deadline < timer.when:
            if timer is not None:
                timer.cancel()
            self._timer = self._loop.call_at(deadline, self._on_deadline)

    def _on_deadline(self) -> None:
        self._timer = None
        error = self.pipeline.expire(self._loop.time())
        if error is not None:
            self.lost(KafkaConnectionError(f"the connection to {self} was closed: {error.args[0]}"))
        else:
            self._go_on()
        deadline = self.pipeline.next_deadline()
        if deadline is not None:
            self._arm(deadline)

    # When it ends…

    def lost(self, error: KafkaError, *, hung_up: bool = False) -> None:
        """The stream has ended. While connecting that is for `establish` to judge, which waits for a reply."""
        self.was_hung_up = hung_up
        if self.is_opening and not self.ready:
            self.detach()
            self.pipeline.fail_sent(error)
        elif hung_up and self._first_request_was_met_with_that():
            self._inquire(error)
        else:
            self.close(error)

    def _first_request_was_met_with_that(self) -> bool:
        return (
            self.ready
            and not self._proved
            and self.pipeline.in_flight > 0
            and self.context.settings.sasl_mechanism is None
        )

    def _inquire(self, error: KafkaError) -> None:
        """The broker hung up on the very first request: find out whether it wants SASL before saying that it did."""
        from kafka.net.establish import wants_sasl

        self.detach()
        self.pipeline.open = False
        task = self._inquiry = self._loop.spawn(wants_sasl(self), f"ask {self} why it hung up")

        def ended(_outcome: object) -> None:
            if self._inquiry is task:
                self.close(task.value or error)

        task.add_both(ended)

    def close(self, error: KafkaError | None = None) -> None:
        """Close; requests under way fail with `error`. Idempotent; the next `open` connects anew."""
        opening, self._opening = self._opening, None
        opened, self._opened = self._opened, None
        inquiry, self._inquiry = self._inquiry, None
        renewal, self._renewal = self._renewal, None
        for task in (opening, inquiry, renewal):
            if task is not None and not task.is_done:
                task.cancel()
        self.detach()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._renew_at = None
        if error is not None:
            self.error = error
            self.failures += 1
            if self.address is not None and not self._proved:
                self.context.resolver.failed(self.host, self.port, self.address)
            self.context.ancient.pop((self.host, self.port), None)  # it may come back as a newer release
            delay = self.context.backoff.delay(self.failures)
            self.retry_at = self._loop.time() + delay
            self._report(error, delay)
        self.move(ConnectionEvent.CLOSE)
        if self._reopening is not None:
            self._reopening.cancel()
            self._reopening = None
        reason = error or KafkaConnectionError(f"the connection to {self} was closed")
        self.pipeline.fail(reason)
        if opened is not None:
            opened.try_failure(reason)

    def retire(self, error: KafkaError | None = None) -> None:
        """Close for good.

        A task that has it in hand still would otherwise open it again, and nobody would know of it to close it.
        """
        closed = isinstance(error, ClientClosedError)
        self._retired = error if closed else NodeNotReadyError(f"{self} is not used any more")
        self.close(error)

    def _report(self, error: KafkaError, delay: float) -> None:
        """Say in the log why it does not work: the first time, then ever more rarely while it stays so."""
        if isinstance(error, ClientClosedError):
            return
        failures = self.failures
        level = logging.WARNING if failures & (failures - 1) == 0 else logging.DEBUG
        # A client has a connection for each use, and a broker that goes ends all of them: that is told once.
        said, now = str(error), self._loop.time()
        before, when = self.context.reported.get((self.host, self.port), ("", -math.inf))
        self.context.reported[self.host, self.port] = said, now
        if said == before and now - when < _SAME_MOMENT:
            level = logging.DEBUG
        again = "" if failures == 1 else f" ({failures} times in a row)"
        log.log(level, "%s%s; the next attempt is in %.1f seconds at the earliest", named(self, error), again, delay)

    @property
    def fatal(self) -> KafkaError | None:
        """The error of the last attempt, if it is one of configuration or credentials."""
        return self.error if isinstance(self.error, _FATAL) else None

    def _translate(self, error: OSError) -> KafkaError:
        if self.context.settings.use_tls:
            import ssl

            if isinstance(error, ssl.SSLError):
                from kafka.net.tls import tls_error

                return tls_error(error, self.host)
        return KafkaConnectionError(f"the connection to {self} ended: {error.strerror or error}")

    def __str__(self) -> str:
        address = f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
        return f"broker {self.node_id} ({printable(address)})"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self} {self.state.value} in_flight={self.pipeline.in_flight}>"
