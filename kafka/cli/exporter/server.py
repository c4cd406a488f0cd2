"""The HTTP server of the exporter: it serves bytes that are ready, so that a scrape costs the cluster nothing."""

from __future__ import annotations

import hmac
import json
import ssl
import threading
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple

#: Seconds in which a client must have sent its request and taken the answer.
_PATIENCE: Final = 15.0
#: Connections that are served at the same time.
_CONNECTIONS: Final = 32
#: The format of zlib that gzip writes.
GZIP: Final = 31
_PIECE: Final = 1 << 18
_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"


class Page(NamedTuple):
    """The metrics, and the problems that /health tells."""

    compressed: bytes
    """Text, as gzip has it: Prometheus asks for that. For a client that does not, it is expanded as it is sent."""
    size: int
    """Bytes of the text."""
    problems: list[str]

    def text(self) -> Iterator[bytes]:
        """Return the text in pieces."""
        expander, left = zlib.decompressobj(wbits=GZIP), self.compressed
        while left:
            yield expander.decompress(left, _PIECE)
            left = expander.unconsumed_tail
        yield expander.flush()


class Server(ThreadingHTTPServer):
    """Serves /metrics and /health; the first asks for a password if there is one."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self, host: str, port: int, page: Callable[[], Page], *, auth: str | None, tls: ssl.SSLContext | None
    ) -> None:
        import socket

        self.page = page
        self.expected = None if auth is None else b"Basic " + b64encode(auth.encode())
        self._tls = tls
        self._room = threading.BoundedSemaphore(_CONNECTIONS)
        if ":" in host:
            self.address_family = socket.AF_INET6
        super().__init__((host, port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread, or refuse it when there are too many."""
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._room.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Do the handshake of TLS in the thread of the connection: a slow client holds up no other one."""
        try:
            request.settimeout(_PATIENCE)
            if self._tls is not None:
                try:
                    request = self._tls.wrap_socket(request, server_side=True)
                except (OSError, ValueError):
                    self.shutdown_request(request)
                    return
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing about clients that went away."""


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version = "purekafka"
    sys_version = ""
    timeout = _PATIENCE

    def do_GET(self) -> None:
        """Answer a request."""
        path = self.path.partition("?")[0]
        if path in {"/health", "/-/healthy", "/-/ready"}:
            problems = self.server.page().problems
            body = json.dumps({"ok": not problems, "problems": problems}).encode()
            self._answer(503 if problems else 200, body, "application/json")
        elif path == "/":
            self._answer(200, b'<a href="/metrics">metrics</a> <a href="/health">health</a>\n', "text/html")
        elif path != "/metrics":
            self._answer(404, b"there is /metrics, and /health\n", "text/plain")
        elif not self._allowed():
            self._answer(401, b"", "text/plain", ("WWW-Authenticate", 'Basic realm="metrics"'))
        else:
            page = self.server.page()
            if "gzip" in self.headers.get("Accept-Encoding", ""):
                self._answer(200, page.compressed, _TEXT, ("Content-Encoding", "gzip"))
            else:
                self._head(200, page.size, _TEXT)
                for piece in page.text() if self.command != "HEAD" else ():
                    self.wfile.write(piece)

    do_HEAD = do_GET  # noqa: N815 - the name that http.server looks for

    def _allowed(self) -> bool:
        expected = self.server.expected
        given = self.headers.get("Authorization", "").encode("latin-1", "replace")
        return expected is None or hmac.compare_digest(given, expected)

    def _head(self, code: int, size: int, kind: str, *headers: tuple[str, str]) -> None:
        self.send_response(code)
        for name, value in (("Content-Type", kind), ("Content-Length", str(size)), *headers):
            self.send_header(name, value)
        self.end_headers()

    def _answer(self, code: int, body: bytes, kind: str, *headers: tuple[str, str]) -> None:
        self._head(code, len(body), kind, *headers)
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that http.server gives it
        """Print no line for each scrape."""
