"""How a connection is set up: address, proxy, TCP, TLS, API versions, SASL; and why that fails.

Coroutines on the client's loop. `connect` returns what is then used, an `Established` connection; until then nothing
else sees the stream. If a broker closes the connection without a word, `kafka.net.diagnosis` finds the reason with a
second connection: TLS and plain text mixed up look like a broker that is down, and retrying until a timeout would not
help.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kafka._runtime.tasks import checkpoint
from kafka._text import SecretBytes, printable
from kafka.errors import (
    AuthenticationError,
    Code,
    IllegalSaslStateError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    RequestTimedOutError,
    SaslAuthenticationFailedError,
    SslAuthenticationError,
    UnsupportedSaslMechanismError,
    UnsupportedVersionError,
    for_code,
)
from kafka.net.diagnosis import certificate_names_found, speaks_kafka, speaks_tls
from kafka.net.exchange import AnsweredProbeError, Exchange
from kafka.net.frame_stream import FrameStream, with_broker
from kafka.net.sockets import PlainStream, open_socket, upgrade
from kafka.net.states import WAITS_FOR, ConnectionEvent, ConnectionStates, next_state
from kafka.protocol.api import Request, Response, answered_version
from kafka.protocol.negotiation import ApiVersions
from kafka.sasl import sasl_mechanism

if TYPE_CHECKING:
    import socket

    from kafka._runtime.workers import Workers
    from kafka.net.frame_stream import Endpoint
    from kafka.net.resolver import Address
    from kafka.net.settings import ConnectionContext
    from kafka.net.sockets import Stream
    from kafka.protocol.fields import Buffer
    from kafka.sasl.abc import SaslMechanism

__all__ = ["Attempt", "Established", "ask_versions", "authenticate", "authenticate_again", "connect"]

log = logging.getLogger(__name__)

T = TypeVar("T")
ResponseT = TypeVar("ResponseT", bound=Response)


class Established(NamedTuple):
    """A connection that takes requests."""

    frames: FrameStream
    versions: ApiVersions
    session: float
    """The length of the session in seconds; 0 if it does not end."""
    address: Address | None
    """The broker's address; None where a proxy has looked it up."""
    correlation_id: int
    """The id of the last request."""
    ignored: Collection[int]
    """The ids of requests whose response, if there ever is one, is of no use."""


class Attempt:
    """One attempt to connect to `endpoint`; it may take several streams. `on_step` is called with each step."""

    def __init__(self, endpoint: Endpoint, failures: int, on_step: Callable[[ConnectionEvent], object]) -> None:
        self.endpoint = endpoint
        self.context: ConnectionContext = endpoint.context
        self.failures = failures
        self.state = ConnectionStates.DISCONNECTED
        self.address: Address | None = None
        """The address that the last stream leads to."""
        self.has_other_addresses = False
        """Whether the name has other addresses that may lead to the broker."""
        self.exchange: Exchange | None = None
        self._on_step = on_step

    def move(self, event: ConnectionEvent) -> None:
        """Take the next step."""
        self.state = next_state(self.state, event)
        self._on_step(event)

    async def dial(self) -> Exchange:
        """Connect, in place of the stream there was, to ask over a stream that is encrypted if configured."""
        if self.exchange is not None:
            self.close()
            self.move(ConnectionEvent.CLOSE)
        loop = self.context.loop
        timeout = self.setup_timeout()
        self.move(ConnectionEvent.OPEN)
        try:
            with loop.timeout_at(loop.time() + timeout, f"connecting to {self.endpoint}"):
                stream = await _open_stream(self)
        except KafkaTimeoutError as error:
            raise KafkaConnectionError(
                f"connecting took longer than {timeout:.1f} seconds; it waited for {WAITS_FOR[self.state]}"
            ) from error
        self.exchange = Exchange(self.endpoint, FrameStream(self.endpoint, stream))
        self.move(ConnectionEvent.ASK)
        return self.exchange

    def setup_timeout(self) -> float:
        """Return how long an attempt may take. KIP-601: a slow network gets more time with each failure."""
        settings, rng = self.context.settings, self.context.loop.rng
        longest = max(settings.setup_timeout_max, settings.setup_timeout)
        return min(settings.setup_timeout * 2.0 ** min(self.failures, 32), longest) * rng.uniform(0.8, 1.2)

    def close(self) -> None:
        """Close the stream, if there is one."""
        exchange, self.exchange = self.exchange, None
        if exchange is not None:
            exchange.close()

    def __str__(self) -> str:
        return str(self.endpoint)


