"""How a connection is set up: address, proxy, TCP, TLS, API versions, SASL; and why that fails.

Coroutines on the client's loop, over a `Channel`. If a broker closes the connection without a word,
`kafka.net.diagnosis` finds the reason with a second connection: TLS and plain text mixed up look like a broker that is
down, and retrying until a timeout would not help.
"""

from __future__ import annotations

import logging
import math
import socket
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from kafka._runtime.tasks import wait_any
from kafka._text import printable
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
from kafka.net.channel import with_broker
from kafka.net.diagnosis import certificate_names_found, speaks_kafka, speaks_tls
from kafka.net.sockets import PlainStream, open_socket, upgrade
from kafka.net.states import WAITS_FOR, ConnectionEvent
from kafka.protocol.api import Request, Response, answered_version
from kafka.protocol.negotiation import ApiVersions
from kafka.sasl import sasl_mechanism

if TYPE_CHECKING:
    from kafka._runtime.workers import Workers
    from kafka.net.channel import Channel
    from kafka.net.sockets import Stream
    from kafka.sasl.abc import SaslMechanism

__all__ = ["ask_versions", "authenticate", "authenticate_again", "set_up"]

log = logging.getLogger(__name__)

T = TypeVar("T")
ResponseT = TypeVar("ResponseT", bound=Response)

# Brokers 0.9.0 ignore unknown requests. After this long without an answer, in seconds, the client sends a request that
# these know too. A slow broker answers both.
_PROBE_AFTER: Final = 1.0
_NO_ANSWER: Final = (RequestTimedOutError, KafkaTimeoutError)


class Exchange(Protocol):
    """A connection as this module needs it for one request and its response."""

    async def ask(
        self, request: Request[ResponseT], version: int, decode: Callable[[bytes | bytearray], ResponseT] | None = None
    ) -> ResponseT:
        """Send a request ahead of the queue and wait for the response."""
        ...

    async def ask_raw(self, data: bytes) -> bytes:
        """Send a bare token and wait for the bare response."""
        ...


async def set_up(channel: Channel) -> tuple[ApiVersions, float]:
    """Connect and authenticate; return the broker's API versions and the length of the session in seconds.

    The length is 0 if the session does not end. Every KafkaError states why it failed.
    """
    settings = channel.context.settings
    mechanism = None
    while True:
        if settings.sasl_mechanism is not None and mechanism is None:
            mechanism = _mechanism(channel)
        try:
            await _connect(channel)
            versions = await _versions(channel)
            session = 0.0
            if mechanism is not None:
                channel.move(ConnectionEvent.AUTHENTICATE)
                _warn_of_clear_text(channel)
                session = await _authenticate(channel, mechanism, versions)
                log.info("Authenticated to %s %s", channel, printable(mechanism.auth_details()))
        except SaslAuthenticationFailedError as error:
            other = None if mechanism is None else mechanism.alternative()
            if other is None:
                raise with_broker(channel, error) from error
            mechanism = other
            _start_again(channel, error)
        except KafkaError as error:
            raise with_broker(channel, error) from error
        else:
            if channel.sock is None:
                # The broker closed the connection together with its last answer.
                raise with_broker(
                    channel, KafkaConnectionError("the broker closed the connection as soon as it was ready")
                )
            return versions, session


async def authenticate_again(channel: Channel) -> float:
    """Authenticate on the open connection; return the length of the new session in seconds."""
    assert channel.versions is not None
    try:
        return await _authenticate(channel, _mechanism(channel), channel.versions)
    except KafkaError as error:
        raise with_broker(channel, error) from error


def _mechanism(channel: Channel) -> SaslMechanism:
    settings = channel.context.settings
    assert settings.sasl_mechanism is not None
    return sasl_mechanism(settings.sasl_mechanism, host=channel.host, **settings.security)


async def _authenticate(channel: Channel, mechanism: SaslMechanism, versions: ApiVersions) -> float:
    context = channel.context
    assert context.settings.sasl_mechanism is not None
    return await authenticate(channel, context.settings.sasl_mechanism, mechanism, versions, context.workers)


def _warn_of_clear_text(channel: Channel) -> None:
    """Warn once that the password can be read on its way to the broker, unless it stays on this machine."""
    context = channel.context
    if context.settings.sasl_mechanism != "PLAIN" or context.settings.use_tls or context.warned_of_clear_text:
        return
    from kafka.sasl.abc import is_loopback

    if not is_loopback(channel.host):
        context.warned_of_clear_text = True
        log.warning(
            "The password goes to %s in clear text: with sasl_mechanism PLAIN use security_protocol SASL_SSL, or use "
            "SCRAM-SHA-512",
            channel,
        )


def _start_again(channel: Channel, error: KafkaError) -> None:
    """Go back to the first step; waiting requests stay in the queue."""
    channel.detach()
    channel.pipeline.fail_sent(error)
    channel.move(ConnectionEvent.CLOSE)


