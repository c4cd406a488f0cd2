"""A client of one connection for talking to the broker in raw requests; shares nothing with the library's client."""

from __future__ import annotations

import itertools
import socket
import struct
from types import TracebackType
from typing import TYPE_CHECKING, Any

from kafka.broker import Broker
from kafka.protocol.api import Request, Response

if TYPE_CHECKING:
    from typing_extensions import Self

TIMEOUT = 60.0  # for what comes at once, if the machine is not busy


class Wire:
    """One connection; requests are answered one after the other."""

    def __init__(self, port: int, host: str = "127.0.0.1", client_id: str | None = "test") -> None:
        self.socket = socket.create_connection((host, port), TIMEOUT)
        self.client_id = client_id
        self._numbers = itertools.count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def send(self, request: Request) -> int:
        number = next(self._numbers)
        self.socket.sendall(request.frame(number, self.client_id))
        return number

    def receive(self, response: Any) -> Any:
        """Read one reply of a response class; ConnectionError if the broker closed."""
        (size,) = struct.unpack(">i", self.exactly(4))
        number, reply = response.unframe(self.exactly(size))
        return number, reply

    def ask(self, request: Request) -> Any:
        number = self.send(request)
        answered, reply = self.receive(type(request).RESPONSE_TYPE)
        assert answered == number
        assert isinstance(reply, Response)
        return reply

    def exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            try:
                piece = self.socket.recv(size - len(data))
            except ConnectionResetError:
                piece = b""
            if not piece:
                raise ConnectionError("the broker closed the connection")
            data += piece
        return data

    def is_closed(self) -> bool:
        """Wait until the broker closes the connection; nothing else may come."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


def wire(broker: Broker, node: int = 1) -> Wire:
    return Wire(broker.port(node))
