"""Requests over a stream that is used for nothing else: a connection that is being set up, or renews its session.

Coroutines on the client's loop. Each request waits for the response to the one before, so there is no queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafka._runtime.loop import READ, WRITE
from kafka.errors import (
    CorrelationIdError,
    KafkaConnectionError,
    KafkaError,
    KafkaProtocolError,
    KafkaTimeoutError,
    RequestTimedOutError,
)
from kafka.net.pipeline import SendQueue
from kafka.net.sockets import readiness
from kafka.protocol.api import Request, Response, decoder_of, has_wrong_id

if TYPE_CHECKING:
    from kafka.net.frame_stream import Endpoint, FrameStream
    from kafka.protocol.fields import Buffer

__all__ = ["AnsweredProbeError", "Exchange"]

ResponseT = TypeVar("ResponseT", bound=Response)

# Brokers 0.9.0 ignore unknown requests. After this long without an answer, in seconds, the client sends a request that
# these know too. A slow broker answers both.
_PROBE_AFTER: Final = 1.0


class AnsweredProbeError(KafkaError):
    """The broker has answered the request that each release knows, and not the one before."""


class Exchange:
    """Requests over a stream that is used for nothing else now: each waits for the response to the one before."""

    def __init__(self, endpoint: Endpoint, frames: FrameStream) -> None:
        self.frames = frames
        self.correlation_id = 0
        self.ignored: list[int] = []
        self._endpoint = endpoint
        self._loop = endpoint.context.loop
        self._outgoing = SendQueue()
        self._size = 0  # of the last request
        self._arrived: deque[Buffer] = deque()

    async def ask(
        self,
        request: Request[ResponseT],
        version: int,
        decode: Callable[[Buffer], ResponseT] | None = None,
        *,
        timeout: float | None = None,
        probe: Callable[[], Request[Response]] | None = None,
    ) -> ResponseT:
        """Send a request and wait for the response, for request_timeout_ms unless a `timeout` is given.

        `probe()` is sent when nothing has arrived for a second; AnsweredProbeError if that is answered first.
        """
        name, began = type(request).__name__, self._loop.time()
        deadline = began + (self._endpoint.context.settings.request_timeout if timeout is None else timeout)
        asked = await self._send(request, version, deadline)
        probed = None
        if probe is not None and not await self._arrives(began + _PROBE_AFTER):
            probed = await self._send(probe(), 0, deadline)
            self.ignored.append(probed)
        while True:
            frame = await self._frame(name, began, deadline)
            if len(frame) < 4:
                raise KafkaProtocolError(f"a response of {len(frame)} bytes is too short")
            found = int.from_bytes(frame[:4], "big", signed=True)
            if found == asked or has_wrong_id(getattr(request, "API_KEY", None), found):
                break
            if found not in self.ignored:
                raise CorrelationIdError(f"the broker answered request {found}, expected was {asked} ({name})")
            self.ignored.remove(found)
            if found == probed:
                raise AnsweredProbeError(f"the broker does not answer {name}")
        self._endpoint.traffic.answered(self._size, self._loop.time() - began, len(frame) + 4)
        return (decoder_of(type(request), version) if decode is None else decode)(frame)

    async def ask_raw(self, data: bytes) -> bytes:
        """Send a bare SASL token and wait for the bare response."""
        began = self._loop.time()
        deadline = began + self._endpoint.context.settings.request_timeout
        self._size = self._outgoing.put([len(data).to_bytes(4, "big") + data])
        await self._flush(deadline)
        frame = await self._frame("SaslToken", began, deadline)
        self._endpoint.traffic.answered(self._size, self._loop.time() - began, len(frame) + 4)
        return bytes(frame)

    def check(self) -> None:
        """Raise the error if the broker has ended the stream, or sent more than it was asked for."""
        try:
            with suppress(BlockingIOError):
                self._receive()
        except KafkaConnectionError as error:
            raise KafkaConnectionError("the broker closed the connection as soon as it was ready") from error
        for frame in self._arrived:
            if int.from_bytes(frame[:4], "big", signed=True) not in self.ignored:
                raise KafkaProtocolError(f"the broker sent {len(frame)} bytes without a request")

    def close(self) -> None:
        """Close the stream."""
        self.frames.stream.close()

    async def _send(self, request: Request[Any], version: int, deadline: float) -> int:
        self.correlation_id += 1
        client_id = self._endpoint.context.settings.client_id
        pieces = request.frame_parts(self.correlation_id, client_id, version)
        self._size = self._outgoing.put(pieces)
        await self._flush(deadline)
        return self.correlation_id

    async def _flush(self, deadline: float) -> None:
        stream = self.frames.stream
        with self._loop.timeout_at(deadline, "sending a request"):
            while self._outgoing.waiting or stream.pending_out:
                try:
                    self.frames.send(self._outgoing)
                except KafkaError:
                    with suppress(BlockingIOError):
                        self._receive()  # raises a better error if the broker closed the connection, or said why
                    raise
                if self._outgoing.waiting or stream.pending_out:
                    await readiness(self._loop, stream, WRITE)

    async def _arrives(self, until: float) -> bool:
        """Wait for a frame; whether there is one."""
        try:
            with self._loop.timeout_at(until):
                await self._wait_for_frame()
        except KafkaTimeoutError:
            return False
        return True

    async def _frame(self, name: str, began: float, deadline: float) -> Buffer:
        try:
            with self._loop.timeout_at(deadline):
                await self._wait_for_frame()
        except KafkaTimeoutError as error:
            waited = self._loop.time() - began
            raise RequestTimedOutError(f"no response to {name} within {waited:.1f} seconds") from error
        return self._arrived.popleft()

    async def _wait_for_frame(self) -> None:
        stream, has_more = self.frames.stream, self.frames.stream.pending_in
        while not self._arrived:
            if not has_more:
                await readiness(self._loop, stream, READ)
            has_more = False
            with suppress(BlockingIOError):
                has_more = self._receive() and stream.pending_in

    def _receive(self) -> bool:
        """Receive in a few large reads; return whether there may be more. BlockingIOError if nothing has arrived."""
        for _ in range(self._endpoint.context.settings.chunk_count):
            frames, more = self.frames.receive()
            self._arrived += frames
            if not more:
                return False
        return True
