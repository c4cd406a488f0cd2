"""Scripts of raw requests, run against any broker; what comes back is noted with names in place of what is random.

Two brokers that behave alike give the same notes. Speaks through ``kafka.protocol`` and a blocking socket, not through
the client.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from kafka.protocol.api import Request
from kafka.protocol.struct import Struct

#: Random ids that brokers make: names of fields, and what they are called in the notes.
_RANDOM = {
    "member_id": "member",
    "leader": "member",
    "topic_id": "topic",
    "producer_id": "pid",
}
#: Names that scripts choose are shorter than those that brokers make.
_LONG = 20
#: Places, times and counters that two brokers need not share.
_IGNORED = {"throttle_time_ms", "host", "port", "client_host", "node_id", "transaction_start_time_ms", "cluster_id"}


class Connection:
    """One connection, one request at a time, save for ``send`` and ``receive``."""

    def __init__(self, address: tuple[str, int], client_id: str = "me") -> None:
        self._socket = socket.create_connection(address, 30)
        self._stream = self._socket.makefile("rb")
        self._client_id = client_id
        self._next = 0

    def send(self, request: Request) -> None:
        self._next += 1
        self._socket.sendall(request.frame(correlation_id=self._next, client_id=self._client_id))

    def receive(self, request: Request) -> Any:
        size = int.from_bytes(self._exactly(4), "big")
        correlation_id, reply = type(request).RESPONSE_TYPE.unframe(self._exactly(size))
        assert correlation_id <= self._next
        return reply

    def ask(self, request: Request) -> Any:
        self.send(request)
        return self.receive(request)

    def _exactly(self, size: int) -> bytes:
        data = self._stream.read(size)
        if len(data) != size:
            raise ConnectionError("the broker closed the connection")
        return data

    def close(self) -> None:
        self._stream.close()
        self._socket.close()


class Script:
    """One run of a script against one broker: connections, and the notes."""

    def __init__(self, address: tuple[str, int], *, codes_only: bool = False) -> None:
        self.address = address
        self.notes: list[str] = []
        self._names: dict[tuple[str, Any], str] = {}
        self._counts: dict[str, int] = {}
        self._open: list[Connection] = []

    @contextmanager
    def running(self) -> Iterator[Script]:
        try:
            yield self
        finally:
            for connection in self._open:
                connection.close()

    def connect(self, client_id: str = "me") -> Connection:
        connection = Connection(self.address, client_id)
        self._open.append(connection)
        return connection

    def ask(self, connection: Connection, request: Request, *, note: bool = True) -> Any:
        """Ask and note the reply."""
        try:
            reply = connection.ask(request)
        except ConnectionError:
            self.notes.append(f"{type(request).__name__}: closed")
            return None
        if note:
            self.note(reply)
        return reply

    def note(self, reply: Any) -> None:
        self.notes.append(f"{type(reply).__qualname__} {self._plain(reply)}")

    def until(
        self, connection: Connection, make: Callable[[], Request], done: Callable[[Any], bool], seconds: float = 15
    ) -> Any:
        """Ask until the reply is as wanted, note that one."""
        reply = self.wait(connection, make, done, seconds)
        self.note(reply)
        return reply

    def wait(
        self, connection: Connection, make: Callable[[], Request], done: Callable[[Any], bool], seconds: float = 30
    ) -> Any:
        """Ask until the reply is as wanted."""
        deadline = time.monotonic() + seconds
        while True:
            reply = connection.ask(make())
            if done(reply) or time.monotonic() > deadline:
                return reply
            time.sleep(0.05)

    # Names for what is random

    def _plain(self, value: Any, name: str = "") -> Any:
        if isinstance(value, Struct):
            shown = {
                field: self._plain(getattr(value, field), field)
                for field in type(value)._wire_names()
                if field not in _IGNORED and not (field == "producer_id" and getattr(value, "error_code", 0))
            }
            if shown.get("topic") == "__consumer_offsets":
                shown["partitions"] = "..."  # how many there are is a matter of configuration
            return {key: entry for key, entry in shown.items() if entry is not None}
        if isinstance(value, list):
            plain = [self._plain(each, name) for each in value]
            return sorted(plain, key=repr)
        if name in _RANDOM and value not in ("", None, -1):
            return self._named(_RANDOM[name], value)
        if isinstance(value, memoryview):
            return bytes(value)
        if name == "error_message":
            return bool(value)
        return value

    def _named(self, kind: str, value: Any) -> str:
        if isinstance(value, str) and len(value) < _LONG:
            return value  # one that the script chose
        if isinstance(value, UUID) and not value.int:
            return "no-topic"
        key = (kind, value)
        if key not in self._names:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[key] = f"{kind}-{self._counts[kind]}"
        return self._names[key]
