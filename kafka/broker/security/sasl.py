"""SASL on the broker's side: the mechanisms, and the authentication of one connection.

Each mechanism is a generator: it receives the client's messages, yields the broker's, and returns the user; it
raises SaslAuthenticationFailedError with the text for the client. A session is one connection's way through
SaslHandshake and SaslAuthenticate, once or again (KIP-368).
"""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import b64decode, b64encode, urlsafe_b64decode
from collections.abc import Callable, Generator, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple

from kafka.broker.security.credentials import Credential
from kafka.errors import (
    IllegalSaslStateError,
    IllegalStateError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)


class User(NamedTuple):
    """The identity that a client has proved."""

    name: str
    #: When what it showed expires, in milliseconds since the epoch; None for never.
    expires_ms: int | None = None
    #: The broker's last message.
    last_words: bytes = b""
    #: Whether it was a delegation token that let it in; ``name`` is its owner then.
    by_token: bool = False


class TokenLogin(NamedTuple):
    """A delegation token, for clients that authenticate with it."""

    owner: str
    expires_ms: int
    credential: Credential


Exchange = Generator[bytes, bytes, User]

_PLAIN_REFUSED: Final = "Authentication failed: Invalid username or password"


def plain(passwords: Mapping[str, str]) -> Exchange:
    """PLAIN (RFC 4616): name and password as they are."""
    said = yield b""
    try:
        authorization_id, user, password = said.decode().split("\0")
    except ValueError:
        raise SaslAuthenticationFailedError("Invalid SASL/PLAIN response: expected 3 tokens") from None
    expected = passwords.get(user)
    known = hmac.compare_digest((expected or "").encode(), password.encode())
    if not user or expected is None or not known:
        raise SaslAuthenticationFailedError(_PLAIN_REFUSED)
    if authorization_id not in ("", user):
        raise SaslAuthenticationFailedError(
            "Authentication failed: Client requested an authorization id that is different from username"
        )
    return User(user)


def scram(
    mechanism: str,
    hash_name: str,
    credential_of: Callable[[str], Credential | None],
    new_nonce: Callable[[], str],
    token_of: Callable[[str], TokenLogin | None] = lambda _token_id: None,
    *,
    lenient: bool = False,
) -> Exchange:
    """SCRAM (RFC 5802): both sides prove that they know the password, neither says it.

    With the extension ``tokenauth=true`` (KIP-48) the user is the id of a delegation token. With ``lenient`` it is
    enough that the nonce of the client's last message ends in the right one, as for Kafka before 4.0.
    """
    refused = SaslAuthenticationFailedError(
        f"Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism}"
    )
    header, user, client_nonce, bare = _client_first((yield b""), refused)
    by_token = _attributes(bare).get("tokenauth") == "true"
    token = token_of(user) if by_token else None
    credential = credential_of(user) if not by_token else None if token is None else token.credential
    if credential is None:
        raise refused
    nonce = client_nonce + new_nonce()
    first = f"r={nonce},s={b64encode(credential.salt).decode()},i={credential.iterations}"
    final = (yield first.encode()).decode(errors="replace")
    without_proof, _, proof = final.rpartition(",p=")
    attributes = _attributes(without_proof)
    said = attributes.get("r", "")
    if said != nonce and said.endswith(nonce) and not lenient:
        raise SaslAuthenticationFailedError(
            f"Authentication failed with SASL mechanism {mechanism}: the client's last message repeats its nonce, as "
            "librdkafka before 2.6.1 does (kcat, confluent-kafka). Kafka 4 refuses it as well: upgrade the client, use "
            "PLAIN, or have this broker pass for Kafka 3.9 (--as-version 3.9)"
        )
    if not said.endswith(nonce) or attributes.get("c") != b64encode(header.encode()).decode():
        raise refused
    message = f"{bare},{first},{without_proof}".encode()
    signature = hmac.digest(credential.stored_key, message, hash_name)
    try:
        client_key = bytes(left ^ right for left, right in zip(b64decode(proof), signature, strict=True))
    except ValueError:
        raise refused from None
    if not hmac.compare_digest(hashlib.new(hash_name, client_key).digest(), credential.stored_key):
        raise refused
    verifier = hmac.digest(credential.server_key, message, hash_name)
    last_words = b"v=" + b64encode(verifier)
    return User(user, None, last_words) if token is None else User(token.owner, token.expires_ms, last_words, True)


