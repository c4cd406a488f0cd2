"""The states of a connection and what leads from one to another, as one table.

docs/internals/network.rst draws the table. A step that it does not have is a bug of the library and raises.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

__all__ = ["NEXT", "WAITS_FOR", "ConnectionEvent", "ConnectionStates", "next_state"]


class ConnectionStates(str, Enum):
    """The state of a connection: the historic names, and steps that they combined."""

    DISCONNECTED = "<disconnected>"
    RESOLVING = "<resolving>"
    CONNECTING = "<connecting>"
    TUNNELLING = "<tunnelling>"
    HANDSHAKE = "<handshake>"
    CHECKING_API_VERSIONS = "<checking_api_versions>"
    AUTHENTICATING = "<authenticating>"
    CONNECTED = "<connected>"
    REAUTHENTICATING = "<reauthenticating>"
    # Other names of the same states, which programs of older releases compare with.
    DISCONNECTING = DISCONNECTED
    API_VERSIONS_SEND = CHECKING_API_VERSIONS
    API_VERSIONS_RECV = CHECKING_API_VERSIONS  # noqa: PIE796


class ConnectionEvent(Enum):
    """The next step of a connection."""

    OPEN = "look up the address"
    DIAL = "connect to one of the addresses"
    TUNNEL = "ask the proxy to lead on"
    SECURE = "begin TLS"
    ASK = "ask for the API versions"
    AUTHENTICATE = "begin SASL"
    READY = "take requests"
    CLOSE = "close"


_S, _E = ConnectionStates, ConnectionEvent

NEXT: Final[dict[tuple[ConnectionStates, ConnectionEvent], ConnectionStates]] = {
    (_S.DISCONNECTED, _E.OPEN): _S.RESOLVING,
    (_S.RESOLVING, _E.DIAL): _S.CONNECTING,
    (_S.CONNECTING, _E.TUNNEL): _S.TUNNELLING,
    (_S.CONNECTING, _E.SECURE): _S.HANDSHAKE,
    (_S.CONNECTING, _E.ASK): _S.CHECKING_API_VERSIONS,
    (_S.TUNNELLING, _E.SECURE): _S.HANDSHAKE,
    (_S.TUNNELLING, _E.ASK): _S.CHECKING_API_VERSIONS,
    (_S.HANDSHAKE, _E.ASK): _S.CHECKING_API_VERSIONS,
    (_S.CHECKING_API_VERSIONS, _E.AUTHENTICATE): _S.AUTHENTICATING,
    (_S.CHECKING_API_VERSIONS, _E.READY): _S.CONNECTED,
    (_S.AUTHENTICATING, _E.READY): _S.CONNECTED,
    # KIP-368: before the session's end, on the same connection, between requests
    (_S.CONNECTED, _E.AUTHENTICATE): _S.REAUTHENTICATING,
    (_S.REAUTHENTICATING, _E.READY): _S.CONNECTED,
    # Every state can end; closing twice has no effect.
    **{(state, _E.CLOSE): _S.DISCONNECTED for state in _S},
}


#: For messages: the event that each step of an attempt waits for.
WAITS_FOR: Final = {
    _S.RESOLVING: "the address of its name",
    _S.CONNECTING: "the connection to be accepted",
    _S.TUNNELLING: "the proxy to connect to it",
    _S.HANDSHAKE: "the TLS handshake",
    _S.CHECKING_API_VERSIONS: "the answer to the first request (ApiVersions)",
    _S.AUTHENTICATING: "authentication",
    _S.REAUTHENTICATING: "another authentication",
}


def next_state(state: ConnectionStates, event: ConnectionEvent) -> ConnectionStates:
    """Return the state that `event` leads to.

    >>> next_state(ConnectionStates.DISCONNECTED, ConnectionEvent.OPEN).value
    '<resolving>'
    """
    try:
        return NEXT[state, event]
    except KeyError:
        raise AssertionError(f"a connection that is {state.value} cannot {event.value}; please report this") from None
