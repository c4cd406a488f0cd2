"""An identity provider on loopback: signs OAUTHBEARER tokens, hands them out, and shows brokers its key.

>>> with TokenServer(directory) as provider:               # doctest: +SKIP
...     kafka = KafkaCluster(listeners=("SASL_PLAINTEXT",), security=[broker_oauth(provider)])

Clients get tokens at ``token_url`` with the client-credentials grant (KIP-768), or straight from
``sign()``; ``requests`` has what they sent, ``answers`` can be filled to make the endpoint fail.
"""

from __future__ import annotations

import base64
import json
import threading
import time
import urllib.parse
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .broker_config import Security
from .certificates import openssl

if TYPE_CHECKING:
    from typing_extensions import Self

KEY_ID = "test-key"
ISSUER = "https://issuer.test"
AUDIENCE = "kafka"
CLIENT_ID, CLIENT_SECRET = "test-client", "test-secret"
VALIDATOR = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"


@dataclass(frozen=True)
class TokenRequest:
    """What a client sent to the token endpoint."""

    form: dict[str, str]
    client_id: str | None  # of basic authentication, None where there was none or it was wrong


@dataclass
class TokenServer:
    """The provider; a context manager."""

    directory: Path
    lifetime: float = 3600.0  # seconds, of the tokens that the endpoint hands out
    requests: list[TokenRequest] = field(default_factory=list)
    answers: deque[tuple[int, bytes]] = field(default_factory=deque)  # status and body, used up before tokens

    def __post_init__(self) -> None:
        self._key = self.directory / "oauth.key"
        openssl("genrsa", "-out", str(self._key), "2048", directory=self.directory)
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"provider": self}))
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), name="token-server")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    @property
    def url(self) -> str:
        """The address of the provider."""
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def token_url(self) -> str:
        """Where clients get their tokens."""
        return f"{self.url}/token"

    @property
    def jwks_url(self) -> str:
        """Where brokers get the key that tokens are checked with."""
        return f"{self.url}/jwks"

    def sign(self, subject: str = CLIENT_ID, *, lifetime: float | None = None, **claims: Any) -> str:
        """A signed token; further claims are added or replace those that it has anyhow."""
        now = time.time()
        times = {"iat": int(now), "exp": int(now + (self.lifetime if lifetime is None else lifetime))}
        body = {"iss": ISSUER, "aud": AUDIENCE, "sub": subject, **times, **claims}
        signed = f"{_part({'alg': 'RS256', 'typ': 'JWT', 'kid': KEY_ID})}.{_part(body)}"
        signature = openssl("dgst", "-sha256", "-sign", str(self._key), directory=self.directory, data=signed.encode())
        return f"{signed}.{_base64url(signature)}"

    def jwks(self) -> dict[str, Any]:
        """The public key, as RFC 7517 writes it."""
        modulus = openssl("rsa", "-in", str(self._key), "-modulus", "-noout", directory=self.directory)
        number = bytes.fromhex(modulus.decode().strip().removeprefix("Modulus="))
        key = {"kty": "RSA", "kid": KEY_ID, "use": "sig", "alg": "RS256"}
        return {"keys": [{**key, "n": _base64url(number), "e": _base64url(b"\x01\x00\x01")}]}

    def answer_token_request(self, request: TokenRequest) -> tuple[int, bytes]:
        """Status and body for a client."""
        self.requests.append(request)
        if self.answers:
            return self.answers.popleft()
        if request.client_id is None:
            return 401, json.dumps({"error": "invalid_client", "error_description": "unknown client"}).encode()
        token = {"access_token": self.sign(request.client_id), "token_type": "Bearer", "expires_in": int(self.lifetime)}
        return 200, json.dumps(token).encode()


class _Handler(BaseHTTPRequestHandler):
    provider: TokenServer

    def do_GET(self) -> None:
        self._answer(200 if self.path == "/jwks" else 404, json.dumps(self.provider.jwks()).encode())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        form = dict(urllib.parse.parse_qsl(body))
        self._answer(*self.provider.answer_token_request(TokenRequest(form, self._client(form))))

    def _client(self, form: dict[str, str]) -> str | None:
        credentials = form.get("client_id"), form.get("client_secret")
        scheme, _, encoded = self.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "basic":
            user, _, secret = base64.b64decode(encoded).decode().partition(":")
            credentials = urllib.parse.unquote(user), urllib.parse.unquote(secret)
        return CLIENT_ID if credentials == (CLIENT_ID, CLIENT_SECRET) else None

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""


def broker_oauth(provider: TokenServer) -> Security:
    """OAUTHBEARER with tokens that the provider signed, for a broker of 3.4 or later."""
    handlers = {
        f"listener.name.{listener}.oauthbearer.sasl.server.callback.handler.class": VALIDATOR
        for listener in ("sasl_plaintext", "sasl_ssl")
    }
    return Security(
        {
            **handlers,
            "sasl.oauthbearer.jwks.endpoint.url": provider.jwks_url,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "sasl.oauthbearer.expected.issuer": ISSUER,
        },
        mechanism="OAUTHBEARER",
        login_module="org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required",
        java={"org.apache.kafka.sasl.oauthbearer.allowed.urls": f"{provider.jwks_url},{provider.token_url}"},
    )


def _part(value: dict[str, Any]) -> str:
    return _base64url(json.dumps(value).encode())


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
