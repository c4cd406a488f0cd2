"""How a connection comes about: address, proxy, TCP, TLS, API versions, SASL; and why it does not.

Coroutines on the loop, over a `Link`. A broker that hangs up without a word is asked once more, in
another way, for the reason: TLS and plain text mixed up look like a broker that is down, and
retrying those until a timeout helps nobody.
"""

from __future__ import annotations

import logging
import math
import socket
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafka._runtime.loop import READ
from kafka._runtime.tasks import wait_any
from kafka._text import printable
from kafka.errors import (
    IllegalSaslStateError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    RequestTimedOutError,
    SaslAuthenticationFailedError,
    SslAuthenticationError,
)
from kafka.net.handshake import ask_versions, authenticate, probe_requests
from kafka.net.reasons import named
from kafka.net.sockets import PlainStream, Stream, dial, readiness, tunnel, upgrade
from kafka.net.states import WAITS_FOR, ConnectionEvent
from kafka.net.versions import BrokerVersions
from kafka.sasl import sasl_mechanism

if TYPE_CHECKING:
    from kafka.net.link import Link
    from kafka.sasl.abc import SaslMechanism

__all__ = ["establish", "renew", "wants_sasl"]

log = logging.getLogger(__name__)

# A broker 0.9.0 ignores what it does not know. After this long without an answer, in seconds, it is asked something
# that it knows too. One that is slow answers both.
_NUDGE_AFTER: Final = 1.0
# How long to look for the reason of a failure.
_DIAGNOSIS: Final = 0.8
_LARGEST_HINT: Final = 4096
_UNSUPPORTED_MECHANISM: Final = 33
_NO_ANSWER: Final = (RequestTimedOutError, KafkaTimeoutError)


async def establish(link: Link) -> None:
    """Connect and make `link` ready; any KafkaError says in words why that did not work."""
    settings = link.context.settings
    mechanism = None
    while True:
        if settings.sasl_mechanism is not None and mechanism is None:
            mechanism = sasl_mechanism(settings.sasl_mechanism, host=link.host, **settings.security)
        try:
            await _reach(link)
            versions = await _versions(link)
            session = 0.0
            if mechanism is not None:
                assert settings.sasl_mechanism is not None
                link.move(ConnectionEvent.AUTHENTICATE)
                _warn_of_clear_text(link)
                session = await authenticate(link, settings.sasl_mechanism, mechanism, versions, link.context.workers)
                log.info("Authenticated to %s %s", link, printable(mechanism.auth_details()))
        except SaslAuthenticationFailedError as error:
            other = _another_attempt(mechanism)
            if other is None:
                raise named(link, error) from error
            mechanism = other
            _restart(link, error)
        except KafkaError as error:
            raise named(link, error) from error
        else:
            if link.sock is None:
                # It hung up in the same breath as it answered the last question.
                raise named(link, KafkaConnectionError("the broker closed the connection as soon as it was ready"))
            link.became_ready(versions, session)
            return


def _warn_of_clear_text(link: Link) -> None:
    """Say once that the password can be read on its way to the broker, unless it stays on this machine."""
    settings = link.context.settings
    if settings.sasl_mechanism != "PLAIN" or settings.use_tls or link.context.told_of_clear_text:
        return
    from kafka.sasl.abc import is_loopback

    if not is_loopback(link.host):
        link.context.told_of_clear_text = True
        log.warning(
            "The password goes to %s in clear text: with sasl_mechanism PLAIN use security_protocol SASL_SSL, or use "
            "SCRAM-SHA-512",
            link,
        )


def _another_attempt(mechanism: SaslMechanism | None) -> SaslMechanism | None:
    return None if mechanism is None else mechanism.alternative()


async def renew(link: Link) -> float:
    """Authenticate again on the open connection; return the length of the new session in seconds."""
    settings = link.context.settings
    assert settings.sasl_mechanism is not None
    assert link.versions is not None
    mechanism = sasl_mechanism(settings.sasl_mechanism, host=link.host, **settings.security)
    try:
        return await authenticate(link, settings.sasl_mechanism, mechanism, link.versions, link.context.workers)
    except KafkaError as error:
        raise named(link, error) from error


