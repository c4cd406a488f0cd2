"""TLS over the in-memory network against a server made of the ssl module."""

from __future__ import annotations

import contextlib
import ssl
from pathlib import Path

import pytest

from kafka.errors import KafkaConfigurationError, KafkaConnectionError, SslAuthenticationError
from kafka.net.tls import HostnameMismatchError, TlsStream, certificate_names, tls_context, tls_error
from kafka.testing import MemoryNetwork

CERTS = Path(__file__).parent / "certs"


def cert(name):
    return str(CERTS / name)


def text(name):
    return (CERTS / name).read_text(encoding="utf-8")


class TlsServer:
    """Decrypts what comes in and echoes nothing by itself; driven by the socket's arrival of data."""

    def __init__(self, sock, *, certificate="server", client_ca=None, maximum=None):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert(f"{certificate}.pem"), cert(f"{certificate}.key"))
        if client_ca:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cert(client_ca))
        if maximum:
            context.maximum_version = maximum
        self.names = []
        context.sni_callback = lambda _obj, name, _context: self.names.append(name)
        self.sock, self.into, self.out = sock, ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.into, self.out, server_side=True)
        self.ready, self.got, self.error = False, bytearray(), None
        sock.on_data = self.arrived

    def arrived(self, sock):
        self.into.write(bytes(sock.take()))
        try:
            if not self.ready:
                self.tls.do_handshake()
                self.ready = True
            while data := self.tls.read(65536):
                self.got += data
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            self.error = error
        self.flush()

    def send(self, data):
        self.tls.write(data)
        self.flush()

    def flush(self):
        if self.out.pending:
            self.sock.send(self.out.read())


def connect(hostname="broker", config=None, network=None, **server):
    network = network or MemoryNetwork()
    listener = network.listen("broker", 9093)
    sock = network.socket()
    sock.connect_ex(("broker", 9093))
    end = TlsServer(listener.accept(), **server)
    context = tls_context({"ssl_cafile": cert("ca.pem"), **(config or {})})
    return TlsStream(sock, context, hostname), end


def shake(stream):
    for _ in range(1000):
        with contextlib.suppress(BlockingIOError):
            stream.handshake()
            return
    raise AssertionError("the handshake does not end")


def fails(stream, host="broker"):
    with pytest.raises(ssl.SSLError) as caught:
        shake(stream)
    return tls_error(caught.value, host)


# The stream


@pytest.mark.parametrize("limit", [None, 1])
@pytest.mark.parametrize("maximum", [None, ssl.TLSVersion.TLSv1_2])
def test_bytes_go_both_ways_however_they_are_split(limit, maximum):
    stream, server = connect(maximum=maximum)
    stream._sock.recv_limit = limit
    shake(stream)
    assert server.names == ["broker"]
    parts = [b"hel", b"", memoryview(b"lo")]
    assert stream.sendmsg(parts) == 5
    assert server.got == b"hello"
    server.send(b"x" * 40_000)
    buffer, got = bytearray(40_000), 0
    while got < len(buffer):
        with contextlib.suppress(BlockingIOError):
            got += stream.recv_into(memoryview(buffer)[got:])
    assert buffer == b"x" * 40_000


def test_one_receive_takes_many_records():
    stream, server = connect()
    shake(stream)
    server.send(b"a" * 100_000)
    assert stream.recv_into(bytearray(100_000)) == 100_000


def test_decrypted_bytes_that_are_not_taken_are_announced():
    stream, server = connect()
    shake(stream)
    server.send(b"abcdef")
    assert stream.recv_into(bytearray(2)) == 2
    assert stream.pending_in
    assert stream.recv_into(bytearray(4)) == 4
    with pytest.raises(BlockingIOError):
        stream.recv_into(bytearray(1))
    assert not stream.pending_in


def test_bytes_that_the_socket_does_not_take_are_kept():
    stream, server = connect()
    shake(stream)
    stream._sock.send_limit = 0
    assert stream.sendmsg([b"hello"]) == 5
    assert stream.pending_out
    with pytest.raises(BlockingIOError):
        stream.sendmsg([b"more"])
    stream._sock.send_limit = 3
    while stream.pending_out:
        stream.flush()
    assert server.got == b"hello"


def test_a_big_send_is_taken_in_portions():
    stream, server = connect(network=MemoryNetwork(buffer_size=1 << 24))
    shake(stream)
    body = b"z" * 1_000_000
    sent = 0
    while sent < len(body):
        sent += stream.sendmsg([memoryview(body)[sent:]])
    assert server.got == body


@pytest.mark.parametrize("politely", [True, False])
def test_the_end_of_the_stream_reads_as_nothing(politely):
    stream, server = connect()
    shake(stream)
    server.send(b"last")
    if politely:
        with pytest.raises(ssl.SSLWantReadError):
            server.tls.unwrap()
        server.flush()
    server.sock.close()
    assert stream.recv_into(bytearray(10)) == 4
    assert stream.recv_into(bytearray(10)) == 0
    stream.close()
    assert stream._sock.closed


# What may go wrong


def test_a_wrong_name_has_a_separate_error():
    error = fails(connect("other")[0], "other")
    assert isinstance(error, HostnameMismatchError)
    assert "'other'" in str(error)


def test_an_address_is_checked_against_addresses():
    shake(connect("127.0.0.1")[0])
    assert isinstance(fails(connect("127.0.0.2")[0]), HostnameMismatchError)


def test_a_name_with_a_trailing_dot_is_the_name():
    shake(connect("broker.")[0])


def test_without_the_name_check_the_authority_still_counts():
    shake(connect("other", {"ssl_check_hostname": False})[0])
    assert "ssl_cafile" in str(
        fails(connect("other", {"ssl_check_hostname": False, "ssl_cafile": cert("other-ca.pem")})[0])
    )


def test_an_unknown_authority_is_named_as_that():
    error = fails(connect(config={"ssl_cafile": cert("other-ca.pem")})[0])
    assert isinstance(error, SslAuthenticationError)
    assert "not trusted" in str(error)


def test_a_revoked_certificate_is_refused():
    crl = {"ssl_crlfile": cert("crl.pem")}
    shake(connect(config=crl)[0])
    assert "revoked" in str(fails(connect(config=crl, certificate="revoked")[0]))


@pytest.mark.parametrize(
    ("code", "message", "advice"),
    [
        (9, "certificate is not yet valid", "Is the clock of this machine right?"),
        (10, "certificate has expired", "The broker needs a new certificate"),
        (23, "certificate revoked", "ssl_crlfile has this one"),
        (20, "unable to get local issuer certificate", "Is its authority in ssl_cafile?"),
    ],
)
def test_the_advice_is_for_what_is_wrong_with_a_certificate(code, message, advice):
    error = ssl.SSLCertVerificationError(1, message)
    error.verify_code, error.verify_message = code, message
    assert advice in str(tls_error(error, "broker"))


def test_a_plaintext_server_is_recognised():
    network = MemoryNetwork()
    listener = network.listen("broker", 9092)
    sock = network.socket()
    sock.connect_ex(("broker", 9092))
    listener.accept().send(b"\0\0\0\x04\0\0\0\0" * 10)
    error = fails(TlsStream(sock, tls_context({"ssl_cafile": cert("ca.pem")}), "broker"))
    assert isinstance(error, SslAuthenticationError)
    assert "does not speak TLS" in str(error)


def test_a_server_that_hangs_up_leaves_a_trace_of_how_far_it_got():
    network = MemoryNetwork()
    listener = network.listen("broker", 9092)
    sock = network.socket()
    sock.connect_ex(("broker", 9092))
    listener.accept().on_data = lambda end: end.close()
    stream = TlsStream(sock, tls_context({"ssl_cafile": cert("ca.pem")}), "broker")
    with pytest.raises(KafkaConnectionError, match="during the TLS handshake"):
        stream.handshake()
    assert stream._received == 0


