"""The broker's side of the SASL mechanisms: bytes in, bytes out, and in the end a user.

Each exchange is a generator: it receives the client's messages, yields the broker's, and returns the user; it
raises SaslAuthenticationFailedError with the text for the client.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import b64decode, b64encode, urlsafe_b64decode
from collections.abc import Callable, Generator, Mapping
from typing import Any, Final, NamedTuple

from kafka.broker.security.scram import Credential
from kafka.errors import SaslAuthenticationFailedError

__all__ = ["Exchange", "TokenLogin", "User", "oauthbearer", "plain", "scram"]


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
) -> Exchange:
    """SCRAM (RFC 5802): both sides prove that they know the password, neither says it.

    With the extension ``tokenauth=true`` (KIP-48) the user is the id of a delegation token.
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
    if attributes.get("r") != nonce or attributes.get("c") != b64encode(header.encode()).decode():
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
    except (ValueError, KeyError, TypeError) as error:
        # RFC 7628, section 3.2.3: a refusal is JSON, which the client acknowledges with one byte.
        yield b'{"status":"invalid_token"}'
        raise SaslAuthenticationFailedError(f"Authentication failed: {error}") from None
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
