"""Servers that are no Kafka: they hold their tongue, hang up, or hand out tokens, and remember who came."""

from __future__ import annotations

import base64
import json
import random
import socket
import socketserver
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

if TYPE_CHECKING:
    import ssl

    from typing_extensions import Self


@dataclass
class Visit:
    """One connection that came."""

    began: float
    ended: float = 0.0
    data: bytearray = field(default_factory=bytearray)

    @property
    def lasted(self) -> float:
        return self.ended - self.began


class Door(socketserver.ThreadingTCPServer):
    """Takes connections and never says a word."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Silence)
        self.visits: list[Visit] = []
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,), name="door")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


class _Silence(socketserver.BaseRequestHandler):
    server: Door

    def handle(self) -> None:
        visit = Visit(time.monotonic())
        self.server.visits.append(visit)
        try:
            while data := self.request.recv(4096):
                visit.data += data
        except OSError:
            pass
        visit.ended = time.monotonic()


def free_port() -> int:
    """A port on which no program listens, from below those that connections get for their own end."""
    while True:
        port = random.SystemRandom().randrange(15_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


@dataclass
class TokenAsked:
    """What came to the token endpoint."""

    form: dict[str, str]
    authorization: str


class TokenEndpoint:
    """Hands out tokens to whoever asks."""

    def __init__(self, expires_in: float = 3600.0, claims: dict[str, Any] | None = None) -> None:
        self.asked: list[TokenAsked] = []
        payload = base64.urlsafe_b64encode(json.dumps(claims or {"sub": "ann"}).encode()).decode().rstrip("=")
        self.answer = json.dumps({"access_token": f"e30.{payload}.x", "expires_in": expires_in}).encode()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_TokenHandler,), {"endpoint": self}))
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), name="token-endpoint")
        self.scheme = "http"

    def speak_tls(self, context: ssl.SSLContext) -> Self:
        self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
        self.scheme = "https"
        return self

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self._http.server_port}/token"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


class _TokenHandler(BaseHTTPRequestHandler):
    endpoint: TokenEndpoint

    def do_POST(self) -> None:
        form = dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
        credentials = base64.b64decode(self.headers.get("Authorization", "").removeprefix("Basic ")).decode()
        self.endpoint.asked.append(TokenAsked(form, credentials))
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.endpoint.answer)))
        self.end_headers()
        self.wfile.write(self.endpoint.answer)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""