@pytest.mark.parametrize("maximum", [None, ssl.TLSVersion.TLSv1_2])
def test_a_missing_client_certificate_is_refused_in_words(maximum):
    stream, _server = connect(client_ca="ca.pem", maximum=maximum)
    with pytest.raises(ssl.SSLError) as caught:  # noqa: PT012 - TLS 1.3 tells only after the handshake
        shake(stream)
        stream.recv_into(bytearray(10))
    assert "ssl_certfile" in str(tls_error(caught.value, "broker"))


# Client certificates


@pytest.mark.parametrize(
    "config",
    [
        {"ssl_certfile": cert("client.pem"), "ssl_keyfile": cert("client.key")},
        {"ssl_certfile": cert("client.pem"), "ssl_keyfile": cert("client-encrypted.key"), "ssl_password": "s3cret"},
        {
            "ssl_certfile": cert("client.pem"),
            "ssl_keyfile": cert("client-encrypted.key"),
            "ssl_password": lambda: b"s3cret",
        },
        {"ssl_keystore_certificate_chain": text("client.pem"), "ssl_keystore_key": text("client.key")},
        {
            "ssl_keystore_certificate_chain": text("client.pem"),
            "ssl_keystore_key": text("client-encrypted.key"),
            "ssl_password": "s3cret",
        },
        {"ssl_keystore_key": text("client.key") + text("client.pem")},
        {
            "ssl_cafile": None,
            "ssl_truststore_certificates": text("ca.pem"),
            "ssl_certfile": cert("client.pem"),
            "ssl_keyfile": cert("client.key"),
        },
    ],
)
def test_the_client_can_prove_itself(config):
    stream, server = connect(config=config, client_ca="ca.pem")
    shake(stream)
    stream.sendmsg([b"hi"])
    assert server.got == b"hi"
    assert server.tls.getpeercert()["subjectAltName"] == (("DNS", "client"),)


# The context


def test_a_context_of_the_application_is_taken_as_it_is():
    mine = ssl.create_default_context()
    assert tls_context({"ssl_context": mine, "ssl_cafile": "/nowhere"}) is mine


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"ssl_cafile": "/nowhere/ca.pem"}, "ssl_cafile /nowhere/ca.pem"),
        ({"ssl_cafile": cert("client.key")}, "ssl_cafile"),
        ({"ssl_truststore_certificates": "nonsense"}, "ssl_truststore_certificates"),
        ({"ssl_crlfile": "/nowhere"}, "ssl_crlfile"),
        ({"ssl_certfile": "/nowhere"}, "ssl_certfile"),
        ({"ssl_certfile": cert("client.pem"), "ssl_keyfile": cert("server.key")}, "ssl_keyfile"),
        ({"ssl_certfile": cert("client.pem"), "ssl_keyfile": cert("client-encrypted.key")}, "ssl_password"),
        (
            {"ssl_certfile": cert("client.pem"), "ssl_keyfile": cert("client-encrypted.key"), "ssl_password": "no"},
            "wrong password",
        ),
        ({"ssl_keyfile": cert("client.key")}, "ssl_certfile"),
        ({"ssl_ciphers": "NONE-SUCH"}, "ssl_ciphers"),
    ],
)
def test_an_option_that_does_not_work_is_named(config, named):
    with pytest.raises(KafkaConfigurationError, match=named):
        tls_context(config)


def test_the_ciphers_are_the_configured_ones():
    context = tls_context({"ssl_ciphers": "ECDHE-ECDSA-AES128-GCM-SHA256", "ssl_cafile": cert("ca.pem")})
    names = {cipher["name"] for cipher in context.get_ciphers() if "TLSv1.2" in cipher["protocol"]}
    assert names == {"ECDHE-ECDSA-AES128-GCM-SHA256"}


def test_a_certificate_without_names_shows_its_common_name():
    assert "host" in certificate_names({"subject": ((("commonName", "host"),),)})[0]
    assert certificate_names({}) == []


def test_a_stream_that_is_abandoned_says_nothing_to_the_broker():
    """In the child of a fork the connection is still the parent's."""
    stream, server = connect()
    shake(stream)
    heard = []
    server.sock.on_data = heard.append
    stream.abandon()
    stream.close()  # as whoever holds it does later
    assert not heard
    assert stream._sock.closed
