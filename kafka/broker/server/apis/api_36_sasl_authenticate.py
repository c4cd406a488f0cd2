"""SaslAuthenticate (36), versions 0-2: the tokens of the SASL mechanism that was chosen (KIP-152).

* v1: how long the session lasts (KIP-368).
* v2: flexible.
"""

from __future__ import annotations

from kafka.broker.security.sasl import State
from kafka.broker.security.service import security
from kafka.broker.server.api import BrokerResponseError, Call
from kafka.errors import IllegalSaslStateError
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslAuthenticateResponse


def handle(call: Call[SaslAuthenticateResponse], request: SaslAuthenticateRequest) -> SaslAuthenticateResponse | None:
    """Take a token, give one."""
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


def refuse(call: Call[SaslAuthenticateResponse], _: SaslAuthenticateRequest, code: int) -> SaslAuthenticateResponse:
    """Say why, and close the connection once the reply is out."""
    reason = "Authentication failed, as a test ordered"
    call.cluster.loop.call_soon(call.connection.refuse, f"{reason}, with error {code}")
    return call.response(error_code=code, error_message=reason, auth_bytes=b"")
