"""What a connection settles with the broker before it takes requests: API versions, then SASL.

Coroutines over an `Exchange`, which is the connection seen from here: one request, one reply. They
choose no address and close nothing; their errors end the attempt.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from kafka.errors import (
    AuthenticationError,
    IllegalSaslStateError,
    KafkaConnectionError,
    KafkaError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
    UnsupportedVersionError,
    for_code,
)
from kafka.net.versions import BrokerVersions

if TYPE_CHECKING:
    from kafka._runtime.workers import Workers
    from kafka.sasl.abc import SaslMechanism

__all__ = ["PROBES", "Exchange", "ask_versions", "authenticate", "probe_requests"]

_UNSUPPORTED_VERSION: Final = 35
_ILLEGAL_SASL_STATE: Final = 34
_UNSUPPORTED_MECHANISM: Final = 33
_SASL_HANDSHAKE: Final = 17
_API_VERSIONS: Final = 18
_SASL_AUTHENTICATE: Final = 36

# The release that a broker without ApiVersions has at least, and the API that tells (key, version 0).
PROBES: Final = (((0, 9), 16), ((0, 8, 2), 10), ((0, 8, 1), 9), ((0, 8, 0), 3))


class Exchange(Protocol):
    """One request and its reply, past the queue of the connection."""

    async def ask(self, request: Any, version: int, decode: Callable[[Any], Any] | None = None) -> Any:
        """Send a request of the connection's own and wait for the reply."""
        ...

    async def ask_raw(self, data: bytes) -> bytes:
        """Send a bare token and wait for the bare reply."""
        ...


# API versions…


async def ask_versions(
    exchange: Exchange, software: tuple[str, str], answered: Callable[[], object] = lambda: None
) -> BrokerVersions:
    """Ask a broker what it speaks. One that does not know our version of the question says which it knows.

    `answered` is called when it has said anything, be it an error.
    """
    from kafka.protocol.admin import ApiVersionsRequest, ApiVersionsResponse

    def decode(version: int) -> Callable[[Any], Any]:
        def read(frame: Any) -> Any:
            # KIP-511: an error of this kind is always answered in version 0.
            refused = len(frame) >= 6 and int.from_bytes(frame[4:6], "big") == _UNSUPPORTED_VERSION
            return ApiVersionsResponse.unframe(frame, 0 if refused else version)[1]

        return read

    request: Any = ApiVersionsRequest(client_software_name=software[0], client_software_version=software[1])
    version = len(ApiVersionsRequest) - 1
    response = await exchange.ask(request, version, decode(version))
    answered()
    if response.error_code == _UNSUPPORTED_VERSION:
        # Brokers before 2.4 do not say which they know; all of them know version 0.
        known = {entry.api_key: entry.max_version for entry in response.api_keys}
        version = min(version - 1, known.get(_API_VERSIONS, 0))
        request = ApiVersionsRequest() if version < 3 else request
        response = await exchange.ask(request, version, decode(version))
    if response.error_code:
        raise for_code(response.error_code)("the broker does not tell its API versions")
    if not response.api_keys:
        raise UnsupportedVersionError("the broker says that it has no API at all")
    return BrokerVersions.from_response(response)


def probe_requests() -> list[tuple[tuple[int, ...], Any]]:
    """Return what to ask brokers that do not know ApiVersions: the first that is answered names the release."""
    from kafka.protocol.admin import ListGroupsRequest
    from kafka.protocol.commit import FindCoordinatorRequest, OffsetFetchRequest
    from kafka.protocol.metadata import MetadataRequest

    requests: dict[int, Any] = {
        16: ListGroupsRequest(),
        10: FindCoordinatorRequest(key="purekafka-probe"),
        9: OffsetFetchRequest(group_id="purekafka-probe", topics=[]),
        3: MetadataRequest(topics=[]),
    }
    return [(release, requests[key]) for release, key in PROBES]


# SASL…


async def authenticate(
    exchange: Exchange, name: str, mechanism: SaslMechanism, versions: BrokerVersions, workers: Workers
) -> float:
    """Prove who we are; return how long the session lasts, in seconds, 0 for ever (KIP-368)."""
    framed = versions.supports(_SASL_HANDSHAKE, 1)
    if versions.supports(_SASL_HANDSHAKE):
        await _choose(exchange, name, 1 if framed else 0)
    # else: 0.9 brokers have one mechanism, GSSAPI, and expect its tokens at once
    lifetime = 0
    try:
        while not mechanism.is_done():
            token = await _run(workers, mechanism, mechanism.auth_bytes)
            if framed:
                reply, lifetime = await _step(exchange, token, versions)
            else:
                reply = await _bare_step(exchange, token, name)
            await _run(workers, mechanism, mechanism.receive, reply)
    except KafkaError:
        raise
    except Exception as error:  # a mechanism or a token provider of the application
        raise SaslAuthenticationFailedError(f"SASL {name} failed: {type(error).__name__}: {error}") from error
    if not mechanism.is_authenticated():
        raise SaslAuthenticationFailedError(f"SASL {name} ended without success {mechanism.auth_details()}")
    return lifetime / 1000


async def _run(workers: Workers, mechanism: SaslMechanism, method: Callable[..., Any], *args: Any) -> Any:
    if mechanism.blocks:
        return await workers.submit(method, *args)
    return method(*args)


async def _choose(exchange: Exchange, name: str, version: int) -> None:
    from kafka.protocol.sasl import SaslHandshakeRequest

    response = await exchange.ask(SaslHandshakeRequest(mechanism=name), version)
    code = response.error_code
    if code == _UNSUPPORTED_MECHANISM:
        offered = ", ".join(response.mechanisms) or "none"
        raise UnsupportedSaslMechanismError(f"the broker does not have SASL {name}; it has: {offered}")
    if code == _ILLEGAL_SASL_STATE:
        raise IllegalSaslStateError("this listener does not use SASL: set security_protocol to PLAINTEXT or SSL")
    if code:
        raise for_code(code)(f"the broker refused the SASL handshake for {name}")


async def _step(exchange: Exchange, token: bytes, versions: BrokerVersions) -> tuple[bytes, int]:
    from kafka.protocol.sasl import SaslAuthenticateRequest

    request: Any = SaslAuthenticateRequest(auth_bytes=token)
    response = await exchange.ask(request, versions.version_for(request))
    if response.error_code:
        error = for_code(response.error_code)(response.error_message or "the broker refused the credentials")
        if isinstance(error, AuthenticationError) or error.retriable:
            raise error
        raise SaslAuthenticationFailedError(str(error)) from error
    return bytes(response.auth_bytes), response.session_lifetime_ms


async def _bare_step(exchange: Exchange, token: bytes, name: str) -> bytes:
    try:
        return await exchange.ask_raw(token)
    except KafkaConnectionError as error:
        # Before KIP-152 (1.0) a broker has no other way to say no than to hang up.
        raise SaslAuthenticationFailedError(
            f"the broker closed the connection during SASL {name}, which is how brokers before 1.0 refuse credentials"
        ) from error
