"""One connection's way through SASL: a handshake that names the mechanism, tokens, and in time both again (KIP-368).

Knows no sockets: it takes the client's messages and returns values.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple

from kafka.broker.security.mechanisms import Exchange, User
from kafka.errors import (
    IllegalSaslStateError,
    IllegalStateError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)

__all__ = ["Event", "SaslSession", "State", "Step", "next_state"]


class State(Enum):
    """How far a connection has come."""

    NEW = "waits for a handshake"
    TOKENS = "exchanges tokens"
    DONE = "is authenticated"
    FAILED = "has failed"


class Event(Enum):
    """What moves it."""

    HANDSHAKE = "a handshake"
    ACCEPTED = "the client has proved who it is"
    REFUSED = "the client was refused"


_NEXT: Final = {  # an absent pair: the client is out of turn
    (State.NEW, Event.HANDSHAKE): State.TOKENS,
    (State.NEW, Event.REFUSED): State.FAILED,
    (State.TOKENS, Event.ACCEPTED): State.DONE,
    (State.TOKENS, Event.REFUSED): State.FAILED,
    (State.DONE, Event.HANDSHAKE): State.TOKENS,
    (State.DONE, Event.REFUSED): State.FAILED,
}


def next_state(state: State, event: Event) -> State:
    """Return where an event leads.

    >>> next_state(State.NEW, Event.HANDSHAKE)
    <State.TOKENS: 'exchanges tokens'>
    """
    try:
        return _NEXT[state, event]
    except KeyError:
        raise IllegalStateError(f"a connection that {state.value} cannot take {event.value}") from None


class Step(NamedTuple):
    """The broker's message to the client, and the client's identity once it is known."""

    words: bytes
    user: User | None = None


class SaslSession:
    """The state of one connection."""

    def __init__(self, begin: Callable[[str], Exchange | None]) -> None:
        self.state = State.NEW
        self.mechanism: str | None = None
        self.user: User | None = None
        #: Whether the session ends some time, so that the client may authenticate again.
        self.may_repeat = False
        #: Whether it continues with another mechanism than before. Kafka lets that handshake pass, and hangs up on what
        #: follows it.
        self.changes_mechanism = False
        self._begin = begin
        self._exchange: Exchange | None = None

    def handshake(self, mechanism: str) -> None:
        """Begin with a mechanism; raises the error for the client."""
        if (
            self.state is State.TOKENS
            or self.state is State.FAILED
            or (self.state is State.DONE and not self.may_repeat)
        ):
            raise IllegalSaslStateError("SaslHandshake is not expected now")
        exchange = self._begin(mechanism)
        if exchange is None:
            self.state = next_state(self.state, Event.REFUSED)
            raise UnsupportedSaslMechanismError(f"Unsupported SASL mechanism: {mechanism}")
        next(exchange)
        self.changes_mechanism = self.mechanism not in (None, mechanism)
        self.mechanism, self._exchange = mechanism, exchange
        self.state = next_state(self.state, Event.HANDSHAKE)

    def token(self, said: bytes) -> Step:
        """Take a message of the client; raises the error for the client."""
        if self.state is not State.TOKENS or self._exchange is None:
            raise IllegalSaslStateError("SaslAuthenticate is not expected now")
        try:
            return Step(self._exchange.send(said))
        except StopIteration as done:
            user: User = done.value
        except SaslAuthenticationFailedError:
            self.state = next_state(self.state, Event.REFUSED)
            raise
        except UnicodeDecodeError:
            self.state = next_state(self.state, Event.REFUSED)
            raise SaslAuthenticationFailedError("The client's SASL message is not UTF-8 text") from None
        if self.user is not None and self.user.name != user.name:
            self.state = next_state(self.state, Event.REFUSED)
            raise SaslAuthenticationFailedError(
                f"Cannot change principals during re-authentication from {self.user.name}: {user.name}"
            )
        self.user, self._exchange = user, None
        self.state = next_state(self.state, Event.ACCEPTED)
        return Step(user.last_words, user)
