"""The small HTTP client of token endpoints and credential services, over loopback."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from kafka.errors import AuthenticationError, KafkaConfigurationError, KafkaConnectionError
from kafka.net.http import http_request
from kafka.net.sasl.oidc import OidcTokenProvider


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
    thread.join(10)


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


def test_nobody_there_is_a_connection_error() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(KafkaConnectionError, match="No answer from"):
            http_request("GET", f"http://127.0.0.1:{free.getsockname()[1]}/", proxies=False)


def test_silence_ends_with_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(KafkaConnectionError):
        http_request("GET", f"http://127.0.0.1:{silent.getsockname()[1]}/", timeout=0.1, proxies=False)


def test_other_schemes_are_refused() -> None:
    with pytest.raises(KafkaConfigurationError):
        http_request("GET", "file:///etc/passwd")


def test_a_token_is_fetched_and_a_refusal_is_told(server: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
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
