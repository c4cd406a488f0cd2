"""One small HTTP request, for token endpoints and credential services. Blocks: worker threads only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from socket import SHUT_RDWR
from threading import Event
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from kafka._runtime.workers import daemon_thread
from kafka._text import without_passwords
from kafka.errors import KafkaConfigurationError, KafkaConnectionError

if TYPE_CHECKING:
    import ssl
    import urllib.request
    from http.client import HTTPConnection
    from socket import socket

__all__ = ["HttpAnswer", "http_request"]

# Tokens and credentials are a few kilobytes; more than this is not an answer to us.
_LARGEST_BODY: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """Status, reason and body; the body may be secret and is not shown."""

    status: int
    reason: str
    body: bytes

    @property
    def is_temporary(self) -> bool:
        """Whether another attempt may succeed: the server is overloaded, or broken (408, 429, 5xx)."""
        return self.status in {408, 429} or self.status >= 500

    def __repr__(self) -> str:
        return f"<HttpAnswer {self.status} {self.reason}, {len(self.body)} bytes>"


def http_request(
    method: str,
    url: str,
    *,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = 10.0,
    ssl_context: ssl.SSLContext | None = None,
    proxies: bool = True,
) -> HttpAnswer:
    """Make a request and return the answer, whatever its status. KafkaConnectionError if there is none in time.

    `timeout` is for all of it, from the name's lookup to the last byte. The proxies of the environment are used unless
    `proxies` is False (services of the machine itself).
    """
    import urllib.request

    shown = without_passwords(url)
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"}:
        raise KafkaConfigurationError(f"Not an http(s) URL: {shown!r}")
    if "@" in parts.netloc:
        raise KafkaConfigurationError(f"{shown}: a user and password in a URL are not sent; leave them out")
    request = urllib.request.Request(url, data=body, headers=dict(headers or {}), method=method)  # noqa: S310 - checked
    attempt = _Attempt(request, timeout, ssl_context, proxies)
    # The system's limits are for each packet, and a name lookup has none at all: a server that sends a byte now and
    # then would hold the caller for as long as it likes.
    thread = daemon_thread(attempt.run, "kafka-http")
    try:
        thread.start()
    except RuntimeError:  # no more threads, or the interpreter exits: better without that limit than not at all
        attempt.run()
    in_time = attempt.ended.wait(timeout)
    if not in_time:
        attempt.give_up()
    reason = getattr(attempt.error, "reason", attempt.error)
    if not in_time or (isinstance(reason, TimeoutError) and reason.errno is None):  # the socket has the same limit
        raise KafkaConnectionError(f"No answer from {shown} within {timeout:g} seconds")
    if attempt.answer is None:
        raise KafkaConnectionError(f"No answer from {shown}: {reason}") from attempt.error
    return attempt.answer


class _Attempt:
    """One request, on a thread that is not waited for longer than its time allows."""

    def __init__(
        self, request: urllib.request.Request, timeout: float, ssl_context: ssl.SSLContext | None, proxies: bool
    ) -> None:
        self.answer: HttpAnswer | None = None
        self.error: Exception | None = None
        self.ended = Event()
        self._request = request
        self._timeout = timeout
        self._ssl_context = ssl_context
        self._proxies = proxies
        self._given_up = False
        self._connection: HTTPConnection | None = None
        self._sock: socket | None = None

    def run(self) -> None:
        import urllib.error
        import urllib.request

        handlers: list[urllib.request.BaseHandler] = [_no_redirect(), *self._transports()]
        if not self._proxies:
            handlers.append(urllib.request.ProxyHandler({}))
        try:
            with urllib.request.build_opener(*handlers).open(self._request, timeout=self._timeout) as answer:
                self.answer = HttpAnswer(answer.status, answer.reason, answer.read(_LARGEST_BODY))
        except urllib.error.HTTPError as error:
            try:
                with error:
                    self.answer = HttpAnswer(error.code, str(error.reason), error.read(_LARGEST_BODY))
            except Exception as broken:  # the body was cut off
                self.error = broken
        except Exception as error:  # whatever a server may cause; the caller wraps it
            self.error = error
        finally:
            self.ended.set()

    def give_up(self) -> None:
        """Close the connection of the thread, which ends the thread; a name lookup runs to its own end."""
        self._given_up = True
        # While it connects the socket is the connection's; afterwards only the answer has it.
        for sock in (self._sock, getattr(self._connection, "sock", None)):
            if sock is not None:
                with suppress(OSError):
                    sock.shutdown(SHUT_RDWR)

    def _transports(self) -> list[urllib.request.BaseHandler]:
        """Return urllib's transports, with connections that `give_up` can end."""
        import http.client
        import urllib.request

        attempt = self

        class Connection(http.client.HTTPConnection):
            def connect(self) -> None:
                super().connect()
                attempt._connected(self.sock)

        class SecureConnection(http.client.HTTPSConnection):
            def connect(self) -> None:
                super().connect()
                attempt._connected(self.sock)

        class Plain(urllib.request.HTTPHandler):
            def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
                make: Any = partial(attempt._watch, Connection)
                return self.do_open(make, request)

        class Secure(urllib.request.HTTPSHandler):
            def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
                make: Any = partial(attempt._watch, SecureConnection)
                return self.do_open(make, request, context=attempt._ssl_context)

        return [Plain(), Secure()]

    def _watch(self, kind: Callable[..., HTTPConnection], host: str, **options: object) -> HTTPConnection:
        self._connection = kind(host, **options)
        return self._connection

    def _connected(self, sock: socket) -> None:
        self._sock = sock
        if self._given_up:  # send nothing any more
            raise TimeoutError("the time was up before there was a connection")


def _no_redirect() -> urllib.request.HTTPRedirectHandler:
    """Credentials go to the configured place and nowhere else."""
    import urllib.request

    class NoRedirect(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_args: object, **_kwargs: object) -> None:
            return None

    return NoRedirect()
