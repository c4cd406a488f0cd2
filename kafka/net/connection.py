"""A connection to one broker, as clients use it: opened when it is first needed, and again after each loss.

It moves requests into the stream and responses out of it, and decides when to connect, how long to wait after a
failure, when to authenticate again (KIP-368), and what an end of the connection means. How a stream comes to be is in
`kafka.net.connection_setup`, which returns what is then used here. It does not choose a broker, does not retry
requests, and knows no topics. It runs on the client's loop only, so it takes no lock, and never blocks. All its tasks
and timers belong to one scope, which `disconnect` cancels.
"""

from __future__ import annotations

import logging
import math
import socket
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafka._runtime.loop import READ, WRITE
from kafka._runtime.tasks import Scope, deferred
from kafka._text import host_port, printable
from kafka.errors import (
    AuthenticationError,
    ClientClosedError,
    KafkaConfigurationError,
    KafkaConnectionError,
    KafkaError,
    NodeNotReadyError,
)
from kafka.future import Future
from kafka.net.frame_stream import FrameStream, with_broker
from kafka.net.pipeline import InFlightRequest, Pipeline
from kafka.net.states import WAITS_FOR, ConnectionEvent, ConnectionStates, next_state

if TYPE_CHECKING:
    from kafka._runtime.tasks import Task
    from kafka.net.connection_setup import Established
    from kafka.net.resolver import Address
    from kafka.net.settings import ConnectionContext
    from kafka.net.sockets import Stream
    from kafka.protocol.api import Request, Response
    from kafka.protocol.negotiation import ApiVersions

__all__ = ["Connection"]

log = logging.getLogger(__name__)

ResponseT = TypeVar("ResponseT", bound="Response")

# Sessions are renewed after 85 to 95 % of their life (KIP-368), so that connections do not renew at the same time.
_RENEW_FROM, _RENEW_SPREAD = 0.85, 0.10
# Brokers refuse clients that authenticate again within this time, in seconds (KafkaChannel.java).
_SHORTEST_SESSION: Final = 1.0
# Connections to one broker that end with the same error within this time, in seconds, have ended for the same reason.
_SAME_MOMENT: Final = 1.0
# How long a connection reads before other sockets and tasks have their turn, in seconds: about as long as a read of the
# largest size takes.
_READING_TIME: Final = 0.001
# Errors of the configuration or the credentials: another attempt changes nothing.
_FATAL: Final = (AuthenticationError, KafkaConfigurationError)


_READY: Final = frozenset({ConnectionStates.CONNECTED, ConnectionStates.REAUTHENTICATING})


