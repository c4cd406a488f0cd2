"""ZooKeeper for the releases that need it: its process, and the few calls the tests make to it directly.

Topics, topic configurations and SCRAM users of that era are nodes in ZooKeeper; writing them there
takes milliseconds where Kafka's own tool starts a JVM.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import socket
import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

CREATE, EXISTS = 1, 3
NO_NODE, NODE_EXISTS = -101, -110
ANYONE = struct.pack(">ii", 1, 31) + b"\0\0\0\x05world" + b"\0\0\0\x06anyone"
SEQUENTIAL = 2
TICK_MS = 500
SESSION_MS = 4000  # how long a broker killed with SIGKILL is thought alive


def config_text(port: int, data_dir: str) -> str:
    """The configuration file of a lone ZooKeeper on loopback."""
    lines = {
        "clientPort": port,
        "clientPortAddress": "127.0.0.1",
        "dataDir": data_dir,
        "tickTime": TICK_MS,
        "maxClientCnxns": 0,
        "admin.enableServer": "false",  # it would listen on a fixed port
    }
    return "".join(f"{key}={value}\n" for key, value in lines.items())


class ZooKeeperError(Exception):
    """ZooKeeper refused a call."""


class ZooKeeper:
    """A session of a few blocking calls; a context manager."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._sock = socket.create_connection(address, 10.0)
        self._stream = self._sock.makefile("rb")
        self._xid = 0
        try:
            self._send(struct.pack(">iqiqi16s", 0, 0, 10_000, 0, 16, b""))
            self._frame()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Drop the session."""
        self._stream.close()
        self._sock.close()

    def create(self, path: str, data: object, flags: int = 0) -> None:
        """Make a node with JSON in it, and the nodes above it."""
        parent = path.rpartition("/")[0]
        if parent and not self.exists(parent):
            try:
                self.create(parent, None)
            except ZooKeeperError as error:
                if error.args[1] != NODE_EXISTS:  # a broker may have been faster
                    raise
        content = b"" if data is None else json.dumps(data).encode()
        body = _buffer(path.encode()) + _buffer(content) + ANYONE + struct.pack(">i", flags)
        code = self._call(CREATE, body)
        if code:
            raise ZooKeeperError(f"ZooKeeper error {code} on creating {path}", code)

    def exists(self, path: str) -> bool:
        """True when there is such a node."""
        code = self._call(EXISTS, _buffer(path.encode()) + b"\0")
        if code not in {0, NO_NODE}:
            raise ZooKeeperError(f"ZooKeeper error {code} on {path}", code)
        return code == 0

    def _call(self, kind: int, body: bytes) -> int:
        self._xid += 1
        self._send(struct.pack(">ii", self._xid, kind) + body)
        xid, _, code = struct.unpack_from(">iqi", self._frame())
        assert xid == self._xid
        return int(code)

    def _send(self, body: bytes) -> None:
        self._sock.sendall(struct.pack(">i", len(body)) + body)

    def _frame(self) -> bytes:
        head = self._stream.read(4)
        if len(head) < 4:
            raise ConnectionError("ZooKeeper closed the connection")
        return self._stream.read(struct.unpack(">i", head)[0])


def create_topic(
    zk: ZooKeeper, name: str, *, partitions: int, replicas: int, nodes: Sequence[int], configs: Mapping[str, str]
) -> None:
    """Write a topic, replicas going round over the nodes; the controller takes it from there."""
    assignment = {
        str(partition): [nodes[(partition + replica) % len(nodes)] for replica in range(replicas)]
        for partition in range(partitions)
    }
    zk.create(f"/config/topics/{name}", {"version": 1, "config": dict(configs)})
    zk.create(f"/brokers/topics/{name}", {"version": 1, "partitions": assignment})


def add_scram_user(zk: ZooKeeper, user: str, password: str, mechanism: str, iterations: int) -> None:
    """Write a user's SCRAM credential and tell the brokers (KIP-84)."""
    digest = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}[mechanism]
    salt = os.urandom(24)
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations)
    stored = hashlib.new(digest, hmac.digest(salted, b"Client Key", digest)).digest()
    server = hmac.digest(salted, b"Server Key", digest)
    fields = {"salt": salt, "stored_key": stored, "server_key": server}
    text = ",".join(f"{key}={base64.b64encode(value).decode()}" for key, value in fields.items())
    zk.create(f"/config/users/{user}", {"version": 1, "config": {mechanism: f"{text},iterations={iterations}"}})
    zk.create("/config/changes/config_change_", {"version": 2, "entity_path": f"users/{user}"}, SEQUENTIAL)


def _buffer(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data