async def connect(attempt: Attempt) -> Established:
    """Connect and authenticate. Every KafkaError states why it failed."""
    endpoint, context = attempt.endpoint, attempt.context
    mechanism = None
    try:
        while True:
            if context.settings.sasl_mechanism is not None and mechanism is None:
                mechanism = _mechanism(endpoint)
            try:
                return await _connect(attempt, mechanism)
            except SaslAuthenticationFailedError as error:
                other = None if mechanism is None else mechanism.alternative()
                if other is None:
                    raise
                log.debug("%s refuses %s: %s", endpoint, mechanism, error)
                mechanism = other
    except BaseException as error:
        attempt.close()
        if isinstance(error, KafkaError):
            if attempt.address is not None:
                context.resolver.failed(endpoint.host, endpoint.port, attempt.address)
            raise with_broker(endpoint, error) from error
        raise


async def _connect(attempt: Attempt, mechanism: SaslMechanism | None) -> Established:
    exchange = await attempt.dial()
    versions = await _versions(attempt, exchange)
    assert attempt.exchange is not None
    exchange = attempt.exchange  # which is another one if the client had to find out the release
    session = 0.0
    if mechanism is not None:
        attempt.move(ConnectionEvent.AUTHENTICATE)
        _warn_of_clear_text(attempt.endpoint)
        session = await _authenticate(attempt.endpoint, exchange, mechanism, versions)
        log.info("Authenticated to %s %s", attempt, printable(mechanism.auth_details()))
    await checkpoint()  # by the next pass, bytes that follow the last answer have arrived, or the end of the stream
    exchange.check()
    return Established(exchange.frames, versions, session, attempt.address, exchange.correlation_id, exchange.ignored)


async def authenticate_again(endpoint: Endpoint, frames: FrameStream, versions: ApiVersions) -> float:
    """Authenticate over a stream on which nothing is under way; return the length of the new session in seconds."""
    exchange = Exchange(endpoint, frames)
    try:
        return await _authenticate(endpoint, exchange, _mechanism(endpoint), versions)
    except KafkaError as error:
        raise with_broker(endpoint, error) from error


def _mechanism(endpoint: Endpoint) -> SaslMechanism:
    settings = endpoint.context.settings
    assert settings.sasl_mechanism is not None
    return sasl_mechanism(settings.sasl_mechanism, host=endpoint.host, **settings.security)


async def _authenticate(
    endpoint: Endpoint, exchange: Exchange, mechanism: SaslMechanism, versions: ApiVersions
) -> float:
    context = endpoint.context
    assert context.settings.sasl_mechanism is not None
    return await authenticate(exchange, context.settings.sasl_mechanism, mechanism, versions, context.workers)


def _warn_of_clear_text(endpoint: Endpoint) -> None:
    """Warn once that the password can be read on its way to the broker, unless it stays on this machine."""
    context = endpoint.context
    if context.settings.sasl_mechanism != "PLAIN" or context.settings.use_tls or context.warned_of_clear_text:
        return
    from kafka.sasl.abc import is_loopback

    if not is_loopback(endpoint.host):
        context.warned_of_clear_text = True
        log.warning(
            "The password goes to %s in clear text: with sasl_mechanism PLAIN use security_protocol SASL_SSL, or use "
            "SCRAM-SHA-512",
            endpoint,
        )


# TCP and TLS…


async def _open_stream(attempt: Attempt) -> Stream:
    endpoint, context = attempt.endpoint, attempt.context
    sock = await open_socket(context, endpoint.host, endpoint.port, endpoint.family, attempt)
    try:
        if not context.settings.use_tls:
            return PlainStream(sock)
        attempt.move(ConnectionEvent.SECURE)
        return await _secure(endpoint, sock)
    except BaseException:
        sock.close()
        raise


