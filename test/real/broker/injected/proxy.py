"""A proxy in front of Apache Kafka that answers chosen requests with an error, in the shape that Kafka gives it.

A request that is answered with an error does not reach Kafka. The reply is made by the request's own class in Kafka's
jars; where a broker makes it in another way, as with reads of partitions, Kafka's reply to the request is changed.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafka.protocol.api import Request
from kafka.protocol.registry import ApiKey
from test.real.golden import Golden

if TYPE_CHECKING:
    from typing_extensions import Self

_SIZE = struct.Struct(">i")
#: Codes of fetch sessions are the whole reply's; the request's class knows how to say them.
SESSION_CODES = {70, 71, 106}
#: Reads whose errors a broker puts at each topic or partition, beside all else that the reply has.
AT_PARTITIONS = {ApiKey.Fetch, ApiKey.Metadata}
TOPIC_CODES = {3, 29, 88, 100}


@dataclass
class Fault:
    """What is answered to the next requests of an API."""

    api: int
    code: int
    left: int
    used: int = 0


class ErrorProxy:
    """Listens on a port that the broker advertises. One fault at a time."""

    def __init__(self, golden: Golden) -> None:
        self._golden = golden
        self._lock = threading.Lock()
        self._fault: Fault | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.target: tuple[str, int] = ("", 0)
        """The listener of the broker behind it."""
        threading.Thread(target=self._accept, name="error proxy", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._listener.close()

    @contextmanager
    def fail(self, api: str, code: int, times: int) -> Iterator[Fault]:
        """Answer the next requests of an API with an error, until the end of the block."""
        fault = self._fault = Fault(ApiKey[api], code, times)
        try:
            yield fault
        finally:
            self._fault = None

    def _accept(self) -> None:
        with suppress(OSError):  # it was closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), name="error proxy", daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        """Carry requests and their replies one by one: no client here depends on more."""
        with suppress(OSError), client, socket.create_connection(self.target) as broker:
            while frame := _read(client):
                header, request = Request.unframe(frame)
                code = self._code_for(request)
                if code and not self._is_changed(request, code):
                    (body,) = self._golden.refuse_many([(request.API_KEY, request.API_VERSION, code, request.encode())])
                    assert isinstance(body, bytes), body
                    tags = b"\0" * type(request).RESPONSE_TYPE.header_version()
                    reply = header.correlation_id.to_bytes(4, "big") + tags + body
                else:
                    broker.sendall(_SIZE.pack(len(frame)) + frame)
                    if not request.expect_response():
                        continue
                    reply = _read(broker)
                    if code:
                        reply = self._changed(request, reply, code)
                client.sendall(_SIZE.pack(len(reply)) + reply)

    def _code_for(self, request: Request[Any]) -> int:
        with self._lock:
            fault = self._fault
            if fault is None or fault.api != request.API_KEY or not fault.left or not _can_have(request, fault.code):
                return 0
            fault.left -= 1
            fault.used += 1
            return fault.code

    @staticmethod
    def _is_changed(request: Request[Any], code: int) -> bool:
        if ApiKey.OffsetFetch == request.API_KEY:
            return code in TOPIC_CODES
        return request.API_KEY in AT_PARTITIONS and code not in SESSION_CODES

    @staticmethod
    def _changed(request: Request[Any], frame: bytes, code: int) -> bytes:
        number, reply = type(request).RESPONSE_TYPE.unframe(frame)
        if ApiKey.Metadata == request.API_KEY:
            for topic in reply.topics:
                topic.error_code, topic.partitions = code, []
            return bytes(reply.frame(number))[4:]
        if ApiKey.Fetch == request.API_KEY:
            topics = reply.responses
        else:
            topics = [topic for group in getattr(reply, "groups", [reply]) for topic in group.topics]
        for topic in topics:
            for part in topic.partitions:
                part.error_code = code
                if ApiKey.Fetch == request.API_KEY:
                    part.high_watermark, part.records = -1, b""
                else:
                    part.committed_offset = -1
        return bytes(reply.frame(number))[4:]


def _can_have(request: Request[Any], code: int) -> bool:
    """Whether Kafka can answer this with the error: in a session, about topics that are asked for."""
    if ApiKey.Fetch == request.API_KEY:
        return request.session_id > 0 if code in SESSION_CODES else bool(request.topics)
    return ApiKey.Metadata != request.API_KEY or request.topics != []


def _read(sock: socket.socket) -> bytes:
    """Return the next frame without its size; nothing at the end of the connection."""
    head = _exactly(sock, 4)
    return _exactly(sock, _SIZE.unpack(head)[0]) if head else b""


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = sock.recv(size - len(data))
        if not piece:
            return b""
        data += piece
    return data
