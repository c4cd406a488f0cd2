"""A listener that wants a client's certificate and closes the connection without an alert, as some do under TLS 1.3."""

from __future__ import annotations

import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kafka import KafkaClient
from kafka.errors import NoBrokersAvailable

CERTIFICATES = Path(__file__).parents[2] / "unit" / "net" / "certs"


class Listener(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False

    def finish_request(self, request: socket.socket, _address: object) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATES / "server.pem", CERTIFICATES / "server.key")
        with suppress(OSError), context.wrap_socket(request, server_side=True) as secured:
            secured.recv(1)


@pytest.fixture
def port() -> Iterator[int]:
    with Listener(("127.0.0.1", 0), None) as listener:
        thread = threading.Thread(target=listener.serve_forever, args=(0.02,))
        thread.start()
        yield listener.server_address[1]
        listener.shutdown()
        thread.join()


@pytest.mark.parametrize("given", [False, True])
def test_the_error_names_the_certificate_where_none_is_given(port: int, given: bool) -> None:
    mine = {"ssl_certfile": CERTIFICATES / "client.pem", "ssl_keyfile": CERTIFICATES / "client.key"} if given else {}
    with pytest.raises(NoBrokersAvailable) as caught:
        KafkaClient(
            bootstrap_servers=f"127.0.0.1:{port}",
            security_protocol="SSL",
            ssl_cafile=CERTIFICATES / "ca.pem",
            bootstrap_timeout_ms=2000,
            **mine,
        )
    assert ("ssl_certfile is not set" in str(caught.value)) is not given
