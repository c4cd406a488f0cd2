"""The small HTTP client of token endpoints and credential services, over loopback."""

from __future__ import annotations

import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from kafka.errors import AuthenticationError, KafkaConfigurationError, KafkaConnectionError
from kafka.sasl.http import http_request
from kafka.sasl.oauth import OidcTokenProvider


class Handler(BaseHTTPRequestHandler):
    def answer(self) -> None:
        size = int(self.headers.get("Content-Length", 0))
        self.server.seen.append((self.command, self.path, self.headers.get("Authorization"), self.rfile.read(size)))
        status, headers, body = self.server.answers.pop(0)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = answer

    def log_message(self, *_args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    made = HTTPServer(("127.0.0.1", 0), Handler)
    made.seen, made.answers = [], []
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join(60)


def url(server: HTTPServer, path: str = "/") -> str:
    return f"http://127.0.0.1:{server.server_port}{path}"


@pytest.mark.parametrize("status", [200, 204, 400, 401, 503])
def test_the_answer_comes_back_whatever_its_status(server: HTTPServer, status: int) -> None:
    server.answers.append((status, {}, b"" if status == 204 else b"text"))
    answer = http_request("POST", url(server, "/token"), body=b"a=b", headers={"Authorization": "x"}, proxies=False)
    assert (answer.status, answer.body) == (status, b"" if status == 204 else b"text")
    assert server.seen == [("POST", "/token", "x", b"a=b")]
    assert "text" not in repr(answer)


def test_a_redirect_is_not_followed_with_our_credentials(server: HTTPServer) -> None:
    server.answers.append((302, {"Location": url(server, "/elsewhere")}, b""))
    assert http_request("GET", url(server), headers={"Authorization": "x"}, proxies=False).status == 302
    assert len(server.seen) == 1


def test_a_port_without_a_listener_is_a_connection_error() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(KafkaConnectionError, match="No answer from"):
            http_request("GET", f"http://127.0.0.1:{free.getsockname()[1]}/", proxies=False)


def test_silence_ends_with_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(KafkaConnectionError):
        http_request("GET", f"http://127.0.0.1:{silent.getsockname()[1]}/", timeout=0.1, proxies=False)


class Dripping(socketserver.ThreadingTCPServer):
    """Answers with a byte now and then, in the head or in the body, or does not get to the end of the TLS handshake."""

    daemon_threads = True

    def __init__(self, *parts: bytes) -> None:
        super().__init__(("127.0.0.1", 0), None)
        self.parts, self.came, self.gone = parts, threading.Event(), threading.Event()
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def finish_request(self, request: socket.socket, _address: object) -> None:
        self.came.set()
        first, then = self.parts
        try:
            request.sendall(first)
            while True:
                request.sendall(then)
                request.settimeout(0.02)
                with suppress(TimeoutError):
                    if not request.recv(65536):
                        break
        except OSError:
            pass
        self.gone.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/token"

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"


@pytest.mark.parametrize("parts", [(HEAD, b"x"), (b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n"), (b"", b"x")])
def test_the_time_limit_is_for_the_whole_request(parts: tuple[bytes, bytes]) -> None:
    """A byte now and then is in time for each receive, and would take days."""
    with Dripping(*parts) as server:
        before = time.monotonic()
        with pytest.raises(KafkaConnectionError, match=r"No answer from http://127.*\?\*\*\* within 0\.3 seconds"):
            http_request("GET", server.url + "?key=SECRET", timeout=0.3, proxies=False)
        assert time.monotonic() - before >= 0.3
        assert server.gone.wait(20), "the connection was left open"


def test_where_no_thread_can_be_started_the_request_is_made_all_the_same(
    server: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python 3.12 starts none while the interpreter exits, when a producer may still have records to send."""

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    server.answers.append((200, {}, b"text"))
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert http_request("GET", url(server), proxies=False).body == b"text"


def test_a_name_lookup_that_hangs_does_not_hold_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    leave = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_options: leave.wait(30) and [])
    try:
        with pytest.raises(KafkaConnectionError, match=r"within 0\.1 seconds"):
            http_request("GET", "http://login.example/", timeout=0.1, proxies=False)
    finally:
        leave.set()


def test_while_an_endpoint_drips_others_share_the_outcome_and_the_next_asks_again(
    server: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with Dripping(HEAD, b"x") as slow:
        provider = OidcTokenProvider(slow.url, "id", "s3cret", timeout=1)
        errors: list[str] = []

        def ask() -> None:
            with pytest.raises(KafkaConnectionError) as caught:
                provider.token()
            errors.append(str(caught.value))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert errors == [f"No answer from {slow.url} within 1 seconds"] * 4
        provider._url = url(server)
        server.answers.append((200, {}, b'{"access_token": "abc", "expires_in": 100}'))
        assert provider.token() == "abc"


def test_a_password_in_the_url_is_refused_and_not_shown() -> None:
    with pytest.raises(KafkaConfigurationError, match=r"http://me:\*\*\*@login.example/: .* not sent") as caught:
        http_request("GET", "http://me:PASSWORD@login.example/")
    assert "PASSWORD" not in str(caught.value)


def test_other_schemes_are_refused() -> None:
    with pytest.raises(KafkaConfigurationError):
        http_request("GET", "file:///etc/passwd")


def test_a_token_is_fetched_and_a_refusal_is_reported(server: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    server.answers += [
        (200, {}, b'{"access_token": "abc", "expires_in": 100}'),
        (401, {}, b'{"error": "invalid_client"}'),
    ]
    assert OidcTokenProvider(url(server), "id", "s3cret").token() == "abc"
    with pytest.raises(AuthenticationError, match="401 invalid_client") as caught:
        OidcTokenProvider(url(server), "id", "s3cret").token()
    assert "s3cret" not in str(caught.value)
    assert server.seen[0][3] == b"grant_type=client_credentials"