class Connection:
    """A connection to the broker at `host:port`."""

    def __init__(
        self,
        context: ConnectionContext,
        host: str,
        port: int,
        *,
        family: int = socket.AF_UNSPEC,
        node_id: int | str = 0,
    ) -> None:
        self.context = context
        self.host = host
        self.port = port
        self.family = family
        self.node_id = node_id
        self.state = ConnectionStates.DISCONNECTED
        self.ready = False
        """Whether requests go out: as soon as they are submitted, or as soon as the session is renewed (KIP-368)."""
        self.versions: ApiVersions | None = None
        self.last_activity = context.loop.time()
        self.last_attempt = 0.0
        self.retry_at = 0.0
        self.failures = 0
        """Failures in a row; a response ends the row."""
        self.error: KafkaError | None = None
        """Why the last attempt failed or the last connection ended; None while all is well."""
        self.traffic = context.traffic_of(node_id)
        self.pipeline = Pipeline(context.settings.client_id, context.settings.max_in_flight, self.traffic)
        self.pipeline.on_long_pause = self._throttled
        self.pipeline.decode_later = self._decode_later
        self.on_state: Callable[[Connection], object] | None = None
        self.delivered: Callable[[Future[Any], object], object] | None = None
        """Called with each future that a response resolved, and the response."""
        self._loop = context.loop
        self._scope = Scope(context.loop)
        self._opened: Future[None] | None = None
        self._frames: FrameStream | None = None
        self._address: Address | None = None
        self._renew_at: float | None = None
        self._authenticated_at = -math.inf
        self._quiet: Future[None] | None = None  # awaited by the renewal: nothing is under way
        self._ended_by: KafkaError | None = None  # what has ended the stream, while the client finds out why
        self._has_answered = False  # whether the broker has answered a request since the connection is ready
        self._closed: KafkaError | None = None
        self._events = 0
        self._flush_due = False
        self._armed_for = math.inf
        self._debug = log.isEnabledFor(logging.DEBUG)

    @property
    def is_opening(self) -> bool:
        """Whether an attempt to connect is under way."""
        return self._opened is not None

    @property
    def is_disconnected(self) -> bool:
        """Whether there is neither a connection nor an attempt."""
        return self.state is ConnectionStates.DISCONNECTED and self._opened is None

    @property
    def sock(self) -> Stream | None:
        """The stream; None until it is connected."""
        return None if self._frames is None else self._frames.stream

    @property
    def in_flight_requests(self) -> int:
        """How many requests are under way: sent, or waiting to be sent."""
        return self.pipeline.in_flight + len(self.pipeline.waiting)

    def throttled(self) -> float:
        """Return the seconds until the broker takes requests again (KIP-219)."""
        return max(0.0, self.pipeline.throttled_until - self._loop.time())

    def backing_off(self) -> float:
        """Return the seconds until another attempt may be made; 0 if now."""
        if self.state is not ConnectionStates.DISCONNECTED or self.is_opening:
            return 0.0
        return max(0.0, self.retry_at - self._loop.time())

    @property
    def idle_since(self) -> float | None:
        """The time of the last activity, if the connection expects nothing; None while requests are under way."""
        pipeline = self.pipeline
        if pipeline.in_flight or pipeline.waiting or pipeline.outgoing or self.is_opening:
            return None
        return self.last_activity

    @property
    def fatal(self) -> KafkaError | None:
        """The error of the last attempt, if it is one of configuration or credentials."""
        return self.error if isinstance(self.error, _FATAL) else None

    def becomes(self, node_id: int) -> None:
        """Be the connection to a broker whose id the client has learned."""
        self.node_id = node_id
        self.traffic = self.pipeline.traffic = self.context.traffic_of(node_id)

    # Opening…

    def open(self) -> Future[None]:
        """Begin to connect unless that has begun; the future resolves when the connection is ready or has failed."""
        if self._closed is not None:
            return Future[None]().failure(self._closed.with_traceback(None))
        if self.ready:
            return Future[None]().success(None)
        if self._opened is None:
            self.last_attempt = self._loop.time()
            self._has_answered, self._address = False, None
            opened = self._opened = Future()
            self._scope.spawn(deferred(self._connect), f"connect {self}", self._opening_ended)
            return opened
        return self._opened

    async def _connect(self) -> Established:
        from kafka.net.connection_setup import Attempt, connect

        return await connect(Attempt(self, self.failures, self._move))

    def _opening_ended(self, task: Task[Established]) -> None:
        if task.exception is not None:
            self.disconnect(_as_kafka_error(task.exception))
            return
        established = task.result()
        self._frames, self._address = established.frames, established.address
        self.versions = established.versions
        self.last_activity = self._loop.time()
        self.pipeline.begin(established.versions, established.correlation_id, established.ignored)
        opened, self._opened = self._opened, None
        self._became_ready(established.session)
        if opened is not None:
            opened.try_success(None)

    def _became_ready(self, session: float) -> None:
        """Send requests from now on; after `session` seconds the broker expects the client to authenticate again."""
        self.error = None
        share = _RENEW_FROM + _RENEW_SPREAD * self._loop.rng.random()
        self._authenticated_at = self._loop.time()
        self._renew_at = self._authenticated_at + session * share if session > 0 else None
        self._watch(READ)
        self._move(ConnectionEvent.READY)
        if self._frames is None:  # an observer of the state has closed it
            return
        self.pipeline.open = True
        self._pump()
        if self._frames.stream.pending_in:
            self._loop.call_soon(self._read)

    def _open_if_needed(self) -> None:
        if self.state is ConnectionStates.DISCONNECTED and self.pipeline.waiting:
            self.open()

    def _move(self, event: ConnectionEvent) -> None:
        """Go to the state that `event` leads to."""
        before, self.state = self.state, next_state(self.state, event)
        self.ready = self.state in _READY
        if before is self.state:
            return
        if self._debug:
            log.debug("= %s: %s", self, self.state.value)
        if self.on_state is not None:
            self.on_state(self)
        if self.context.on_state is not None:
            self.context.on_state(self.node_id, before, self.state)

    # Sending…

    def submit(
        self,
        request: Request[ResponseT],
        timeout: float | None = None,
        newest: int | None = None,
        decode: Callable[[Any], object] | None = None,
        *,
        deadline: float | None = None,
    ) -> Future[ResponseT]:
        """Queue a request, connecting first if needed; the future resolves to the response.

        `timeout` is the limit of this request, which includes the time to connect: request_timeout_ms unless the broker
        is to answer later than that. `deadline` is that of the call that the request is a part of, if it comes sooner.
        The request's version is the newest that both sides have, `newest` at most. `decode` reads the reply if the type
        of the response is not to; then the version is `newest`, which the caller has chosen of `versions`.
        """
        if self._closed is not None:
            return Future[ResponseT]().failure(self._closed.with_traceback(None))
        limit = self._loop.time() + (self.context.settings.request_timeout if timeout is None else timeout)
        if deadline is not None and deadline < limit:
            limit = deadline
        future = InFlightRequest(request, limit, newest, decode)
        self.pipeline.waiting.append(future)
        if limit < self._armed_for:
            self._arm(limit)
        if self.ready:
            self._pump()
        elif self.state is ConnectionStates.DISCONNECTED:
            if not self.backing_off():
                self.open()
            else:
                self._scope.call_at(self.retry_at, self._open_if_needed)
        return future

    def why_not_ready(self) -> str:
        """Return what keeps requests from going out, to be put after the text of an error; empty if nothing does."""
        if self.error is not None:
            return f": {with_broker(self, self.error)}"
        step = WAITS_FOR.get(self.state)
        if step is not None:
            return f": {self} is not connected yet, waiting for {step}"
        if self.throttled():
            return f": {self} throttles this client"
        if self.pipeline.in_flight:
            return f": {self} has not answered {self.pipeline.in_flight} earlier requests"
        return ""

    def _pump(self) -> None:
        """Send waiting requests, if the connection can send them."""
        now = self._loop.time()
        pipeline = self.pipeline
        if self._renew_at is not None and now >= self._renew_at and (pipeline.waiting or pipeline.in_flight):
            self._renew()
            return
        pipeline.pump(now)
        if pipeline.throttled_until:
            self._arm(pipeline.throttled_until)
        # Once per pass: the requests of one pass leave in one system call.
        if pipeline.outgoing.waiting and not self._flush_due:
            self._flush_due = True
            self._loop.call_at_end(self._flush)

    def flush(self) -> bool:
        """Give the queued bytes to the stream now; return whether it took all of them."""
        self._flush()
        return not self.pipeline.outgoing

    def _flush(self) -> None:
        self._flush_due = False
        frames, outgoing = self._frames, self.pipeline.outgoing
        if frames is None or not self._events:  # or another has the stream: see `_renew`
            return
        try:
            if frames.send(outgoing):
                self.last_activity = self._loop.time()
        except KafkaError as error:
            self._lost(error)
            return
        events = READ | WRITE if outgoing.waiting or frames.stream.pending_out else READ
        if events != self._events:
            self._watch(events)
        if self._quiet is not None:
            self._look_whether_quiet()

    # Receiving…

    def _watch(self, events: int) -> None:
        if self._frames is not None and events != self._events:
            self._events = events
            if events:
                self._loop.watch(self._frames.stream, events, self._read if events == READ else self._on_ready)
            else:
                self._loop.unwatch(self._frames.stream)

    def _on_ready(self, events: int) -> None:
        if events & WRITE:
            self._flush()
        if events & READ:
            self._read()

    def _read(self, _events: int = READ) -> None:  # noqa: C901, PLR0912 - hot
        """Receive the available bytes, in few large reads, and hand over the frames."""
        frames = self._frames
        if frames is None or not self._events:
            return
        try:
            ends = self._loop.time() + _READING_TIME
            for _ in range(self.context.settings.chunk_count):
                arrived, more = frames.receive()
                now = self.last_activity = self._loop.time()
                for frame in arrived:
                    if self._debug:
                        log.debug("< %s: %d bytes", self, len(frame))
                    taken = self.pipeline.received(frame, now)
                    if taken is not None and self.delivered is not None:
                        self.delivered(*taken)
                    if self._frames is None:
                        return
                if arrived:
                    # Only now: to a broker that accepts connections and answers nothing, the client connects ever more
                    # rarely.
                    self._has_answered, self.failures = True, 0
                    if self.pipeline.waiting:
                        self._pump()
                    if self._quiet is not None:
                        self._look_whether_quiet()
                if not more or self._frames is not frames:
                    return
                if now >= ends:
                    break
        except BlockingIOError:
            return
        except KafkaError as error:
            if frames.closed_by_peer:
                self._lost(error, closed_by_peer=True)
            else:
                self.disconnect(with_broker(self, error))
            return
        if frames.stream.pending_in:
            self._loop.call_soon(self._read)

    def _decode_later(self, entry: InFlightRequest, steps: Generator[None, None, Any]) -> None:
        self._loop.spawn(self._decode_in_slices(entry, steps), f"read a reply of {self}")

    async def _decode_in_slices(self, entry: InFlightRequest, steps: Generator[None, None, Any]) -> None:
        try:
            response = await self._loop.in_slices(steps)
            self.pipeline.decoded(entry, response, self._loop.time())
            if self.delivered is not None:
                self.delivered(entry, response)
        except KafkaError as error:
            entry.try_failure(error)
            self.disconnect(with_broker(self, error))
        finally:
            entry.try_failure(ClientClosedError("The client was closed while it read the reply."))

    def _throttled(self, asked: float, pause: float) -> None:
        cut = "" if pause == asked else f"; the client pauses for {pause:.0f} seconds"
        log.warning("%s throttles this client for %.0f seconds, for example because of a quota%s", self, asked, cut)

    # Authenticating again…

    def _renew(self) -> None:
        """Authenticate again (KIP-368). Requests in flight are answered first; waiting requests stay in the queue."""
        self.pipeline.open = False
        self._renew_at = None
        self._move(ConnectionEvent.AUTHENTICATE)
        self._scope.spawn(self._authenticate_again(), f"authenticate {self} again", self._renewal_ended)

    async def _authenticate_again(self) -> float:
        from kafka.net.connection_setup import authenticate_again

        # Brokers refuse it within a second of the last time: sessions of a second, and tokens that end as soon.
        await self._loop.sleep_until(self._authenticated_at + _SHORTEST_SESSION)
        self._quiet = Future()
        self._look_whether_quiet()
        await self._quiet
        self._quiet = None
        assert self._frames is not None
        assert self.versions is not None
        self._watch(0)  # until the end of the renewal nothing else uses the stream
        return await authenticate_again(self, self._frames, self.versions)

    def _look_whether_quiet(self) -> None:
        pipeline, frames = self.pipeline, self._frames
        if self._quiet is None or pipeline.in_flight or pipeline.outgoing.waiting or frames is None:
            return
        if not frames.stream.pending_out:
            self._quiet.try_success(None)

    def _renewal_ended(self, task: Task[float]) -> None:
        if task.exception is not None:
            self.disconnect(_as_kafka_error(task.exception))
        else:
            self._became_ready(task.result())

    # Deadlines…

    def _arm(self, deadline: float) -> None:
        if deadline < self._armed_for:
            self._armed_for = deadline
            self._scope.call_at(deadline, self._on_deadline)

    def _on_deadline(self) -> None:
        self._armed_for = math.inf
        if self._ended_by is not None and (self.pipeline.next_deadline() or math.inf) <= self._loop.time():
            self.disconnect(self._ended_by)  # a request cannot wait for what the diagnosis finds
        error = self.pipeline.expire(self._loop.time(), self.why_not_ready())
        if error is not None:
            self._lost(KafkaConnectionError(f"the connection to {self} was closed: {error.args[0]}"))
        else:
            self._pump()
        deadline = self.pipeline.next_deadline()
        if deadline is not None:
            self._arm(deadline)

    # Ending…

    def _lost(self, error: KafkaError, *, closed_by_peer: bool = False) -> None:
        """Handle the end of the stream."""
        stated, request = self.context.settings.api_version, self.pipeline.oldest_unanswered()
        if closed_by_peer and stated is not None and request is not None and type(error) is KafkaConnectionError:
            # A broker closes the connection on a version that it does not serve. Where the client has asked which
            # versions it serves, that cannot be the reason.
            error = KafkaConnectionError(
                f"{error.args[0]} on {request}, the version that api_version={stated} stands for; if this repeats, the "
                "broker does not serve that version: leave api_version unset, and the client asks which it serves"
            )
        if closed_by_peer and self._closed_on_first_request():
            self._diagnose(error)
        else:
            self.disconnect(error)

    def _closed_on_first_request(self) -> bool:
        return (
            self.ready
            and not self._has_answered
            and self.pipeline.in_flight > 0
            and self.context.settings.sasl_mechanism is None
        )

    def _diagnose(self, error: KafkaError) -> None:
        """Find out whether the broker requires SASL, before the client reports that it closed the connection."""
        from kafka.net.diagnosis import requires_sasl

        def ended(task: Task[KafkaError | None]) -> None:
            self.disconnect(task.value or error)

        self._detach()
        self._ended_by = error
        self.pipeline.open = False
        self._scope.spawn(requires_sasl(self), f"find out why {self} closed the connection", ended)

    def disconnect(self, error: KafkaError | None = None) -> None:
        """Close the stream; requests under way fail with `error`. Idempotent; the next `open` connects again."""
        opened, self._opened = self._opened, None
        self._ended_by = None
        self._scope.cancel()
        self._armed_for = math.inf
        self._detach()
        self._renew_at = self._quiet = None
        if error is not None:
            self.error = error
            self.failures += 1
            if self._address is not None and not self._has_answered:
                self.context.resolver.failed(self.host, self.port, self._address)
            # The broker may come back as a newer release.
            self.context.probed_releases.pop((self.host, self.port), None)
            delay = self.context.backoff.delay(self.failures)
            self.retry_at = self._loop.time() + delay
            self._report(error, delay)
        self._move(ConnectionEvent.CLOSE)
        reason = error or KafkaConnectionError(f"the connection to {self} was closed")
        self.pipeline.fail(reason)
        if opened is not None:
            opened.try_failure(reason)

    def close(self, error: KafkaError | None = None) -> None:
        """Disconnect for good.

        A task that still holds the connection cannot open it again: no client would know of it and close it.
        """
        closed = isinstance(error, ClientClosedError)
        self._closed = error if closed else NodeNotReadyError(f"the client no longer uses this connection to {self}")
        self.disconnect(error)

    def _detach(self) -> None:
        """Close the stream, if there is one."""
        frames = self._frames
        if frames is not None:
            self._watch(0)
            self._loop.unwatch(frames.stream)  # by a renewal, too
            self._frames = None
            frames.stream.close()

    def _report(self, error: KafkaError, delay: float) -> None:
        """Log why the connection does not work: the first time, then ever more rarely while the error persists."""
        if isinstance(error, ClientClosedError):
            return
        failures = self.failures
        level = logging.WARNING if failures & (failures - 1) == 0 else logging.DEBUG
        # A client has a connection for each use, and a broker that stops ends all of them: one warning is enough.
        text, now = str(error), self._loop.time()
        before, when, reporter = self.context.reported.get((self.host, self.port), ("", -math.inf, 0))
        self.context.reported[self.host, self.port] = text, now, id(self)
        if text == before and now - when < _SAME_MOMENT and reporter != id(self):
            level = logging.DEBUG
        again = "" if failures == 1 else f"; failed {failures} times in a row"
        # After a wrong password the client raises the error; whether there is another attempt is up to the application.
        retry = "" if isinstance(error, _FATAL) else f"; retry in {_duration(delay)}"
        log.log(level, "%s%s%s", with_broker(self, error), again, retry)

    def __str__(self) -> str:
        return f"broker {self.node_id} ({printable(host_port(self.host, self.port))})"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self} {self.state.value} in_flight={self.pipeline.in_flight}>"


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _as_kafka_error(error: BaseException) -> KafkaError:
    """Return a KafkaError for any exception: it may be a bug of ours, or of code that the application plugged in."""
    if isinstance(error, KafkaError):
        return error
    wrapped = KafkaConnectionError(f"connecting failed unexpectedly: {type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped
