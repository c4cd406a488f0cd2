"""Finds out with a second, short connection why a broker closed one or why its certificate was refused.

Each function opens a separate connection, waits for less than a second, and returns its finding. It raises
nothing: without an answer, the first error stands.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from kafka._runtime.loop import READ
from kafka.errors import Code, IllegalSaslStateError, KafkaError
from kafka.net.sockets import PlainStream, open_socket, readiness, upgrade

if TYPE_CHECKING:
    from kafka.net.frame_stream import Endpoint
    from kafka.net.sockets import Stream

__all__ = ["certificate_names_found", "requires_sasl", "speaks_kafka", "speaks_tls"]

# How long to look for the reason of a failure, in seconds.
_DIAGNOSIS: Final = 0.8
_LARGEST_HINT: Final = 4096


async def certificate_names_found(endpoint: Endpoint) -> list[str]:
    """Return the names in the broker's certificate, from a second handshake that accepts any name."""
    from kafka.net.tls import certificate_names

    context = endpoint.context
    settings, loop = context.settings, context.loop
    if settings.lenient_tls_context is None:
        return []
    sock = None
    try:
        with loop.timeout_at(loop.time() + _DIAGNOSIS, "looking at the certificate"):
            sock = await open_socket(context, endpoint.host, endpoint.port, endpoint.family)
            stream = await upgrade(loop, sock, endpoint.host, settings, lenient=True)
            return certificate_names(stream.peer_certificate())
    except KafkaError:
        return []
    finally:
        if sock is not None:
            sock.close()


async def speaks_kafka(endpoint: Endpoint) -> bool:
    """Whether the port answers a request in plain text."""
    from kafka.protocol.admin import ApiVersionsRequest

    reply = await _begin_of_answer(endpoint, ApiVersionsRequest[0]().frame(1, None), 8)
    return len(reply) >= 8 and reply[4:8] == b"\0\0\0\x01"


async def speaks_tls(endpoint: Endpoint) -> bool:
    """Whether the port answers a TLS handshake, even if it refuses it."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # nothing secret is sent, and the answer is not trusted
    outgoing = ssl.MemoryBIO()
    greeting = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=endpoint.host.rstrip(".") or None)
    with suppress(ssl.SSLWantReadError):
        greeting.do_handshake()
    reply = await _begin_of_answer(endpoint, outgoing.read(), 2)
    return reply[:2] in {b"\x16\x03", b"\x15\x03"}


async def requires_sasl(endpoint: Endpoint) -> KafkaError | None:
    """Return an error if the broker closed the connection because this client does not authenticate.

    Such a listener answers ApiVersions to every client, and closes the connection at any other request.
    """
    from kafka.protocol.sasl import SaslHandshakeRequest, SaslHandshakeResponse

    question = SaslHandshakeRequest[1](mechanism="which").frame(1, None)
    reply = await _begin_of_answer(endpoint, question, _LARGEST_HINT, secure=True)
    try:
        response = SaslHandshakeResponse[1].unframe(reply[4:])[1]
    except KafkaError:
        return None
    if response.error_code != Code.UNSUPPORTED_SASL_MECHANISM:
        return None
    protocol = "SASL_SSL" if endpoint.context.settings.use_tls else "SASL_PLAINTEXT"
    return IllegalSaslStateError(
        f"{endpoint} requires its clients to authenticate: set security_protocol to {protocol}, "
        f"and sasl_mechanism to one of {', '.join(response.mechanisms)}"
    )


async def _begin_of_answer(endpoint: Endpoint, question: bytes, size: int, *, secure: bool = False) -> bytes:
    """Send a request on a separate connection; return the first `size` bytes of the answer, or one frame."""
    context, loop = endpoint.context, endpoint.context.loop
    sock = None
    reply = b""
    try:
        with loop.timeout_at(loop.time() + _DIAGNOSIS, "looking for the reason"):
            sock = await open_socket(context, endpoint.host, endpoint.port, endpoint.family)
            stream: Stream = PlainStream(sock)
            if secure and context.settings.use_tls:
                stream = await upgrade(loop, sock, endpoint.host, context.settings)
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