async def _secure(endpoint: Endpoint, sock: socket.socket) -> Stream:
    from kafka.net.tls import HandshakeClosedError, HostnameMismatchError

    settings, loop = endpoint.context.settings, endpoint.context.loop
    try:
        return await upgrade(loop, sock, endpoint.host, settings)
    except HostnameMismatchError as error:
        names = await certificate_names_found(endpoint)
        found = f"; it is for {', '.join(names)}" if names else ""
        raise HostnameMismatchError(f"{str(error.args[0]).rstrip('.')}{found}") from error
    except HandshakeClosedError as error:
        if await speaks_kafka(endpoint):
            raise SslAuthenticationError(
                f"{endpoint.host} does not speak TLS on this port but plain Kafka: "
                "set security_protocol to PLAINTEXT or SASL_PLAINTEXT"
            ) from error
        raise


# The API versions of the broker…


async def _versions(attempt: Attempt, exchange: Exchange) -> ApiVersions:
    """Ask for the API versions of the broker or, before 0.10, find the release by trying."""
    context = attempt.context
    address = attempt.endpoint.host, attempt.endpoint.port
    hint = context.settings.api_version or context.probed_releases.get(address)
    if hint is not None:
        return ApiVersions.of_release(hint)
    try:
        versions, without_api_versions = await _ask_or_probe(attempt, exchange)
    except KafkaConnectionError as error:
        await _raise_unless_before_0_10(attempt.endpoint, exchange, error)
        versions, without_api_versions = await _probe(attempt, error)
    if without_api_versions and not context.api_versions_seen:
        context.probed_releases[address] = versions.release
    return versions


def _answered(context: ConnectionContext) -> None:
    context.api_versions_seen = True
    context.probed_releases.clear()


async def _ask_or_probe(attempt: Attempt, exchange: Exchange) -> tuple[ApiVersions, bool]:
    """Ask for the API versions; return them, and whether the broker does not know this request."""
    context, settings = attempt.context, attempt.context.settings
    began = context.loop.time()
    # A name with several addresses gets less time at each of them, and more with each failure.
    timeout = min(settings.request_timeout, attempt.setup_timeout()) if attempt.has_other_addresses else None
    # The brokers of a cluster have about the same release. And before authentication other requests are errors.
    may_be_old = not context.api_versions_seen and settings.sasl_mechanism is None
    try:
        answered = partial(_answered, context)
        probe = _probe_of_0_9 if may_be_old else None
        return await ask_versions(exchange, settings.software, answered, timeout=timeout, probe=probe), False
    except AnsweredProbeError:
        return ApiVersions.of_release((0, 9)), True
    except (RequestTimedOutError, KafkaTimeoutError) as error:
        answered_part = "did not end its answer" if exchange.frames.is_mid_frame else "did not answer"
        raise KafkaConnectionError(
            f"it accepted the connection and {answered_part} within {context.loop.time() - began:.1f} seconds: "
            "it is overloaded or stuck, or the port does not belong to a Kafka broker"
        ) from error


async def _raise_unless_before_0_10(endpoint: Endpoint, exchange: Exchange, error: KafkaConnectionError) -> None:
    """Raise the reason why the broker closed the connection at the first request, unless it may be older than 0.10."""
    settings, seen = endpoint.context.settings, endpoint.context.api_versions_seen
    if not exchange.frames.closed_by_peer:
        raise error
    if not seen and not settings.use_tls and await speaks_tls(endpoint):
        raise SslAuthenticationError(
            f"{endpoint.host} speaks TLS on this port: set security_protocol to SSL or SASL_SSL"
        ) from error
    # The brokers of a cluster have about the same release. Before 0.10, SASL exists on 0.9 alone (GSSAPI), for which
    # users set api_version=(0, 9). And a broker that does not know the request does not begin to answer it.
    if seen or settings.sasl_mechanism is not None or exchange.frames.is_mid_frame:
        begun = exchange.frames.is_mid_frame
        when = "in the middle of its first answer" if begun else "at the first request (ApiVersions)"
        raise KafkaConnectionError(
            f"it accepted the connection and closed it {when}: it is starting, stopping or overloaded, "
            f"or the port does not belong to a Kafka broker{_certificate_missing(endpoint)}"
        ) from error