def _restart(link: Link, error: KafkaError) -> None:
    """Go back to the beginning; requests that wait go on waiting."""
    link.detach()
    link.pipeline.fail_sent(error)
    link.move(ConnectionEvent.CLOSE)


# From a name to a stream…


async def _reach(link: Link) -> None:
    """Get a stream to the broker, encrypted if configured, and attach it."""
    loop = link.context.loop
    timeout = _setup_timeout(link)
    link.move(ConnectionEvent.OPEN)
    try:
        with loop.timeout_at(loop.time() + timeout, f"connecting to {link}"):
            link.attach(await _open_stream(link))
    except KafkaTimeoutError as error:
        raise KafkaConnectionError(
            f"connecting took longer than {timeout:.1f} seconds; it waited for {WAITS_FOR[link.state]}"
        ) from error
    link.move(ConnectionEvent.ASK)


def _setup_timeout(link: Link) -> float:
    """Return how long an attempt may take. KIP-601: a slow network gets more time with each failure."""
    settings = link.context.settings
    longest = max(settings.setup_timeout_max, settings.setup_timeout)
    return min(settings.setup_timeout * 2.0 ** min(link.failures, 32), longest) * link.context.loop.rng.uniform(
        0.8, 1.2
    )


async def _open_stream(link: Link) -> Stream:
    settings = link.context.settings
    sock = await _open_socket(link, moving=True)
    try:
        if not settings.use_tls:
            return PlainStream(sock)
        link.move(ConnectionEvent.SECURE)
        return await _secure(link, sock)
    except BaseException:
        sock.close()
        raise


async def _secure(link: Link, sock: Any) -> Stream:
    from kafka.net.tls import HandshakeClosedError, HostnameMismatchError

    settings, loop = link.context.settings, link.context.loop
    try:
        return await upgrade(loop, sock, link.host, settings)
    except HostnameMismatchError as error:
        names = await _names_found(link)
        found = f"; it is for {', '.join(names)}" if names else ""
        raise HostnameMismatchError(f"{str(error.args[0]).rstrip('.')}{found}") from error
    except HandshakeClosedError as error:
        if await _speaks_kafka(link):
            raise SslAuthenticationError(
                f"{link.host} does not speak TLS on this port but plain Kafka: "
                "set security_protocol to PLAINTEXT or SASL_PLAINTEXT"
            ) from error
        raise


async def _open_socket(link: Link, *, moving: bool = False) -> Any:
    """Return a connected socket, through the proxy if there is one."""
    context = link.context
    settings, proxy = context.settings, context.settings.proxy
    host, port = (link.host, link.port) if proxy is None else (proxy.host, proxy.port)
    family = link.family if proxy is None else socket.AF_UNSPEC
    addresses = await context.resolver.resolve(host, port, family)
    if moving:
        link.move(ConnectionEvent.DIAL)
    try:
        sock, address, has_others = await dial(context.loop, addresses, settings, context.make_socket)
    except KafkaConnectionError:
        context.resolver.forget(host)
        raise
    if proxy is None:
        if moving:
            link.address, link.has_other_addresses = address, has_others
        return sock
    try:
        if moving:
            link.move(ConnectionEvent.TUNNEL)
        target = link.host
        if not proxy.resolves:
            found = await context.resolver.resolve(link.host, link.port, link.family)
            target = str(found[0].sockaddr[0])
            if moving:
                link.address, link.has_other_addresses = found[0], len(found) > 1
        await tunnel(context.loop, sock, proxy, target, link.port)
    except BaseException:
        context.resolver.failed(host, port, address)  # the proxy may have another address, too
        sock.close()
        raise
    return sock


# What the broker speaks…


async def _versions(link: Link) -> BrokerVersions:
    """Find out what the broker speaks, by asking or, before 0.10, by trying."""
    context = link.context
    address = link.host, link.port
    hint = context.settings.api_version or context.ancient.get(address)
    if hint is not None:
        return BrokerVersions.of_release(hint)
    try:
        versions, is_ancient = await _ask_or_nudge(link)
    except KafkaConnectionError as error:
        await _raise_unless_it_may_be_ancient(link, error)
        versions, is_ancient = await _probe(link, error)
    if is_ancient and not context.modern:
        context.ancient[address] = versions.release
    return versions


def _answered(link: Link) -> None:
    link.context.modern = True
    link.context.ancient.clear()


async def _ask_or_nudge(link: Link) -> tuple[BrokerVersions, bool]:
    """Ask for the API versions; return them, and whether the broker does not know the question."""
    settings, loop = link.context.settings, link.context.loop
    heard: list[bool] = []

    def answered() -> None:
        heard.append(True)
        _answered(link)

    # A name with more addresses is given less time at each of them, and more with each failure.
    began = loop.time()
    patience = min(settings.request_timeout, _setup_timeout(link)) if link.has_other_addresses else math.inf
    task = loop.spawn(ask_versions(link, settings.software, answered), "ask for API versions")
    try:
        with loop.timeout_at(None if patience == math.inf else began + patience):
            # A cluster is of one age. And an unauthenticated connection may ask nothing else.
            may_be_ancient = not link.context.modern and settings.sasl_mechanism is None
            if may_be_ancient and not await wait_any(loop, task, deadline=began + _NUDGE_AFTER):
                release, request = probe_requests()[0]
                link.pipeline.let_skip_oldest()
                # Its reply may come at any time later: the limit is that of the first question.
                nudge = link.control(request, 0, math.inf)
                await wait_any(loop, task, nudge)
                if nudge.succeeded() and not heard:
                    return BrokerVersions.of_release(release), True
            return await task, False
    except _NO_ANSWER as error:
        raise KafkaConnectionError(
            f"it accepted the connection and did not answer within {loop.time() - began:.1f} seconds: "
            "it is overloaded or stuck, or the port does not belong to a Kafka broker"
        ) from error
    finally:
        task.cancel()


async def _raise_unless_it_may_be_ancient(link: Link, error: KafkaConnectionError) -> None:
    """Raise what the end of the connection in the first exchange means; return if the broker may be one before 0.10."""
    settings = link.context.settings
    if not link.was_hung_up:
        raise error
    if not link.context.modern and not settings.use_tls and await _speaks_tls(link):
        raise SslAuthenticationError(
            f"{link.host} speaks TLS on this port: set security_protocol to SSL or SASL_SSL"
        ) from error
    # A cluster is of one age. Before 0.10 there is GSSAPI on 0.9 alone, which takes api_version=(0, 9). And a broker
    # that does not know the question does not begin to answer it.
    if link.context.modern or settings.sasl_mechanism is not None or link.was_answering:
        when = "in the middle of its first answer" if link.was_answering else "at the first request (ApiVersions)"
        raise KafkaConnectionError(
            f"it accepted the connection and closed it {when}: it is starting, stopping or overloaded, "
            f"or the port does not belong to a Kafka broker{_certificate_missing(link)}"
        ) from error


async def _probe(link: Link, error: KafkaError) -> tuple[BrokerVersions, bool]:
    """Try what each ancient release knows, on a connection each: brokers hang up on what they do not know."""
    for release, request in probe_requests():
        _restart(link, error)
        await _reach(link)
        try:
            await link.control(request, 0)
        except KafkaConnectionError:
            if not link.was_hung_up:
                raise
        except RequestTimedOutError as silence:
            raise KafkaConnectionError(
                f"it closed the first connection and did not answer on the next within "
                f"{link.context.settings.request_timeout:.1f} seconds: it is starting, stopping or overloaded"
            ) from silence
        else:
            return await _ask_again(link, release)
    raise KafkaConnectionError(
        "it accepts connections and closes each at the first request: the port does not belong to a Kafka broker, "
        "the broker is starting or stopping, or the listener expects "
        f"{'SASL' if link.context.settings.use_tls else 'SASL or TLS'} (security_protocol){_certificate_missing(link)}"
    ) from error


def _certificate_missing(link: Link) -> str:
    """Return what to add for a listener that wants a client's certificate and does not say so (TLS 1.3 allows it)."""
    settings = link.context.settings
    given = ("ssl_certfile", "ssl_keystore_certificate_chain", "ssl_context")
    if not settings.use_tls or any(settings.security.get(option) for option in given):
        return ""
    return ", or the listener wants a client certificate, and ssl_certfile is not given"


async def _ask_again(link: Link, release: tuple[int, ...]) -> tuple[BrokerVersions, bool]:
    """Ask for the API versions over a connection that works; `release` is the broker's if it hangs up again.

    A connection that was cut off during the first exchange, as by a restart or a firewall, looks just like one to a
    broker before 0.10, which would be spoken to in versions of 2015 from then on.
    """
    try:
        return await ask_versions(link, link.context.settings.software, partial(_answered, link)), False
    except (KafkaConnectionError, RequestTimedOutError) as error:
        if link.context.modern or link.was_answering or not link.was_hung_up:
            raise KafkaConnectionError(
                "it was asked for its API versions twice, and closed the connection or did not answer"
            ) from error
        _restart(link, error)
        await _reach(link)
        return BrokerVersions.of_release(release), True


# Why a broker hung up…


async def _names_found(link: Link) -> list[str]:
    """Return the names in the broker's certificate, from a second handshake that takes any name."""
    from kafka.net.tls import certificate_names

    settings, loop = link.context.settings, link.context.loop
    if settings.lenient_tls_context is None:
        return []
    sock = None
    try:
        with loop.timeout_at(loop.time() + _DIAGNOSIS, "looking at the certificate"):
            sock = await _open_socket(link)
            stream = await upgrade(loop, sock, link.host, settings, lenient=True)
            return certificate_names(stream.peer_certificate())
    except KafkaError:
        return []
    finally:
        if sock is not None:
            sock.close()


async def _speaks_kafka(link: Link) -> bool:
    """Whether the port answers a request in plain text."""
    from kafka.protocol.admin import ApiVersionsRequest

    reply = await _first_words(link, ApiVersionsRequest[0]().frame(1, None), 8)
    return len(reply) >= 8 and reply[4:8] == b"\0\0\0\x01"


async def _speaks_tls(link: Link) -> bool:
    """Whether the port answers a TLS greeting, be it with a refusal."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # nothing is sent that matters, nothing that comes is believed
    outgoing = ssl.MemoryBIO()
    greeting = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=link.host.rstrip(".") or None)
    with suppress(ssl.SSLWantReadError):
        greeting.do_handshake()
    reply = await _first_words(link, outgoing.read(), 2)
    return reply[:2] in {b"\x16\x03", b"\x15\x03"}


async def wants_sasl(link: Link) -> KafkaError | None:
    """Return the error that says so, if the broker hung up because this client does not authenticate.

    Such a listener tells its versions to everybody and hangs up on whatever comes next.
    """
    from kafka.protocol.sasl import SaslHandshakeRequest, SaslHandshakeResponse

    question = SaslHandshakeRequest[1](mechanism="which").frame(1, None)
    reply = await _first_words(link, question, _LARGEST_HINT, secure=True)
    try:
        response = SaslHandshakeResponse[1].unframe(reply[4:])[1]
    except KafkaError:
        return None
    if response.error_code != _UNSUPPORTED_MECHANISM:
        return None
    protocol = "SASL_SSL" if link.context.settings.use_tls else "SASL_PLAINTEXT"
    return IllegalSaslStateError(
        f"{link} wants its clients to authenticate: set security_protocol to {protocol}, "
        f"and sasl_mechanism to one of {', '.join(response.mechanisms)}"
    )


async def _first_words(link: Link, question: bytes, size: int, *, secure: bool = False) -> bytes:
    """Send something on a connection of its own and return how the answer begins: `size` bytes, or one frame."""
    context, loop = link.context, link.context.loop
    sock = None
    reply = b""
    try:
        with loop.timeout_at(loop.time() + _DIAGNOSIS, "looking for the reason"):
            sock = await _open_socket(link)
            stream: Stream = PlainStream(sock)
            if secure and context.settings.use_tls:
                stream = await upgrade(loop, sock, link.host, context.settings)
            stream.sendmsg([question])  # a few hundred bytes fit into an empty socket
            buffer = memoryview(bytearray(size))
            while len(reply) < size and len(reply) < 4 + int.from_bytes(reply[:4].ljust(4, b"\x7f"), "big"):
                try:
                    count = stream.recv_into(buffer)
                except BlockingIOError:
                    await readiness(loop, sock, READ)
                    continue
                if not count:
                    break
                reply += buffer[:count]
    except (KafkaError, OSError):
        pass
    finally:
        if sock is not None:
            sock.close()
    return reply
