"""SOCKS5 and HTTP CONNECT: every split of the proxy's answer, and answers that are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.errors import AuthenticationError, KafkaConfigurationError, KafkaConnectionError, KafkaError
from kafka.net.proxy import ProxyUrl


def talk(url, host, port, answers, chunk=None):
    """Run the conversation; `answers` maps what was sent to what comes back. Returns what was sent."""
    steps = ProxyUrl.parse(url).steps(host, port)
    sent, pending = [], b""
    try:
        out = next(steps)
        while True:
            if out:
                sent.append(out)
                pending += answers.pop(0)
            assert pending, "the client waits for bytes that do not come"
            size = chunk or len(pending)
            piece, pending = pending[:size], pending[size:]
            out = steps.send(piece)
    except StopIteration:
        assert not pending
        return sent


OK4 = b"\x05\x00\x00\x01\x7f\0\0\x01\x1f\x90"


@pytest.mark.parametrize("chunk", [None, 1, 3])
def test_socks5_without_credentials(chunk):
    sent = talk("socks5h://proxy", "broker", 9092, [b"\x05\x00", OK4], chunk)
    assert sent == [b"\x05\x01\x00", b"\x05\x01\x00\x03\x06broker\x23\x84"]


@pytest.mark.parametrize("chunk", [None, 1])
def test_socks5_with_credentials(chunk):
    sent = talk("socks5://ann:p%40ss@proxy", "10.0.0.1", 9092, [b"\x05\x02", b"\x01\x00", OK4], chunk)
    assert sent == [b"\x05\x02\x00\x02", b"\x01\x03ann\x04p@ss", b"\x05\x01\x00\x01\x0a\0\0\x01\x23\x84"]


def test_socks5_to_an_ipv6_address_and_with_a_named_reply():
    reply = b"\x05\x00\x00\x03\x03abc\0\x50"
    sent = talk("socks5://proxy", "::1", 1, [b"\x05\x00", reply], 1)
    assert sent[1] == b"\x05\x01\x00\x04" + b"\0" * 15 + b"\x01\x00\x01"


@pytest.mark.parametrize(
    ("answers", "error", "text"),
    [
        ([b"HT"], KafkaConnectionError, "the proxy proxy:1080 does not answer as a SOCKS5 proxy does"),
        ([b"\x05\xff"], AuthenticationError, "demands"),
        ([b"\x05\x02"], KafkaConnectionError, "not offered"),
        ([b"\x05\x00", b"\x05\x05\x00\x01"], KafkaConnectionError, "connection refused"),
        ([b"\x05\x00", b"\x05\x63\x00\x01"], KafkaConnectionError, "error 99"),
        ([b"\x05\x00", b"\x04\x00\x00\x01"], KafkaConnectionError, "malformed"),
        ([b"\x05\x00", b"\x05\x00\x00\x09"], KafkaConnectionError, "kind of address"),
        ([b"\x05\x00", OK4 + b"extra"], KafkaConnectionError, "more than its answer"),
    ],
)
def test_other_answers_of_a_socks5_proxy(answers, error, text):
    with pytest.raises(error, match=text):
        talk("socks5://proxy", "10.0.0.1", 9092, answers)


def test_wrong_socks5_credentials_are_named_without_the_password():
    with pytest.raises(AuthenticationError) as caught:
        talk("socks5://ann:s3cret@proxy", "10.0.0.1", 9092, [b"\x05\x02", b"\x01\x01"])
    assert "ann" in str(caught.value)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("chunk", [None, 1])
def test_http_connect(chunk):
    sent = talk("http://ann:pw@proxy:3128", "b1", 9092, [b"HTTP/1.1 200 OK\r\nX: y\r\n\r\n"], chunk)
    assert sent == [b"CONNECT b1:9092 HTTP/1.1\r\nHost: b1:9092\r\nProxy-Authorization: Basic YW5uOnB3\r\n\r\n"]
    assert talk("http://proxy", "::1", 1, [b"HTTP/1.0 200 fine\r\n\r\n"])[0].startswith(b"CONNECT [::1]:1 ")


@pytest.mark.parametrize("host", ["x\r\nHeader: y", "b1 HTTP/1.1", "b\0", "b\x7f", "", "\u2028..b", "b" * 70 + "é"])
@pytest.mark.parametrize("scheme", ["http", "socks5h"])
def test_a_host_name_of_metadata_adds_nothing_to_the_bytes_for_the_proxy(scheme, host):
    with pytest.raises(KafkaConnectionError, match=r"is not a host name") as caught:
        talk(f"{scheme}://proxy", host, 9092, [b"\x05\x00", b"HTTP/1.1 200 OK\r\n\r\n"])
    assert str(caught.value).isprintable()


def test_a_host_name_of_another_script_is_sent_as_dns_has_it():
    (sent,) = talk("http://proxy", "bücher.example", 9092, [b"HTTP/1.1 200 OK\r\n\r\n"])
    assert sent.startswith(b"CONNECT xn--bcher-kva.example:9092 HTTP/1.1\r\nHost: xn--bcher-kva.example:9092\r\n")


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", AuthenticationError, "credentials"),
        (b"HTTP/1.1 401 Unauthorized\r\n\r\n", AuthenticationError, "credentials"),
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n", KafkaConnectionError, "502 Bad Gateway"),
        (b"HTTP/1.1 502 Bad\nWARNING forged\r\n\r\n", KafkaConnectionError, r"502 Bad\\nWARNING"),
        (b"SSH-2.0\r\n\r\n", KafkaConnectionError, "the proxy proxy:8080 does not answer as an HTTP proxy does"),
        (b"HTTP/1.1 200 OK\r\n\r\nmore", KafkaConnectionError, "more than its answer"),
        (b"x" * 20_000, KafkaConnectionError, "not an HTTP proxy"),
    ],
)
def test_other_answers_of_an_http_proxy(answer, error, text):
    with pytest.raises(error, match=text):
        talk("http://proxy", "b1", 9092, [answer], 1000)


@given(scheme=st.sampled_from(["socks5", "socks5h", "http"]), replies=st.lists(st.binary(min_size=1), max_size=5))
def test_whatever_a_proxy_answers_only_kafka_errors_go_out(scheme, replies):
    steps = ProxyUrl.parse(f"{scheme}://u:p@proxy").steps("broker" if scheme != "socks5" else "10.0.0.1", 9092)
    try:
        next(steps)
        for reply in replies:
            steps.send(reply)
    except (KafkaError, StopIteration):
        pass


@pytest.mark.parametrize("url", ["ftp://proxy", "socks5://", "socks5://proxy:99999", "proxy:1080", "http://[::1"])
def test_a_url_without_a_known_proxy_scheme_is_a_configuration_error(url):
    with pytest.raises(KafkaConfigurationError):
        ProxyUrl.parse(url)


def test_a_proxy_shows_no_password():
    assert "s3cret" not in repr(ProxyUrl.parse("http://ann:s3cret@proxy"))


def test_what_does_not_fit_into_socks5_is_a_configuration_error():
    for url, host in (("socks5h://proxy", "a" * 300), (f"socks5://{'u' * 300}:p@proxy", "10.0.0.1")):
        with pytest.raises(KafkaConfigurationError):
            talk(url, host, 1, [b"\x05\x02", b""] if "@" in url else [b"\x05\x00", b""])