async def _probe(attempt: Attempt, error: KafkaError) -> tuple[ApiVersions, bool]:
    """Send a request that each old release knows, on separate connections: brokers close them at unknown requests."""
    settings = attempt.context.settings
    for release, request in _probe_requests():
        exchange = await attempt.dial()
        try:
            await exchange.ask(request, 0)
        except KafkaConnectionError:
            if not exchange.frames.closed_by_peer:
                raise
        except RequestTimedOutError as silence:
            raise KafkaConnectionError(
                "it closed the first connection and did not answer on the next within "
                f"{settings.request_timeout:.1f} seconds: it is starting, stopping or overloaded"
            ) from silence
        else:
            return await _ask_again(attempt, exchange, release)
    protocols = "SASL" if settings.use_tls else "SASL or TLS"
    raise KafkaConnectionError(
        "it accepts connections and closes each at the first request: the port does not belong to a Kafka broker, "
        "the broker is starting or stopping, or the listener expects "
        f"{protocols} (security_protocol){_certificate_missing(attempt.endpoint)}"
    ) from error


def _certificate_missing(endpoint: Endpoint) -> str:
    """Return a hint for listeners that require a client certificate and do not report that it is missing (TLS 1.3)."""
    settings = endpoint.context.settings
    given = ("ssl_certfile", "ssl_keystore_certificate_chain", "ssl_context")
    if not settings.use_tls or any(settings.security.get(option) for option in given):
        return ""
    return ", or the listener requires a client certificate, and ssl_certfile is not set"


async def _ask_again(attempt: Attempt, exchange: Exchange, release: tuple[int, ...]) -> tuple[ApiVersions, bool]:
    """Ask for the API versions over a connection that works; the broker has `release` if it closes this one too.

    A connection that a restart or a firewall cuts off at the first request looks like one to a broker before 0.10.
    Without the second request, the client would use the versions of 2015 from then on.
    """
    context = attempt.context
    try:
        return await ask_versions(exchange, context.settings.software, partial(_answered, context)), False
    except (KafkaConnectionError, RequestTimedOutError) as error:
        if context.api_versions_seen or exchange.frames.is_mid_frame or not exchange.frames.closed_by_peer:
            raise KafkaConnectionError(
                "it closed the connection or did not answer when it was asked for its API versions (ApiVersions) twice"
            ) from error
        await attempt.dial()
        return ApiVersions.of_release(release), True


async def ask_versions(
    exchange: Exchange,
    software: tuple[str, str],
    answered: Callable[[], object] = lambda: None,
    *,
    timeout: float | None = None,
    probe: Callable[[], Request[Response]] | None = None,
) -> ApiVersions:
    """Ask a broker for its API versions. A broker that does not know our version of the request names those it knows.

    `answered` is called at the first response, also if that is an error.
    """
    from kafka.protocol.admin import ApiVersionsRequest, ApiVersionsResponse

    def decode(version: int) -> Callable[[Buffer], ApiVersionsResponse]:
        def read(frame: Buffer) -> ApiVersionsResponse:
            return ApiVersionsResponse.unframe(frame, answered_version(ApiVersionsRequest.API_KEY, version, frame))[1]

        return read

    request = ApiVersionsRequest(client_software_name=software[0], client_software_version=software[1])
    version = len(ApiVersionsRequest) - 1
    response = await exchange.ask(request, version, decode(version), timeout=timeout, probe=probe)
    answered()
    if response.error_code == Code.UNSUPPORTED_VERSION:
        # Brokers before 2.4 do not name the versions that they know; all of them know version 0.
        known = {entry.api_key: entry.max_version for entry in response.api_keys}
        version = min(version - 1, known.get(ApiVersionsRequest.API_KEY, 0))
        request = ApiVersionsRequest() if version < 3 else request
        response = await exchange.ask(request, version, decode(version))
    if response.error_code:
        raise for_code(response.error_code)("the ApiVersions request failed")
    if not response.api_keys:
        raise UnsupportedVersionError("the response to ApiVersions lists no API")
    return ApiVersions.from_response(response)


