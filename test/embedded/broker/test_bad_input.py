"""Whatever bytes come, the broker closes that connection at most and goes on."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Iterator

import pytest

from kafka.broker import Broker
from kafka.protocol.admin import ApiVersionsRequest, ApiVersionsResponse
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.registry import APIS

from .wire import Wire, wire


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
def test_garbage_closes_the_connection(broker: Broker, data: bytes) -> None:
    with wire(broker) as client:
        client.socket.sendall(data)
        assert client.is_closed()
    with wire(broker) as client:
        client.ask(MetadataRequest[1]([]))


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


def test_a_large_frame_takes_memory_only_as_it_comes(broker: Broker) -> None:
    connections = [Wire(broker.port()) for _ in range(20)]
    for client in connections:
        client.socket.sendall(struct.pack(">i", 90 * 1024 * 1024) + b"\0" * 100_000)
    with wire(broker) as client:
        client.ask(MetadataRequest[1]([]))
    held = broker.run(lambda c: sum(len(one._large or b"") for one in c.nodes[1].listener.connections))
    assert held <= 20 * 1024 * 1024
    for client in connections:
        client.close()


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