def _client_first(said: bytes, refused: SaslAuthenticationFailedError) -> tuple[str, str, str, str]:
    """Return the header, the user, the nonce and the message without its header."""
    parts = said.decode(errors="replace").split(",", 2)
    if len(parts) != 3 or parts[0] not in ("n", "y"):
        raise refused
    attributes = _attributes(parts[2])
    user, nonce = attributes.get("n", ""), attributes.get("r", "")
    if not user or not nonce or "m" in attributes or parts[1] not in ("", f"a={user}"):
        raise refused
    return f"{parts[0]},{parts[1]},", user.replace("=2C", ",").replace("=3D", "="), nonce, parts[2]


def _attributes(message: str) -> dict[str, str]:
    return {name: value for name, _, value in (part.partition("=") for part in message.split(","))}


def oauthbearer(now_ms: Callable[[], int], claim: str = "sub") -> Exchange:
    """OAUTHBEARER (RFC 7628) with unsecured tokens: any client may log in, which is for tests alone."""
    shown = _bearer((yield b""))
    try:
        name, expires_ms = _read_token(shown, now_ms(), claim)
    except (ValueError, TypeError) as error:
        # RFC 7628, section 3.2.3: a refusal is JSON, which the client acknowledges with one byte; Kafka repeats it.
        refusal = '{"status":"invalid_token"}'
        yield refusal.encode()
        raise SaslAuthenticationFailedError(f"{refusal}: {error}") from None
    return User(name, expires_ms)


def _bearer(said: bytes) -> str:
    header, _, rest = said.decode(errors="replace").partition("\x01")
    if header.split(",")[0] != "n":
        raise SaslAuthenticationFailedError("Invalid OAUTHBEARER client first message")
    for pair in rest.split("\x01"):
        key, _, value = pair.partition("=")
        if key == "auth" and value[:7].lower() == "bearer ":
            return value[7:].strip()
    raise SaslAuthenticationFailedError("Invalid OAUTHBEARER client first message: 'auth' not specified")


def _read_token(token: str, now_ms: int, claim: str) -> tuple[str, int]:
    head, payload, signature = token.split(".")
    if _json(head).get("alg") != "none" or signature:
        raise ValueError("The token is signed; only unsecured tokens are taken here")
    claims = _json(payload)
    if missing := {claim, "exp"} - claims.keys():
        raise ValueError(f"The token lacks {' and '.join(sorted(missing))}")
    name, expires_ms = claims[claim], int(float(claims["exp"]) * 1000)
    if not isinstance(name, str) or not name:
        raise ValueError(f"The token has no name in its claim {claim!r}")
    if expires_ms <= now_ms:
        raise ValueError("The token has expired")
    if int(float(claims.get("nbf", 0)) * 1000) > now_ms:
        raise ValueError("The token is not valid yet")
    return name, expires_ms


def _json(part: str) -> dict[str, Any]:
    value = json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    if not isinstance(value, dict):
        raise ValueError("Not a JSON object")
    return value


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


#: Kafka refuses the second of two renewals that begin within this time; the first may begin at once.
_RENEWAL_INTERVAL_MS: Final = 1000


class Step(NamedTuple):
    """The broker's message to the client, and the client's identity once it is known."""

    words: bytes
    user: User | None = None


class SaslSession:
    """The state of one connection."""

    def __init__(self, begin: Callable[[str], Exchange | None], now_ms: Callable[[], float]) -> None:
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
        self._now_ms = now_ms
        self._renewed_ms: float | None = None

    def handshake(self, mechanism: str) -> None:
        """Begin with a mechanism; raises the error for the client."""
        if self.state in (State.TOKENS, State.FAILED) or (self.state is State.DONE and not self.may_repeat):
            raise IllegalSaslStateError("SaslHandshake is not expected now")
        if self.state is State.DONE:
            now_ms = self._now_ms()
            if self._renewed_ms is not None and now_ms - self._renewed_ms < _RENEWAL_INTERVAL_MS:
                raise IllegalSaslStateError("a client may authenticate again once in a second")
            self._renewed_ms = now_ms
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
