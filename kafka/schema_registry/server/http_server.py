"""A schema registry for tests and demonstrations: Confluent's interface over HTTP, with the schemas in memory."""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from collections.abc import Mapping
from hmac import compare_digest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from kafka.errors import IllegalStateError
from kafka.schema_registry.server.routes import RawText, RegistryRequest, answer_of
from kafka.schema_registry.server.store import LEVELS, Refused, SchemaStore

if TYPE_CHECKING:
    import ssl

    from typing_extensions import Self

__all__ = ["SchemaRegistryServer", "SeenByRegistry"]

_CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_LARGEST_BODY: Final = 10 << 20


class SeenByRegistry(NamedTuple):
    """A request that a registry was sent."""

    method: str
    path: str
    authorization: str | None


class SchemaRegistryServer:
    """A schema registry in this process, on loopback.

    >>> from kafka.schema_registry import Schema, SchemaRegistry
    >>> with SchemaRegistryServer() as server:
    ...     SchemaRegistry(server.url).register("events-value", Schema('"string"'))
    1

    It has subjects, versions, references, the three formats, compatibility checks, modes, deletion in two steps, and
    the errors of Confluent's registry. Avro and JSON Schema need nothing else; Protobuf needs the package protobuf.
    ``compatibility`` is the global one. ``users``, names with their passwords, has it ask clients who they are;
    ``ssl_context`` (a server's) has it speak TLS. ``port`` 0 means any free one. Schemas end with it.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        compatibility: str = "BACKWARD",
        users: Mapping[str, str] | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        if compatibility not in LEVELS:
            raise ValueError(f"compatibility must be one of {', '.join(LEVELS)}, not {compatibility!r}")
        self._address = (host, port)
        self._users = {b64encode(f"{name}:{word}".encode()).decode() for name, word in (users or {}).items()}
        self._ssl_context = ssl_context
        self._compatibility = compatibility
        self._store = SchemaStore(level=compatibility)
        self._lock = threading.Lock()
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None
        self._failure: tuple[int, bytes] | None = None
        #: What it was asked, in order; a test may clear it.
        self.requests: list[SeenByRegistry] = []

    # Starting and stopping…

    def start(self) -> Self:
        """Start to listen; return once clients can connect."""
        if self._server is None:
            handler = type("Handler", (_Handler,), {"registry": self})
            try:
                server = _Server(self._address, handler)
            except OSError as error:
                host, port = self._address
                why = f"the schema registry cannot listen on {host}:{port}: {error.strerror}"
                raise OSError(error.errno, why) from None
            if self._ssl_context is not None:
                server.socket = self._ssl_context.wrap_socket(
                    server.socket, server_side=True, do_handshake_on_connect=False
                )
            self._address = (self._address[0], server.server_port)  # the same one after close() and start()
            self._server = server
            self._thread = threading.Thread(
                target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="schema-registry", daemon=True
            )
            self._thread.start()
        return self

    def close(self) -> None:
        """Stop listening; the schemas stay until the object is gone, so a test may start it again."""
        server, thread = self._server, self._thread
        self._server = self._thread = None
        if server is not None and thread is not None:
            server.shutdown()
            server.close_connections()
            server.server_close()
            thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<SchemaRegistryServer {f'at {self.url}' if self._server else 'not running'}>"

    @property
    def url(self) -> str:
        """The address for clients."""
        if self._server is None:
            raise IllegalStateError("the schema registry is not running: call start(), or use it with `with`")
        host = f"[{self._address[0]}]" if ":" in self._address[0] else self._address[0]
        return f"http{'s' if self._ssl_context else ''}://{host}:{self._server.server_port}"

    # What tests do to it…

    def reset(self) -> None:
        """Forget all schemas, levels and modes, the requests, and a failure."""
        with self._lock:
            self._store = SchemaStore(level=self._compatibility)
            self._failure = None
        self.requests.clear()

    def fail(self, status: int = 500, body: bytes = b'{"error_code": 50001, "message": "failing"}') -> None:
        """Answer each request with a status and a body, until `recover()`."""
        self._failure = status, body

    def recover(self) -> None:
        """Answer requests again."""
        self._failure = None

    # Answering…

    def answer(self, seen: SeenByRegistry, body: bytes) -> tuple[int, bytes]:
        """Return the status and the body of the answer to a request."""
        self.requests.append(seen)
        if self._failure is not None:
            return self._failure
        if self._users and not self._is_user(seen.authorization):
            return 401, json.dumps({"error_code": 401, "message": "Unauthorized"}).encode()
        parts = urlsplit(seen.path)
        words = [unquote(word) for word in parts.path.strip("/").split("/")]
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        try:
            given = json.loads(body) if body else {}
            if not isinstance(given, dict):
                raise TypeError
        except (ValueError, TypeError, RecursionError):
            return 400, json.dumps({"error_code": 400, "message": "the request is not a JSON object"}).encode()
        try:
            with self._lock:
                found = answer_of(RegistryRequest(self._store, query, given), seen.method, words)
        except Refused as error:
            return error.status, json.dumps({"error_code": error.code, "message": error.message}).encode()
        return 200, found.encode() if isinstance(found, RawText) else json.dumps(found).encode()

    def _is_user(self, authorization: str | None) -> bool:
        kind, _, word = (authorization or "").partition(" ")
        return kind == "Basic" and any(compare_digest(word.encode(), known.encode()) for known in self._users)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        if ":" in address[0]:
            import socket

            self.address_family = socket.AF_INET6
        self._open: set[Any] = set()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def close_connections(self) -> None:
        """Close the connections that clients keep open between requests."""
        for request in list(self._open):
            self.shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients go away, and some do not speak TLS."""


class _Handler(BaseHTTPRequestHandler):
    registry: SchemaRegistryServer
    protocol_version = "HTTP/1.1"
    timeout = 60.0
    # An answer is two writes, which Nagle's algorithm would hold back from one another.
    disable_nagle_algorithm = True

    def _serve(self) -> None:
        length = self.headers.get("Content-Length", "0")
        if not length.isdigit() or int(length) > _LARGEST_BODY:
            self.close_connection = True
            self._send(413, json.dumps({"error_code": 413, "message": "the request is too large"}).encode())
            return
        body = self.rfile.read(int(length))
        seen = SeenByRegistry(self.command, self.path, self.headers.get("Authorization"))
        self._send(*self.registry.answer(seen, body))

    do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815 - the names of http.server

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", _CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="schema registry"')
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing: `requests` has what came."""