def _probe_of_0_9() -> Request[Response]:
    from kafka.protocol.admin import ListGroupsRequest

    return ListGroupsRequest()


def _probe_requests() -> list[tuple[tuple[int, ...], Request[Response]]]:
    """Return the requests for brokers that do not know ApiVersions: the first with an answer shows the release."""
    from kafka.protocol.commit import FindCoordinatorRequest, OffsetFetchRequest
    from kafka.protocol.metadata import MetadataRequest

    return [
        ((0, 9), _probe_of_0_9()),
        ((0, 8, 2), FindCoordinatorRequest(key="purekafka-probe")),
        ((0, 8, 1), OffsetFetchRequest(group_id="purekafka-probe", topics=[])),
        ((0, 8, 0), MetadataRequest(topics=[])),
    ]


# SASL…


async def authenticate(
    exchange: Exchange, name: str, mechanism: SaslMechanism, versions: ApiVersions, workers: Workers
) -> float:
    """Authenticate; return the length of the session in seconds, 0 if it does not end (KIP-368)."""
    from kafka.protocol.sasl import SaslHandshakeRequest

    framed = versions.reaches(SaslHandshakeRequest.API_KEY, 1)
    if versions.reaches(SaslHandshakeRequest.API_KEY):
        await _choose(exchange, name, 1 if framed else 0)
    # else: brokers 0.9 have one mechanism, GSSAPI, and expect its tokens without a handshake
    lifetime = 0
    try:
        while not mechanism.is_done():
            token = SecretBytes(await _run(workers, mechanism, mechanism.auth_bytes))
            if framed:
                reply, lifetime = await _step(exchange, token, versions, mechanism)
            else:
                reply = await _bare_step(exchange, token, mechanism)
            await _run(workers, mechanism, mechanism.receive, reply)
    except KafkaError:
        raise
    except Exception as error:  # a mechanism or a token provider of the application
        raise SaslAuthenticationFailedError(f"SASL {name} failed: {type(error).__name__}: {error}") from error
    if not mechanism.is_authenticated():
        raise SaslAuthenticationFailedError(f"SASL {name} ended without success {mechanism.auth_details()}")
    return lifetime / 1000


async def _run(workers: Workers, mechanism: SaslMechanism, method: Callable[..., T], *args: object) -> T:
    if mechanism.blocks:
        return await workers.submit(method, *args)
    return method(*args)


async def _choose(exchange: Exchange, name: str, version: int) -> None:
    from kafka.protocol.sasl import SaslHandshakeRequest

    response = await exchange.ask(SaslHandshakeRequest(mechanism=name), version)
    code = response.error_code
    if code == Code.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(response.mechanisms) or "none"
        raise UnsupportedSaslMechanismError(f"the broker does not have SASL {name}; it has: {offered}")
    if code == Code.ILLEGAL_SASL_STATE:
        raise IllegalSaslStateError("this listener does not use SASL: set security_protocol to PLAINTEXT or SSL")
    if code:
        raise for_code(code)(f"the broker refused the SASL handshake for {name}")


async def _step(exchange: Exchange, token: bytes, versions: ApiVersions, mechanism: SaslMechanism) -> tuple[bytes, int]:
    from kafka.protocol.sasl import SaslAuthenticateRequest

    request = SaslAuthenticateRequest(auth_bytes=token)
    response = await exchange.ask(request, versions.version_for(request))
    if response.error_code:
        text = response.error_message or "the broker refused the credentials"
        error = for_code(response.error_code)(f"{text} ({mechanism.auth_details()})")
        if isinstance(error, AuthenticationError) or error.retriable:
            raise error
        raise SaslAuthenticationFailedError(str(error)) from error
    return bytes(response.auth_bytes), response.session_lifetime_ms


async def _bare_step(exchange: Exchange, token: bytes, mechanism: SaslMechanism) -> bytes:
    try:
        return await exchange.ask_raw(token)
    except KafkaConnectionError as error:
        # Before KIP-152 (1.0) brokers refuse credentials by closing the connection.
        raise SaslAuthenticationFailedError(
            f"the broker closed the connection while authenticating {mechanism.auth_details()}, which is how brokers "
            "before 1.0 refuse credentials"
        ) from error
