"""Requests to bytes and bytes to responses, for a connection of your own: no socket, no clock, no thread.

>>> from kafka.protocol.metadata import MetadataRequest, MetadataResponse
>>> parser = KafkaProtocol(client_id="me")
>>> parser.send_request(MetadataRequest[0](["events"]))
1
>>> to_broker = parser.send_bytes()
>>> from_broker = MetadataResponse[0]([], []).frame(correlation_id=1)
>>> parser.receive_bytes(from_broker[:5]), parser.receive_bytes(from_broker[5:])
([], [(1, MetadataResponse[0](brokers=[], topics=[]))])
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from kafka.errors import CorrelationIdError, InvalidReceiveError
from kafka.protocol.api import answered_version, has_wrong_id

__all__ = ["KafkaProtocol"]

_SIZE: Final = 4
#: Correlation ids are INT32 and not negative.
_IDS: Final = 2**31


class KafkaProtocol:
    """One connection's requests and responses.

    Responses come in the order of their requests. After an error of ``receive_bytes`` the connection
    is unusable: the boundaries of responses are lost.
    """

    def __init__(
        self, client_id: str | None = None, api_version: Sequence[int] | None = None, max_frame_size: int = 100_000_000
    ) -> None:
        self._client_id = client_id
        self._api_version = None if api_version is None else tuple(api_version)
        self._max_frame_size = max_frame_size
        self._correlation_id = 0
        self._received = bytearray()
        #: What waits to be taken by ``send_bytes``.
        self.bytes_to_send: list[bytes] = []
        #: Correlation ids and requests that no response has come for.
        self.in_flight_requests: deque[tuple[int, Any]] = deque()

    def send_request(self, request: Any, correlation_id: int | None = None) -> int:
        """Take a request, bound to a version; return its correlation id."""
        if correlation_id is None:
            correlation_id = self._correlation_id = (self._correlation_id + 1) % _IDS
        self.bytes_to_send += request.frame_parts(correlation_id, self._client_id)
        if request.expect_response():
            self.in_flight_requests.append((correlation_id, request))
        return correlation_id

    def send_bytes(self) -> bytes:
        """Return the bytes to be sent, and forget them."""
        data = b"".join(self.bytes_to_send)
        self.bytes_to_send = []
        return data

    def receive_bytes(self, data: bytes) -> list[tuple[int, Any]]:
        """Take bytes that were received; return the correlation ids and responses that they complete."""
        self._received += data
        responses = []
        position = 0
        while (end := self._end_of_frame(position)) is not None:
            responses.append(self._response(bytes(self._received[position + _SIZE : end])))
            position = end
        del self._received[:position]
        return responses

    def _end_of_frame(self, position: int) -> int | None:
        if len(self._received) < position + _SIZE:
            return None
        size = int.from_bytes(self._received[position : position + _SIZE], "big", signed=True)
        if not 0 <= size <= self._max_frame_size:
            raise InvalidReceiveError(
                f"a frame of {size} bytes was announced; max_frame_size is {self._max_frame_size}"
            )
        end = position + _SIZE + size
        return end if end <= len(self._received) else None

    def _response(self, frame: bytes) -> tuple[int, Any]:
        if not self.in_flight_requests:
            raise CorrelationIdError("a response came that no request waits for")
        sent_id, request = self.in_flight_requests.popleft()
        response_type: Any = request.RESPONSE_TYPE
        version = answered_version(request.API_KEY, request.API_VERSION, frame)
        received_id, response = response_type._unbound[version].unframe(frame)
        quirk = self._api_version == (0, 8, 2) and has_wrong_id(request.API_KEY, received_id)
        if received_id != sent_id and not quirk:
            raise CorrelationIdError(f"the response has correlation id {received_id}, the request {sent_id}")
        return sent_id, response
