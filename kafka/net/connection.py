"""A connection to one broker, as clients use it: opened when it is first needed, and again after each loss.

It decides when to connect, how long to wait after a failure, when to authenticate again (KIP-368), and what an end of
the connection means. It does not choose a broker, does not retry requests, and knows no topics. All its tasks and
timers belong to one scope, which `disconnect` cancels.
"""

from __future__ import annotations

import logging
import math
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from kafka._runtime.tasks import deferred
from kafka.errors import (
    AuthenticationError,
    ClientClosedError,
    KafkaConfigurationError,
    KafkaConnectionError,
    KafkaError,
    NodeNotReadyError,
)
from kafka.future import Future
from kafka.net.channel import Channel, with_broker
from kafka.net.states import WAITS_FOR, ConnectionEvent, ConnectionStates

if TYPE_CHECKING:
    from kafka._runtime.tasks import Task
    from kafka.net.settings import ConnectionContext
    from kafka.protocol.api import Request, Response

__all__ = ["Connection"]

log = logging.getLogger(__name__)

ResponseT = TypeVar("ResponseT", bound="Response")

# Sessions are renewed after 85 to 95 % of their life (KIP-368), so that connections do not renew at the same time.
_RENEW_FROM, _RENEW_SPREAD = 0.85, 0.10
# Brokers refuse clients that authenticate again within this time, in seconds (KafkaChannel.java).
_SHORTEST_SESSION: Final = 1.0
# Connections to one broker that end with the same error within this time, in seconds, have ended for the same reason.
_SAME_MOMENT: Final = 1.0
# Errors of the configuration or the credentials: another attempt changes nothing.
_FATAL: Final = (AuthenticationError, KafkaConfigurationError)