# DNS and TCP…


async def _connect(channel: Channel) -> None:
    """Attach a stream to the broker, encrypted if configured."""
    loop = channel.context.loop
    timeout = _setup_timeout(channel)
    channel.move(ConnectionEvent.OPEN)
    try:
        with loop.timeout_at(loop.time() + timeout, f"connecting to {channel}"):
            channel.attach(await _open_stream(channel))
    except KafkaTimeoutError as error:
        raise KafkaConnectionError(
            f"connecting took longer than {timeout:.1f} seconds; it waited for {WAITS_FOR[channel.state]}"
        ) from error
    channel.move(ConnectionEvent.ASK)


def _setup_timeout(channel: Channel) -> float:
    """Return how long an attempt may take. KIP-601: a slow network gets more time with each failure."""
    settings = channel.context.settings
    longest = max(settings.setup_timeout_max, settings.setup_timeout)
    return min(settings.setup_timeout * 2.0 ** min(channel.failures, 32), longest) * channel.context.loop.rng.uniform(
        0.8, 1.2
    )


async def _open_stream(channel: Channel) -> Stream:
    settings = channel.context.settings
    sock = await open_socket(channel.context, channel.host, channel.port, channel.family, channel)
    try:
        if not settings.use_tls:
            return PlainStream(sock)
        channel.move(ConnectionEvent.SECURE)
        return await _secure(channel, sock)
    except BaseException:
        sock.close()
        raise


async def _secure(channel: Channel, sock: socket.socket) -> Stream:
    from kafka.net.tls import HandshakeClosedError, HostnameMismatchError

    settings, loop = channel.context.settings, channel.context.loop
    try:
        return await upgrade(loop, sock, channel.host, settings)
    except HostnameMismatchError as error:
        names = await certificate_names_found(channel)
        found = f"; it is for {', '.join(names)}" if names else ""
        raise HostnameMismatchError(f"{str(error.args[0]).rstrip('.')}{found}") from error
    except HandshakeClosedError as error:
        if await speaks_kafka(channel):
            raise SslAuthenticationError(
                f"{channel.host} does not speak TLS on this port but plain Kafka: "
                "set security_protocol to PLAINTEXT or SASL_PLAINTEXT"
            ) from error
        raise


# The API versions of the broker…


async def _versions(channel: Channel) -> ApiVersions:
    """Ask for the API versions of the broker or, before 0.10, find the release by trying."""
    context = channel.context
    address = channel.host, channel.port
    hint = context.settings.api_version or context.probed_releases.get(address)
    if hint is not None:
        return ApiVersions.of_release(hint)
    try:
        versions, without_api_versions = await _ask_or_probe(channel)
    except KafkaConnectionError as error:
        await _raise_unless_before_0_10(channel, error)
        versions, without_api_versions = await _probe(channel, error)
    if without_api_versions and not context.api_versions_seen:
        context.probed_releases[address] = versions.release
    return versions


def _answered(channel: Channel) -> None:
    channel.context.api_versions_seen = True
    channel.context.probed_releases.clear()


async def _ask_or_probe(channel: Channel) -> tuple[ApiVersions, bool]:
    """Ask for the API versions; return them, and whether the broker does not know this request."""
    settings, loop = channel.context.settings, channel.context.loop
    has_answered: list[bool] = []

    def answered() -> None:
        has_answered.append(True)
        _answered(channel)

    # A name with several addresses gets less time at each of them, and more with each failure.
    began = loop.time()
    limit = min(settings.request_timeout, _setup_timeout(channel)) if channel.has_other_addresses else math.inf
    task = loop.spawn(ask_versions(channel, settings.software, answered), "ask for API versions")
    try:
        with loop.timeout_at(None if limit == math.inf else began + limit):
            # The brokers of a cluster have about the same release. And before authentication other requests are errors.
            may_be_old = not channel.context.api_versions_seen and settings.sasl_mechanism is None
            if may_be_old and not await wait_any(loop, task, deadline=began + _PROBE_AFTER):
                release, request = _probe_requests()[0]
                channel.pipeline.allow_unanswered_head()
                # The response may come at any later time: the timeout of the first request applies.
                probe = channel.control(request, 0, math.inf)
                await wait_any(loop, task, probe)
                if probe.succeeded() and not has_answered:
                    return ApiVersions.of_release(release), True
            return await task, False
    except _NO_ANSWER as error:
        raise KafkaConnectionError(
            f"it accepted the connection and did not answer within {loop.time() - began:.1f} seconds: "
            "it is overloaded or stuck, or the port does not belong to a Kafka broker"
        ) from error
    finally:
        task.cancel()


