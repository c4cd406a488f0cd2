"""SaslHandshake (17), versions 0-1: choose a SASL mechanism.

* v0: the mechanism's tokens follow as bare frames.
* v1: they follow in SaslAuthenticate (KIP-152).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kafka.broker.security.service import Security, security
from kafka.broker.server.api import BrokerResponseError, Call, Code
from kafka.broker.server.connection import Connection, Frame
from kafka.errors import IllegalSaslStateError, SaslAuthenticationFailedError
from kafka.protocol.sasl import SaslHandshakeRequest, SaslHandshakeResponse

_WRAPPED_FROM: Final = 1


def handle(call: Call[SaslHandshakeResponse], request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """Begin."""
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


def refuse(call: Call[SaslHandshakeResponse], _: SaslHandshakeRequest, code: int) -> SaslHandshakeResponse:
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