class Connection(Channel):
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
        super().__init__(context, host, port, family=family, node_id=node_id)
        self.last_attempt = 0.0
        self.retry_at = 0.0
        self.error: KafkaError | None = None
        """Why the last attempt failed or the last connection ended; None while all is well."""
        self.on_state: Callable[[Connection], object] | None = None
        self._opened: Future[None] | None = None
        self._renew_at: float | None = None
        self._authenticated_at = -math.inf
        self._closed: KafkaError | None = None

    @property
    def is_opening(self) -> bool:
        """Whether an attempt to connect is under way."""
        return self._opened is not None

    @property
    def is_disconnected(self) -> bool:
        """Whether there is neither a connection nor an attempt."""
        return self.state is ConnectionStates.DISCONNECTED and self._opened is None

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

    # Opening…

    def open(self) -> Future[None]:
        """Begin to connect unless that has begun; the future resolves when the connection is ready or has failed."""
        if self._closed is not None:
            return Future[None]().failure(self._closed.with_traceback(None))
        if self.ready:
            return Future[None]().success(None)
        if self._opened is None:
            self.last_attempt = self._loop.time()
            self._has_answered, self.address, self.has_other_addresses = False, None, False
            opened = self._opened = Future()
            self._scope.spawn(deferred(self._connect), f"connect {self}", self._opening_ended)
            return opened
        return self._opened

    async def _connect(self) -> None:
        from kafka.net.connection_setup import set_up

        versions, session = await set_up(self)
        self.versions = self.pipeline.versions = versions
        self._became_ready(session)

    def _became_ready(self, session: float) -> None:
        """Send requests from now on; after `session` seconds the broker expects the client to authenticate again."""
        self.error = None
        share = _RENEW_FROM + _RENEW_SPREAD * self._loop.rng.random()
        self._authenticated_at = self._loop.time()
        self._renew_at = self._authenticated_at + session * share if session > 0 else None
        self.move(ConnectionEvent.READY)
        self.pipeline.open = True
        self._pump()

    def _opening_ended(self, task: Task[None]) -> None:
        if task.exception is not None:
            self.disconnect(_as_kafka_error(task.exception))
            return
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.try_success(None)

    def _open_if_needed(self) -> None:
        if self.state is ConnectionStates.DISCONNECTED and self.pipeline.waiting:
            self.open()

    def _state_changed(self, before: ConnectionStates) -> None:
        if self.on_state is not None:
            self.on_state(self)
        super()._state_changed(before)

    # Sending…

    def submit(
        self,
        request: Request[ResponseT],
        timeout: float | None = None,
        newest: int | None = None,
        decode: Callable[[bytes | bytearray], object] | None = None,
        *,
        deadline: float | None = None,
    ) -> Future[ResponseT]:
        """Queue a request, connecting first if needed; the future resolves to the response.

        `timeout` is the limit of this request, which includes the time to connect: request_timeout_ms unless the broker
        is to answer later than that. `deadline` is that of the call that the request is a part of, if it comes sooner.
        The request's version is the newest that both sides have, `newest` at most. `decode` reads the reply if the type
        of the response is not to.
        """
        if self._closed is not None:
            return Future[ResponseT]().failure(self._closed.with_traceback(None))
        limit = self._loop.time() + (self.context.settings.request_timeout if timeout is None else timeout)
        if deadline is not None and deadline < limit:
            limit = deadline
        future = self.pipeline.submit(request, limit, newest, decode)
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
        now = self._loop.time()
        pipeline = self.pipeline
        if self._renew_at is not None and now >= self._renew_at and (pipeline.waiting or pipeline.in_flight):
            self._renew()
            return
        pipeline.pump(now)
        if pipeline.throttled_until:
            self._arm(pipeline.throttled_until)
        if pipeline.outgoing.waiting:
            self._schedule_flush(self._loop.call_at_end)

    def _renew(self) -> None:
        """Authenticate again (KIP-368). Requests in flight are answered first; waiting requests stay in the queue."""
        self.pipeline.open = False
        self._renew_at = None
        self.move(ConnectionEvent.AUTHENTICATE)
        self._scope.spawn(self._authenticate_again(), f"authenticate {self} again", self._renewal_ended)

    async def _authenticate_again(self) -> float:
        from kafka.net.connection_setup import authenticate_again

        # Brokers refuse it within a second of the last time: sessions of a second, and tokens that end as soon.
        await self._loop.sleep_until(self._authenticated_at + _SHORTEST_SESSION)
        return await authenticate_again(self)

    def _renewal_ended(self, task: Task[float]) -> None:
        if task.exception is not None:
            self.disconnect(_as_kafka_error(task.exception))
        else:
            self._became_ready(task.result())

    # Ending…

    def lost(self, error: KafkaError, *, closed_by_peer: bool = False) -> None:
        """Handle the end of the stream. During an attempt to connect, its task learns of it from the failed request."""
        self.closed_by_peer = closed_by_peer
        stated, request = self.context.settings.api_version, self.pipeline.oldest_unanswered()
        if closed_by_peer and stated is not None and request is not None and type(error) is KafkaConnectionError:
            # A broker closes the connection on a version that it does not serve. Where the client has asked which
            # versions it serves, that cannot be the reason.
            error = KafkaConnectionError(
                f"{error.args[0]} on {request}, the version that api_version={stated} stands for; if this repeats, the "
                "broker does not serve that version: leave api_version unset, and the client asks which it serves"
            )
        if self.is_opening and not self.ready:
            self.detach()
            self.pipeline.fail_sent(error)
        elif closed_by_peer and self._closed_on_first_request():
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

        self.detach()
        self.pipeline.open = False
        self._scope.spawn(requires_sasl(self), f"find out why {self} closed the connection", ended)

    def disconnect(self, error: KafkaError | None = None) -> None:
        """Close the stream; requests under way fail with `error`. Idempotent; the next `open` connects again."""
        opened, self._opened = self._opened, None
        self._end_scope()
        self.detach()
        self._renew_at = None
        if error is not None:
            self.error = error
            self.failures += 1
            if self.address is not None and not self._has_answered:
                self.context.resolver.failed(self.host, self.port, self.address)
            # The broker may come back as a newer release.
            self.context.probed_releases.pop((self.host, self.port), None)
            delay = self.context.backoff.delay(self.failures)
            self.retry_at = self._loop.time() + delay
            self._report(error, delay)
        self.move(ConnectionEvent.CLOSE)
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


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _as_kafka_error(error: BaseException) -> KafkaError:
    """Return a KafkaError for any exception: it may be a bug of ours, or of code that the application plugged in."""
    if isinstance(error, KafkaError):
        return error
    wrapped = KafkaConnectionError(f"connecting failed unexpectedly: {type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped
