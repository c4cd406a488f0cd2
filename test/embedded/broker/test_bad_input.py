"""Whatever bytes come, the broker closes that connection at most and goes on."""

from __future__ import annotations

import random
import re
import socket
import struct
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from kafka.broker import Broker
from kafka.broker.groups.classic_member import read_subscription
from kafka.broker.server.apis import served
from kafka.protocol.admin import ApiVersionsRequest, ApiVersionsResponse
from kafka.protocol.consumer_protocol import ConsumerProtocolSubscription
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.registry import APIS, request_class
from kafka.protocol.sasl import SaslHandshakeRequest

from .wire import Wire, wire

if TYPE_CHECKING:
    from kafka.broker.cluster.cluster import Cluster

APIS_BY_NAME = {api.name: key for key, api in APIS.items()}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(topics=["events"]) as running:
        yield running


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack(">i", -1),
        struct.pack(">i", 2**31 - 1),
        frame(b""),
        frame(b"\0\x03"),
        frame(struct.pack(">hhih", 999, 0, 7, -1)),
        frame(struct.pack(">hhih", 3, 99, 7, -1)),
        frame(struct.pack(">hhih", 3, 1, 7, -1)),
        frame(struct.pack(">hhihi", 3, 1, 7, -1, 2**30)),
        frame(struct.pack(">hhih", 3, 1, 7, 300) + b"x"),
    ],
    ids=["http", "negative", "huge", "empty", "short", "api", "version", "no body", "count", "client id"],
)
def test_garbage_closes_the_connection(broker: Broker, data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with wire(broker) as client:
        client.socket.sendall(data)
        assert client.is_closed()
    (said,) = [one for one in caplog.records if one.name == "kafka.broker"]
    assert said.levelname == "WARNING"
    assert re.match(r"closing connection \d+ from 127.0.0.1: .", said.getMessage())
    with wire(broker) as client:
        client.ask(MetadataRequest[1]([]))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "the client speaks HTTP"),
        (b"\x16\x03\x01\x02\x00\x01", "the client speaks TLS and this listener does not"),
        (struct.pack(">i", 2**30), "a request of 1073741824 bytes: the limit here is 104857600"),
        (frame(struct.pack(">hhih", 1, 99, 7, -1)), r"Fetch version 99 is not served, only 0 to \d+"),
        (frame(struct.pack(">hhih", 3, 1, 7, -1)), r"MetadataRequest\[1\].topics"),
    ],
    ids=["http", "tls", "size", "version", "cut"],
)
def test_the_log_says_why_a_connection_was_closed(
    broker: Broker, data: bytes, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    with wire(broker) as client:
        client.socket.sendall(data)
        assert client.is_closed()
    assert re.search(words, caplog.text)


def test_a_client_cannot_write_lines_of_the_log(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    with Broker(sasl=[("PLAIN", "alice", "secret")]) as strict, wire(strict) as client:
        client.ask(SaslHandshakeRequest[1]("PLAIN\n2026-01-01 CRITICAL all is lost\x1b[2J"))
        assert client.is_closed()
    (said,) = [one.getMessage() for one in caplog.records if one.name == "kafka.broker"]
    assert "PLAIN\\n2026-01-01 CRITICAL all is lost\\x1b[2J" in said


def _served_requests() -> list[Any]:
    return [
        pytest.param(key, id=api.name)
        for key, api in sorted(APIS.items())
        if key in served() and "broker" in api.listeners.split()
    ]


@pytest.mark.parametrize("api_key", _served_requests())
def test_bytes_behind_the_last_field_of_a_request_are_ignored(api_key: int) -> None:
    """As Kafka does; librdkafka 2.16 sends three of them behind Metadata 12 and 13."""
    # Telemetry is offered where a reporter takes it.
    with Broker(configs={"metric.reporters": "org.example.Reporter"}) as broker:
        _bytes_behind_are_ignored(broker, api_key)


def _bytes_behind_are_ignored(broker: Broker, api_key: int) -> None:
    versions = broker.run(lambda cluster: cluster.apis.get(api_key))
    assert versions is not None
    low, high = versions
    for version in range(low, high + 1):
        request = request_class(api_key)[version]()
        if api_key == APIS_BY_NAME["Produce"]:
            request.acks = 1
        plain = request.frame(7, "me")[4:]
        for data in (plain, plain + b"\0\0\x01"):
            with wire(broker) as client:
                client.socket.sendall(frame(data))
                number, _ = client.receive(request.RESPONSE_TYPE)
                assert number == 7
    assert broker.requests[-1].request == request


def test_bytes_behind_a_member_s_subscription_are_ignored() -> None:
    plain = ConsumerProtocolSubscription[3](["events"]).encode()
    for version, behind in ((3, b""), (3, b"more"), (9, b"fields to come")):
        found = read_subscription(version.to_bytes(2, "big") + plain + behind)
        assert found is not None
        assert found.topics == ["events"]


def test_a_version_of_api_versions_to_come_is_answered_in_version_0(broker: Broker) -> None:
    with wire(broker) as client:
        client.socket.sendall(frame(struct.pack(">hhih", 18, 99, 7, -1) + b"\0rest"))
        number, reply = client.receive(ApiVersionsResponse[0])
        assert (number, reply.error_code) == (7, 35)
        assert [(api.api_key, api.min_version, api.max_version) for api in reply.api_keys] == [(18, 0, 4)]
        client.ask(ApiVersionsRequest[4](client_software_name="t", client_software_version="1"))


def test_requests_that_were_cut_or_changed_never_stop_it(broker: Broker) -> None:
    rng = random.Random(7)
    good = [MetadataRequest[version](["events"]).frame(1, "me") for version in (1, 5)]
    good += [frame(struct.pack(">hhih", key, api.max_version, 7, -1) + bytes(40)) for key, api in APIS.items()]
    for _ in range(300):
        data = bytearray(rng.choice(good))
        for _ in range(rng.randrange(1, 6)):
            data[rng.randrange(4, len(data))] = rng.randrange(256)
        data = data[: rng.randrange(4, len(data) + 1)]
        struct.pack_into(">i", data, 0, len(data) - 4)
        with socket.create_connection(("127.0.0.1", broker.port()), 5) as sock:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
    with wire(broker) as client:
        client.ask(MetadataRequest[1](["events"]))


def test_frames_come_in_any_pieces(broker: Broker) -> None:
    one = MetadataRequest[1](["events"])
    with wire(broker) as client:
        client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in one.frame(1, "slow"):
            client.socket.sendall(bytes([byte]))
        assert client.receive(type(one).RESPONSE_TYPE)[0] == 1
        client.socket.sendall(b"".join(one.frame(number, "fast") for number in range(2, 60)))
        assert [client.receive(type(one).RESPONSE_TYPE)[0] for _ in range(2, 60)] == list(range(2, 60))


@pytest.mark.parametrize("sent", [0, 1000, 100_000, 1_000_000])
def test_a_large_frame_takes_memory_only_as_it_comes(broker: Broker, sent: int) -> None:
    connections = [Wire(broker.port()) for _ in range(10)]
    for client in connections:
        client.socket.sendall(struct.pack(">i", 90 * 1024 * 1024) + b"\0" * sent)
    wanted = 10 * (4 + sent)

    def arrived(cluster: Cluster) -> bool:
        # Read what came, as the loop will do as well: the kernel has it all.
        return sum(one._filled + one._large_filled for one in cluster.nodes[1].listener.connections) >= wanted - 40

    deadline = time.monotonic() + 30
    while not broker.run(arrived):
        assert time.monotonic() < deadline
    held = broker.run(lambda c: sum(len(one._large or b"") for one in c.nodes[1].listener.connections))
    assert held <= 4 * wanted
    for client in connections:
        client.close()


def test_a_client_that_has_not_authenticated_may_send_half_a_megabyte(caplog: pytest.LogCaptureFixture) -> None:
    """As in Kafka (KIP-684): what a stranger sends is not kept."""
    with Broker(sasl=[("PLAIN", "alice", "secret")]) as strict, wire(strict) as client:
        client.socket.sendall(struct.pack(">i", 512 * 1024 + 1))
        assert client.is_closed()
    assert "a request of 524289 bytes: the limit here is 524288" in caplog.text


def test_a_frame_of_many_megabytes_is_read_whole(broker: Broker) -> None:
    names = ["n" * 249] * 20_000  # five megabytes
    with wire(broker) as client:
        reply = client.ask(MetadataRequest[1](names))
        assert {topic.name for topic in reply.topics} == set(names)


def test_sasl_is_asked_for_before_anything_else() -> None:
    with Broker(sasl=[("PLAIN", "alice", "secret")]) as broker, wire(broker) as client:
        assert client.ask(ApiVersionsRequest[0]()).error_code == 0
        client.send(MetadataRequest[1]([]))
        assert client.is_closed()
