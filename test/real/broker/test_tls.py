"""TLS, and clients' certificates, with the standard library's own client."""

from __future__ import annotations

import ssl

import pytest

from kafka.broker import Broker
from kafka.protocol.metadata import MetadataRequest
from test.embedded.broker.batches import batch, produce
from test.embedded.broker.wire import Wire
from test.real.certificates import Authority


def client_context(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(authority.cert))


def tls_wire(broker: Broker, context: ssl.SSLContext) -> Wire:
    client = Wire(broker.port())
    client.socket = context.wrap_socket(client.socket, server_hostname="localhost")
    return client


def test_records_go_through_tls(authority: Authority) -> None:
    server = authority.issue("localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server.cert, server.key)
    with Broker(topics=["events"], ssl_context=context) as broker:
        with tls_wire(broker, client_context(authority)) as client:
            large = b"x" * 900_000  # more than one TLS record, and a frame of its own
            part = client.ask(produce(batch(large))).responses[0].partition_responses[0]
            assert part.error_code == 0
        assert broker.records("events")[0].value == large
        with Wire(broker.port()) as plain:  # who speaks no TLS is sent away
            plain.send(MetadataRequest[1]([]))
            plain.socket.settimeout(10)
            assert plain.socket.recv(100)[:1] in {b"", b"\x15"}


def test_a_clients_certificate_is_its_principal(authority: Authority) -> None:
    server, user = authority.issue("localhost"), authority.issue("alice")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server.cert, server.key)
    context.load_verify_locations(authority.cert)
    context.verify_mode = ssl.CERT_REQUIRED
    seen = []
    with Broker(ssl_context=context) as broker:
        broker.intercept("Metadata", lambda exchange: seen.append(exchange.call.principal))
        mine = client_context(authority)
        mine.load_cert_chain(user.cert, user.key)
        with tls_wire(broker, mine) as client:
            client.ask(MetadataRequest[1]([]))
        assert "CN=alice" in seen[0]
        with pytest.raises((ssl.SSLError, ConnectionError)), tls_wire(broker, client_context(authority)) as client:
            client.ask(MetadataRequest[1]([]))
