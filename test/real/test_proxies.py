"""Through proxies that other people wrote: microsocks for SOCKS5, tinyproxy for HTTP CONNECT. Both are Debian's."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kafka import KafkaClient, KafkaConsumer, KafkaProducer
from kafka.errors import AuthenticationError, KafkaError, NoBrokersAvailable
from kafka.net.environment import Environment

from . import ports
from .certificates import Authority
from .kafka_process import KafkaCluster

Start = Callable[..., str]


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Start]:
    """Starts a program; returns the address where it listens."""
    with ExitStack() as stack:

        def start(program: str, *words: str, config: str = "") -> str:
            path = shutil.which(program)
            if path is None:
                pytest.skip(f"the test of proxies needs {program} (Debian: {program})")
            port = ports.reserve()
            stack.callback(ports.release, port)
            (tmp_path / "config").write_text(config.format(port=port), encoding="utf-8")
            command = [path, *(word.format(port=port, config=tmp_path / "config") for word in words)]
            with (tmp_path / f"{program}.log").open("wb") as log:
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            stack.callback(process.wait, 10)
            stack.callback(process.kill)
            _await(port, process)
            return f"127.0.0.1:{port}"

        yield start


def _await(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while not _answers(port):
        assert process.poll() is None, f"{process.args!r} ended"
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1.0).close()
    except OSError:
        return False
    return True


SOCKS = ("-i", "127.0.0.1", "-p", "{port}")
TINYPROXY = ("-d", "-c", "{config}")
TINYPROXY_CONFIG = "Port {port}\nListen 127.0.0.1\nTimeout 60\nMaxClients 50\nAllow 127.0.0.1\n"
PASSWORD = "BasicAuth ann s3cret\n"


def works(kafka: KafkaCluster, topic: str, url: str, **options: Any) -> None:
    """A record goes there and comes back, and every connection leads through the proxy."""
    options = {"bootstrap_servers": kafka.bootstrap_servers, "proxy_url": url, **options}
    with KafkaProducer(**options) as producer:
        producer.send(topic, b"through").get(timeout=60)
    with KafkaConsumer(topic, auto_offset_reset="earliest", consumer_timeout_ms=60_000, **options) as consumer:
        assert next(iter(consumer)).value == b"through"


def refused(kafka: KafkaCluster, url: str, error: type[KafkaError], match: str) -> None:
    began = time.monotonic()
    with pytest.raises(error, match=match) as caught:
        KafkaClient(bootstrap_servers=kafka.bootstrap_servers, proxy_url=url, bootstrap_timeout_ms=30_000).close()
    assert "s3cret" not in str(caught.value)
    assert "wrong" not in str(caught.value)
    assert time.monotonic() - began < 20  # at once, and not when its time is up


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
def test_a_socks5_proxy(kafka: KafkaCluster, proxy: Start, scheme: str) -> None:
    works(kafka, f"by-{scheme}", f"{scheme}://{proxy('microsocks', *SOCKS)}")


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
def test_a_socks5_proxy_with_credentials(kafka: KafkaCluster, proxy: Start, scheme: str) -> None:
    address = proxy("microsocks", *SOCKS, "-u", "ann", "-P", "s3cret")
    works(kafka, f"by-{scheme}-ann", f"{scheme}://ann:s3cret@{address}")
    refused(kafka, f"{scheme}://ann:wrong@{address}", AuthenticationError, "refused user 'ann'")
    refused(kafka, f"{scheme}://{address}", AuthenticationError, "demands a user and a password")


def test_the_older_option_leads_there_too(kafka: KafkaCluster, proxy: Start) -> None:
    address = proxy("microsocks", *SOCKS)
    with KafkaClient(bootstrap_servers=kafka.bootstrap_servers, socks5_proxy=f"socks5://{address}") as client:
        assert client.bootstrap_connected()


def test_names_are_looked_up_by_the_proxy(secured: KafkaCluster, proxy: Start) -> None:
    address = proxy("microsocks", *SOCKS)
    asked: list[Any] = []
    real = socket.getaddrinfo

    def lookup(host: Any, *more: Any, **options: Any) -> Any:
        asked.append(host)
        return real(host, *more, **options)

    for scheme, expected in (("socks5", True), ("socks5h", False)):
        asked.clear()
        options: dict[str, Any] = {"proxy_url": f"{scheme}://{address}", "environment": Environment(lookup=lookup)}
        with KafkaClient(bootstrap_servers=secured.bootstrap("PLAINTEXT"), **options) as client:
            assert client.bootstrap_connected()
        assert ("localhost" in asked) is expected


def test_a_proxy_that_cannot_reach_a_broker_says_so(proxy: Start) -> None:
    address = proxy("microsocks", *SOCKS)
    port = ports.reserve()
    try:
        with pytest.raises(NoBrokersAvailable, match=r"the SOCKS5 proxy .* cannot reach"):
            KafkaClient(
                bootstrap_servers=f"127.0.0.1:{port}", proxy_url=f"socks5://{address}", bootstrap_timeout_ms=3000
            ).close()
    finally:
        ports.release(port)


def test_http_connect(kafka: KafkaCluster, proxy: Start) -> None:
    works(kafka, "by-http", f"http://{proxy('tinyproxy', *TINYPROXY, config=TINYPROXY_CONFIG)}")


def test_http_connect_with_credentials(kafka: KafkaCluster, proxy: Start) -> None:
    address = proxy("tinyproxy", *TINYPROXY, config=TINYPROXY_CONFIG + PASSWORD)
    works(kafka, "by-http-ann", f"http://ann:s3cret@{address}")
    refused(kafka, f"http://ann:wrong@{address}", AuthenticationError, "401")
    refused(kafka, f"http://{address}", AuthenticationError, "407")


def test_tls_inside_a_tunnel(secured: KafkaCluster, proxy: Start, authority: Authority) -> None:
    address = proxy("microsocks", *SOCKS)
    options: dict[str, Any] = {"security_protocol": "SSL", "ssl_cafile": str(authority.cert)}
    with KafkaClient(bootstrap_servers=secured.bootstrap("SSL"), proxy_url=f"socks5://{address}", **options) as client:
        assert client.bootstrap_connected()
