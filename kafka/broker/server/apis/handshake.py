"""The start of a connection: the versions that the broker serves, and SASL."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kafka.broker.security.sasl import State
from kafka.broker.security.service import Security, security
from kafka.broker.server.api import BrokerResponseError, Call, Code
from kafka.broker.server.connection import Connection, Frame
from kafka.errors import IllegalSaslStateError, SaslAuthenticationFailedError
from kafka.protocol.admin import ApiVersionsRequest, ApiVersionsResponse
from kafka.protocol.registry import ApiKey
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

if TYPE_CHECKING:
    from kafka.broker.server.versions import ApiTable

_WRAPPED_FROM: Final = 1
_NAME: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_FEATURES_FROM: Final = 3
#: Before this version a feature that can be at level 0 is not listed as supported.
_FROM_ZERO_FROM: Final = 4


def sasl_handshake(call: Call[SaslHandshakeResponse], request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """SaslHandshake (17), versions 0-1: choose a SASL mechanism.

    * v0: the mechanism's tokens follow as bare frames.
    * v1: they follow in SaslAuthenticate (KIP-152).
    """
    here = security(call)
    if not call.connection.listener.needs_sasl:
        return call.response(error_code=Code.ILLEGAL_SASL_STATE, mechanisms=[])
    try:
        here.session_of(call.connection).handshake(request.mechanism)
    except IllegalSaslStateError as error:
        if not call.connection.is_authenticated:
            _refuse_later(call, error)
        return call.response(error_code=error.code, mechanisms=[])
    except BrokerResponseError as error:
        _refuse_later(call, error)
        return call.response(error_code=error.code, mechanisms=here.mechanisms)
    if call.version < _WRAPPED_FROM:
        call.connection.bare_frames = _bare(here, call.connection)
    return call.response(error_code=0, mechanisms=here.mechanisms)


def refuse_sasl_handshake(
    call: Call[SaslHandshakeResponse], _: SaslHandshakeRequest, code: int
) -> SaslHandshakeResponse:
    """Tell the mechanisms beside the error, and close the connection."""
    call.cluster.loop.call_soon(call.connection.refuse, f"SASL handshake failed with error {code}, as a test ordered")
    return call.response(error_code=code, mechanisms=security(call).mechanisms)


def _refuse_later(call: Call[SaslHandshakeResponse], error: BrokerResponseError) -> None:
    """Close the connection once the reply is out."""
    call.cluster.loop.call_soon(call.connection.refuse, f"SASL handshake failed: {error.args[0]}")


def _bare(here: Security, connection: Connection) -> Callable[[Frame], bytes | None]:
    def take(frame: Frame) -> bytes | None:
        try:
            step = here.session_of(connection).token(bytes(frame))
        except (SaslAuthenticationFailedError, IllegalSaslStateError) as error:
            connection.refuse(f"SASL authentication failed: {error.args[0]}")  # the reply has no field for the reason
            return None
        if step.user is not None:
            connection.bare_frames = None
            here.accept(connection, step.user)
        return step.words

    return take


def api_versions(call: Call[ApiVersionsResponse], request: ApiVersionsRequest) -> ApiVersionsResponse:
    """ApiVersions (18), versions 0-4: what this broker serves.

    * v0: error code and ranges.
    * v1: throttle time (always 0 here).
    * v2: clients must expect throttling after the reply; nothing changes here.
    * v3: flexible (KIP-511): the client says its name and version, checked as Kafka does; features are listed.
    * v4: supported features may begin at 0 (KIP-1022).

    A version that is not served gets v0 with UNSUPPORTED_VERSION and the range of this API alone, from which the client
    chooses again (KIP-511).
    """
    if call.version >= 3:
        name, version = request.client_software_name, request.client_software_version
        if not (_NAME.fullmatch(name) and _NAME.fullmatch(version)):
            return call.response(error_code=Code.INVALID_REQUEST)
        call.connection.software_name = name
        call.connection.software_version = version
    features = call.cluster.features
    reply = call.response(api_keys=call.cluster.apis.items())
    if call.version >= _FEATURES_FROM and features.epoch >= 0:
        reply.supported_features = [
            call.response.SupportedFeatureKey(name, low, high)
            for name, low, high in features.supported()
            if low > 0 or call.version >= _FROM_ZERO_FROM
        ]
        reply.finalized_features_epoch = features.epoch
        reply.finalized_features = [
            call.response.FinalizedFeatureKey(name, level, level) for name, level in features.finalized()
        ]
    return reply


def refuse_api_versions(call: Call[ApiVersionsResponse], _: ApiVersionsRequest, code: int) -> ApiVersionsResponse:
    """Answer with the error alone, or that the version is not served."""
    if code == Code.UNSUPPORTED_VERSION:
        return unsupported_version(call.cluster.apis)
    return call.response(error_code=code)


def unsupported_version(apis: ApiTable) -> ApiVersionsResponse:
    """Return what a client receives that asks in a version that is not served."""
    low, high = apis.get(ApiKey.ApiVersions) or (0, 0)
    return ApiVersionsResponse[0](error_code=Code.UNSUPPORTED_VERSION, api_keys=[(ApiKey.ApiVersions, low, high)])


def sasl_authenticate(
    call: Call[SaslAuthenticateResponse], request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse | None:
    """SaslAuthenticate (36), versions 0-2: the tokens of the SASL mechanism that was chosen (KIP-152).

    * v1: how long the session lasts (KIP-368).
    * v2: flexible.
    """
    here = security(call)
    session = here.session_of(call.connection)
    if (session.state is State.NEW and call.connection.listener.needs_sasl) or session.changes_mechanism:
        # The client has named no mechanism, or another one than this session's; Kafka sends no reply.
        call.connection.refuse("SaslAuthenticate without a SaslHandshake, or with another mechanism than before")
        return None
    try:
        step = session.token(bytes(request.auth_bytes))
    except BrokerResponseError as error:
        if not (isinstance(error, IllegalSaslStateError) and call.connection.is_authenticated):
            # Once the reply is out.
            call.cluster.loop.call_soon(call.connection.refuse, f"SASL authentication failed: {error.args[0]}")
        return call.response(error_code=error.code, error_message=str(error.args[0]), auth_bytes=b"")
    lifetime_ms = 0 if step.user is None else here.accept(call.connection, step.user)
    return call.response(error_code=0, error_message=None, auth_bytes=step.words, session_lifetime_ms=lifetime_ms)


def refuse_sasl_authenticate(
    call: Call[SaslAuthenticateResponse], _: SaslAuthenticateRequest, code: int
) -> SaslAuthenticateResponse:
    """Say why, and close the connection once the reply is out."""
    reason = "Authentication failed, as a test ordered"
    call.cluster.loop.call_soon(call.connection.refuse, f"{reason}, with error {code}")
    return call.response(error_code=code, error_message=reason, auth_bytes=b"")