async def _raise_unless_before_0_10(channel: Channel, error: KafkaConnectionError) -> None:
    """Raise the reason why the broker closed the connection at the first request, unless it may be older than 0.10."""
    settings = channel.context.settings
    if not channel.closed_by_peer:
        raise error
    if not channel.context.api_versions_seen and not settings.use_tls and await speaks_tls(channel):
        raise SslAuthenticationError(
            f"{channel.host} speaks TLS on this port: set security_protocol to SSL or SASL_SSL"
        ) from error
    # The brokers of a cluster have about the same release. Before 0.10, SASL exists on 0.9 alone (GSSAPI), for which
    # users set api_version=(0, 9). And a broker that does not know the request does not begin to answer it.
    if channel.context.api_versions_seen or settings.sasl_mechanism is not None or channel.mid_response:
        when = "in the middle of its first answer" if channel.mid_response else "at the first request (ApiVersions)"
        raise KafkaConnectionError(
            f"it accepted the connection and closed it {when}: it is starting, stopping or overloaded, "
            f"or the port does not belong to a Kafka broker{_certificate_missing(channel)}"
        ) from error


async def _probe(channel: Channel, error: KafkaError) -> tuple[ApiVersions, bool]:
    """Send a request that each old release knows, on separate connections: brokers close them at unknown requests."""
    for release, request in _probe_requests():
        _start_again(channel, error)
        await _connect(channel)
        try:
            await channel.control(request, 0)
        except KafkaConnectionError:
            if not channel.closed_by_peer:
                raise
        except RequestTimedOutError as silence:
            raise KafkaConnectionError(
                "it closed the first connection and did not answer on the next within "
                f"{channel.context.settings.request_timeout:.1f} seconds: it is starting, stopping or overloaded"
            ) from silence
        else:
            return await _ask_again(channel, release)
    protocols = "SASL" if channel.context.settings.use_tls else "SASL or TLS"
    raise KafkaConnectionError(
        "it accepts connections and closes each at the first request: the port does not belong to a Kafka broker, "
        "the broker is starting or stopping, or the listener expects "
        f"{protocols} (security_protocol){_certificate_missing(channel)}"
    ) from error


def _certificate_missing(channel: Channel) -> str:
    """Return a hint for listeners that require a client certificate and do not report that it is missing (TLS 1.3)."""
    settings = channel.context.settings
    given = ("ssl_certfile", "ssl_keystore_certificate_chain", "ssl_context")
    if not settings.use_tls or any(settings.security.get(option) for option in given):
        return ""
    return ", or the listener requires a client certificate, and ssl_certfile is not set"


async def _ask_again(channel: Channel, release: tuple[int, ...]) -> tuple[ApiVersions, bool]:
    """Ask for the API versions over a connection that works; the broker has `release` if it closes this one too.

    A connection that a restart or a firewall cuts off at the first request looks like one to a broker before 0.10.
    Without the second request, the client would use the versions of 2015 from then on.
    """
    try:
        return await ask_versions(channel, channel.context.settings.software, partial(_answered, channel)), False
    except (KafkaConnectionError, RequestTimedOutError) as error:
        if channel.context.api_versions_seen or channel.mid_response or not channel.closed_by_peer:
            raise KafkaConnectionError(
                "it closed the connection or did not answer when it was asked for its API versions (ApiVersions) twice"
            ) from error
        _start_again(channel, error)
        await _connect(channel)
        return ApiVersions.of_release(release), True


# API versions…


async def ask_versions(
    exchange: Exchange, software: tuple[str, str], answered: Callable[[], object] = lambda: None
) -> ApiVersions:
    """Ask a broker for its API versions. A broker that does not know our version of the request names those it knows.

    `answered` is called at the first response, also if that is an error.
    """
    from kafka.protocol.admin import ApiVersionsRequest, ApiVersionsResponse

    def decode(version: int) -> Callable[[bytes | bytearray], ApiVersionsResponse]:
        def read(frame: bytes | bytearray) -> ApiVersionsResponse:
            return ApiVersionsResponse.unframe(frame, answered_version(ApiVersionsRequest.API_KEY, version, frame))[1]

        return read

    request = ApiVersionsRequest(client_software_name=software[0], client_software_version=software[1])
    version = len(ApiVersionsRequest) - 1
    response = await exchange.ask(request, version, decode(version))
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


def _probe_requests() -> list[tuple[tuple[int, ...], Request[Response]]]:
    """Return the requests for brokers that do not know ApiVersions: the first with an answer shows the release."""
    from kafka.protocol.admin import ListGroupsRequest
    from kafka.protocol.commit import FindCoordinatorRequest, OffsetFetchRequest
    from kafka.protocol.metadata import MetadataRequest

    return [
        ((0, 9), ListGroupsRequest()),
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
            token = await _run(workers, mechanism, mechanism.auth_bytes)
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
