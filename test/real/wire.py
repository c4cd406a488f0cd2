"""The handful of Kafka requests that the test library itself needs, encoded by hand.

It shares no code with the library under test, so a broker is ready or not whatever the state of that.
All of it blocks, one connection per call.
"""

from __future__ import annotations

import hashlib
import os
import socket
import ssl
import struct
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass

METADATA, LIST_GROUPS, SASL_HANDSHAKE, CREATE_TOPICS, ALTER_SCRAM = 3, 16, 17, 19, 51
LEADER_NOT_AVAILABLE = 5
MECHANISMS = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}


class WireError(Exception):
    """A broker answered with an error code, or with something that cannot be understood."""


@dataclass(frozen=True)
class Metadata:
    """The part of a Metadata v0 response that the tests wait for."""

    brokers: dict[int, tuple[str, int]]
    leaders: dict[str, list[int]]  # topic -> leader of each partition, -1 where there is none
    in_sync: dict[str, list[int]]  # topic -> number of replicas in sync of each partition
    lagging: set[str]  # topics with a replica that is not in sync


def metadata(address: tuple[str, int], *topics: str, timeout: float = 20.0) -> Metadata:
    """Ask one broker what it knows of the cluster, and of some topics (v0: of all, when none is named)."""
    body = struct.pack(">i", len(topics)) + b"".join(_string(topic) for topic in topics)
    reply = _Reader(_roundtrip(address, METADATA, 0, body, timeout))
    brokers = {}
    for _ in range(reply.take(">i")):
        node = reply.take(">i")
        brokers[node] = (reply.string(), reply.take(">i"))
    leaders: dict[str, list[int]] = {}
    in_sync: dict[str, list[int]] = {}
    lagging: set[str] = set()
    for _ in range(reply.take(">i")):
        error, topic, count = reply.take(">h"), reply.string(), reply.take(">i")
        rows = []
        for _ in range(count):
            code, partition, leader = reply.take(">h"), reply.take(">i"), reply.take(">i")
            replicas, isr = reply.int_array(), reply.int_array()
            if len(isr) < len(replicas):
                lagging.add(topic)
            rows.append((partition, -1 if code == LEADER_NOT_AVAILABLE else leader, min(len(isr), len(replicas))))
        if not error:
            leaders[topic] = [leader for _, leader, _ in sorted(rows)]
            in_sync[topic] = [size for _, _, size in sorted(rows)]
    return Metadata(brokers, leaders, in_sync, lagging)


def has_loaded_its_groups(address: tuple[str, int]) -> bool:
    """Whether a broker coordinates all groups that it should: after a restart it loads them for a while."""
    return not _Reader(_roundtrip(address, LIST_GROUPS, 0, b"", 20.0)).take(">h")


def create_topic(
    address: tuple[str, int], name: str, partitions: int, replicas: int, configs: Mapping[str, str]
) -> None:
    """Create a topic (v2, which every KRaft broker takes and passes on to its controller)."""
    body = struct.pack(">i", 1) + _string(name) + struct.pack(">ihii", partitions, replicas, 0, len(configs))
    body += b"".join(_string(key) + _string(value) for key, value in configs.items())
    body += struct.pack(">i?", 30_000, False)
    reply = _Reader(_roundtrip(address, CREATE_TOPICS, 2, body, 30.0))
    reply.take(">i")  # throttle time
    for _ in range(reply.take(">i")):
        topic, code = reply.string(), reply.take(">h")
        if code:
            raise WireError(f"topic {topic} not created: error {code}, {reply.string()}")
        reply.string()


def add_scram_user(address: tuple[str, int], user: str, password: str, mechanism: str, iterations: int) -> None:
    """Give a user a SCRAM credential (flexible version 0, KIP-554)."""
    number, digest = MECHANISMS[mechanism]
    salt = os.urandom(24)
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations)
    upsertion = _compact(user.encode()) + struct.pack(">bi", number, iterations) + _compact(salt) + _compact(salted)
    body = b"\x01" + b"\x02" + upsertion + b"\x00" + b"\x00"  # no deletion, one upsertion, no tags
    reply = _Reader(_roundtrip(address, ALTER_SCRAM, 0, b"\x00" + body, 30.0)[1:])
    reply.take(">i")  # throttle time
    assert reply.take(">B") == 2, "one result"
    length = reply.take(">B") - 1
    reply.skip(length)
    code = reply.take(">h")
    if code:
        raise WireError(f"SCRAM user {user} not created: error {code}")


def knows_scram_user(
    address: tuple[str, int], user: str, mechanism: str, *, tls: bool = False, timeout: float = 20.0
) -> bool:
    """Whether a broker has a user's SCRAM credential: it answers the first message of such a user, and of no other."""
    with ExitStack() as stack:
        sock: socket.socket = stack.enter_context(socket.create_connection(address, timeout))
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            sock = stack.enter_context(context.wrap_socket(sock))
        # Messages without a header follow the handshake of version 0, which every release with SCRAM has.
        code = _Reader(_ask(sock, SASL_HANDSHAKE, 0, _string(mechanism))).take(">h")
        if code:
            raise WireError(f"{mechanism} is not enabled: error {code}")
        message = f"n,,n={user},r=purekafka".encode()
        sock.sendall(struct.pack(">i", len(message)) + message)
        try:
            return sock.recv(1) != b""
        except ConnectionResetError:
            return False


def _roundtrip(address: tuple[str, int], api: int, version: int, body: bytes, timeout: float) -> bytes:
    with socket.create_connection(address, timeout) as sock:
        return _ask(sock, api, version, body)


def _ask(sock: socket.socket, api: int, version: int, body: bytes) -> bytes:
    header = struct.pack(">hhi", api, version, 7) + _string("purekafka-test")
    sock.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
    with sock.makefile("rb") as stream:
        size, correlation = struct.unpack(">ii", _exactly(stream.read(8), 8))
        assert correlation == 7
        return _exactly(stream.read(size - 4), size - 4)


def _exactly(data: bytes, size: int) -> bytes:
    if len(data) != size:
        raise ConnectionError("the broker closed the connection")
    return data


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _compact(data: bytes) -> bytes:
    """A compact string or compact bytes; one byte of length is enough for what is sent here."""
    assert len(data) < 127
    return bytes([len(data) + 1]) + data


class _Reader:
    """Reads the fields of a response one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, form: str) -> int:
        (value,) = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return int(value)

    def skip(self, size: int) -> None:
        self._at += size

    def string(self) -> str:
        size = self.take(">h")
        if size < 0:
            return ""
        self._at += size
        return self._data[self._at - size : self._at].decode()

    def int_array(self) -> list[int]:
        return [self.take(">i") for _ in range(self.take(">i"))]
